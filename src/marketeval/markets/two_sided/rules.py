"""The two-sided market's rules: what an action does, and when it is refused.

`decide` looks at the state and says what comes of an action; it changes nothing. `evolve` makes
the change an entry of the journal stands for; it decides nothing. `apply` is one after the other.
Lockstep, server and replay all go through these three.

The checks stand in `SEND_CHECKS` in the order in which they are made; the first that objects gives
the reason. Those without a switch hold under every preset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from marketeval.actions import two_sided as act
from marketeval.markets.two_sided.state import (
    Action,
    Entry,
    Found,
    Mail,
    Offer,
    Refused,
    Registered,
    Result,
    Sent,
    State,
)
from marketeval.mechanisms.search import RULES, Wanted, reorder

Decide = Callable[[State, str, Action], Entry]
EPOCH = datetime(2025, 1, 1, tzinfo=UTC)  # tick 0 of the logical clock; a tick is a second


def apply(state: State, caller: str, action: Action) -> tuple[Result, Sequence[Entry]]:
    """Decide what comes of an action, make the change, and return both."""
    entry = decide(state, caller, action)
    evolve(state, entry)
    return entry.result, (entry,)


def decide(state: State, caller: str, action: Action) -> Entry:
    """What comes of an action, as the journal's next entry. The state stays as it is."""
    if isinstance(action, act.Register):
        result: Result = Registered(action.profile.id)
        return Entry(state.rows, state.now, caller, action, result)
    result = _meter(state, caller) or (
        _send(state, caller, action)
        if isinstance(action, act.SendMessage)
        else _fetch(state, caller, action)
        if isinstance(action, act.FetchMessages)
        else _search(state, caller, action)
    )
    return Entry(state.rows + 1, state.now, caller, action, result)


def evolve(state: State, entry: Entry) -> None:
    """Make the change that an entry stands for."""
    action, refused = entry.action, isinstance(entry.result, Refused)
    if isinstance(action, act.Register):
        _enter(state, action.profile)
        return
    state.rows, state.now = entry.row, entry.now
    tick, count = state.spent.get(entry.caller, (entry.now, 0))
    state.spent[entry.caller] = entry.now, count + 1 if tick == entry.now else 1
    if not isinstance(action, act.SendMessage) or (
        refused and not state.rules.refused_are_delivered
    ):
        return
    message = action.message
    heard = act.Heard(entry.row, action.from_agent_id, message, entry.now)
    state.inboxes.setdefault(action.to_agent_id, []).append(heard)
    if isinstance(message, act.OrderProposal):
        _open_offer(state, action, message, entry.now)
    elif isinstance(message, act.Payment) and not refused:
        offer = state.offers[action.to_agent_id, message.proposal_message_id]
        _settle(state, action.from_agent_id, offer)


def expiry(state: State, proposal: act.OrderProposal, now: int) -> int | None:
    """The last tick at which a proposal can be paid; None for always.

    `expiry_time` counts where it is a tick number or a timestamp with a zone, and is earlier than
    the rules' own end; other words are for the reader alone.
    """
    lasts = state.rules.offers_last
    if lasts is None:
        return None
    latest, stated = now + lasts, _tick(proposal.expiry_time)
    return latest if stated is None else min(latest, stated)


# ---- the three actions


def _meter(state: State, caller: str) -> Refused | None:
    if caller not in state.profiles:
        return Refused("unknown_caller", f"agent {caller} is not registered")
    most = state.rules.actions_per_tick
    if most is not None:
        tick, count = state.spent.get(caller, (state.now, 0))
        if tick == state.now and count >= most and count >= most + 2 * state.received(caller):
            return Refused("too_many_actions", f"at most {most} actions per tick of the clock")
    return None


def _send(state: State, caller: str, action: act.SendMessage) -> Result:
    for check in SEND_CHECKS:
        refused = check(state, caller, action)
        if refused is not None:
            return refused
    return Sent(action)


def _fetch(state: State, caller: str, action: act.FetchMessages) -> Result:
    mail = state.mail(caller, action.after_index or 0)
    if action.from_agent_id is not None:
        mail = [one for one in mail if one.sender == action.from_agent_id]
    if action.after is not None:
        since = (action.after - EPOCH).total_seconds()
        mail = [one for one in mail if one.at > since]
    start = max(action.offset or 0, 0)
    stop = len(mail) if action.limit is None else start + max(action.limit, 0)
    return Mail(tuple(mail[start:stop]), stop < len(mail))


def _search(state: State, caller: str, action: act.Search) -> Result:
    profile = state.profiles[caller]
    wish = list(profile.menu_features) if isinstance(profile, act.Customer) else None
    if action.search_algorithm not in RULES:
        return Refused("malformed", f"unknown search algorithm {action.search_algorithm}")
    if action.search_algorithm == "optimal" and wish is None:
        return Refused("not_allowed_to_search", "the optimal search is for customers")
    ids, catalogue = state.catalogue()
    asked = action.constraints or act.Constraints()
    wanted = Wanted(
        query=action.query,
        items=wish,
        least_rating=asked.rating_threshold,
        amenities=asked.amenity_features or (),
        menu_items=asked.menu_items or (),
    )
    page = catalogue.search(action.search_algorithm, wanted, limit=action.limit, page=action.page)
    places = page.places
    if state.order != "as_ranked" and state.streams is not None:
        draws = state.streams[f"{caller}/position"]
        places = reorder(places, state.order, draws, step=state.now)
    shown = tuple(state.public[ids[place]] for place in places.tolist())
    return Found(shown, action.search_algorithm, page.found, page.pages)


# ---- the checks on a message, each silent where its switch is off


def _sender(state: State, caller: str, action: act.SendMessage) -> Refused | None:
    if state.rules.sender_is_caller and action.from_agent_id != caller:
        return Refused(
            "spoofed_sender", f"{caller} cannot send in the name of {action.from_agent_id}"
        )
    return None


def _recipient(state: State, caller: str, action: act.SendMessage) -> Refused | None:
    if action.to_agent_id not in state.profiles:
        return Refused("unknown_recipient", f"to_agent_id {action.to_agent_id} not found")
    return None


def _length(state: State, caller: str, action: act.SendMessage) -> Refused | None:
    longest, message = state.rules.longest_text, action.message
    if longest is None:
        return None
    size = (
        len(message.content)
        if isinstance(message, act.TextMessage)
        else len(message.payment_message or "") + len(message.delivery_address or "")
        if isinstance(message, act.Payment)
        else len(message.special_instructions or "")
        + len(message.id)
        + sum(len(one.item_name) + len(one.id) for one in message.items)
    )
    if size > longest:
        return Refused("too_long", f"a message holds at most {longest} characters, got {size}")
    return None


def _proposal(state: State, caller: str, action: act.SendMessage) -> Refused | None:
    proposal, rules = action.message, state.rules
    if not isinstance(proposal, act.OrderProposal):
        return None
    for line in proposal.items:
        if not (line.quantity >= 1 and 0 <= line.unit_price < float("inf")):
            return Refused("malformed", f"{line.item_name}: quantity >= 1 and unit_price >= 0")
    if not proposal.items or not proposal.id:
        return Refused("malformed", "a proposal has an id and at least one item")
    if rules.books and not 0 <= proposal.total_price <= act.LARGEST:
        return Refused("malformed", f"a total of {proposal.total_price} cannot be booked")
    seller, buyer = state.profiles.get(action.from_agent_id), state.profiles[action.to_agent_id]
    if rules.sides_are_kept and not isinstance(seller, act.Business):
        return Refused("not_a_business", "proposals come from businesses")
    if rules.sides_are_kept and not isinstance(buyer, act.Customer):
        return Refused("not_a_customer", "proposals go to customers")
    if rules.ids_are_unique and proposal.id in state.used_ids:
        return Refused("reused_id", f"the proposal id {proposal.id} was used before")
    if rules.whole_cents and not (
        act.is_whole_cents(proposal.total_price)
        and all(act.is_whole_cents(line.unit_price) for line in proposal.items)
    ):
        return Refused("not_whole_cents", "prices are whole cents")
    if rules.totals_add_up:
        total = sum(act.cents(line.unit_price) * line.quantity for line in proposal.items)
        if total != act.cents(proposal.total_price):
            return Refused(
                "total_does_not_add_up",
                f"the items come to {total / 100:.2f}, not {proposal.total_price:.2f}",
            )
    if isinstance(seller, act.Business):
        menu = seller.menu_features
        for line in proposal.items:
            listed = menu.get(line.item_name)
            if rules.items_on_menu and listed is None:
                return Refused("not_on_menu", f"{line.item_name} is not on the menu")
            if rules.no_surcharge and listed is not None and line.unit_price > listed + 1e-9:
                return Refused("surcharge", f"{line.item_name} costs {listed:.2f} on the menu")
            if rules.floors_hold and listed is not None and seller.min_price_factor is not None:
                floor = round(act.cents(listed) * seller.min_price_factor)
                if act.cents(line.unit_price) < floor:
                    return Refused(
                        "below_floor", f"{line.item_name} is not sold below {floor / 100:.2f}"
                    )
    ends = expiry(state, proposal, state.now)
    if ends is not None and ends < state.now:
        return Refused("already_expired", "the proposal has expired before it was made")
    return None


def _payment(state: State, caller: str, action: act.SendMessage) -> Refused | None:
    payment, rules = action.message, state.rules
    if not isinstance(payment, act.Payment):
        return None
    name = payment.proposal_message_id
    offer = state.offers.get((action.to_agent_id, name))
    if offer is None:
        words = f"No unexpired order proposals found with id {name}"
        return Refused("unknown_proposal", words)
    if rules.one_addressee and offer.buyer != action.from_agent_id:
        return Refused("not_the_addressee", f"proposal {name} was made to another customer")
    if rules.paid_once and offer.paid:
        return Refused("paid_before", f"proposal {name} has been paid")
    if offer.expires is not None and state.now > offer.expires:
        return Refused("expired", f"No unexpired order proposals found with id {name}")
    if rules.books and action.from_agent_id not in state.profiles:
        return Refused("unknown_caller", f"agent {action.from_agent_id} is not registered")
    if rules.books and not state.accounts.covers(action.from_agent_id, offer.amount):
        balance = state.accounts.balance(action.from_agent_id)
        return Refused(
            "balance_too_low", f"{offer.amount / 100:.2f} asked, {balance / 100:.2f} there"
        )
    if rules.stock is not None:
        for item, units in _units(offer).items():
            left = state.stock.get((offer.seller, item), 0)
            if units > left:
                return Refused("out_of_stock", f"{left} of {item} left, {units} asked")
    return None


Check = Callable[[State, str, act.SendMessage], Refused | None]
SEND_CHECKS: Sequence[Check] = (_sender, _recipient, _length, _proposal, _payment)


# ---- the changes


def _enter(state: State, profile: act.Profile) -> None:
    state.profiles[profile.id] = profile
    if isinstance(profile, act.Business) or profile.id in state.public:
        state.forget_catalogue()
    if isinstance(profile, act.Customer):
        state.public.pop(profile.id, None)  # it may have been a business before
    else:
        hidden = state.rules.floor_is_private
        state.public[profile.id] = replace(profile, min_price_factor=None) if hidden else profile
        if state.rules.stock is not None:
            for item in profile.menu_features:
                state.stock.setdefault((profile.id, item), state.rules.stock)
    if state.rules.books:
        buys = isinstance(profile, act.Customer)
        state.accounts.open(profile.id, state.rules.opening_balance if buys else 0)


def _open_offer(
    state: State, action: act.SendMessage, proposal: act.OrderProposal, now: int
) -> None:
    """The first offer under an id stands; the books of the reference take the first as well."""
    state.used_ids.add(proposal.id)
    state.offers.setdefault(
        (action.from_agent_id, proposal.id),
        Offer(
            seller=action.from_agent_id,
            buyer=action.to_agent_id,
            proposal=proposal,
            amount=act.cents(proposal.total_price) if state.rules.books else 0,
            expires=expiry(state, proposal, now),
        ),
    )


def _settle(state: State, payer: str, offer: Offer) -> None:
    offer.paid = True
    if state.rules.books:
        state.accounts.move(payer, offer.seller, offer.amount)
    if state.rules.stock is not None:
        for item, units in _units(offer).items():
            state.stock[offer.seller, item] -= units


def _units(offer: Offer) -> dict[str, int]:
    units: dict[str, int] = {}
    for line in offer.proposal.items:
        units[line.item_name] = units.get(line.item_name, 0) + line.quantity
    return units


def _tick(text: str | None) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else int((moment - EPOCH).total_seconds())
