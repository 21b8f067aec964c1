"""An agent that gives its recorded answers: run submission, in the words of the campaigns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.information import Answers, AnswerTable
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Recorded:
    """Answers from a table; where a question has several samples, a keyed draw picks one."""

    table: AnswerTable
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    def as_table(self) -> AnswerTable:
        """All that this agent will ever answer."""
        return self.table

    async def act(self, request: Request) -> Answers:
        """The recorded outcome of each question of the batch."""
        table, questions = self.table, request.batch["question"]
        rows = table.starts[questions]
        samples = table.starts[questions + 1] - rows
        if samples.max(initial=0) > 1:
            u = request.draws["sample"].uniform_at(request.step, request.batch["slot"])
            rows = rows + (u * samples).astype(np.int64)
        return Answers(
            score=table.score[rows],
            grade=None if table.grade is None else table.grade[rows],
            cost_usd=None if table.cost_usd is None else table.cost_usd[rows],
            latency_s=None if table.latency_s is None else table.latency_s[rows],
            text=None if table.text is None else [table.text[row] for row in rows],
        )
