"""The minimal market of `bare.py` on the package marketplace-eval 0.1.0, with its log in memory.

Models and judge are replaced by ones that answer at once, right at the rates of the paper's
Table 1. Seven generators, 500 made-up questions; who chooses and how is the package's own default:
epsilon 0.2, drift 0.1.

    python reference.py USERS PER_STEP STEPS     prints its seconds by the clock and of CPU
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

for heavy in ("torch", "faiss", "transformers", "sentence_transformers"):
    module = ModuleType(heavy)
    module.AutoModel = module.AutoTokenizer = module.Tensor = object  # type: ignore[attr-defined]
    sys.modules[heavy] = module

from marketplace_eval.agents import generator_agent, llm_judge_agent  # noqa: E402
from marketplace_eval.system.system import System  # noqa: E402
from marketplace_eval.system.types import JudgeFeedback  # noqa: E402

RATES = (0.1683, 0.6024, 0.4251, 0.1442, 0.2759, 0.2774, 0.1921)
models: dict[str, float] = {}


class Coin:
    """Answers A, right, at the rate of its model."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    async def generate(self, prompt: str, **_: Any) -> str:
        await asyncio.sleep(0)
        return "A" if random.random() < self.rate else "B"


class Echo:
    async def generate(self, prompt: str, **_: Any) -> str:
        await asyncio.sleep(0)
        return prompt


@llm_judge_agent.register_judge("simple_qa")
class Judge(llm_judge_agent.LLMJudgeAgent):
    def format_prompt(self, *, generation: Any, user_query: Any = None) -> str:
        return str(generation.answer)

    def parse_llm_response(self, response: str) -> float:
        return 1.0 if response == "A" else -1.0

    def build_judge_feedback(
        self, *, score: float, raw_response: str, generation: Any, user_query: Any = None
    ) -> JudgeFeedback:
        return JudgeFeedback(
            score=score, rationale="", retriever_scores={}, generator_feedback={"grade": "-"}
        )


generator_agent.create_llm_client = lambda config: Coin(
    models.setdefault(config["model_id"], RATES[len(models) % 7])
)
llm_judge_agent.create_llm_client = lambda config: Echo()


def config(questions: Path, users: int, per_step: int, steps: int) -> dict[str, Any]:
    """The market as the package's configuration files describe one."""
    names = [f"agent-{n}" for n in range(len(RATES))]
    nodes = [{"id": "user_input", "type": "input"}, {"id": "answers", "type": "output"}]
    for name in names:
        model = {"provider": "openrouter", "model_id": f"coin/{name}"}
        nodes.append({"id": name, "type": "generator", "params": {"name": name, "model": model}})
    edges = [("user_input", name) for name in names] + [(name, "answers") for name in names]
    judge = {"judge_prompt": "simple_qa", "provider": "openrouter", "model_id": "coin/judge"}
    sizes = {"horizon": steps, "total_num_users": users, "users_per_step": per_step, "seed": 1}
    return {
        "simulation": sizes,
        "users": {"user_data_source": str(questions), "user_data_type": "qa"},
        "judges": [{"id": "judge", "params": judge}],
        "graph": {
            "nodes": nodes,
            "edges": [{"source": source, "target": target} for source, target in edges],
        },
    }


def seconds(users: int, per_step: int, steps: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path, questions = Path(folder) / "config.json", Path(folder) / "questions.csv"
        with questions.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(("qid", "question", "answer"))
            table.writerows((n, f"What is {n} times {n}?", n * n) for n in range(500))
        path.write_text(json.dumps(config(questions, users, per_step, steps)), "utf-8")
        system = System()
        system.initialize_from_config(path)
        system.initialize()
        start, cpu = time.perf_counter(), time.process_time()
        system.run()
        return time.perf_counter() - start, time.process_time() - cpu


if __name__ == "__main__":
    print(*seconds(*map(int, sys.argv[1:4])))
