"""Columns that several families' events share, declared once."""

from __future__ import annotations

from marketeval.core.log import Column

STEP = Column("step", "int32", "simulation step, counted from 0", low=0)
SLOT = Column("slot", "int32", "place of the interaction within its step, from 0", low=0)
AGENT = Column("agent", "int16", "the agent, a row of the table of agents", low=0)
SEAT = Column("seat", "text", "the seat's name in the scenario")
LABEL = Column("label", "text", "the name shown in tables and pictures")
