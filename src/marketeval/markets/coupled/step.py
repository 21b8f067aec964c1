"""One step of a coupled market: its interactions on their way along the governance graph."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.coupled import Routed
from marketeval.core.log import EventLog
from marketeval.core.market import Action, Request, Script
from marketeval.core.streams import Streams
from marketeval.events import coupled as events
from marketeval.markets.coupled import answering, credit, retrieving
from marketeval.markets.coupled.books import MICROS, user_account
from marketeval.markets.coupled.chooser import Chooser, Taken
from marketeval.markets.coupled.facts import Ecosystem
from marketeval.markets.coupled.retrieving import Call
from marketeval.markets.coupled.scenario import (
    Behaviour,
    Retriever,
    Router,
    Service,
)
from marketeval.markets.coupled.scenario import Generator as GeneratorSpec
from marketeval.markets.coupled.state import State
from marketeval.mechanisms.accounts import BANK
from marketeval.mechanisms.desk import latency

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
NOBODY = events.NOBODY


class Step:
    """The interactions of a step; arrays have one entry per slot."""

    def __init__(
        self,
        world: Ecosystem,
        state: State,
        streams: Streams,
        number: int,
        users: Integers,
        questions: Integers,
    ) -> None:
        size = users.size
        self.world, self.state, self.streams, self.number = world, state, streams, number
        self.users, self.questions = users, questions
        self.topics: Integers = world.pool.topics[questions]
        self.segment: Integers = state.segment[users]
        self.router: Integers = np.full(size, NOBODY)
        self.provider: Integers = np.full(size, NOBODY)
        self.explored: Truths = np.zeros(size, bool)
        self.effort: Floats = np.zeros(size)
        self.served: Integers = np.full(size, number)
        self.status: Integers = np.zeros(size, np.int64)
        self.paid: Integers = np.zeros(size, np.int64)
        self.latency: Floats = np.zeros(size)
        self.spent: dict[int, int] = {}  # what generators paid for an interaction, by slot
        self.closed: Floats = np.full(size, np.nan)
        self.evidence: Floats = np.full(size, np.nan)
        self.quality: Floats = np.zeros(size)
        self.failed: Truths = np.zeros(size, bool)
        self.text: list[str] = [""] * size
        self.signal: Floats = np.full(size, np.nan)
        self.utility: Floats = np.full(size, np.nan)
        self.taken: list[tuple[Taken, Floats]] = []
        self.calls: list[Call] = []
        self.of_slot: dict[int, list[Call]] = {}
        self.missed: list[tuple[int, str]] = []
        self.round = 0  # of retrieval
        self._begun = False
        self._routed: list[tuple[int, Integers, Integers]] = []  # router, slots, callers
        self._wanted: list[tuple[int, int, int, int]] = []  # slot, retriever, caller, router
        self._finished: set[int] = set()

    # Choices along the edges

    def users_choose(self) -> None:
        """Every user selects along an edge of its population."""
        state = self.state
        for segment, (name, spec) in enumerate(self.world.spec.users.items()):
            slots = np.flatnonzero(self.segment == segment)
            if not slots.size:
                continue
            chooser = state.choosers[name]
            members = self.users[slots] - state.first_user[segment]
            open_to = self._open(
                chooser, [user_account(u) for u in self.users[slots].tolist()], spec.documents
            )
            bonus = self._behaviour(segment, chooser, members, spec.behaviour)
            found = chooser.choose(
                members, self.topics[slots], slots, step=self.number, draw=slots,
                open_to=open_to, bonus=bonus, depth=0,
            )  # fmt: skip
            for taken in found:
                self._take(taken)
                self.explored[taken.slots] = taken.explored
                if bonus is not None:
                    who = self.users[taken.slots] - state.first_user[segment]
                    np.add.at(state.asked[segment], (who, taken.own), 1.0)
                    state.last[segment][who] = taken.own
                self._follow(taken, np.full(taken.slots.size, NOBODY))

    def routers_choose(self, *, to_retrievers: bool) -> Script:
        """Every router that was selected passes its questions on, by its policy or its seat."""
        world, state = self.world, self.state
        waiting, self._routed = self._routed, []
        for router in sorted({one for one, _, _ in waiting}):
            name = world.names[router]
            slots = np.concatenate([s for one, s, _ in waiting if one == router])
            callers = np.concatenate([c for one, _, c in waiting if one == router])
            order = np.argsort(slots, kind="stable")
            slots, callers = slots[order], callers[order]
            chooser = state.choosers[name]
            payers = [
                self._payer(slot, caller) for slot, caller in zip(slots, callers, strict=True)
            ]
            documents = max(
                (self._documents(slot, c) for slot, c in zip(slots, callers, strict=True))
            )
            open_to = self._open(chooser, payers, documents)
            count = 1
            if to_retrievers:
                count = max(self._generator(caller).strategy.router_top_k for caller in callers)
            found = chooser.choose(
                np.zeros(slots.size, np.int64), self.topics[slots], slots, step=self.number,
                draw=self._draw(slots), open_to=open_to, count=count,
                depth=2 if to_retrievers else 1, round_=self.round,
            )  # fmt: skip
            if chooser.asks:
                found = yield from self._ask_router(name, chooser, slots, open_to, found)
            fee = state.price(router)
            for rank, taken in enumerate(found):
                who = callers[np.searchsorted(slots, taken.slots)]
                if to_retrievers:
                    wanted = np.array(
                        [rank < self._generator(one).strategy.router_top_k for one in who], bool
                    )
                    taken, who = _where(taken, wanted), who[wanted]
                self._take(taken)
                if fee and rank == 0:
                    for slot, caller in zip(taken.slots.tolist(), who.tolist(), strict=True):
                        self._pay(slot, caller, name, fee, events.ROUTING)
                self._follow(taken, who, via=router)

    def generators_choose(self) -> bool:
        """Every generator that wants evidence selects whom to get it of; False once none does."""
        if self._begun:
            self.round += 1
        self._begun = True
        self._wanted = []
        any_chosen = False
        for provider in np.unique(self.provider).tolist():
            if provider == NOBODY or not self._generates(provider):
                continue
            spec = self._generator(provider)
            if self.round >= spec.strategy.most_rounds:
                continue
            slots = np.flatnonzero((self.provider == provider) & (self.effort > 0))
            slots = np.array(
                [s for s in slots.tolist() if retrieving.goes_on(self, s, spec)], np.int64
            )
            if not slots.size:
                continue
            name = self.world.names[provider]
            chooser = self.state.choosers[name]
            open_to = self._open(chooser, [name] * slots.size, self.state.documents(provider))
            open_to &= retrieving.untried(self, slots, chooser)
            found = chooser.choose(
                np.zeros(slots.size, np.int64), self.topics[slots], slots, step=self.number,
                draw=self._draw(slots), open_to=open_to, count=spec.strategy.breadth,
                depth=1, round_=self.round,
            )  # fmt: skip
            for taken in found:
                any_chosen = True
                self._take(taken)
                self._follow(taken, np.full(taken.slots.size, provider))
            self._finished.update(
                set(slots.tolist()) - {s for t in found for s in t.slots.tolist()}
            )
        return any_chosen

    # Who is served, and what is retrieved

    def providers_admit(self) -> None:
        """Each provider takes the questions that can be paid for, as far as its capacity goes."""
        for provider in np.unique(self.provider).tolist():
            if provider == NOBODY:
                continue
            slots = np.flatnonzero(self.provider == provider)
            payers = [user_account(user) for user in self.users[slots].tolist()]
            served, effort, wait, seconds, paid = self.admit(
                provider, slots, payers, [NOBODY] * slots.size, self._documents(slots[0], NOBODY),
                events.ANSWER,
            )  # fmt: skip
            self.status[slots], self.effort[slots] = served, effort
            self.served[slots] = self.number + wait
            self.latency[slots] += seconds
            self.paid[slots] += paid

    def admit(
        self,
        agent: int,
        slots: Integers,
        payers: Sequence[str],
        callers: Sequence[int],
        documents: int,
        purpose: int,
    ) -> tuple[Integers, Floats, Integers, Floats, Integers]:
        """Take calls of one agent in slot order: status, effort, wait, seconds and price of each.

        Out of scope and unpaid calls are turned away before capacity counts; a call that is turned
        away costs nothing. An agent that cannot pay its own running costs takes no call.
        """
        world, state = self.world, self.state
        name = world.names[agent]
        spec = world.agents[name]
        assert isinstance(spec, Service)
        price, cost = state.price(agent, documents), round(spec.cost * MICROS)
        status = np.zeros(slots.size, np.int64)
        left: dict[str, int | None] = {}
        own = state.books.left(name)
        for place, payer in enumerate(payers):
            if not world.scope[agent, self.topics[slots[place]]]:
                status[place] = events.OUT_OF_SCOPE
                continue
            purse = left.setdefault(payer, state.books.left(payer))
            if (purse is not None and purse < price) or (own is not None and own < cost):
                status[place] = events.UNAFFORDABLE
                continue
            if purse is not None:
                left[payer] = purse - price
            own = None if own is None else own - cost
        fine = np.flatnonzero(status == events.OK)
        desk = state.desks[agent]
        got, waits = desk.admit(fine.size)
        effort, wait = np.zeros(slots.size), np.zeros(slots.size, np.int64)
        effort[fine], wait[fine] = got, waits
        status[fine[got == 0]] = events.TURNED_AWAY
        seconds = latency(spec.latency_s, spec.per_call_s, desk.load, wait, world.spec.step_s)
        seconds[effort == 0] = 0.0
        paid = np.zeros(slots.size, np.int64)
        for place in np.flatnonzero(effort > 0).tolist() if price or cost else ():
            slot = int(slots[place])
            paid[place] = self._pay(slot, callers[place], name, price, purpose, add=False)
            state.books.pay(slot, name, BANK, cost, events.RUNNING)
        if agent in state.levers:
            state.levers[agent].calls += int((effort > 0).sum())
        return status, effort, wait, seconds, paid

    def retrievers_answer(self) -> Script:
        """The retrievers that were selected in this round hand over documents."""
        yield from retrieving.answer(self, self._wanted)

    def search_engines_answer(self) -> Script:
        """Retrievers that users asked themselves hand over documents."""
        yield from retrieving.answer_users(self)

    def generators_answer(self) -> Script:
        """Every generator answers from the evidence it has."""
        yield from answering.answer(self)

    # What it was worth

    def settle(self) -> None:
        """Late answers cost their penalty; then utility = quality Q - cost C - latency L."""
        credit.settle(self)

    def learn(self) -> None:
        """Everybody on the path of an answer learns, by the rule of credit."""
        credit.learn(self)

    def write(self, log: EventLog) -> None:
        """Log the step, and close the desks."""
        credit.write(self, log)
        self.state.books.write(log, self.number)
        for desk in self.state.desks.values():
            desk.close()

    # Small parts of the above

    def _take(self, taken: Taken) -> None:
        """Note some choices."""
        self.taken.append((taken, np.full(taken.slots.size, np.nan)))
        np.add.at(self.state.traffic, taken.target, 1.0)
        np.add.at(self.state.window, taken.target, 1.0)

    def _follow(self, taken: Taken, callers: Integers, via: int = NOBODY) -> None:
        """Go on from the targets of some choices: to a router, a provider, or a retriever."""
        for target in np.unique(taken.target).tolist():
            mine = taken.target == target
            slots, who = taken.slots[mine], callers[mine]
            if isinstance(self.world.agents[self.world.names[target]], Router):
                self._routed.append((target, slots, who))
                continue
            by_user = who == NOBODY
            self.provider[slots[by_user]] = target
            self.router[slots[by_user]] = via
            self._wanted += [
                (slot, target, caller, via)
                for slot, caller in zip(slots.tolist(), who.tolist(), strict=True)
                if caller != NOBODY
            ]

    def _open(self, chooser: Chooser, payers: Sequence[str], documents: int) -> Truths:
        """Who of a chooser's targets is there, and can be paid by each payer; (payers, targets)."""
        state = self.state
        open_to = np.broadcast_to(
            state.present[chooser.targets], (len(payers), chooser.targets.size)
        ).copy()
        if not state.books.limited:
            return open_to
        prices = np.array([state.price(int(one), documents) for one in chooser.targets], np.int64)
        for place, payer in enumerate(payers):
            left = state.books.left(payer)
            if left is not None:
                open_to[place] &= prices <= left
        return open_to

    def _behaviour(
        self, segment: int, chooser: Chooser, members: Integers, spec: Behaviour
    ) -> Floats | None:
        """What popularity, exposure, framing and switching add to each target; None if nothing."""
        if spec == Behaviour():
            return None
        state = self.state
        bonus = np.zeros((members.size, chooser.targets.size))
        bonus += spec.popularity * state.shares(chooser.targets)
        bonus += spec.exposure * np.log1p(state.asked[segment][members])
        for name, added in spec.framing.items():
            if name in self.world.number:
                bonus[:, chooser.place[self.world.number[name]]] += added
        last = state.last[segment][members]
        moved = np.flatnonzero(last >= 0)
        bonus[moved, last[moved]] += spec.switching_cost
        return bonus

    def _ask_router(
        self, name: str, chooser: Chooser, slots: Integers, open_to: Truths, by_rule: list[Taken]
    ) -> Generator[Sequence[Request], Sequence[Action], list[Taken]]:
        """A router in a seat says itself where it routes; its rule stands in where it fails."""
        options = [self.world.names[one] for one in chooser.targets]
        (action,) = yield [
            Request(
                seat=name,
                decision="route",
                action=Routed,
                step=self.number,
                draws=self.streams.of(f"{name}/agent"),
                batch={
                    "slot": slots,
                    "question": self.questions[slots],
                    "asked": [self.world.pool.texts[q] for q in self.questions[slots]],
                    "topic": [self.world.pool.topic_names[t] for t in self.topics[slots]],
                    "options": options,
                    "open": open_to,
                },
            )
        ]
        if not by_rule:
            return by_rule
        first = by_rule[0]
        place = np.searchsorted(slots, first.slots)
        named = getattr(action, "target", None)
        reason = getattr(action, "reason", "") or "no target for each row"
        if not isinstance(named, np.ndarray) or named.shape != slots.shape:
            self.missed += [(int(slot), reason) for slot in first.slots]
            return by_rule
        own = named[place].astype(np.int64)
        fine = (own >= 0) & (own < len(options))
        fine &= open_to[place, np.where(fine, own, 0)]
        self.missed += [
            (int(slot), "a target that is not open") for slot in first.slots[~fine].tolist()
        ]
        own = np.where(fine, own, first.own)
        return [
            Taken(
                chooser, first.rows, first.slots, own, chooser.targets[own],
                first.explored & ~fine, first.depth, first.round, first.topics,
            )
        ]  # fmt: skip

    def _pay(
        self, slot: int, caller: int, payee: str, amount: int, purpose: int, *, add: bool = True
    ) -> int:
        """Let the user of a slot, or the generator that calls, pay an agent; what was paid."""
        paid = self.state.books.pay(slot, self._payer(slot, caller), payee, amount, purpose)
        if caller != NOBODY:
            self.spent[slot] = self.spent.get(slot, 0) + paid
        elif add:
            self.paid[slot] += paid
        return paid

    def _payer(self, slot: int, caller: int) -> str:
        return user_account(int(self.users[slot])) if caller == NOBODY else self.world.names[caller]

    def _documents(self, slot: int, caller: int) -> int:
        if caller != NOBODY:
            return self.state.documents(int(caller))
        return self.state.users[int(self.segment[slot])].documents

    def _generates(self, agent: int) -> bool:
        return isinstance(self.world.agents[self.world.names[agent]], GeneratorSpec)

    def _generator(self, agent: int) -> GeneratorSpec:
        found = self.world.agents[self.world.names[int(agent)]]
        assert isinstance(found, GeneratorSpec)
        return found

    def retriever(self, agent: int) -> Retriever:
        """The specification of a retriever."""
        found = self.world.agents[self.world.names[agent]]
        assert isinstance(found, Retriever)
        return found

    def words(self, document: str) -> str:
        """The text of a document, its id where nobody gave one."""
        return self.state.texts.get(document) or self.world.shelf.get(document, document)

    def _draw(self, slots: Integers) -> Integers:
        """Numbers of the draws of these slots: those of each round apart."""
        return np.asarray(slots + self.round * self.users.size)


def _where(taken: Taken, mask: Truths) -> Taken:
    if mask.all():
        return taken
    return Taken(
        taken.chooser, taken.rows[mask], taken.slots[mask], taken.own[mask], taken.target[mask],
        taken.explored[mask], taken.depth, taken.round, taken.topics[mask],
    )  # fmt: skip
