"""What happens in the supply-chain economy, one declared table per kind of event.

Money is in whole units of account, stock in whole pieces. The first group holds for every seed and
is written once, with a null seed; the second is one episode's story. Rows say what each seat did
and what came of it per item, never what each buyer saw: logs scale with decisions.
"""

from __future__ import annotations

from marketeval.core.log import Column, EventKind
from marketeval.events.common import AGENT, LABEL, SEAT, STEP, STRUCTURED

STAGES = ("procurement", "retail", "embedding")
AT_PROCUREMENT, AT_RETAIL, AT_EMBEDDING = range(3)

BID_STATES = ("valid", "empty", "invalid_format", "overspent", "void_line", "bankrupt")
VALID, EMPTY, INVALID_FORMAT, OVERSPENT, VOID_LINE, BANKRUPT = range(6)

FAULTS = (
    "unknown_item",
    "malformed",
    "negative",
    "fractional",
    "below_reserve",
    "not_positive",
    "duplicate",
    "slogan_cut",
    "slogan_malformed",
)

ITEM = Column("item", "int16", "the item, a row of the table `item`", low=0)
TRIBE = Column("tribe", "int16", "the buyers' tribe, a row of the table `tribe`", low=0)
ROUND = Column("round", "int16", "bidding round, counted from 0; the last one is settled", low=0)
NAME = Column("name", "text", "the name in the scenario")


def _units(name: str, doc: str) -> Column:
    return Column(name, "int64", doc, low=0)


ECONOMY = EventKind(
    "economy",
    "the size and the rules of the economy; one row",
    (
        Column("horizon", "int32", "number of steps", low=1),
        Column("rounds", "int16", "bidding rounds per step", low=1),
        _units("buyers", "buyers per step"),
        _units("funds", "each retailer's money at the start"),
        Column("sampler", "text", "how buyers notice sellers"),
        Column("temperature", "float64", "tau of persona-gated attention", low=0),
        Column("max_markup", "float64", "highest price over base that sells", nullable=True),
        Column("demand_ratio", "float64", "units demanded per unit supplied", low=0),
        _units("credit", "how far below 0 funds may go"),
    ),
)
RETAILER = EventKind(
    "retailer",
    "a retailer, in the order of the state's rows (sorted by seat)",
    (
        AGENT,
        SEAT,
        LABEL,
        Column("position", "int16", "place in the configuration, from 0", low=0),
        Column("privileged", "bool", "whether it is told what its seat should not know"),
    ),
)
ITEMS = EventKind(
    "item",
    "something to trade",
    (
        ITEM,
        NAME,
        Column("category", "text", "its class of goods"),
        _units("quantity", "units that the supplier offers per step, shocks aside"),
        _units("base_price", "the reserve price at auction"),
    ),
)
TRIBES = EventKind(
    "tribe",
    "a kind of buyer",
    (
        TRIBE,
        NAME,
        Column("weight", "float64", "its share of the buyers", 0, 1),
        Column("sensitivity", "float64", "lambda, how much slogans matter to it", low=0),
        Column("patience", "float64", "rho, the part of K_max sellers it notices", 0, 1),
        Column("persona", "text", "the text that slogans are compared with"),
    ),
)
EMBEDDER = EventKind(
    "embedder",
    "what turned texts into vectors; similarities of different embedders do not compare",
    (
        Column("embedder", "text", "its id"),
        Column("sha256", "text", "hash of its weights or of its code and data"),
        Column("size", "int32", "numbers per vector", low=1),
    ),
)

REFERENCE = EventKind(
    "reference",
    "how close a fixed set of reference slogans is to the personas, by the same embedder",
    (
        Column("tribe", "int16", "the tribe; -1 for the sum over tribes by weight", low=-1),
        _units("slogans", "how many reference slogans"),
        Column("mean", "float64", "mean of their cosines", -1, 1),
        Column("sd", "float64", "standard deviation (n - 1) of their cosines", 0, 2),
    ),
)

OFFER = EventKind(
    "offer",
    "what the supplier offers at a step",
    (STEP, ITEM, _units("quantity", "units offered"), _units("base_price", "reserve price")),
)
BID = EventKind(
    "bid",
    "a seat's bid in one round, as a whole",
    (
        STEP,
        ROUND,
        AGENT,
        Column("state", "enum", "whether it counts, and if not, why", values=BID_STATES),
        _units("lines", "lines with a quantity, valid or void"),
        _units("void_lines", "lines that do not count, each a row of `fault`"),
        _units("asked", "units asked on all its readable lines, void or not"),
        Column("commitment", "float64", "sum of quantity times price of its valid lines", low=0),
        Column("funds", "int64", "the seat's money before the round"),
        Column("reason", "text", "what was wrong with a bid that is no bid; else empty"),
    ),
)
BID_LINE = EventKind(
    "bid_line",
    "a valid line of a bid (which counts only if the bid is valid)",
    (STEP, ROUND, AGENT, ITEM, _units("quantity", "units asked"), _units("price", "per unit")),
)
FAULT = EventKind(
    "fault",
    "a line or text that does not count as it came, and why",
    (
        STEP,
        Column("stage", "enum", "when", values=STAGES),
        ROUND,
        Column("agent", "int16", "the agent; -1 for the embedder", low=-1),
        Column("fault", "enum", "what was wrong", values=FAULTS),
        Column("what", "text", "what came, cut to 80 characters"),
    ),
)
AWARD = EventKind(
    "award",
    "what a line of a final bid won (also 0)",
    (
        STEP,
        AGENT,
        ITEM,
        _units("asked", "units asked"),
        _units("won", "units won"),
        _units("price", "price paid per unit; 0 if nothing was won"),
    ),
)
LISTING = EventKind(
    "listing",
    "a price that a seat posted for an item",
    (STEP, AGENT, ITEM, _units("price", "per unit"), _units("stock", "units on the shelf")),
)
SLOGAN = EventKind(
    "slogan",
    "the slogan of a seat; empty if it gave none",
    (
        STEP,
        AGENT,
        Column("text", "text", "as buyers saw it"),
        _units("words", "words as given, before it was cut"),
    ),
)
RETAIL = EventKind(
    "retail",
    "a seat's answer at the retail stage, as a whole",
    (
        STEP,
        AGENT,
        Column("valid", "bool", "whether there was an answer at all"),
        _units("listed", "prices posted"),
        _units("void_lines", "prices that do not count"),
        Column("reason", "text", "what was wrong with an answer that is none; else empty"),
    ),
)
ATTENTION = EventKind(
    "attention",
    "how many buyers of a tribe noticed a seat, and how close its slogan was to their persona",
    (
        STEP,
        AGENT,
        TRIBE,
        Column("similarity", "float64", "cosine of slogan and persona, 6 decimals", -1, 1),
        _units("seen", "buyers of the tribe that noticed the seat"),
        _units("buyers", "buyers of the tribe"),
        _units("slots", "sellers that each of them noticed, m"),
        _units("candidates", "sellers that could be noticed, n"),
        Column("candidate", "bool", "whether the seat was one of them"),
    ),
)
DEMAND = EventKind(
    "demand",
    "what buyers wanted and got",
    (
        STEP,
        ITEM,
        _units("wanted", "units wanted"),
        _units("bought", "units bought"),
    ),
)
SHELF = EventKind(
    "shelf",
    "what happened to a seat's stock of an item; rows with traffic only",
    (
        STEP,
        AGENT,
        ITEM,
        _units("sold", "units sold"),
        Column("revenue", "int64", "money taken for them", low=0),
        _units("cogs", "what they had cost"),
        _units("empty_listed", "units requested of the empty shelf, item listed"),
        _units("empty_unlisted", "units requested of the empty shelf, item not listed"),
        _units("partial", "units requested beyond the last ones sold"),
        _units("outcompeted", "units wanted by buyers who saw the seat and asked it for nothing"),
    ),
)
ACCOUNT = EventKind(
    "account",
    "a seat's books at the end of a step; one row per seat and step",
    (
        STEP,
        AGENT,
        Column("opening", "int64", "funds at the start of the step"),
        _units("spend", "paid at auction"),
        _units("revenue", "taken in retail"),
        _units("holding", "holding cost"),
        _units("interest", "interest on debt"),
        Column("funds", "int64", "funds at the end"),
        _units("cogs", "cost of the goods sold, weighted average"),
        _units("inventory_cost", "cost of the goods on the shelves"),
        _units("inventory_units", "units on the shelves"),
        Column("solvent", "bool", "false from the step in which the seat went bankrupt"),
    ),
)

SHARED = (ECONOMY, RETAILER, ITEMS, TRIBES, EMBEDDER, REFERENCE)
EPISODE = (
    OFFER, BID, BID_LINE, FAULT, AWARD, LISTING, SLOGAN, RETAIL, ATTENTION, DEMAND, SHELF, ACCOUNT,
    STRUCTURED,
)  # fmt: skip
KINDS = (*SHARED, *EPISODE)
