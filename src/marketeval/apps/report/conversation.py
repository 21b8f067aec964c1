"""One customer's story in a two-sided market, as text: what it decided, saw, heard and paid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from marketeval.core.errors import UnknownNameError
from marketeval.core.log import LogReader
from marketeval.metrics.analytics import customer_outcome, optimal_utility
from marketeval.metrics.bazaar import episodes, world
from marketeval.metrics.tables import Remembering
from marketeval.metrics.unmet import why_unmet

Line = tuple[int, int, str]  # round, place in the round, text


def story(log: LogReader, *, seed: int, customer: str, business: str | None = None) -> str:
    """Everything that happened to a customer in one episode, or between it and one business.

    Raises UnknownNameError for a customer or business that the log does not know.
    """
    log = Remembering(log)
    people = world(log)
    if customer not in people.shoppers:
        raise UnknownNameError("customer", customer, people.shoppers)
    if business is not None and business not in people.shops:
        raise UnknownNameError("business", business, people.shops)
    shopper = people.shoppers[customer]
    wants = ", ".join(f"{item} ({price:.2f})" for item, price in shopper.wants.items())
    request = log.scan("customer").filter(pl.col("customer") == customer).collect()["request"][0]
    head = [
        f"{shopper.name} ({customer}), seed {seed}",
        f"wish: {request}",
        f"wants {wants}; needs {', '.join(shopper.needs) or 'nothing else'}",
        "",
    ]
    lines = sorted(
        (
            *_decisions(log, seed, customer, business),
            *(_searches(log, seed, customer) if business is None else ()),
            *_messages(log, seed, customer, business),
            *_silences(log, seed, customer, business),
        ),
        key=lambda one: one[:2],
    )
    body: list[str] = []
    current = -1
    for round_, _, text in lines:
        if round_ != current:
            body.append(f"round {round_}")
            current = round_
        body.append(f"  {text}")
    return "\n".join([*head, *body, "", *_outcome(log, seed, customer)])


def _outcome(log: LogReader, seed: int, customer: str) -> list[str]:
    lines = []
    for one, day, episode in episodes(log):
        if one != seed:
            continue
        shopper = episode.world.shoppers[customer]
        utility, met = customer_outcome(episode, shopper)
        best = optimal_utility(episode, shopper)
        reason = "" if met else f" ({why_unmet(log, seed, episode)[customer]})"
        when = f"day {day}: " if day else ""
        bought = ", ".join(
            f"{offer.id} at {offer.total:.2f}" for offer, _ in episode.purchases.get(customer, ())
        )
        lines.append(
            f"{when}bought {bought or 'nothing'}; needs {'met' if met else 'not met'}{reason}; "
            f"utility {utility:.2f} of {best:.2f} possible at menu prices"
        )
    return lines


def _decisions(log: LogReader, seed: int, customer: str, business: str | None) -> Sequence[Line]:
    rows = _of(
        log, "decision", seed, "round", "agent", "toward", "number", "kind", "reason", "problem"
    )
    lines = []
    for round_, agent, toward, number, kind, reason, problem in rows:
        if agent == customer and business is None:
            why = f": {reason}" if reason else ""
            lines.append((round_, -1, f"[decision {number}] {kind}{why}"))
            if problem:
                lines.append((round_, 10**9, f"    ! {problem}"))
        elif toward == customer and problem and business in (None, agent):
            lines.append((round_, 10**9, f"    ! {agent}, attempt {number}: {problem}"))
    return lines


def _searches(log: LogReader, seed: int, customer: str) -> Sequence[Line]:
    shown: dict[int, list[str]] = {}
    for row, business in _of(log, "shown", seed, "row", "business"):
        shown.setdefault(row, []).append(business)
    columns = ("row", "round", "agent", "query", "rule", "page", "pages", "found", "refused")
    return [
        (
            round_,
            row,
            f"searches ({rule}) '{query}': page {page} of {pages}, {found} found"
            + (f"; refused: {refused}" if refused else f": {', '.join(shown.get(row, ()))}"),
        )
        for row, round_, agent, query, rule, page, pages, found, refused in _of(
            log, "search", seed, *columns
        )
        if agent == customer
    ]


def _messages(log: LogReader, seed: int, customer: str, business: str | None) -> Sequence[Line]:
    items: dict[int, list[str]] = {}
    for row, item, quantity, price in _of(
        log, "proposal_item", seed, "row", "item", "quantity", "unit_price"
    ):
        items.setdefault(row, []).append(f"{quantity} x {item} at {price:.2f}")
    totals = dict(_of(log, "proposal", seed, "row", "total"))
    columns = ("row", "round", "sender", "recipient", "kind", "content", "proposal", "refused")
    lines = []
    for row, round_, sender, recipient, kind, content, proposal, refused in _of(
        log, "message", seed, *columns
    ):
        if customer not in (sender, recipient) or (
            business is not None and business not in (sender, recipient)
        ):
            continue
        note = f"; {content}" if content and kind != "text" else ""
        words = (
            content
            if kind == "text"
            else f"pays {proposal}{note}"
            if kind == "payment"
            else f"proposes {proposal}: {', '.join(items.get(row, ()))}; "
            f"total {totals[row]:.2f}{note}"
        )
        mark = f"  [refused: {refused}]" if refused else ""
        lines.append((round_, row, f"{sender} -> {recipient}: {words}{mark}"))
    return lines


def _silences(log: LogReader, seed: int, customer: str, business: str | None) -> Sequence[Line]:
    return [
        (round_, 10**9 + 1, f"{name} gave no valid answer in {attempts} attempts: {problem}")
        for round_, name, to, attempts, problem in _of(
            log, "no_answer", seed, "round", "business", "customer", "attempts", "problem"
        )
        if to == customer and business in (None, name)
    ]


def _of(
    log: LogReader, kind: str, seed: int, *columns: str
) -> Sequence[tuple[Any, ...]]:  # any: column values
    return log.scan(kind).filter(pl.col("seed") == seed).select(columns).collect().rows()
