"""What happens in the information-access market, one declared table per kind of event.

The first group holds for every seed of a run and is written once, with a null seed: who competes,
what is asked, how the systems did on the static benchmark. The second is one episode's story.
"""

from __future__ import annotations

from marketeval.core.log import Column, EventKind
from marketeval.events.common import AGENT, LABEL, SEAT, SLOT, STEP, STRUCTURED

GRADES = ("incorrect", "correct", "not_attempted", "none")
INCORRECT, CORRECT, NOT_ATTEMPTED, UNGRADED = range(4)

STATUSES = ("ok", "missing", "outage")
OK, MISSING, OUTAGE = range(3)

CHANGES = ("entry", "exit", "price", "latency", "quality", "outage")

USER = Column("user", "int32", "the user, counted from 0 in order of arrival", low=0)
QUESTION = Column("question", "int32", "the question, a row of the table `question`", low=0)
TOPIC = Column("topic", "int16", "the topic, a row of the table `topic`", low=0)
SEGMENT = Column("segment", "int16", "the user segment, a row of the table `segment`", low=0)
NAME = Column("name", "text", "the name in the scenario or the data")

MARKET = EventKind(
    "market",
    "the size of the market; one row",
    (
        Column("horizon", "int32", "number of steps", low=0),
        Column("users", "int32", "users at the start", low=0),
        Column("users_per_step", "int32", "interactions per step", low=0),
    ),
)
GENERATOR = EventKind(
    "generator",
    "a generator that competes for the users' queries",
    (
        AGENT,
        SEAT,
        LABEL,
        Column("position", "int16", "place in the configuration, from 0; decides ties", low=0),
        Column("entry_step", "int32", "step of its first entry; 0 = there from the start", low=0),
        Column("privileged", "bool", "whether it is told what its seat should not know"),
    ),
)
STATIC_SCORE = EventKind(
    "static_score",
    "how a generator did on the static benchmark: each question asked once, no competition",
    (
        AGENT,
        Column("items", "int64", "questions it was graded on; 0 where a rate was declared", low=0),
        Column("correct", "float64", "sum of the scores over items", low=0, nullable=True),
        Column("attempted", "float64", "number of items attempted", low=0, nullable=True),
        Column("accuracy", "float64", "mean score over items", low=0, high=1, nullable=True),
        Column("f_score", "float64", "2 correct / (items + attempted)", 0, 1, nullable=True),
    ),
)
TOPICS = EventKind("topic", "a topic of questions", (TOPIC, NAME))
QUESTIONS = EventKind(
    "question",
    "a question in the pool",
    (QUESTION, Column("item", "text", "its id in the data"), TOPIC),
)
SEGMENTS = EventKind(
    "segment",
    "a kind of user",
    (
        SEGMENT,
        NAME,
        Column("weight", "float64", "its share of the population", low=0),
        Column("seat", "text", "the seat that chooses for its users; empty: its choice rule"),
    ),
)
PHASE = EventKind(
    "phase",
    "a stretch of steps that tables compare, such as before and after an entry",
    (
        NAME,
        Column("start", "int32", "first step", low=0),
        Column("stop", "int32", "the step after the last", low=0),
    ),
)
USERS = EventKind(
    "user",
    "a user who is there from the start (null seed) or who arrives during an episode",
    (USER, SEGMENT, Column("arrived", "int32", "step of arrival", low=0)),
)

INTERVENTION = EventKind(
    "intervention",
    "a scheduled change of the market, at the start of its step",
    (
        STEP,
        AGENT,
        Column("change", "enum", "what changed", values=CHANGES),
        Column(
            "value",
            "float64",
            "price and latency: the factor; quality: the change; outage: the step it ends at",
            nullable=True,
        ),
    ),
)
INTERACTION = EventKind(
    "interaction",
    "one user asks one question of one generator and learns from the answer",
    (
        STEP,
        SLOT,
        USER,
        QUESTION,
        TOPIC,
        AGENT,
        Column("explored", "bool", "whether the choice was exploration"),
        Column("score", "float64", "quality of the answer, q", 0, 1, nullable=True),
        Column("grade", "enum", "the grade, where the data have one", values=GRADES),
        Column("cost_usd", "float64", "price of the answer in dollars", nullable=True),
        Column("latency_s", "float64", "time to answer in seconds", low=0, nullable=True),
        Column("signal", "float64", "what the user learned from", nullable=True),
        Column(
            "utility",
            "float64",
            "alpha q - beta cost - gamma latency + delta trust",
            nullable=True,
        ),
        Column("status", "enum", "whether there was an outcome at all", values=STATUSES),
    ),
)
UNSERVED = EventKind(
    "unserved", "a user who found no generator to ask", (STEP, SLOT, USER, QUESTION)
)
MISSED = EventKind(
    "missing",
    "an interaction without an outcome, and why",
    (STEP, SLOT, AGENT, Column("reason", "text", "what went wrong")),
)
MISSED_CHOICE = EventKind(
    "missing_choice",
    "a user that is an agent and chose nobody it could ask: its segment's rule chose instead",
    (STEP, SLOT, USER, Column("reason", "text", "what went wrong")),
)
JUDGEMENT = EventKind(
    "judgement",
    "what one judge of a panel made of one answer, before any intervention",
    (
        STEP,
        SLOT,
        Column("judge", "text", "the judge's name"),
        Column("score", "float64", "its score", 0, 1, nullable=True),
        Column("grade", "enum", "its grade, if it gives one", values=GRADES),
    ),
)
USER_LEFT = EventKind(
    "user_left",
    "a user who left for good, after this step, for the outside option",
    (STEP, USER, Column("utility", "float64", "the running utility that made them leave")),
)

SHARED = (MARKET, GENERATOR, STATIC_SCORE, TOPICS, QUESTIONS, SEGMENTS, PHASE, USERS)
EPISODE = (
    INTERVENTION, INTERACTION, UNSERVED, MISSED, MISSED_CHOICE, JUDGEMENT, USER_LEFT, STRUCTURED,
)  # fmt: skip
KINDS = (*SHARED, *EPISODE)
