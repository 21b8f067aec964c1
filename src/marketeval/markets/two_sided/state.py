"""The state of a two-sided market, and what its actions give back.

`State` is changed by `rules.evolve` alone. What happened is a sequence of `Entry`, the journal:
replaying them over an empty state gives the state again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marketeval.actions import two_sided as act
from marketeval.core.streams import Streams
from marketeval.markets.two_sided.switches import Rules
from marketeval.mechanisms.accounts import BANK, Accounts
from marketeval.mechanisms.meaning import Meanings
from marketeval.mechanisms.search import Catalogue, Listing, Order

Action = act.ProtocolAction | act.Register


@dataclass(frozen=True, slots=True)
class Sent:
    """A message went out."""

    action: act.SendMessage


@dataclass(frozen=True, slots=True)
class Mail:
    """Messages from one's inbox, oldest first."""

    messages: Sequence[act.Heard]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Found:
    """One page of search results, in the order shown."""

    businesses: Sequence[act.Business]
    rule: str
    total: int
    pages: int


@dataclass(frozen=True, slots=True)
class Registered:
    """The profile is in the market."""

    id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The market says no: a code of `events.two_sided.REASONS`, and words for the agent."""

    reason: str
    words: str


Result = Sent | Mail | Found | Registered | Refused


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: who did what when, and what came of it."""

    row: int
    now: int
    caller: str
    action: Action
    result: Result


@dataclass(slots=True)
class Offer:
    """A proposal that may be paid: by whom, to whom, until when, and whether it was."""

    seller: str
    buyer: str
    proposal: act.OrderProposal
    amount: int
    expires: int | None
    paid: bool = False


@dataclass(slots=True)
class State:
    """Everything the rules look at.

    `now` is the logical clock (rounds in lockstep, seconds in a server). `offers` are found by
    seller and proposal id. `meanings` are vectors that an embedder gave, for searches by meaning,
    put there before the search that needs them. `rows` and `spent` are the meter, which refusals
    move as well; the rest changes only when something is accepted.
    """

    rules: Rules
    now: int = 0
    rows: int = 0
    spent: dict[str, tuple[int, int]] = field(default_factory=dict)
    profiles: dict[str, act.Profile] = field(default_factory=dict)
    public: dict[str, act.Business] = field(default_factory=dict)
    inboxes: dict[str, list[act.Heard]] = field(default_factory=dict)
    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    used_ids: set[str] = field(default_factory=set)
    accounts: Accounts = field(default_factory=Accounts)
    stock: dict[tuple[str, str], int] = field(default_factory=dict)
    order: Order = "as_ranked"
    streams: Streams | None = None
    meanings: Meanings | None = None
    _catalogue: tuple[Sequence[str], Catalogue] | None = None

    def catalogue(self) -> tuple[Sequence[str], Catalogue]:
        """The businesses in order of registration and their index, built once per change."""
        if self._catalogue is None:
            self._catalogue = catalogue_of(self.public.values(), self.meanings)
        return self._catalogue

    @property
    def has_catalogue(self) -> bool:
        """Whether the index is there, or would have to be built."""
        return self._catalogue is not None

    def take_catalogue(self, built: tuple[Sequence[str], Catalogue]) -> None:
        """An index of the present businesses that was built elsewhere."""
        self._catalogue = built

    def unread(self, queries: Sequence[str]) -> list[str]:
        """The texts without a vector that searches for these queries need: businesses' first."""
        if self.meanings is None:
            return []
        texts = [one.text for one in self.catalogue()[1].listings]
        return self.meanings.unknown([*texts, *queries]) if queries else []

    def forget_catalogue(self) -> None:
        """The businesses have changed; the index is built anew when next needed."""
        self._catalogue = None

    def mail(self, agent: str, after: int) -> Sequence[act.Heard]:
        """What came for an agent after a row."""
        inbox = self.inboxes.get(agent)
        if not inbox or inbox[-1].index <= after:
            return ()
        return inbox[bisect_right(inbox, after, key=lambda one: one.index) :]

    def received(self, agent: str) -> int:
        """How many messages came for an agent in this tick of the clock."""
        inbox = self.inboxes.get(agent, ())
        return len(inbox) - bisect_left(inbox, self.now, key=lambda one: one.at)

    def book(self) -> Mapping[str, Any]:  # any: plain values for comparison
        """All but the meter and the clock, as plain values: what no refusal may change."""
        return {
            "profiles": dict(self.profiles),
            "inboxes": {name: list(mail) for name, mail in self.inboxes.items()},
            "offers": {
                key: (one.buyer, one.amount, one.expires, one.paid)
                for key, one in self.offers.items()
            },
            "used_ids": set(self.used_ids),
            "balances": dict(self.accounts.balances),
            "stock": dict(self.stock),
        }

    def balances_hold(self) -> bool:
        """Whether money was neither made nor lost, and no agent owes more than it may."""
        return self.accounts.check() and all(
            self.accounts.covers(name, 0) for name in self.accounts.balances if name != BANK
        )


def catalogue_of(
    businesses: Iterable[act.Business], meanings: Meanings | None = None
) -> tuple[Sequence[str], Catalogue]:
    """The ids of businesses and their index."""
    known = list(businesses)
    return [one.id for one in known], Catalogue([_listing(one) for one in known], meanings)


def _listing(one: act.Business) -> Listing:
    return Listing(
        name=one.name,
        description=one.description,
        rating=one.rating,
        items=list(one.menu_features),
        amenities=frozenset(name for name, there in one.amenity_features.items() if there),
    )
