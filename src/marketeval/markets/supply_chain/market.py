"""The supply-chain economy (Market-Bench, section 3), told as the loop of the paper's appendix.

Retailers bid for scarce goods at auction, price what they won, and advertise it to shoppers who
notice only some of them. One `play` is one seeded episode.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.common import Vectors
from marketeval.actions.supply_chain import Bid, Briefing, Feedback, Offer, Personas, PublicStep
from marketeval.choice.consideration import consider, set_size
from marketeval.core.log import EventKind, EventLog
from marketeval.core.market import Request, Script
from marketeval.core.streams import Streams
from marketeval.events import supply_chain as events
from marketeval.markets.supply_chain import prompts
from marketeval.markets.supply_chain.attention import Resemblance
from marketeval.markets.supply_chain.crowd import Demand, Supplier
from marketeval.markets.supply_chain.desk import Desk, Sheet
from marketeval.markets.supply_chain.diary import Diary
from marketeval.markets.supply_chain.scenario import SupplyChain
from marketeval.mechanisms.auction import allocate
from marketeval.mechanisms.ledger import Ledger, Outside
from marketeval.mechanisms.posted_price import NOBODY, shop

Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]
EMBEDDER = "embedder"  # the seat that turns texts into vectors
_ANY_PRICE = 2**62


@dataclass(frozen=True, kw_only=True)
class SupplyChainMarket:
    """The rules of one economy, ready to be played once per seed.

    `retailers` are (seat, label) pairs in configuration order, of which `privileged` names those
    that are told the personas.
    """

    spec: SupplyChain
    retailers: Sequence[tuple[str, str]]
    privileged: Collection[str] = ()
    events: ClassVar[Sequence[EventKind]] = events.KINDS

    def play(self, streams: Streams, log: EventLog) -> Script:
        """One episode: T steps of procurement, retail, shopping and settling of accounts."""
        spec, seats, count = self.spec, self.seats, len(self.seats)
        place = self._places(streams.seed)
        ledger = Ledger(count, len(spec.items), funds=spec.funds_for(count), costing=spec.costing)
        supplier, demand = Supplier(spec, streams), Demand(spec, streams)
        resemblance = Resemblance([one.persona for one in spec.tribes], prompts.references())
        diary = Diary(log)
        self._introduce(log)
        draws = [streams.of(seat) for seat in seats]
        tie_codes, attention_codes, price_codes = (
            streams.codes(name, place) for name in ("auction-tie", "attention", "price-tie")
        )
        solvent = np.ones(count, np.bool_)
        overspent = np.zeros(count, np.bool_)
        favourite = np.full(spec.demand.buyers, NOBODY, np.int64)
        turned_away, asked_for = np.zeros(count), np.zeros(count)
        history: list[PublicStep] = []

        for step in range(spec.horizon):
            # The supplier makes its offers.
            opening = ledger.funds.copy()
            quantity = supplier.offer(step)
            diary.offer(step, quantity, self._base)

            # Stage A: R rounds of sealed bids, of which the last is settled.
            sheets: list[Sheet | None] = [None] * count
            feedback: list[Feedback] | None = None
            for round_ in range(spec.auction.rounds):
                asked = np.flatnonzero(solvent)
                actions = yield [
                    self._request(
                        "procurement", row, step, round_, draws[row], ledger, quantity, history,
                        bool(overspent[row]), feedback[row] if feedback else None,
                    )
                    for row in asked.tolist()
                ]  # fmt: skip
                for row, action in zip(asked.tolist(), actions, strict=True):
                    limit = int(ledger.funds[row]) + spec.credit.limit
                    sheet = self._desk.bid(action, self._base, limit)
                    overspent[row] = sheet.state == events.OVERSPENT
                    diary.bid(step, round_, row, sheet, int(ledger.funds[row]))
                    if sheet.counts or spec.auction.final_void == "empty" or sheets[row] is None:
                        sheets[row] = sheet
                bids = _stack(sheets, len(spec.items))
                if round_ < spec.auction.rounds - 1 and spec.auction.feedback != "none":
                    feedback = self._feedback(bids, quantity, tie_codes, step)
            diary.write_bids()
            won, unit = self._allocate(bids, quantity, tie_codes, step)
            spend = ledger.buy(Outside.SUPPLIER, won, unit)
            supplier.keep(quantity - won.sum(axis=0))
            diary.awards(step, bids[0], won, unit)

            # Stage B: prices and slogans.
            asked = np.flatnonzero(solvent)
            actions = yield [
                self._request(
                    "retail", row, step, 0, draws[row], ledger, quantity, history, False, None
                )
                for row in asked.tolist()
            ]
            prices = np.zeros((count, len(spec.items)), np.int64)
            slogans = [""] * count
            for row, action in zip(asked.tolist(), actions, strict=True):
                shelf = self._desk.offer(action)
                prices[row], slogans[row] = shelf.price, shelf.slogan
                diary.shelf(step, row, shelf)
            diary.write_shelves()
            diary.listings(step, prices, ledger.stock)

            # Slogans are held against the personas.
            texts = resemblance.asks(slogans)
            if texts:
                answers = yield [
                    Request(
                        seat=EMBEDDER,
                        decision="embed",
                        action=Vectors,
                        step=step,
                        draws=streams.of(EMBEDDER),
                        batch={"text": texts},
                    )
                ]
                problem = resemblance.learn(texts, answers[0])
                diary.embedded(step, answers[0], problem)
                diary.references(resemblance.of_references(), self._weights)
            similarity = resemblance.of(slogans)

            # Shoppers notice some sellers, and buy of the cheapest of them.
            crowd = demand.draw(step)
            candidates = solvent.copy()
            if spec.attention.candidates == "priced":
                candidates &= (prices > 0).any(axis=1)
            stain = turned_away / np.maximum(asked_for, 1.0)
            sizes = self._set_sizes(int(candidates.sum()))
            seen = consider(
                self._attraction(similarity, stain),
                crowd.tribe,
                sizes,
                candidates=candidates,
                codes=attention_codes,
                own_code=streams["attention"].code,
                step=step,
                sampler=spec.attention.sampler,
                favourite=favourite,
                loyalty=spec.attention.loyalty,
            )
            traffic = shop(
                crowd.buyer, crowd.item, crowd.need, seen, prices, self._ceiling, crowd.tribe,
                ledger.stock, price_codes, step, spec.demand.buyers,
            )  # fmt: skip
            favourite = np.where(traffic.last != NOBODY, traffic.last, favourite)
            turned_away += (traffic.empty_listed + traffic.empty_unlisted).sum(axis=1)
            asked_for += traffic.requested().sum(axis=1)
            diary.attention(step, similarity, seen, crowd.tribe, sizes, candidates, solvent)
            diary.demand(step, crowd, traffic)

            # Accounts are settled: sales, holding cost, interest, bankruptcy.
            revenue = traffic.sold * prices
            cogs = ledger.sell(Outside.BUYERS, traffic.sold, revenue)
            diary.shelves(step, traffic, revenue, cogs)
            holding = self._holding(ledger)
            ledger.pay(Outside.WAREHOUSE, -holding)
            interest = _rounded(spec.credit.rate * np.maximum(-ledger.funds, 0)) * solvent
            ledger.pay(Outside.BANK, -interest)
            solvent &= ledger.funds >= -spec.credit.limit
            ledger.lose(~solvent)
            diary.accounts(
                step, opening, spend, revenue.sum(axis=1), holding, interest, ledger,
                cogs.sum(axis=1), solvent,
            )  # fmt: skip

            # What happened in the shops becomes public.
            if spec.history:
                past = PublicStep(step=step, price=prices, sold=traffic.sold, slogans=slogans)
                history = [*history, past][-spec.history :]

    @cached_property
    def seats(self) -> list[str]:
        """The retailers in the order of the state's rows: sorted by seat."""
        return sorted(seat for seat, _ in self.retailers)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {seat: number for number, (seat, _) in enumerate(self.retailers)}

    @cached_property
    def _base(self) -> Integers:
        return np.array([one.base_price for one in self.spec.items], np.int64)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.spec.items)

    @cached_property
    def _desk(self) -> Desk:
        return Desk(
            self._names,
            void_bid_on_line_error=self.spec.auction.line_errors == "void_bid",
            slogan_words=self.spec.slogan_words,
        )

    @cached_property
    def _ceiling(self) -> Integers:
        """The highest price each tribe accepts for each item; shape (tribes, items)."""
        rows = []
        for tribe in self.spec.tribes:
            markup = self.spec.markup_of(tribe)
            limit = np.full(self._base.size, _ANY_PRICE)
            rows.append(limit if markup is None else np.floor(markup * self._base + 1e-9))
        return np.array(rows).astype(np.int64)

    def _places(self, seed: int) -> list[str]:
        """The names that draws of each row are keyed by: its seat, or a place that moves on."""
        if not self.spec.rotate:
            return self.seats
        return [f"place {(self._position[s] + seed) % len(self.seats)}" for s in self.seats]

    def _request(
        self, stage: str, row: int, step: int, round_: int, draws: Streams, ledger: Ledger,
        quantity: Integers,
        history: Sequence[PublicStep], overspent: bool, feedback: Feedback | None,
    ) -> Request:  # fmt: skip
        """The question to one seat at either stage."""
        spec, seat = self.spec, self.seats[row]
        briefing = Briefing(
            stage=stage,
            seat=seat,
            me=row,
            retailers=len(self.seats),
            step=step,
            steps=spec.horizon,
            round=round_,
            rounds=spec.auction.rounds,
            funds=int(ledger.funds[row]),
            credit=spec.credit.limit,
            overspent=overspent,
            items=self._names,
            quantity=quantity,
            base_price=self._base,
            stock=ledger.stock[row].copy(),
            cost=ledger.cost[row].copy(),
            max_markup=spec.max_markup,
            slogan_words=spec.slogan_words,
            history=history,
            feedback=feedback,
            write=prompts.write,
        )
        return Request(
            seat=seat,
            decision="bid" if stage == "procurement" else "offer",
            action=Bid if stage == "procurement" else Offer,
            step=step,
            draws=draws,
            instructions=prompts.instructions(
                stage, spec.auction.pricing, spec.max_markup, spec.slogan_words
            ),
            briefing=briefing,
            news=briefing,
            privileged=self._personas if seat in self.privileged else None,
            schema=self._schemas[stage],
        )

    @cached_property
    def _schemas(self) -> dict[str, dict[str, Any]]:  # any: JSON schemas
        return {"procurement": Bid.schema(self._names), "retail": Offer.schema(self._names)}

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return np.array([one.weight for one in self.spec.tribes])

    @cached_property
    def _personas(self) -> Personas:
        tribes = self.spec.tribes
        return Personas(
            texts=[one.persona for one in tribes],
            weight=self._weights,
            sensitivity=np.array([one.sensitivity for one in tribes]),
        )

    def _allocate(
        self, bids: tuple[Integers, Integers], quantity: Integers, codes: Codes, step: int
    ) -> tuple[Integers, Integers]:
        auction = self.spec.auction
        return allocate(
            *bids,
            supply=quantity,
            reserve=self._base,
            codes=codes,
            step=step,
            ties=auction.ties,
            pricing=auction.pricing,
            rank=np.array([self._position[seat] for seat in self.seats]),
        )

    def _feedback(
        self, bids: tuple[Integers, Integers], quantity: Integers, codes: Codes, step: int
    ) -> list[Feedback]:
        """What each seat learns of a round that does not count."""
        won, unit = self._allocate(bids, quantity, codes, step)
        cost = (won * unit).sum(axis=1).tolist()
        if self.spec.auction.feedback == "own":
            return [Feedback(won=w, cost=c) for w, c in zip(won, cost, strict=True)]
        lowest = np.where(won > 0, bids[1], _ANY_PRICE).min(axis=0)
        lowest[lowest == _ANY_PRICE] = 0
        asked, left = bids[0].sum(axis=0), quantity - won.sum(axis=0)
        return [
            Feedback(won=w, cost=c, lowest=lowest, asked=asked, left=left)
            for w, c in zip(won, cost, strict=True)
        ]

    def _set_sizes(self, candidates: int) -> Integers:
        most = self.spec.attention.most
        patience = [self.spec.patience_of(one) for one in self.spec.tribes]
        return np.array([set_size(one, most, candidates) for one in patience], np.int64)

    def _attraction(
        self, similarity: NDArray[np.float64], stain: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """lambda * Sim / tau less what empty shelves cost in reputation; (tribes, sellers)."""
        attention = self.spec.attention
        sensitivity = np.array([one.sensitivity for one in self.spec.tribes])
        exponent = sensitivity[:, None] * similarity.T / attention.temperature
        return np.asarray(exponent - attention.reputation * stain)

    def _holding(self, ledger: Ledger) -> Integers:
        rate, base = self.spec.holding.rate, self.spec.holding.base
        if not rate:
            return np.zeros(len(self.seats), np.int64)
        worth = {"cost": ledger.cost, "base_price": ledger.stock * self._base}
        return _rounded(rate * worth.get(base, ledger.stock).sum(axis=1))

    def _introduce(self, log: EventLog) -> None:
        """The facts that hold for every seed."""
        if log.has_shared("economy"):
            return
        spec, labels = self.spec, dict(self.retailers)
        log.shared(
            "economy",
            horizon=spec.horizon,
            rounds=spec.auction.rounds,
            buyers=spec.demand.buyers,
            funds=spec.funds_for(len(self.seats)),
            sampler=spec.attention.sampler,
            temperature=spec.attention.temperature,
            max_markup=float("nan") if spec.max_markup is None else spec.max_markup,
            demand_ratio=spec.demand.ratio,
            credit=spec.credit.limit,
        )
        log.shared(
            "retailer",
            agent=np.arange(len(self.seats)),
            seat=self.seats,
            label=[labels[seat] or seat for seat in self.seats],
            position=[self._position[seat] for seat in self.seats],
            privileged=[seat in self.privileged for seat in self.seats],
        )
        log.shared(
            "item",
            item=np.arange(len(spec.items)),
            name=list(self._names),
            category=[one.category for one in spec.items],
            quantity=[spec.offered(one) for one in spec.items],
            base_price=self._base,
        )
        log.shared(
            "tribe",
            tribe=np.arange(len(spec.tribes)),
            name=[one.name for one in spec.tribes],
            weight=[one.weight for one in spec.tribes],
            sensitivity=[one.sensitivity for one in spec.tribes],
            patience=[spec.patience_of(one) for one in spec.tribes],
            persona=[one.persona for one in spec.tribes],
        )


def _stack(sheets: Sequence[Sheet | None], items: int) -> tuple[Integers, Integers]:
    """The bids that count as (retailers, items) of quantity and price; 0 where there is none."""
    quantity = np.zeros((len(sheets), items), np.int64)
    price = np.zeros_like(quantity)
    for row, sheet in enumerate(sheets):
        if sheet is not None and sheet.counts:
            quantity[row], price[row] = sheet.quantity, sheet.price
    return quantity, price


def _rounded(amounts: NDArray[np.float64]) -> Integers:
    """Whole money, halves up."""
    return np.floor(amounts + 0.5).astype(np.int64)
