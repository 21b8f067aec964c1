"""An agent of your own in a seat: it is asked, awaits, and answers a whole batch at once."""

import asyncio
import tempfile
from pathlib import Path

import numpy as np

from marketeval.actions.information import Answers
from marketeval.core.market import Request
from marketeval.experiments.executors import Serial
from marketeval.experiments.runner import run
from marketeval.metrics.base import evaluate, parse_metric


class Specialist:
    """Right on every other question. A real one would await its model where this one naps."""

    immediate, deterministic, privileged = False, True, False

    async def act(self, request: Request) -> Answers:
        """One score per question of the batch; the briefing says which questions they are."""
        await asyncio.sleep(0)
        items = [request.briefing.items[number] for number in request.batch["question"]]
        return Answers(score=np.array([float(int(item[1:]) % 2) for item in items]))


if __name__ == "__main__":
    tree = {
        "name": "own-agent",
        "seats": {"specialist": f"python:{__name__}:Specialist", "rival": "bernoulli:0.4"},
        "market": {"horizon": 40},
    }
    with tempfile.TemporaryDirectory() as folder:
        done = run(tree, Path(folder) / "run", executor=Serial(), seeds=[1, 2])
        shares = evaluate(done, [parse_metric("MarketShare")])
    for row in shares.iter_rows(named=True):
        print("seed {seed}  {subject:10} {value:.3f}".format(**row))
