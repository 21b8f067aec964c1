"""One customer's story in a two-sided market, as text: what it decided, saw, heard and paid.

Where models decided and their calls are known, also what each was told and what it replied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from marketeval.core.errors import UnknownNameError
from marketeval.core.log import LogReader
from marketeval.metrics.analytics import customer_outcome, optimal_utility
from marketeval.metrics.bazaar import episodes, world
from marketeval.metrics.tables import Remembering
from marketeval.metrics.unmet import why_unmet

if TYPE_CHECKING:
    from marketeval.experiments.exchanges import Exchange
    from marketeval.llm.recorded_calls import RecordedCall

Line = tuple[int, int, str]  # round, place in the round, text
AFTER = 10**9  # places after all rows of a round


def story(
    log: LogReader,
    *,
    seed: int,
    customer: str,
    business: str | None = None,
    said: Sequence[Exchange] = (),
) -> str:
    """Everything that happened to a customer in one episode, or between it and one business.

    `said` are the calls of that episode's models, if any are to be shown.

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
            *_prompts(said, customer, business),
        ),
        key=lambda one: one[:2],
    )
    body: list[str] = []
    current = -1
    for round_, _, text in lines:
        if round_ != current:
            body.append(f"round {round_}")
            current = round_
        body += [f"  {line}" for line in text.split("\n")]
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
                lines.append((round_, AFTER, f"    ! {problem}"))
        elif toward == customer and problem and business in (None, agent):
            lines.append((round_, AFTER, f"    ! {agent}, attempt {number}: {problem}"))
    return lines


def _prompts(said: Sequence[Exchange], customer: str, business: str | None) -> Sequence[Line]:
    """What models were told and replied: the customer before its decision, businesses at the end
    of the round; their standing instructions the first time only."""
    lines: list[Line] = []
    instructed: set[str] = set()
    for one in said:
        own = one.agent == customer
        if not (own and business is None) and not (
            one.toward == customer and business in (None, one.agent)
        ):
            continue
        place = -2 if own else AFTER + 2
        for number, call in enumerate(one.calls):
            parts = [f"[prompt of {one.agent}]"] if not number else [f"[asked again: {one.agent}]"]
            parts += _told(call, number, with_rules=one.agent not in instructed)
            instructed.add(one.agent)
            lines.append((one.round, place, "\n".join(parts)))
    return lines


def _told(call: RecordedCall, number: int, *, with_rules: bool) -> Sequence[str]:
    """The new messages of a call and its reply, indented; a nudge repeats what went before."""
    rules = [call.system] if call.system else []
    rules += [one.text for one in call.messages if one.role == "system"]
    new = [one.text for one in call.messages if one.role == "user"][number:]
    tokens = (
        ""
        if call.input_tokens is None or call.output_tokens is None
        else f" ({call.input_tokens} tokens read, {call.output_tokens} written)"
    )
    parts = [f"  | {line}" for text in (*(rules if with_rules else ()), *new)
             for line in text.rstrip().split("\n")]  # fmt: skip
    reply = call.response if call.response is not None else f"(no answer: {call.reason})"
    parts.append(f"[reply of {call.model}{tokens}]")
    return [*parts, *(f"  > {line}" for line in reply.rstrip().split("\n"))]


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
        (round_, AFTER + 1, f"{name} gave no valid answer in {attempts} attempts: {problem}")
        for round_, name, to, attempts, problem in _of(
            log, "no_answer", seed, "round", "business", "customer", "attempts", "problem"
        )
        if to == customer and business in (None, name)
    ]


def _of(
    log: LogReader, kind: str, seed: int, *columns: str
) -> Sequence[tuple[Any, ...]]:  # any: column values
    return log.scan(kind).filter(pl.col("seed") == seed).select(columns).collect().rows()
