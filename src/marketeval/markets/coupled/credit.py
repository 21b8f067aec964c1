"""What an answer is worth, who learns what from it, and what the log is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marketeval.core.log import EventLog
from marketeval.events import coupled as events
from marketeval.events.information import MISSING, OK, OUTAGE, UNGRADED
from marketeval.markets.coupled.books import MICROS, user_account
from marketeval.markets.coupled.chooser import Taken

if TYPE_CHECKING:
    from marketeval.markets.coupled.step import Step

Floats = NDArray[np.float64]
NOBODY = events.NOBODY


def settle(step: Step) -> None:
    """Penalties for late answers; then each user's utility, and the signal it learns from.

    utility = quality Q - cost C - latency L,  signal: the same with 2 Q - 1 in the place of Q
    """
    world, state = step.world, step.state
    for one in step.calls:
        spec = step.retriever(one.agent)
        late = spec.promise_s is not None and one.latency > spec.promise_s
        if late and one.effort > 0 and one.caller != NOBODY:
            state.books.pay(
                one.slot, world.names[one.agent], world.names[one.caller],
                round(spec.penalty * MICROS), events.PENALTY,
            )  # fmt: skip
    back = np.zeros(step.users.size, np.int64)
    for slot, provider in enumerate(step.provider.tolist()):
        if provider == NOBODY or not step.effort[slot] > 0:
            continue
        agent = world.agents[world.names[provider]]
        promise = getattr(agent, "promise_s", None)
        if promise is not None and step.latency[slot] > promise:
            back[slot] = state.books.pay(
                slot, world.names[provider], user_account(int(step.users[slot])),
                round(getattr(agent, "penalty", 0.0) * MICROS), events.PENALTY,
            )  # fmt: skip
    asked = step.provider != NOBODY
    cost = (step.paid - back) / MICROS
    weights = np.array([(u.utility.quality, u.utility.cost, u.utility.latency)
                        for u in state.users])[step.segment]  # fmt: skip
    less = weights[:, 1] * cost + weights[:, 2] * step.latency
    more = np.zeros(step.users.size)
    for segment, users in enumerate(state.users):
        if users.behaviour.network:
            shares = state.shares(np.arange(len(world.names)))
            mine = (step.segment == segment) & asked
            more[mine] = users.behaviour.network * shares[step.provider[mine]]
    step.utility = np.where(asked, weights[:, 0] * step.quality - less + more, np.nan)
    step.signal = np.where(asked, weights[:, 0] * (2.0 * step.quality - 1.0) - less + more, np.nan)


def learn(step: Step) -> None:
    """Credit every choice on the path of an answer, by the scenario's rule."""
    rule, discount = step.world.spec.credit, step.world.spec.discount
    alpha = np.array([u.utility.quality for u in step.state.users])[step.segment]
    gained = alpha * (step.quality - np.nan_to_num(step.closed))
    retrieved = np.zeros(step.users.size)
    for one in step.calls:
        retrieved[one.slot] += one.effort > 0
    for taken, signals in step.taken:
        slots = taken.slots
        signal = step.signal[slots].copy()
        behind = _behind_a_generator(step, taken)
        if rule == "gain":
            signal = np.where(behind, gained[slots], signal)
        elif rule == "split":
            count = np.maximum(retrieved[slots], 1.0)
            signal -= np.where(behind, 2.0 * gained[slots] * (1.0 - 1.0 / count), 0.0)
        elif rule == "discounted":
            signal *= discount**taken.depth
        if taken.chooser.spec.cost:
            spent = _own_spending(step, taken)
            signal -= taken.chooser.spec.cost * spent
        signals[:] = signal
        taken.chooser.learn(taken, signals)
        np.add.at(step.state.credit[:, 0], taken.target, np.nan_to_num(signal))
        np.add.at(step.state.credit[:, 1], taken.target, ~np.isnan(signal))


def _behind_a_generator(step: Step, taken: Taken) -> bool:
    """Whether these choices are about evidence and not about who answers."""
    if taken.chooser.number == NOBODY:
        return False
    return step._generates(taken.chooser.number) or taken.depth == 2


def _own_spending(step: Step, taken: Taken) -> Floats:
    """What each choice cost in dollars: the calls it led to."""
    if taken.chooser.number == NOBODY:
        return np.zeros(taken.slots.size)
    spent = []
    for slot, target in zip(taken.slots.tolist(), taken.target.tolist(), strict=True):
        spent.append(
            sum(
                one.micros
                for one in step.of_slot.get(slot, ())
                if target in (one.agent, one.router)
            )
        )
    return np.array(spent) / MICROS


def write(step: Step, log: EventLog) -> None:
    """Log the interactions of a step and the paths they took."""
    number, slots = step.number, np.arange(step.users.size)
    asked = step.provider != NOBODY
    if not asked.all():
        lost = slots[~asked]
        log.append(
            "unserved", step=number, slot=lost, user=step.users[lost],
            question=step.questions[lost],
        )  # fmt: skip
    here = slots[asked]
    status = np.where(step.effort > 0, np.where(step.failed, MISSING, OK), OUTAGE)
    cost = step.paid / MICROS
    if here.size:
        log.append(
            "interaction",
            step=number,
            slot=here,
            user=step.users[here],
            question=step.questions[here],
            topic=step.topics[here],
            agent=step.provider[here],
            explored=step.explored[here],
            score=step.quality[here],
            grade=UNGRADED,
            cost_usd=cost[here],
            latency_s=step.latency[here],
            signal=step.signal[here],
            utility=step.utility[here],
            status=status[here],
        )
        retrieved = np.zeros(step.users.size, np.int64)
        for one in step.calls:
            retrieved[one.slot] += one.effort > 0
        log.append(
            "path",
            step=number,
            slot=here,
            router=step.router[here],
            provider=step.provider[here],
            retrieved=retrieved[here],
            evidence=step.evidence[here],
            closed=step.closed[here],
            quality=step.quality[here],
            effort=step.effort[here],
            served=step.served[here],
            text=[step.text[slot] for slot in here.tolist()],
            status=np.where(
                step.failed & (step.effort > 0), events.FAILED, step.status
            )[here],
        )  # fmt: skip
    if step.taken:
        every = np.concatenate([taken.slots for taken, _ in step.taken])
        sizes = [taken.slots.size for taken, _ in step.taken]
        log.append(
            "choice",
            step=number,
            slot=every,
            user=step.users[every],
            chooser=np.repeat([taken.chooser.number for taken, _ in step.taken], sizes),
            agent=np.concatenate([taken.target for taken, _ in step.taken]),
            depth=np.repeat([taken.depth for taken, _ in step.taken], sizes),
            round=np.repeat([taken.round for taken, _ in step.taken], sizes),
            explored=np.concatenate([taken.explored for taken, _ in step.taken]),
            signal=np.concatenate([signals for _, signals in step.taken]),
            score=np.where(asked, step.quality, np.nan)[every],
            utility=step.utility[every],
            latency_s=step.latency[every],
            cost_usd=cost[every],
            status=status[every],
        )
    _write_calls(step, log)
    for slot, reason in step.missed:
        log.append("missing_choice", step=number, slot=slot, user=step.users[slot], reason=reason)


def _write_calls(step: Step, log: EventLog) -> None:
    calls = step.calls
    if not calls:
        return
    log.append(
        "retrieval",
        step=step.number,
        slot=[one.slot for one in calls],
        round=[one.round for one in calls],
        caller=[one.caller for one in calls],
        router=[one.router for one in calls],
        agent=[one.agent for one in calls],
        query=[one.query for one in calls],
        documents=[" ".join(one.documents) for one in calls],
        count=[len(one.documents) for one in calls],
        reported=np.array([one.reported for one in calls]),
        evidence=np.array([one.evidence for one in calls]),
        micros=[one.micros for one in calls],
        latency_s=np.array([one.latency for one in calls]),
        effort=np.array([one.effort for one in calls]),
        served=[one.served for one in calls],
        status=[one.status for one in calls],
    )
