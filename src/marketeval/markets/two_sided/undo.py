"""The way back from an entry whose line could not be committed.

`remember` is called before `rules.evolve`; what it gives restores the state as it was. Entries are
undone in the reverse of the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marketeval.actions import two_sided as act
from marketeval.markets.two_sided.state import Entry, Refused, State

_MISSING = object()


def remember(state: State, entry: Entry) -> Callable[[], None]:
    """What restores a state that is about to evolve by an entry."""
    undo: list[Callable[[], None]] = []

    def keep(table: dict[Any, Any], key: Any) -> None:  # any: tables of the state differ
        before = table.get(key, _MISSING)
        undo.append(
            (lambda: table.pop(key, None))
            if before is _MISSING
            else (lambda: table.__setitem__(key, before))
        )

    action = entry.action
    rows, now = state.rows, state.now
    if isinstance(action, act.Register):
        name = action.profile.id
        keep(state.profiles, name)
        keep(state.public, name)
        undo.append(state.forget_catalogue)
        undo.append(state.accounts.remember(name))
        if isinstance(action.profile, act.Business):
            for item in action.profile.menu_features:
                keep(state.stock, (name, item))
    else:
        keep(state.spent, entry.caller)
    if isinstance(action, act.SendMessage):
        refused = isinstance(entry.result, Refused)
        inbox = state.inboxes.get(action.to_agent_id)
        if inbox is None:
            keep(state.inboxes, action.to_agent_id)
        else:
            size = len(inbox)
            undo.append(lambda: inbox.__delitem__(slice(size, None)))
        message = action.message
        if isinstance(message, act.OrderProposal):
            keep(state.offers, (action.from_agent_id, message.id))
            if message.id not in state.used_ids:
                undo.append(lambda: state.used_ids.discard(message.id))
        elif isinstance(message, act.Payment) and not refused:
            offer = state.offers[action.to_agent_id, message.proposal_message_id]
            paid = offer.paid
            undo.append(lambda: setattr(offer, "paid", paid))
            if state.rules.books:
                undo.append(state.accounts.remember(action.from_agent_id))
                undo.append(state.accounts.remember(offer.seller))
            for line in offer.proposal.items:
                keep(state.stock, (offer.seller, line.item_name))

    def back() -> None:
        for one in reversed(undo):
            one()
        state.rows, state.now = rows, now

    return back
