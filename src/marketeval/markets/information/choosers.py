"""Users who are agents: what each has lived through, and how its seat is asked whom to choose.

A segment that names an `agent` has such users. They learn as all users do, so that every metric
holds for them; but whom they ask their seat says, from a bounded memory of its own. Where it says
nothing valid, the choice rule of the segment stands in, and the log tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import Choice
from marketeval.core.log import EventLog
from marketeval.core.market import Action, Failure, Request
from marketeval.core.streams import Streams
from marketeval.markets.information.facts import Generator, Questions
from marketeval.markets.information.population import Population
from marketeval.markets.information.schedule import Demand

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

RULES = "user-v1"  # the prompt's name, with its version
LAST = 5  # scores that are remembered one by one
LONGEST_LABEL, LONGEST_QUESTION = 60, 2000  # characters in a briefing


class Choosers:
    """The users of one episode that are agents, and their memories.

    Memory per such user and generator: how often asked, how many answers had a score, the sum of
    the scores, and the last ones (newest first), of shape (users, agents[, LAST]).
    """

    def __init__(
        self,
        users: Population,
        streams: Streams,
        *,
        agents: Sequence[Generator],
        questions: Questions,
    ) -> None:
        self._users = users
        self._questions = questions
        self._labels = [one.label for one in agents]
        self.seats = sorted({kind.agent for kind in users.kinds if kind.agent})
        place = {seat: number for number, seat in enumerate(self.seats)}
        of_kind = np.array([place.get(kind.agent, -1) for kind in users.kinds])
        self._seat_of = of_kind[users.segment]
        mine = np.flatnonzero(self._seat_of >= 0)
        self._row = np.full(self._seat_of.size, -1)
        self._row[mine] = np.arange(mine.size)
        shape = (mine.size, len(agents))
        self._times, self._scored = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._total = np.zeros(shape)
        self._last = np.full((*shape, LAST), np.nan)
        self._shown = [streams[f"{one.seat}/shown"] for one in agents]
        self._draws = [streams.of(f"{seat}/agent") for seat in self.seats]
        self._open: list[tuple[Integers, list[Integers]]] = []

    def ask(
        self, wave: Integers, rows: Integers, chosen: Integers, asked: Demand, *, step: int,
        available: Truths,
    ) -> list[Request]:  # fmt: skip
        """One request per seat whose users come in this wave and find anybody to ask.

        `rows` (of the state) and `chosen` (what the rule would choose) have one entry per slot of
        the wave. The options stand in an order drawn anew each time, since models prefer places.
        """
        self._open = []
        requests = []
        for number, seat in enumerate(self.seats):
            places = np.flatnonzero((self._seat_of[asked.users[wave]] == number) & (chosen >= 0))
            if not places.size:
                continue
            slots, users = wave[places], asked.users[wave[places]]
            order = np.argsort([one.uniform_at(step, slots) for one in self._shown], axis=0)
            known = available & ~np.isnan(self._users.first[rows[places]])
            known[~known.any(axis=1)] = available  # as the rules: nobody I know, so anybody
            options = [order[known[row][order[:, row]], row] for row in range(slots.size)]
            self._open.append((places, options))
            requests.append(self._request(number, seat, step, slots, users, options, asked))
        return requests

    def take(
        self, actions: Sequence[Action], wave: Integers, chosen: Integers, explored: Truths,
        asked: Demand, *, step: int, log: EventLog,
    ) -> None:  # fmt: skip
        """Put the valid choices in place of the rule's; log the others, and why."""
        for (places, options), action in zip(self._open, actions, strict=True):
            picks, reasons = _read(action, [one.size for one in options])
            for place, among, pick in zip(places, options, picks, strict=True):
                if pick >= 0:
                    chosen[place], explored[place] = among[pick], False
            lost = np.flatnonzero(picks < 0)
            if lost.size:
                slots = wave[places[lost]]
                log.append(
                    "missing_choice",
                    step=step,
                    slot=slots,
                    user=asked.users[slots],
                    reason=[reasons[row] for row in lost.tolist()],
                )

    def remember(self, users: Integers, chosen: Integers, counts: Truths, score: Floats) -> None:
        """What became of the interactions of a wave, in slot order."""
        if not self.seats:
            return
        for place in np.flatnonzero((self._row[users] >= 0) & (chosen >= 0)).tolist():
            at = self._row[users[place]], chosen[place]
            self._times[at] += 1
            if counts[place]:
                self._scored[at] += 1
                self._total[at] += score[place]
                self._last[at] = np.concatenate([[score[place]], self._last[at][:-1]])

    def lose(self, agent: int) -> None:
        """A generator leaves the market: it is forgotten, as in the population."""
        for state in (self._times, self._scored, self._total):
            state[:, agent] = 0
        self._last[:, agent] = np.nan

    def _request(
        self, number: int, seat: str, step: int, slots: Integers, users: Integers,
        options: Sequence[Integers], asked: Demand,
    ) -> Request:  # fmt: skip
        """The request of a wave: the memory in columns, a list over the options per row, and the
        same in words, a text per row."""
        batch = self._questions.batch(asked.questions[slots], slots)
        texts = batch.get("asked") or [""] * slots.size
        memory = [self._row[user] for user in users]
        batch["user"] = users
        batch["options"] = [[self._labels[one] for one in among] for among in options]
        batch["times_asked"] = [
            self._times[row, among].tolist() for row, among in zip(memory, options, strict=True)
        ]
        batch["mean_score"] = [
            [self._mean(row, one) for one in among]
            for row, among in zip(memory, options, strict=True)
        ]
        batch["last_scores"] = [
            [self._scores(row, one) for one in among]
            for row, among in zip(memory, options, strict=True)
        ]
        return Request(
            seat=seat,
            decision="choose",
            action=Choice,
            step=step,
            draws=self._draws[number],
            instructions=rules(),
            briefing=[
                self._told(row, text, among)
                for row, text, among in zip(memory, texts, options, strict=True)
            ],
            batch=batch,
        )

    def _mean(self, row: int, agent: int) -> float | None:
        scored = int(self._scored[row, agent])
        return float(self._total[row, agent]) / scored if scored else None

    def _scores(self, row: int, agent: int) -> list[float]:
        last = self._last[row, agent]
        return [float(one) for one in last if one == one]

    def _told(self, row: int, question: str, options: Integers) -> str:
        """A user's briefing: at most a line of about 150 characters per option, and the question.

        The number of an option is its place among the options.
        """
        lines = [f"Your question: {_short(question, LONGEST_QUESTION)}\n"] if question else []
        lines.append("You can ask:")
        for number, agent in enumerate(options):
            times, mean = int(self._times[row, agent]), self._mean(row, agent)
            told = "never asked by you"
            if times:
                told = f"asked by you {times} time{'s' * (times > 1)}"
                lost = times - int(self._scored[row, agent])
                if lost:
                    told += f", {lost} without an answer"
            if mean is not None:
                last = ", ".join(f"{one:.3g}" for one in self._scores(row, agent))
                told += f", mean score {mean:.2f}, last scores (newest first) {last}"
            label = _short(self._labels[agent], LONGEST_LABEL)
            lines.append(f"{number}: {label} - {told}")
        return "\n".join(lines)


@cache
def rules() -> str:
    """What a user that is an agent is told about its part."""
    folder = files("marketeval.markets.information") / "prompts"
    return (folder / f"{RULES}.txt").read_text("utf-8").strip()


def _read(action: Action, sizes: Sequence[int]) -> tuple[Integers, list[str]]:
    """The places chosen among so many options each, -1 where none is valid, and why."""
    rows = len(sizes)
    none = np.full(rows, -1)
    if not isinstance(action, Choice):
        reason = action.reason if isinstance(action, Failure) else "no choice"
        return none, [reason] * rows
    given = np.atleast_1d(action.agent)
    if given.shape != (rows,) or given.dtype.kind not in "iu":
        return none, [f"expected {rows} whole numbers in 'agent'"] * rows
    if action.reason and len(action.reason) != rows:
        return none, [f"expected {rows} values in 'reason'"] * rows
    picks, reasons = none, [""] * rows
    for row, (pick, size) in enumerate(zip(given.tolist(), sizes, strict=True)):
        if 0 <= pick < size:
            picks[row] = pick
        else:
            own = action.reason[row] if action.reason else ""
            reasons[row] = own or f"expected an option from 0 to {size - 1}, got {pick}"
    return picks, reasons


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
