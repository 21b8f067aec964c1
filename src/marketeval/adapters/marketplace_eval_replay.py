"""The reference's user model on a log: what each acting user believed after each interaction.

Also the few facts about its `simulation_log.csv` that reading and writing share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

COLUMNS = (
    "t",
    "tau",
    "user_id",
    "qid",
    "user_question",
    "ground_truth_answer",
    "generator_id",
    "generator_response",
    "score",
    "judge_grade",
    "preference_distribution",
    "router_id",
    "router_response",
    "retriever_id",
    "retrieval_result",
)
LETTERS = {"A": "correct", "B": "incorrect", "C": "not_attempted"}
Beliefs = dict[str, float]  # generator -> preference, in the order in which they became known


def enter(beliefs: Beliefs, seat: str) -> None:
    """A newcomer gets 1/(n+1), the n others are scaled by n/(n+1); nothing if it is known."""
    if seat in beliefs:
        return
    known = len(beliefs)
    for name in beliefs:
        beliefs[name] *= known / (known + 1)
    beliefs[seat] = 1.0 / (known + 1)


def update(beliefs: Beliefs, seat: str, signal: float, *, drift: float, floor: float) -> None:
    """p becomes max(floor, p + drift * signal) for the chosen one; then all are divided by the sum.

    The sum is taken plainly from left to right in the order of insertion, as Python 3.10 and 3.11
    take it, so the bytes do not depend on the Python version that writes the file.
    """
    beliefs[seat] = max(floor, beliefs.get(seat, floor) + drift * signal)
    total = 0.0
    for value in beliefs.values():
        total += value
    if total > 0:
        for name in beliefs:
            beliefs[name] /= total


@dataclass(slots=True)
class _User:
    beliefs: Beliefs
    entries: int = 0  # how many of the entries so far this user has heard of


def replay(
    interactions: Iterable[tuple[int, int, str, float | None]],
    start: Sequence[Mapping[str, float]],
    entries: Sequence[tuple[int, str]],
    *,
    drift: float = 0.1,
    floor: float = 0.01,
) -> Iterator[Beliefs]:
    """The acting user's beliefs after each interaction, by the reference's additive drift.

    `interactions` are (step, user, seat, signal) in order, a signal of None teaching nothing;
    `start` holds the first beliefs of users 0, 1, ... (the last one's serve any further user);
    `entries` are (step, seat) in the order in which they happen.

    >>> steps = [(0, 0, "a", 1.0), (0, 0, "b", -1.0)]
    >>> for after in replay(steps, [{"a": 0.5, "b": 0.5}], []):
    ...     print(after)
    {'a': 0.5454545454545454, 'b': 0.45454545454545453}
    {'a': 0.6060606060606061, 'b': 0.3939393939393939}
    """
    users: dict[int, _User] = {}
    for step, number, seat, signal in interactions:
        user = users.get(number)
        if user is None:
            user = users[number] = _User(dict(start[min(number, len(start) - 1)]))
        while user.entries < len(entries) and entries[user.entries][0] <= step:
            enter(user.beliefs, entries[user.entries][1])
            user.entries += 1
        if signal is not None:
            update(user.beliefs, seat, signal, drift=drift, floor=floor)
        yield user.beliefs
