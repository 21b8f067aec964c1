"""Columns that several families' events share, declared once."""

from __future__ import annotations

from marketeval.core.log import Column, EventKind

STEP = Column("step", "int32", "simulation step, counted from 0", low=0)
SLOT = Column("slot", "int32", "place of the interaction within its step, from 0", low=0)
AGENT = Column("agent", "int16", "the agent, a row of the table of agents", low=0)
SEAT = Column("seat", "text", "the seat's name in the scenario")
LABEL = Column("label", "text", "the name shown in tables and pictures")

RUNGS = ("schema", "json", "prompt")
STRUCTURED = EventKind(
    "structured",
    "how a model was asked for an action, which of its answers could not be read, and its tokens",
    (
        SEAT,
        Column("decision", "text", "the kind of decision"),
        Column(
            "rung", "enum", "strict schema, JSON mode, or the schema in the prompt", values=RUNGS
        ),
        Column("unreadable", "int32", "answers that could not be read", low=0),
        Column("reason", "text", "what was wrong with them"),
        Column("call", "text", "hash of the first call's sample index and messages"),
        Column("input_tokens", "int64", "tokens sent in all; -1 if the endpoint states none", -1),
        Column("output_tokens", "int64", "tokens answered in all; -1 as above", -1),
    ),
)
