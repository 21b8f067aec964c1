"""The event tables of coupled markets: agents and edges, the path of every interaction, money.

The users' side is written in the tables of the information market (`generator`, `interaction`), so
that every metric of that market holds here too.
"""

from __future__ import annotations

from marketeval.core.log import Column, EventKind
from marketeval.events import information as one_market
from marketeval.events.common import AGENT, LABEL, SEAT, SLOT, STEP

ROLES = ("router", "generator", "retriever")
NOBODY = -1
STATUSES = ("ok", "turned_away", "unaffordable", "out_of_scope", "failed")
OK, TURNED_AWAY, UNAFFORDABLE, OUT_OF_SCOPE, FAILED = range(5)
PURPOSES = ("answer", "retrieval", "routing", "running", "penalty")
ANSWER, RETRIEVAL, ROUTING, RUNNING, PENALTY = range(5)
LEVERS = ("price", "depth", "focus")


def _agent(name: str, doc: str) -> Column:
    return Column(name, "int16", f"{doc}, a row of `agent`; -1 for none", low=-1)


POPULATION = Column("population", "text", "the stakeholder population")
MICROS = Column("micros", "int64", "millionths of a dollar", low=0)
ROUND = Column("round", "int16", "round of retrieval, from 0", low=0)

AGENTS = EventKind(
    "agent",
    "an agent of any role but user",
    (
        AGENT,
        SEAT,
        LABEL,
        POPULATION,
        Column("role", "enum", "what it does", values=ROLES),
        Column("position", "int16", "place in the configuration, from 0", low=0),
        Column("capacity", "int64", "calls per step; -1 without limit", low=-1),
        Column("opening", "int64", "opening balance, millionths of a dollar; -1 on credit", low=-1),
    ),
)
POPULATIONS = EventKind(
    "population",
    "a stakeholder population, in topological order of the graph",
    (
        POPULATION,
        Column("role", "text", "user, router, generator or retriever"),
        Column("size", "int32", "number of its agents or users", low=0),
    ),
)
EDGES = EventKind(
    "edge",
    "an edge of the governance graph, as the scenario names its ends",
    (
        Column("source", "text", "a population or an agent"),
        Column("target", "text", "a population or an agent it may select"),
    ),
)
ADMISSIBLE = EventKind(
    "admissible",
    "whom an agent may select, spelled out",
    (
        Column("chooser", "text", "an agent, or a population of users"),
        _agent("target", "whom it may select"),
    ),
)
WEIGHTS = EventKind(
    "weights",
    "what a user of a segment weighs: utility = quality q - cost C - latency L",
    (
        one_market.SEGMENT,
        Column("quality", "float64", "weight of quality"),
        Column("cost", "float64", "weight of a dollar"),
        Column("latency", "float64", "weight of a second"),
        Column("opening", "int64", "a user's budget, millionths of a dollar; -1 on credit", low=-1),
    ),
)
POTENTIAL = EventKind(
    "potential",
    "what a provider with one retriever gives for a question, undisturbed and without error",
    (
        _agent("provider", "the generator, or the retriever where users ask it itself"),
        _agent("retriever", "the retriever it uses; -1 for none"),
        one_market.QUESTION,
        Column("quality", "float64", "quality of the answer", 0, 1),
        Column("cost_usd", "float64", "what the user pays"),
        Column("latency_s", "float64", "seconds to the answer", low=0),
        Column("errors", "float64", "share of its answers that are wrong all the same", 0, 1),
    ),
)
PERFECT = EventKind(
    "perfect",
    "the quality of a provider's answer from perfect evidence",
    (_agent("provider", "the provider"), Column("quality", "float64", "quality", 0, 1)),
)

CHOICE = EventKind(
    "choice",
    "somebody selects an agent along an edge",
    (
        STEP,
        SLOT,
        Column("user", "int32", "the user whose question it is", low=0),
        _agent("chooser", "who selects; -1 for the user"),
        AGENT,
        Column("depth", "int8", "edges before it on this path", low=0),
        ROUND,
        Column("explored", "bool", "whether it was exploration"),
        Column("signal", "float64", "what the chooser learned", nullable=True),
        Column("score", "float64", "quality of the answer", 0, 1, nullable=True),
        Column("utility", "float64", "the user's utility", nullable=True),
        Column("latency_s", "float64", "seconds of the whole interaction", nullable=True),
        Column("cost_usd", "float64", "what the user paid", nullable=True),
        Column("status", "enum", "of the interaction", values=one_market.STATUSES),
    ),
)
CALL = EventKind(
    "retrieval",
    "a retriever is called",
    (
        STEP,
        SLOT,
        ROUND,
        _agent("caller", "the generator; -1 where the user calls"),
        _agent("router", "the router it went through"),
        AGENT,
        Column("query", "text", "the query, where it is not the question itself"),
        Column("documents", "text", "ids of the documents handed over, best first"),
        Column("count", "int32", "number of documents", low=0),
        Column("reported", "float64", "the retriever's own score of the first", nullable=True),
        Column("evidence", "float64", "what they are worth by the judgments", 0, 1, nullable=True),
        Column("micros", "int64", "paid for it, millionths of a dollar", low=0),
        Column("latency_s", "float64", "seconds, waiting included", low=0),
        Column("effort", "float64", "part of full service; 0 = turned away", 0, 1),
        Column("served", "int32", "the step it is served in", low=0),
        Column("status", "enum", "how it went", values=STATUSES),
    ),
)
PATH = EventKind(
    "path",
    "how an interaction went, from user to answer",
    (
        STEP,
        SLOT,
        _agent("router", "the router between user and provider"),
        _agent("provider", "the generator, or the retriever the user asked itself"),
        Column("retrieved", "int16", "calls of retrievers that were served", low=0),
        Column("evidence", "float64", "worth of all evidence together", 0, 1, nullable=True),
        Column("closed", "float64", "quality without retrieval", 0, 1, nullable=True),
        Column("quality", "float64", "quality of the answer", 0, 1, nullable=True),
        Column("effort", "float64", "part of full service by the provider", 0, 1),
        Column("served", "int32", "the step the provider serves it in", low=0),
        Column("text", "text", "the answer in words, where it has any"),
        Column("status", "enum", "how it went", values=STATUSES),
    ),
)
PAYMENT = EventKind(
    "payment",
    "money moves",
    (
        STEP,
        SLOT,
        Column("payer", "text", "an agent, `user N`, or `(bank)` for the world outside"),
        Column("payee", "text", "as the payer"),
        MICROS,
        Column("purpose", "enum", "what for", values=PURPOSES),
    ),
)
BALANCE = EventKind(
    "balance",
    "an account at the end of an episode",
    (
        Column("account", "text", "an agent, `user N`, or `(bank)`"),
        Column("opening", "int64", "millionths of a dollar at the start"),
        Column("closing", "int64", "millionths of a dollar at the end"),
    ),
)
ADAPTED = EventKind(
    "adapted",
    "an agent sets one of its levers, from its own feedback alone",
    (
        STEP,
        AGENT,
        Column("lever", "enum", "which", values=LEVERS),
        Column("value", "text", "the value it takes"),
        Column("payoff", "float64", "what the last period brought it", nullable=True),
    ),
)
PREFERENCE = EventKind(
    "preference",
    "how strongly a chooser leans to a target at the end of an episode",
    (
        Column("chooser", "text", "an agent, or a population of users (their mean)"),
        AGENT,
        Column("worth", "float64", "its worth to the chooser, in the units of its learning"),
    ),
)

SHARED = (
    one_market.MARKET, one_market.GENERATOR, one_market.STATIC_SCORE, one_market.TOPICS,
    one_market.QUESTIONS, one_market.SEGMENTS, one_market.PHASE, one_market.USERS,
    AGENTS, POPULATIONS, EDGES, ADMISSIBLE, WEIGHTS, POTENTIAL, PERFECT,
)  # fmt: skip
EPISODE = (
    one_market.INTERVENTION, one_market.INTERACTION, one_market.UNSERVED,
    one_market.MISSED_CHOICE, CHOICE, CALL, PATH, PAYMENT, BALANCE, ADAPTED, PREFERENCE,
)  # fmt: skip
KINDS = (*SHARED, *EPISODE)
