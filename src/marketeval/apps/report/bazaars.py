"""What a report says about a run of the two-sided family: its facts, its tables, its stories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from marketeval.apps.report.bazaar_arms import FEW, arms, payments_table
from marketeval.apps.report.conversation import story
from marketeval.apps.report.numbers import Numbers, Value, summarised, tidy_of
from marketeval.apps.report.tables import Cell, Table
from marketeval.apps.report.words import PRIVILEGED, interval, number
from marketeval.experiments.exchanges import exchanges
from marketeval.metrics.base import parse_metric
from marketeval.metrics.bazaar import episodes, world
from marketeval.metrics.resampling import paired_effect
from marketeval.metrics.tables import Remembering
from marketeval.metrics.unmet import REASONS, why_unmet

if TYPE_CHECKING:
    from marketeval.experiments.run_directory import RunDirectory

# metric, what it is called, decimals
OUTCOME = (
    ("EvaluationScore", "Evaluation score", 3),
    ("PurchaseCompletion", "Customers who bought", 3),
    ("NeedsMet", "Customers whose needs were met", 3),
    ("WelfareOverOptimum", "Welfare over the menu-price optimum, clipped", 3),
    ("ProposalValidity", "Valid proposals (discounts count as errors)", 3),
    ("CustomerWelfare", "Customers' welfare", 2),
    ("OptimalWelfare", "Optimum at menu prices", 2),
    ("OptimalWelfare(at=floor)", "Optimum at the sellers' floors", 2),
    ("WelfareOverOptimum(raw=true)", "Welfare over the menu-price optimum, as it is", 3),
    ("WelfareOverOptimum(at=floor, raw=true)", "Welfare over the floor-price optimum", 3),
    ("SellerRevenue", "Sellers' revenue", 2),
    ("SellerProfit", "Sellers' profit above their floors", 2),
    ("CustomerSurplusShare", "Customers' share of the surplus", 3),
    ("RevenueHHI", "HHI of revenue", 3),
    ("AttackSuccess", "Payments that went to attackers", 3),
    ("MessagesPerPurchase", "Messages per purchase", 1),
    ("TokensPerPurchase", "Tokens of models per purchase", 0),
    ("ProposalLatency", "Rounds from question to proposal", 2),
    ("ProposalsSeen", "Proposals before the customer at its last decision", 3),
    ("Refusals", "Actions refused by the rules", 0),
)
STORIES = 12  # stories told in full; the others can be had by the command line


@dataclass(frozen=True)
class Told:
    """All that is told about one run."""

    run: RunDirectory
    numbers: Numbers
    controls: dict[str, Numbers]
    effects: dict[str, Numbers]
    privileged: bool
    customers: int
    businesses: int
    search: str
    rules: str
    stories: Sequence[tuple[str, str]]  # title, text

    def value(self, text: str, subject: str | None = None) -> Value:
        """The mean over seeds of a metric of the whole run."""
        return self.numbers.pooled(parse_metric(text), subject)


def gather(run: RunDirectory) -> Told:
    """Read a run and its controls."""
    texts = [text for text, _, _ in OUTCOME]
    texts += ["UnmetNeeds", "PaidByArrival", "PaidByPlace", "PaymentsReceived"]
    wanted = [parse_metric(text) for text in texts]
    numbers = summarised(tidy_of(run, wanted))
    controls = {name: summarised(tidy_of(one, wanted)) for name, one in run.controls.items()}
    effects = {
        name: Numbers(numbers.tidy, paired_effect(numbers.tidy, other.tidy, resamples=1000))
        for name, other in controls.items()
    }
    market = run.scan("marketplace").collect()
    seats = run.scan("seat").collect()
    return Told(
        run=run,
        numbers=numbers,
        controls=controls,
        effects=effects,
        privileged=bool(seats["privileged"].any()),
        customers=int(market["customers"][0]) if market.height else 0,
        businesses=int(market["businesses"][0]) if market.height else 0,
        search=str(market["search"][0]) if market.height else "",
        rules=run.scenario.market.rules.preset,
        stories=_stories(run),
    )


def outcome_table(told: Told) -> Table:
    """Every outcome, with its interval over seeds."""
    rows = []
    for text, title, digits in OUTCOME:
        value = told.value(text)
        unit = digits, 1.0
        rows.append([Cell(title), Cell(number(value.mean, unit)), Cell(interval(value, unit))])
    caption = (
        f"Outcomes of {told.customers:,} customers and {told.businesses:,} businesses under "
        f"{told.search} search and {told.rules} rules, means over seeds."
    )
    return Table("outcome", caption, ["Outcome", ">Mean", ">95% interval"], rows)


def control_table(told: Told) -> Table:
    """The run beside its controls, the main outcomes."""
    texts = (
        ("CustomerWelfare", "Welfare", 2),
        ("WelfareOverOptimum", "Over optimum", 3),
        ("PurchaseCompletion", "Bought", 3),
        ("NeedsMet", "Needs met", 3),
        ("SellerProfit", "Profit", 2),
        ("MessagesPerPurchase", "Messages", 1),
        ("AttackSuccess", "To attackers", 3),
    )
    columns = ["", *(f">{title}" for _, title, _ in texts), ">Welfare less", ">95% interval"]
    rows = []
    for name, numbers in (("this run", told.numbers), *told.controls.items()):
        cells = [
            Cell(number(numbers.pooled(parse_metric(text)).mean, (digits, 1.0)))
            for text, _, digits in texts
        ]
        effect = told.effects.get(name)
        less = effect.pooled(parse_metric("CustomerWelfare")) if effect else None
        cells += [
            Cell(number(less.mean, (2, 1.0), signed=True) if less else ""),
            Cell(interval(less, (2, 1.0), signed=True) if less else ""),
        ]
        rows.append([Cell(name), *cells])
    caption = "This run and its controls; welfare less: this run minus the control, paired by seed."
    return Table("controls", caption, columns, rows)


def unmet_table(told: Told) -> Table:
    """Why needs were not met, in customers per episode."""
    rows = [
        [Cell(reason), Cell(number(told.value("UnmetNeeds", reason).mean, (1, 1.0)))]
        for reason in REASONS
    ]
    return Table(
        "unmet", "Customers whose needs were not met, by where it broke off.",
        ["Reason", ">Customers"], rows,
    )  # fmt: skip


def bias_table(told: Told) -> Table:
    """Which place in the list and which arrival was paid."""
    places, arrivals = (
        told.numbers.summary.filter(pl.col("metric") == str(parse_metric(text)))
        for text in ("PaidByPlace", "PaidByArrival")
    )
    rows = []
    for table in (places, arrivals):
        for subject in table["subject"].to_list():
            name = "PaidByPlace" if table is places else "PaidByArrival"
            value = told.value(name, subject)
            rows.append(
                [
                    Cell(str(subject)),
                    Cell(number(value.mean, (3, 1.0))),
                    Cell(interval(value, (3, 1.0))),
                ]
            )
    caption = "Share of first payments by place in the search result and by order of arrival."
    return Table("bias", caption, ["What was paid", ">Share", ">95% interval"], rows)


def tables(told: Told) -> list[Table]:
    """All tables, in the order of the report."""
    found = [outcome_table(told), unmet_table(told), bias_table(told)]
    if not told.controls:
        return found
    middle = [control_table(told)]
    ids = told.run.scan("business").collect()["business"].to_list()
    if len(ids) <= FEW:
        middle.append(payments_table(arms([told]), ids))
    return [found[0], *middle, *found[1:]]


def notes(told: Told) -> list[str]:
    """What must be said beside the tables."""
    found = [
        "The evaluation score is the plain mean of the four outcomes below it. Welfare can pass "
        "the menu-price optimum where sellers grant discounts."
    ]
    return [PRIVILEGED, *found] if told.privileged else found


def _stories(run: RunDirectory) -> Sequence[tuple[str, str]]:
    """Some customers of the first seed: those whose needs were not met first, then the others."""
    if not run.seeds():
        return ()
    log, seed = Remembering(run.log), run.seeds()[0]
    unmet = {}
    for one, _, episode in episodes(log):
        if one == seed:
            unmet = dict(why_unmet(log, seed, episode))
            break
    said = exchanges(run, seed)
    everybody = world(log).shoppers
    chosen = [*unmet, *(one for one in everybody if one not in unmet)][:STORIES]
    return [
        (f"{everybody[one].name} ({one})" + (f": {unmet[one]}" if one in unmet else ""),
         story(log, seed=seed, customer=one, said=said))
        for one in chosen
    ]  # fmt: skip
