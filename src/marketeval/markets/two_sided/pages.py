"""Writes what happens in a round into the event log: one append per kind and round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marketeval.actions import two_sided as act
from marketeval.core.log import EventLog
from marketeval.events import two_sided as events
from marketeval.markets.two_sided.state import Entry, Found, Mail, Offer, Refused

_MESSAGE = {name: code for code, name in enumerate(events.MESSAGES)}
_DECISION = {name: code for code, name in enumerate(events.DECISIONS)}
_MOST = 2**31 - 1
_KINDS = {kind.name: tuple(column.name for column in kind.columns) for kind in events.EPISODE}


class Pages:
    """The open page of each kind of event: a list of rows."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Sequence[Any]]] = {}  # any: values of each column's type

    def add(self, kind: str, *values: Any) -> None:  # any: as above
        """One row, its values in the order of the kind's columns."""
        rows = self._rows.get(kind)
        if rows is None:
            rows = self._rows[kind] = []
        rows.append(values)

    def write(self, log: EventLog) -> None:
        """Append everything to the log, kinds in a fixed order, and start a new page."""
        for kind, names in _KINDS.items():
            rows = self._rows.get(kind)
            if rows:
                log.append(
                    kind, **dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
                )
        self._rows = {}

    def decision(
        self, now: int, agent: str, toward: str, number: int, kind: str, reason: str, problem: str
    ) -> None:
        """One decision of a seat."""
        self.add(
            "decision", now, agent, toward, number, _DECISION[kind], clean(reason), clean(problem)
        )

    def entry(self, entry: Entry, offer: Offer | None) -> None:
        """One line of the journal. `offer` is the one a payment was for."""
        action, result, row, now = entry.action, entry.result, entry.row, entry.now
        refused = result.reason if isinstance(result, Refused) else ""
        if isinstance(action, act.SendMessage):
            self._message(entry, action, refused, offer)
        elif isinstance(action, act.Search):
            found = (
                result if isinstance(result, Found) else Found((), action.search_algorithm, 0, 0)
            )
            self.add(
                "search", row, now, entry.caller, clean(action.query), action.search_algorithm,
                _int(action.page), _int(action.limit), found.total, found.pages, refused,
            )  # fmt: skip
            for place, one in enumerate(found.businesses):
                self.add("shown", row, now, place, one.id)
        elif isinstance(action, act.FetchMessages) and isinstance(result, Mail):
            after = action.after_index or 0
            upto = result.messages[-1].index if result.messages else after
            self.add("fetch", row, now, entry.caller, after, upto, len(result.messages))

    def _message(
        self, entry: Entry, action: act.SendMessage, refused: str, offer: Offer | None
    ) -> None:
        message, row, now = action.message, entry.row, entry.now
        sender, recipient = clean(action.from_agent_id), clean(action.to_agent_id)
        content: str | None
        proposal: str | None = None
        if isinstance(message, act.TextMessage):
            content = clean(message.content)
        elif isinstance(message, act.OrderProposal):
            content, proposal = _maybe(message.special_instructions), clean(message.id)
            expires = -1 if offer is None or offer.expires is None else offer.expires
            self.add(
                "proposal", row, now, proposal, sender, recipient, message.total_price, expires,
                _maybe(message.estimated_delivery), refused,
            )  # fmt: skip
            for place, line in enumerate(message.items):
                self.add(
                    "proposal_item", row, place, clean(line.id), clean(line.item_name),
                    min(line.quantity, _MOST), line.unit_price,
                )  # fmt: skip
        else:
            content, proposal = _maybe(message.payment_message), clean(message.proposal_message_id)
            self.add(
                "payment", row, now, sender, recipient, proposal,
                0 if refused or offer is None else offer.amount,
                _maybe(message.payment_method), _maybe(message.delivery_address), refused,
            )  # fmt: skip
        self.add(
            "message", row, now, entry.caller, sender, recipient, _MESSAGE[message.type], content,
            proposal, refused,
        )  # fmt: skip


def clean(text: str) -> str:
    """Text that can be stored anywhere: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _maybe(text: str | None) -> str | None:
    return None if text is None else clean(text)


def _int(value: int) -> int:
    return max(-_MOST, min(value, _MOST))
