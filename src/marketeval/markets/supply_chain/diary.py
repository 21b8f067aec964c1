"""What a step writes into the event log: arrays of the state become rows, empty ones left out."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.common import Vectors
from marketeval.core.compiled import kernel
from marketeval.core.log import EventLog
from marketeval.core.market import Action
from marketeval.events import supply_chain as events
from marketeval.markets.supply_chain.crowd import Crowd
from marketeval.markets.supply_chain.desk import FAULT_CODES, Fault, Sheet, Shelf
from marketeval.mechanisms.ledger import Ledger
from marketeval.mechanisms.posted_price import Traffic

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Diary:
    """Writes one episode."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._bids: list[tuple[int, int, int, Sheet, int]] = []
        self._shelves: list[tuple[int, int, Shelf]] = []

    def offer(self, step: int, quantity: Integers, base: Integers) -> None:
        """What the supplier offers."""
        items = np.arange(base.size)
        self._log.append("offer", step=step, item=items, quantity=quantity, base_price=base)

    def bid(self, step: int, round_: int, row: int, sheet: Sheet, funds: int) -> None:
        """Note a bid; `write_bids` writes those of all rounds at once."""
        self._bids.append((step, round_, row, sheet, funds))

    def write_bids(self) -> None:
        """The bids of a step, their lines and their faults."""
        if not self._bids:
            return
        steps, rounds, rows, sheets, funds = map(list, zip(*self._bids, strict=True))
        self._log.append(
            "bid",
            step=steps,
            round=rounds,
            agent=rows,
            state=[one.state for one in sheets],
            lines=[one.lines for one in sheets],
            void_lines=[len(one.faults) for one in sheets],
            asked=[one.asked for one in sheets],
            commitment=np.array([one.commitment for one in sheets]),
            funds=funds,
            reason=[one.reason for one in sheets],
        )
        quantity = np.array([one.quantity for one in sheets])
        bid, item = np.nonzero(quantity)
        if bid.size:
            price = np.array([one.price for one in sheets])
            self._log.append(
                "bid_line",
                step=steps[0],
                round=np.array(rounds)[bid],
                agent=np.array(rows)[bid],
                item=item,
                quantity=quantity[bid, item],
                price=price[bid, item],
            )
        for step, round_, row, sheet, _ in self._bids:
            self._faults(step, events.AT_PROCUREMENT, round_, row, sheet.faults)
        self._bids = []

    def awards(self, step: int, asked: Integers, won: Integers, unit: Integers) -> None:
        """What the final bids won."""
        row, item = np.nonzero(asked)
        if row.size:
            self._log.append(
                "award",
                step=step,
                agent=row,
                item=item,
                asked=asked[row, item],
                won=won[row, item],
                price=unit[row, item],
            )

    def shelf(self, step: int, row: int, shelf: Shelf) -> None:
        """Note an answer of the retail stage; `write_shelves` writes them all at once."""
        self._shelves.append((step, row, shelf))

    def write_shelves(self) -> None:
        """The answers of the retail stage, with slogans and faults."""
        if not self._shelves:
            return
        steps, rows, shelves = map(list, zip(*self._shelves, strict=True))
        self._log.append(
            "retail",
            step=steps,
            agent=rows,
            valid=np.array([one.valid for one in shelves]),
            listed=[int(np.count_nonzero(one.price)) for one in shelves],
            void_lines=[
                sum(not fault.startswith("slogan") for fault, _ in one.faults) for one in shelves
            ],
            reason=[one.reason for one in shelves],
        )
        self._log.append(
            "slogan",
            step=steps,
            agent=rows,
            text=[one.slogan for one in shelves],
            words=[one.words for one in shelves],
        )
        for step, row, shelf in self._shelves:
            self._faults(step, events.AT_RETAIL, 0, row, shelf.faults)
        self._shelves = []

    def _faults(self, step: int, stage: int, round_: int, row: int, faults: list[Fault]) -> None:
        if faults:
            self._log.append(
                "fault",
                step=step,
                stage=stage,
                round=round_,
                agent=row,
                fault=[FAULT_CODES[fault] for fault, _ in faults],
                what=[what for _, what in faults],
            )

    def listings(self, step: int, prices: Integers, stock: Integers) -> None:
        """The posted prices."""
        row, item = np.nonzero(prices)
        if row.size:
            self._log.append(
                "listing",
                step=step,
                agent=row,
                item=item,
                price=prices[row, item],
                stock=stock[row, item],
            )

    def embedded(self, step: int, answer: Action, problem: str) -> None:
        """Which embedder answered (once for all seeds), or what went wrong."""
        if problem:
            self._log.append(
                "fault",
                step=step,
                stage=events.AT_EMBEDDING,
                round=0,
                agent=-1,
                fault=FAULT_CODES["malformed"],
                what=problem[:80],
            )
        elif isinstance(answer, Vectors):
            self._log.shared(
                "embedder",
                embedder=answer.embedder,
                sha256=answer.sha256,
                size=answer.values.shape[1],
            )

    def references(self, similarity: Floats | None, weight: Floats) -> None:
        """How close the reference slogans are to each persona, and to all by weight."""
        if similarity is None or len(similarity) < 2:
            return
        columns = [*similarity.T, _weighted(similarity, weight)]
        self._log.shared(
            "reference",
            tribe=[*range(weight.size), -1],
            slogans=len(similarity),
            mean=np.array([_mean(one) for one in columns]),
            sd=np.array([_deviation(one) for one in columns]),
        )

    def attention(
        self,
        step: int,
        similarity: Floats,
        seen: NDArray[np.int32],
        tribe: Integers,
        sizes: Integers,
        candidates: Mask,
        solvent: Mask,
    ) -> None:
        """How often each seat was noticed, by tribe."""
        counts = _noticed(seen, tribe, similarity.shape[0], sizes.size)
        rows = np.repeat(np.flatnonzero(solvent), sizes.size)
        tribes = np.tile(np.arange(sizes.size), int(solvent.sum()))
        if rows.size:
            self._log.append(
                "attention",
                step=step,
                agent=rows,
                tribe=tribes,
                similarity=similarity[rows, tribes],
                seen=counts[rows, tribes],
                buyers=np.bincount(tribe, minlength=sizes.size)[tribes],
                slots=sizes[tribes],
                candidates=int(candidates.sum()),
                candidate=candidates[rows],
            )

    def demand(self, step: int, crowd: Crowd, traffic: Traffic) -> None:
        """What was wanted and bought of each item."""
        items = traffic.sold.shape[1]
        wanted = np.bincount(crowd.item, crowd.need, items).astype(np.int64)
        self._log.append(
            "demand",
            step=step,
            item=np.arange(items),
            wanted=wanted,
            bought=traffic.sold.sum(axis=0),
        )

    def shelves(self, step: int, traffic: Traffic, revenue: Integers, cogs: Integers) -> None:
        """What happened at each shelf."""
        row, item = np.nonzero(traffic.requested() + traffic.outcompeted)
        if row.size:
            self._log.append(
                "shelf",
                step=step,
                agent=row,
                item=item,
                sold=traffic.sold[row, item],
                revenue=revenue[row, item],
                cogs=cogs[row, item],
                empty_listed=traffic.empty_listed[row, item],
                empty_unlisted=traffic.empty_unlisted[row, item],
                partial=traffic.partial[row, item],
                outcompeted=traffic.outcompeted[row, item],
            )

    def accounts(
        self,
        step: int,
        opening: Integers,
        spend: Integers,
        revenue: Integers,
        holding: Integers,
        interest: Integers,
        ledger: Ledger,
        cogs: Integers,
        solvent: Mask,
    ) -> None:
        """The books of every seat at the end of a step."""
        self._log.append(
            "account",
            step=step,
            agent=np.arange(opening.size),
            opening=opening,
            spend=spend,
            revenue=revenue,
            holding=holding,
            interest=interest,
            funds=ledger.funds.copy(),
            cogs=cogs,
            inventory_cost=ledger.cost.sum(axis=1),
            inventory_units=ledger.stock.sum(axis=1),
            solvent=solvent.copy(),
        )


def _weighted(similarity: Floats, weight: Floats) -> Floats:
    """Sums over tribes from left to right, so that they are the same everywhere."""
    total = np.zeros(len(similarity))
    for tribe, one in enumerate(weight):
        total = total + one * similarity[:, tribe]
    return total


def _mean(values: Floats) -> float:
    return math.fsum(values) / values.size


def _deviation(values: Floats) -> float:
    """Sample standard deviation (n - 1)."""
    mean = _mean(values)
    return math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (values.size - 1))


@kernel
def _noticed(seen: NDArray[np.int32], tribe: Integers, sellers: int, tribes: int) -> Integers:
    """Buyers of each tribe that noticed each seller; shape (sellers, tribes)."""
    counts = np.zeros((sellers, tribes), np.int64)
    for buyer in range(seen.shape[0]):
        for place in range(seen.shape[1]):
            if seen[buyer, place] >= 0:
                counts[seen[buyer, place], tribe[buyer]] += 1
    return counts
