"""The text of what a seat of the two-sided market knows, bounded in length."""

from __future__ import annotations

from collections.abc import Sequence

from marketeval.actions.two_sided import (
    Business,
    BusinessBriefing,
    CustomerBriefing,
    Heard,
    OfferSeen,
    told,
)

ONE_IN = 25  # one message or description may fill this part of a briefing
LIST_IN = 3  # and one list, or its latest message, this part; offers are never left out


def customer_text(known: CustomerBriefing, longest: int) -> str:
    """A customer's briefing: its wish, what it found and whom it asked, offers, the latest events.

    The private prices and amenities stand only in the profile; the text holds the wish in words,
    as in the reference. `longest` is about how many characters it may have; the oldest lines of a
    list go first, of businesses not yet asked the lowest in rank.
    """
    profile = known.profile
    asked = [one for one in known.found if one.id in known.asked]
    fresh = [one for one in known.found if one.id not in known.asked]
    more = "; further pages can be had" if known.more_pages else ""
    parts = [
        f"You act for {profile.name} ({profile.id}). The wish: {profile.request}",
        f"This is decision {known.step + 1} of at most {known.steps}.",
        _block(
            f"Businesses found, not yet asked (last search: page {known.search_page}{more})",
            _first(_told(fresh, longest), longest),
        ),
        _block("Businesses you have written to", _last(_told(asked, longest), longest)),
        "Proposals received:\n"
        + ("\n".join(_offer(one, longest) for one in known.offers) or "none"),
        "Latest events:\n" + (_lines(known.history, longest) or "none"),
        "What do you decide?",
    ]
    return "\n\n".join(parts)


def business_text(known: BusinessBriefing, longest: int) -> str:
    """A business's briefing for one customer: itself, its menu, the conversation so far."""
    profile = known.profile
    menu = "\n".join(f"- {item}: {price:.2f}" for item, price in profile.menu_features.items())
    there = [name for name, has in sorted(profile.amenity_features.items()) if has]
    lacking = [name for name, has in sorted(profile.amenity_features.items()) if not has]
    floor = (
        f"Your floor is {profile.min_price_factor:.0%} of the menu price."
        if profile.min_price_factor is not None
        else ""
    )
    parts = [
        f"You run {profile.name} ({profile.id}), rated {profile.rating:.2f} of 1. "
        f"{_short(profile.description, longest)}",
        f"Menu:\n{menu}",
        f"You have: {', '.join(there) or 'no amenities'}. "
        f"You do not have: {', '.join(lacking) or 'nothing to name'}. {floor}".rstrip(),
        f"You talk with {known.customer}. So far:\n"
        + (_lines(known.conversation, longest) or "nothing"),
        f"Your last answer was refused: {known.problem}" if known.problem else "",
        "How do you answer?",
    ]
    return "\n\n".join(part for part in parts if part)


def _block(title: str, lines: str) -> str:
    return f"{title}:\n{lines or 'none'}"


def _told(businesses: Sequence[Business], longest: int) -> list[str]:
    return [
        f"- {one.name} ({one.id}), rated {one.rating:.2f}: {_short(one.description, longest)}"
        for one in businesses
    ]


def _offer(one: OfferSeen, longest: int) -> str:
    state = "paid" if one.paid else "lapsed" if one.lapsed else "open"
    return f"- from {one.business} ({state}): {_short(told(one.proposal), longest)}"


def _lines(history: Sequence[str | Heard], longest: int) -> str:
    """One line for each; the latest, which is to be answered, may fill all the room there is."""
    lines = []
    for left, one in enumerate(history, 1 - len(history)):
        sender, text = ("", one) if isinstance(one, str) else (f"{one.sender}: ", told(one.message))
        room = longest // LIST_IN - len(sender) - 10
        lines.append(f"- {sender}{_cut(text, room) if left == 0 else _short(text, longest)}")
    return _last(lines, longest)


def _short(text: str, longest: int) -> str:
    return _cut(text, longest // ONE_IN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."


def _last(lines: Sequence[str], longest: int) -> str:
    """As many of the last lines as there is room for."""
    kept = _fitting(list(reversed(lines)), longest)
    note = ["- (earlier ones left out)"] if len(kept) < len(lines) else []
    return "\n".join([*note, *reversed(kept)])


def _first(lines: Sequence[str], longest: int) -> str:
    """As many of the first lines as there is room for."""
    kept = _fitting(lines, longest)
    note = ["- (later ones left out until these have been written to)"]
    return "\n".join([*kept, *(note if len(kept) < len(lines) else [])])


def _fitting(lines: Sequence[str], longest: int) -> Sequence[str]:
    room = longest // LIST_IN
    for place, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return lines[:place]
    return lines
