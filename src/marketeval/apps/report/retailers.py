"""What a report says about a run of the supply-chain family: its facts and its tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from marketeval.apps.report.numbers import Numbers, Value, summarised, tidy_of
from marketeval.apps.report.tables import Cell, Table
from marketeval.apps.report.words import PRIVILEGED, UNDEFINED, both, interval, number
from marketeval.metrics.base import parse_metric
from marketeval.metrics.leaderboard import Standing, standings
from marketeval.metrics.resampling import paired_effect

if TYPE_CHECKING:
    from marketeval.experiments.run_directory import RunDirectory

# the columns of the paper's Table 2, then what must stand beside them
BOARD: dict[str, tuple[str, int]] = {
    "NPM": ("NPM", 3),
    "Profit": ("Pi", 0),
    "RAR": ("RAR", 2),
    "IEI": ("IEI", 3),
    "StockoutRate": ("Stockout", 3),
    "BidEfficiency": ("Bid Eff.", 3),
    "OSI": ("OSI", 3),
    "FillRate": ("Fill", 3),
    "MMS": ("MMS", 3),
    "UnitsSold": ("Sold", 0),
}
CONDUCT: dict[str, tuple[str, int]] = {
    "OverbidRate": ("Overbid", 3),
    "InvalidRate": ("Invalid", 3),
    "VoidLineRate": ("Void lines", 3),
    "CapitalEfficiency": ("Capital eff.", 3),
    "Drawdown": ("Drawdown", 3),
    "WinShare": ("Win share", 3),
    "PriceDiscipline": ("Price disc.", 3),
    "LanguageLeverage": ("Leverage", 3),
}
INDICES = ("gini", "theil_t", "theil_l", "cv", "hhi", "cr4")
BASES = ("funds", "step_revenue", "cumulative_revenue")
SERIES = ("NPM", "Profit", "Funds", "OSI", "BidEfficiency", "FillRate", "MMS")
AGAINST = ("BidEfficiency", "FillRate", "StockoutRate", "MMS")
DERIVED = (
    "Metrics are re-derived from the paper's prose and tables, not its code: scores do not compare "
    "with the published table. A seat that hardly trades looks stable (OSI) and efficient (IEI): "
    "read them beside the units sold."
)


@dataclass(frozen=True)
class Shop:
    """A retailer: its seat in the log, and the name that people see."""

    seat: str
    name: str


@dataclass(frozen=True)
class Told:
    """All that is told about one run."""

    run: RunDirectory
    shops: list[Shop]
    tribes: list[str]
    horizon: int
    numbers: Numbers
    standing: list[Standing]
    effects: dict[str, Numbers]
    privileged: bool
    embedder: str

    @cached_property
    def name(self) -> dict[str, str]:
        """Names by seat."""
        return {one.seat: one.name for one in self.shops}

    def value(self, text: str, seat: str | None = None) -> Value:
        """The mean over seeds of a metric of the whole run."""
        return self.numbers.pooled(parse_metric(text), seat)

    def series(self, text: str) -> pl.DataFrame:
        """Means by step of a metric."""
        return self.numbers.series(parse_metric(text))


def index_text(index: str, base: str) -> str:
    """The text of a market index per step."""
    return f"MarketIndex({index}, base={base}, by=step)"


def gather(run: RunDirectory) -> Told:
    """Read a run and its controls."""
    log = run.log
    table = log.scan("retailer").unique("agent", keep="first").sort("position").collect()
    labels = table["label"].to_list()
    shops = [
        Shop(
            seat,
            (f"{label} ({seat})" if labels.count(label) > 1 else label)
            + (" †" if privileged else ""),
        )
        for seat, label, privileged in table.select("seat", "label", "privileged").iter_rows()
    ]
    tribes = log.scan("tribe").unique("tribe", keep="first").sort("tribe").collect()
    texts = [
        *BOARD, *CONDUCT, "ActiveRatio", "ActiveRatio(by=step)", "RankMobility",
        *(f"ProfitCorrelation({one})" for one in AGAINST),
        *(f"{one}(by=step)" for one in SERIES),
        *(index_text(index, base) for base in BASES for index in INDICES),
        *(f'MMS(tribe="{one}", by=step)' for one in tribes["name"]),
    ]  # fmt: skip
    wanted = [parse_metric(text) for text in texts]
    numbers = summarised(tidy_of(run, wanted))
    paired = {str(parse_metric(one)) for one in (*BOARD, "LanguageLeverage")}
    effects = {}
    for name, control in run.controls.items():
        other = tidy_of(control, [one for one in wanted if str(one) in paired])
        mine = numbers.tidy.filter(pl.col("metric").is_in(list(paired)))
        effects[name] = Numbers(mine, paired_effect(mine, other))
    economy = log.scan("economy").collect()
    used = log.scan("embedder").collect()
    return Told(
        run=run,
        shops=shops,
        tribes=tribes["name"].to_list(),
        horizon=int(economy["horizon"][0]) if economy.height else 0,
        numbers=numbers,
        standing=standings(numbers.tidy, "Profit"),
        effects=effects,
        privileged=bool(table["privileged"].any()),
        embedder=f"{used['embedder'][0]} ({used['sha256'][0][:12]})" if used.height else "none",
    )


def leaderboard(told: Told) -> Table:
    """The seats by mean profit, in the form of the paper's Table 2, with likely places."""
    columns = [">#", "Places", "Retailer", *(f">{title}" for title, _ in BOARD.values())]
    rows = []
    for one in told.standing:
        places = "" if one.low is None or one.low == one.high else f"{one.low}-{one.high}"
        values = [
            number(told.value(text, one.seat).mean, (digits, 1.0))
            for text, (_, digits) in BOARD.items()
        ]
        rows.append(
            [Cell(str(one.place)), Cell(places), Cell(told.name[one.seat]), *map(Cell, values)]
        )
    caption = (
        "Retailers by mean profit over seeds. Places: where 95% of bootstrap resamples of the "
        "seeds put them."
    )
    return Table("leaderboard", caption, columns, rows)


def conduct_table(told: Told) -> Table:
    """Profit with its interval, and how it was come by."""
    columns = ["Retailer", ">Pi", ">95% interval", *(f">{title}" for title, _ in CONDUCT.values())]
    rows = []
    for one in told.standing:
        profit = told.value("Profit", one.seat)
        values = [
            number(told.value(text, one.seat).mean, (digits, 1.0))
            for text, (_, digits) in CONDUCT.items()
        ]
        rows.append(
            [
                Cell(told.name[one.seat]),
                Cell(number(profit.mean, (0, 1.0))),
                Cell(interval(profit, (0, 1.0))),
                *map(Cell, values),
            ]
        )
    return Table("conduct", "Conduct: bids, capital, words.", columns, rows)


def index_table(told: Told) -> Table:
    """The market's indices at the first and the last step, on every base."""
    columns = ["Base", *(f">{one}" for one in INDICES)]
    rows = []
    for base in BASES:
        cells = []
        for index in INDICES:
            found = told.series(index_text(index, base)).sort("step")["mean"].to_list()
            ends = (found[0], found[-1]) if found else (None, None)
            cells.append(Cell(" > ".join(number(one, (3, 1.0)) for one in ends)))
        rows.append([Cell(base.replace("_", " ")), *cells])
    active = told.series("ActiveRatio(by=step)").sort("step")["mean"].to_list()
    span = " > ".join(number(one, (2, 1.0)) for one in active[:1] + active[-1:])
    caption = (
        "Inequality and concentration over all seats, first > last step, each on its base. "
        f"Active ratio: {span or UNDEFINED}. Rank mobility: "
        f"{both(told.value('RankMobility'), (3, 1.0))}."
    )
    return Table("indices", caption, columns, rows)


def correlation_table(told: Told) -> Table:
    """Spearman's rho of profit with other metrics, over the seats of a run."""
    rows = [
        [Cell(one), Cell(both(told.value(f"ProfitCorrelation({one})"), (2, 1.0)))]
        for one in AGAINST
    ]
    caption = "Spearman's rho between profit and other metrics over the seats of a run."
    return Table("correlations", caption, ["Metric", ">Rho"], rows)


def effect_table(told: Told, control: str) -> Table:
    """What the run's world changed for each seat, paired by seed."""
    numbers = told.effects[control]
    columns = ["Retailer", ">Pi", ">95% interval", ">Fill", ">Leverage"]
    rows = []
    for one in told.standing:
        profit, fill, lead = (
            numbers.pooled(parse_metric(text), one.seat)
            for text in ("Profit", "FillRate", "LanguageLeverage")
        )
        rows.append(
            [
                Cell(told.name[one.seat]),
                Cell(number(profit.mean, (0, 1.0), signed=True)),
                Cell(interval(profit, (0, 1.0), signed=True)),
                Cell(number(fill.mean, (3, 1.0), signed=True)),
                Cell(number(lead.mean, (3, 1.0), signed=True)),
            ]
        )
    caption = f"This run minus the control '{control}', paired by seed."
    return Table(f"effect-{control}", caption, columns, rows)


def tables(told: Told) -> list[Table]:
    """All tables, in the order of the report."""
    return [
        leaderboard(told),
        conduct_table(told),
        index_table(told),
        correlation_table(told),
        *(effect_table(told, name) for name in told.effects),
    ]


def notes(told: Told) -> list[str]:
    """What must be said beside the tables."""
    found = [DERIVED, f"Similarities are cosines of the embedder {told.embedder}."]
    return [PRIVILEGED, *found] if told.privileged else found
