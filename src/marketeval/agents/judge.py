"""Judges: seats that grade answers in words. By rule, by a language model, or several together.

A rule reads the answer against the accepted ones; a model is given a prompt that is data, with a
version and a hash. A reply that cannot be read is asked for again, twice at most, and then the
answer has no grade: it is counted, shown, and never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import Grades
from marketeval.agents import grading
from marketeval.agents.chat import Chat, members
from marketeval.agents.wording import Prompt
from marketeval.core.errors import ScenarioError
from marketeval.core.market import Agent, Request
from marketeval.events.information import CORRECT, INCORRECT, UNGRADED
from marketeval.llm.calls import all_of
from marketeval.llm.client import CallError, Message

Rule = Callable[[str, Sequence[str]], float]
RULES: Mapping[str, Rule] = {
    "exact": grading.exact_match,
    "match": grading.match,
    "f1": grading.token_f1,
    "number": grading.number_match,
}
NUDGES = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge's reply was read as."""

    score: float
    grade: int = UNGRADED


def three_way(reply: str) -> Verdict | None:
    """Correct 1, incorrect and not attempted 0, with the grade (SimpleQA; Wei et al. 2024)."""
    grade = grading.read_grade(reply)
    return None if grade is None else Verdict(float(grade == CORRECT), grade)


def ten(reply: str) -> Verdict | None:
    """A rating from 0 to 10, over 10."""
    rating = grading.read_rating(reply)
    return None if rating is None else Verdict(rating / 10.0)


@dataclass(frozen=True, slots=True)
class Form:
    """One way to ask a model: the prompt, what it must hold, how its reply is read, the nudge."""

    prompt: str
    places: Sequence[str]
    read: Callable[[str], Verdict | None]
    nudge: str


_NUMBER = "That could not be read. Reply with one whole number from 0 to 10, and nothing else."
FORMS: Mapping[str, Form] = {
    "three-way": Form(
        "three-way-v1",
        ("question", "gold", "answer"),
        three_way,
        "That could not be read. Reply with one letter, A, B or C, and nothing else.",
    ),
    "ten": Form("ten-v1", ("question", "gold", "answer"), ten, _NUMBER),
    "reference-free": Form("reference-free-v1", ("question", "answer"), ten, _NUMBER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleJudge:
    """Grades by a rule; only a score of 1 or 0 is also a grade."""

    rule: Rule
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request: Request) -> Grades:
        """The grades of a batch."""
        batch = request.batch
        score = np.array(
            [self.rule(text, gold) for text, gold in zip(batch["text"], batch["gold"], strict=True)]
        )
        grade = np.where(score == 1.0, CORRECT, np.where(score == 0.0, INCORRECT, UNGRADED))
        without = [not gold for gold in batch["gold"]]
        score[without] = np.nan
        return Grades(
            score=score,
            grade=grade.astype(np.int8),
            reason=["no reference answer" if one else "" for one in without],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMJudge:
    """Grades by asking a model, in one of the `FORMS`."""

    chat: Chat
    form: Form
    prompt: Prompt
    samples: int = 1
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    keeps_its_calls: bool = True

    async def act(self, request: Request) -> Grades:
        """The grades of a batch; without a readable one the score is NaN and there is a reason."""
        batch = request.batch
        asked = batch.get("asked")
        if asked is None:
            raise ScenarioError("a judge needs the questions in words: give them with their texts")
        verdicts = await all_of(
            self.judge(question, text, gold, sample=sample)
            for question, text, gold, sample in zip(
                asked, batch["text"], batch["gold"], members(request, self.samples), strict=True
            )
        )
        good = [one if isinstance(one, Verdict) else Verdict(np.nan) for one in verdicts]
        return Grades(
            score=np.array([one.score for one in good]),
            grade=np.array([one.grade for one in good], np.int8),
            reason=["" if isinstance(one, Verdict) else one for one in verdicts],
        )

    async def judge(
        self, question: str, text: str, golds: Sequence[str], *, sample: str = "0"
    ) -> Verdict | str:
        """The verdict on one answer, or why there is none."""
        if "gold" in self.form.places and not golds:
            return "no reference answer"
        messages = self.messages(question, text, golds)
        try:
            for _ in range(1 + NUDGES):
                call = await self.chat.ask(messages, sample=sample)
                reply = call.completion.text
                verdict = self.form.read(reply)
                if verdict is not None:
                    return verdict
                messages = [
                    *messages,
                    Message("assistant", reply),
                    Message("user", self.form.nudge),
                ]
        except CallError as error:
            return error.reason
        return f"unreadable grade: {' '.join(reply.split())[:80]!r}"

    def messages(self, question: str, text: str, golds: Sequence[str]) -> list[Message]:
        """What the model is sent for an answer."""
        told = self.prompt.fill(question=question, answer=text, gold=" / ".join(golds))
        return [Message("user", told)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Several judges: the mean of their scores, and each one's own for their agreement.

    An answer that any of them could not grade has no grade. The grade is the one that more than
    half of them gave, if there is one.
    """

    judges: Mapping[str, Agent]
    privileged: bool = False
    names: Sequence[str] = field(init=False)
    keeps_its_calls: bool = field(init=False)
    immediate: bool = field(init=False)
    deterministic: bool = field(init=False)

    def __post_init__(self) -> None:
        if len(self.judges) < 2:
            raise ScenarioError(f"a panel needs two judges or more, got {len(self.judges)}")
        members = self.judges.values()
        object.__setattr__(self, "names", tuple(self.judges))
        object.__setattr__(self, "immediate", all(one.immediate for one in members))
        object.__setattr__(self, "deterministic", all(one.deterministic for one in members))
        kept = all(one.deterministic or getattr(one, "keeps_its_calls", False) for one in members)
        object.__setattr__(self, "keeps_its_calls", kept)

    async def act(self, request: Request) -> Grades:
        """The judges' mean, with what each of them said."""
        said: list[Grades] = await all_of(one.act(request) for one in self.judges.values())
        scores = np.array([one.score for one in said])
        none = np.full(scores.shape[1], UNGRADED, np.int8)
        grades = np.array([none if one.grade is None else one.grade for one in said])
        reasons = [
            "; ".join(
                f"{name}: {one.reason[row]}"
                for name, one in zip(self.names, said, strict=True)
                if one.reason and one.reason[row]
            )
            for row in range(scores.shape[1])
        ]
        return Grades(
            score=_mean(scores),
            grade=np.array([_majority(column) for column in grades.T], np.int8),
            reason=reasons,
            judges=self.names,
            scores=scores,
            grades=grades,
        )


def _mean(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over judges, summed in their order."""
    total = np.zeros(scores.shape[1])
    for row in scores:
        total = total + row
    return total / len(scores)


def _majority(grades: NDArray[np.int8]) -> int:
    values, counts = np.unique(grades, return_counts=True)
    place = int(counts.argmax())
    return int(values[place]) if counts[place] * 2 > grades.size else UNGRADED
