"""The generators' answers: made of the evidence, by a declared response or by a seat in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from marketeval.actions.information import Answers, Grades
from marketeval.core.market import Request, Script
from marketeval.events import coupled as events

if TYPE_CHECKING:
    from marketeval.markets.coupled.retrieving import Call
    from marketeval.markets.coupled.step import Step

NOBODY = events.NOBODY
JUDGE = "judge"  # the seat that grades answers in words


def interleave(calls: Sequence[Call], total: int | None) -> tuple[str, ...]:
    """The documents of several calls, the first of each, then the second of each, each once.

    By rank and never by the scores that retrievers report, so that nobody gains by inflating them.
    """
    found: dict[str, None] = {}
    for place in range(max((len(one.documents) for one in calls), default=0)):
        for one in calls:
            if place < len(one.documents):
                found.setdefault(one.documents[place])
    return tuple(found)[:total]


def answer(step: Step) -> Script:
    """Let every admitted provider answer."""
    _weigh_evidence(step)
    world = step.world
    for slot, provider in enumerate(step.provider.tolist()):
        if provider != NOBODY and step.effort[slot] > 0 and not step._generates(provider):
            step.quality[slot] = step.effort[slot] * np.nan_to_num(step.evidence[slot])
    asked = []
    for provider in np.unique(step.provider).tolist():
        if provider == NOBODY or not step._generates(provider):
            continue
        slots = np.flatnonzero((step.provider == provider) & (step.effort > 0))
        if not slots.size:
            continue
        spec, name = step._generator(provider), world.names[provider]
        closed = world.by_topic(spec.closed_book)[step.topics[slots]]
        ceiling = world.by_topic(spec.ceiling)[step.topics[slots]]
        step.closed[slots] = closed
        if name in world.seats:
            asked.append((name, slots, closed, ceiling))
            continue
        evidence = np.nan_to_num(step.evidence[slots])
        quality = closed + (ceiling - closed) * evidence
        draws = step.streams.of(name)
        if spec.draw:
            right = draws["outcome"].uniform_at(step.number, slots) < quality
            quality = right.astype(np.float64)
        if spec.errors:
            wrong = draws["errors"].uniform_at(step.number, slots) < spec.errors
            step.failed[slots] = wrong
            quality = np.where(wrong, 0.0, quality)
        step.quality[slots] = step.effort[slots] * quality
    if asked:
        actions = yield [_request(step, name, slots) for name, slots, _, _ in asked]
        for (_, slots, closed, ceiling), action in zip(asked, actions, strict=True):
            yield from _read(step, slots, closed, ceiling, action)


def _weigh_evidence(step: Step) -> None:
    """What the evidence of each interaction is worth together.

    Documents by the measure over their interleaved list, declared evidence as independent chances
    to be helped: 1 - product of (1 - e). Degraded service counts for as much as its effort.
    """
    world = step.world
    slots, pairs = [], []
    for slot, calls in step.of_slot.items():
        if len(calls) == 1 and calls[0].caller != NOBODY:  # the usual case, without detours
            only = calls[0]
            if only.effort > 0 and only.evidence == only.evidence:
                step.evidence[slot] = only.effort * only.evidence
            if len(only.documents) <= (_total(step, slot) or len(only.documents)):
                continue
        served = [one for one in calls if one.effort > 0]
        documents = interleave(served, _total(step, slot))
        declared = [
            one.effort * one.evidence
            for one in served
            if not one.documents and one.evidence == one.evidence
        ]
        if declared or served:
            step.evidence[slot] = 1.0 - float(np.prod([1.0 - one for one in declared]))
        if documents and world.relevance is None:
            step.evidence[slot] = np.nan
        elif documents:
            slots.append(slot)
            pairs.append((world.pool.ids[step.questions[slot]], documents))
    if pairs and world.relevance is not None:
        for slot, worth in zip(slots, world.relevance.of(pairs).tolist(), strict=True):
            given = [one.effort for one in step.of_slot[slot] if one.documents]
            # effort of search engines is the provider's own and counts once, for the answer
            caller = step.of_slot[slot][0].caller
            effort = 1.0 if caller == NOBODY else sum(given) / len(given)
            step.evidence[slot] = 1.0 - (1.0 - step.evidence[slot]) * (1.0 - effort * worth)
    for slot, calls in step.of_slot.items():
        if calls and calls[0].caller == NOBODY and not calls[0].documents and calls[0].effort > 0:
            step.evidence[slot] = calls[0].evidence


def _total(step: Step, slot: int) -> int | None:
    provider = int(step.provider[slot])
    return step._generator(provider).strategy.total if step._generates(provider) else None


def context(step: Step, slot: int) -> tuple[str, ...]:
    """The ids of the documents before a generator."""
    served = [one for one in step.of_slot.get(slot, ()) if one.effort > 0]
    return interleave(served, _total(step, slot))


def _request(step: Step, name: str, slots: np.ndarray) -> Request:
    pool = step.world.pool
    questions = step.questions[slots]
    return Request(
        seat=name,
        decision="answer",
        action=Answers,
        step=step.number,
        draws=step.streams.of(f"{name}/agent"),
        batch={
            "question": questions,
            "slot": slots,
            "asked": [pool.texts[question] for question in questions],
            "context": [
                [step.words(one) for one in context(step, slot)] for slot in slots.tolist()
            ],
        },
    )


def _read(
    step: Step, slots: np.ndarray, closed: np.ndarray, ceiling: np.ndarray, action: object
) -> Script:
    """Value what a seat answered: by its score, by the documents it cites, or by the judge."""
    world = step.world
    if not isinstance(action, Answers) or len(action.score) != slots.size:
        step.failed[slots] = True
        step.missed += [
            (int(slot), getattr(action, "reason", "") or "no answer for each row") for slot in slots
        ]
        return
    if action.text is not None:
        for slot, text in zip(slots.tolist(), action.text, strict=True):
            step.text[slot] = text
    score = np.array(action.score, np.float64)
    if action.cited is not None and world.relevance is not None:
        pairs = []
        for slot, cited in zip(slots.tolist(), action.cited, strict=True):
            held = context(step, slot)
            quoted = tuple(dict.fromkeys(held[one] for one in cited if 0 <= one < len(held)))
            pairs.append((world.pool.ids[step.questions[slot]], quoted))
        evidence = world.relevance.of(pairs)
        step.evidence[slots] = evidence
        score = np.where(np.isnan(score), closed + (ceiling - closed) * evidence, score)
    unknown = np.flatnonzero(np.isnan(score))
    said = [one for one in unknown.tolist() if action.text is not None and action.text[one]]
    if said and JUDGE in world.seats and world.pool.golds is not None:
        place = np.array(said, np.int64)
        questions = step.questions[slots[place]]
        (grades,) = yield [
            Request(
                seat=JUDGE,
                decision="grade",
                action=Grades,
                step=step.number,
                draws=step.streams.of(f"{JUDGE}/agent"),
                batch={
                    "question": questions,
                    "slot": slots[place],
                    "asked": [world.pool.texts[one] for one in questions],
                    "gold": [(world.pool.golds[one],) for one in questions],
                    "text": [action.text[one] for one in said if action.text is not None],
                },
            )
        ]
        if isinstance(grades, Grades) and len(grades.score) == place.size:
            score[place] = grades.score
    step.failed[slots] = np.isnan(score)
    step.quality[slots] = step.effort[slots] * np.clip(np.nan_to_num(score), 0.0, 1.0)
