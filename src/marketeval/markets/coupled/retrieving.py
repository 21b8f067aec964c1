"""The calls of retrievers: what is asked, who serves it, and what comes back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.coupled import Found
from marketeval.core.market import Action, Request, Script
from marketeval.events import coupled as events
from marketeval.markets.coupled.chooser import Chooser
from marketeval.markets.coupled.scenario import Generator

if TYPE_CHECKING:
    from marketeval.markets.coupled.step import Step

Integers = NDArray[np.int64]
NOBODY = events.NOBODY
MOST_WORDS = 64  # words of a query that noise can take
NEW_WORDS = 5  # added to the query of a further round
_WORD = re.compile(r"[^\W_]{4,}")


@dataclass(slots=True)
class Call:
    """One call of one retriever; `evidence` is what it is worth alone."""

    slot: int
    round: int
    caller: int
    router: int
    agent: int
    query: str = ""  # empty: the question itself
    documents: tuple[str, ...] = ()
    reported: float = float("nan")
    evidence: float = float("nan")
    micros: int = 0
    latency: float = 0.0
    effort: float = 0.0
    served: int = 0
    status: int = events.OK


def goes_on(step: Step, slot: int, spec: Generator) -> bool:
    """Whether a generator wants (more) evidence for a question."""
    done = step.of_slot.get(slot)
    if done is None:
        return slot not in step._finished
    plan = spec.strategy
    if plan.kind != "agentic" or slot in step._finished:
        return False
    if plan.calls is not None and len(done) >= plan.calls:
        return False
    held = {name for call in done for name in call.documents}
    if plan.enough is not None and len(held) >= plan.enough:
        return False
    last = [call for call in done if call.round == step.round - 1]
    before = {name for call in done if call.round < step.round - 1 for name in call.documents}
    declared = any(call.effort > 0 and not call.documents for call in last)
    return declared or any(set(call.documents) - before for call in last)


def untried(step: Step, slots: Integers, chooser: Chooser) -> NDArray[np.bool_]:
    """Targets that were not called for a question yet; (slots, targets).

    Who takes words can be asked again, with a new query; a router chooses anew each time.
    """
    found = np.ones((slots.size, chooser.targets.size), bool)
    if step.round == 0:
        return found
    for place, slot in enumerate(slots.tolist()):
        for call in step.of_slot.get(slot, ()):
            own = chooser.place.get(call.agent)
            if own is not None and step.world.names[call.agent] not in step.world.wordy:
                found[place, own] = False
    return found


def answer(step: Step, wanted: Sequence[tuple[int, int, int, int]]) -> Script:
    """Let retrievers serve the calls of a round, each its own in slot order."""
    made: dict[int, list[Call]] = {}
    seen: set[tuple[int, int, str]] = set()
    for slot, agent, caller, router in sorted(wanted):
        query = _query(step, slot, agent, caller)
        same = {(one.agent, one.query) for one in step.of_slot.get(slot, ())}
        if (slot, agent, query) in seen or (agent, query) in same:
            continue  # the same words to the same retriever: it has answered
        plan = step._generator(caller).strategy
        already = len(step.of_slot.get(slot, ())) + sum(one[0] == slot for one in seen)
        if plan.calls is not None and already >= plan.calls:
            continue
        seen.add((slot, agent, query))
        made.setdefault(agent, []).append(Call(slot, step.round, caller, router, agent, query))
    for agent, calls in sorted(made.items()):
        slots = np.array([one.slot for one in calls], np.int64)
        names = [step.world.names[one.caller] for one in calls]
        documents = max(step.state.documents(one.caller) for one in calls)
        status, effort, wait, seconds, paid = step.admit(
            agent, slots, names, [one.caller for one in calls], documents, events.RETRIEVAL
        )
        for place, one in enumerate(calls):
            one.status, one.effort = int(status[place]), float(effort[place])
            one.served = step.number + int(wait[place])
            one.latency, one.micros = float(seconds[place]), int(paid[place])
    yield from _fetch(step, [one for calls in made.values() for one in calls])
    longest: dict[int, float] = {}
    for calls in made.values():
        for one in calls:
            longest[one.slot] = max(longest.get(one.slot, 0.0), one.latency)
    for slot, longest_s in longest.items():
        step.latency[slot] += longest_s
    for slot, _, _, _ in wanted:
        step.of_slot.setdefault(slot, [])


def answer_users(step: Step) -> Script:
    """Let retrievers answer the users who came to them; they were admitted as providers."""
    calls = []
    for slot, agent in enumerate(step.provider.tolist()):
        if agent == NOBODY or step._generates(agent):
            continue
        calls.append(
            Call(
                slot, 0, NOBODY, int(step.router[slot]), agent, _query(step, slot, agent, NOBODY),
                micros=int(step.paid[slot]), latency=float(step.latency[slot]),
                effort=float(step.effort[slot]), served=int(step.served[slot]),
                status=int(step.status[slot]),
            )
        )  # fmt: skip
    yield from _fetch(step, calls)


def _fetch(step: Step, calls: Sequence[Call]) -> Script:
    """Fill in the documents of the calls that are served, and what they are worth."""
    world = step.world
    asked: dict[int, list[Call]] = {}
    for one in calls:
        step.calls.append(one)
        step.of_slot.setdefault(one.slot, []).append(one)
        name = world.names[one.agent]
        if not one.effort:
            continue
        if name not in world.seats:
            topics = step.topics[one.slot : one.slot + 1]
            one.evidence = float(step.state.declared(one.agent, topics)[0])
            continue
        if not one.query and name in world.rankings:
            found, question = world.rankings[name], step.questions[one.slot]
            _hand_over(step, one, found.documents[question], found.scores[question])
            continue
        asked.setdefault(one.agent, []).append(one)
    if asked:
        actions = yield [_request(step, agent, those) for agent, those in asked.items()]
        for those, action in zip(asked.values(), actions, strict=True):
            _take(step, those, action)
    if world.relevance is not None:
        judged = [one for one in calls if one.documents]
        pairs = [(world.pool.ids[step.questions[one.slot]], one.documents) for one in judged]
        for one, worth in zip(judged, world.relevance.of(pairs).tolist(), strict=True):
            one.evidence = worth
        for one in calls:
            if one.effort and not one.documents and world.names[one.agent] in world.seats:
                one.evidence = 0.0


def _request(step: Step, agent: int, calls: Sequence[Call]) -> Request:
    world = step.world
    name = world.names[agent]
    questions = step.questions[[one.slot for one in calls]]
    return Request(
        seat=name,
        decision="retrieve",
        action=Found,
        step=step.number,
        draws=step.streams.of(f"{name}/agent"),
        batch={
            "slot": np.array([one.slot for one in calls], np.int64),
            "query": [
                one.query or world.pool.texts[question]
                for one, question in zip(calls, questions, strict=True)
            ],
            "item": [world.pool.ids[question] for question in questions],
            "depth": max(step._documents(one.slot, one.caller) for one in calls),
        },
    )


def _take(step: Step, calls: Sequence[Call], action: Action) -> None:
    """What a retriever answered; what is no answer is a failure and hands over nothing."""
    fine = isinstance(action, Found) and len(action.documents) == len(calls)
    for place, one in enumerate(calls):
        if not fine:
            one.status = events.FAILED
            continue
        scores = action.scores[place] if len(action.scores) > place else ()
        if len(action.texts) > place:
            for name, text in zip(action.documents[place], action.texts[place], strict=False):
                step.state.texts[str(name)] = str(text)
        _hand_over(step, one, action.documents[place], scores)


def _hand_over(step: Step, one: Call, documents: Sequence[str], scores: Sequence[float]) -> None:
    """Cut the documents to what was asked for, each once."""
    depth = step._documents(one.slot, one.caller)
    kept = documents[:depth]
    one.documents = kept if isinstance(kept, tuple) else tuple(dict.fromkeys(map(str, kept)))
    one.reported = float(scores[0]) if len(scores) and len(one.documents) else float("nan")


def _query(step: Step, slot: int, agent: int, caller: int) -> str:
    """The query of a call, empty where it is the question itself.

    A further round adds the most frequent new words of what was found so far; a personalising
    retriever adds the caller's profile; noise loses words.
    """
    world, spec = step.world, step.retriever(agent)
    if world.names[agent] not in world.wordy:
        return ""
    question = world.pool.texts[step.questions[slot]]
    words = question.split()
    if step.round and caller != NOBODY:
        words += _new_words(step, slot, question)
    if spec.personal and caller != NOBODY:
        words += step._generator(caller).profile.split()
    if spec.noise:
        u = step.streams.of(world.names[agent])["noise"].uniform_at(
            step.number, slot * MOST_WORDS + np.arange(min(len(words), MOST_WORDS))
        )
        lost = np.concatenate([u < spec.noise, np.zeros(max(0, len(words) - MOST_WORDS), bool)])
        words = [word for word, gone in zip(words, lost, strict=True) if not gone]
    query = " ".join(words) or " "  # empty would be the question itself
    return "" if query == " ".join(question.split()) else query


def _new_words(step: Step, slot: int, question: str) -> list[str]:
    known = set(_WORD.findall(question.lower()))
    counts: Counter[str] = Counter()
    for call in step.of_slot.get(slot, ()):
        for name in call.documents[:3]:
            counts.update(set(_WORD.findall(step.words(name).lower())) - known)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return ranked[:NEW_WORDS]
