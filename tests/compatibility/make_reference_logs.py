"""Make logs with the published package `marketplace-eval` 0.1.0, and pack what tests need of them.

Run it in an environment of its own that holds the published package, never in ours:

    python -m venv reference
    reference/bin/pip install --no-deps marketplace-eval==0.1.0
    reference/bin/pip install pandas numpy pyyaml python-dotenv httpx matplotlib polars
    reference/bin/python tests/compatibility/make_reference_logs.py CONFIG QUESTIONS OUT \
        --golden tests/compatibility/golden

CONFIG is the package's own simple_qa_simulation.yaml, QUESTIONS its 500-question file; OUT gets
one simulation_log.csv and one outcomes table per experiment and seed. The package runs unchanged
but for two replaced clients: the generators answer with the grade letter of `outcome_rule`, the
judge repeats it. Both give up control once per call, as a real call does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import csv
import hashlib
import io
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from outcome_rule import letter, table

for heavy in ("torch", "faiss", "transformers", "sentence_transformers"):
    module = ModuleType(heavy)
    module.AutoModel = module.AutoTokenizer = module.Tensor = object  # type: ignore[attr-defined]
    sys.modules[heavy] = module

import polars as pl  # noqa: E402
import yaml  # noqa: E402
from marketplace_eval.agents import generator_agent, llm_judge_agent  # noqa: E402
from marketplace_eval.post_simulation.crr import compute_crr_windowed  # noqa: E402
from marketplace_eval.post_simulation.market_share import (  # noqa: E402
    compute_market_share_windows,
)
from marketplace_eval.system.system import System  # noqa: E402
from marketplace_eval.system.types import JudgeFeedback  # noqa: E402

SEEDS = (*range(20), 42)
SMALL_SEEDS = (0, 1, 2, 3, 42)
TEXTS = ("user_question", "ground_truth_answer", "generator_response")
WINDOWS = {"1-100": (0, 99), "101-200": (100, 199), "1-200": (0, 199)}
GEMINI, QWEN, KIMI = (
    "generator_gemini_2_5_flash_lite",
    "generator_qwen3_235b_a22b_2507",
    "generator_kimi_k2_5",
)
GROK, DEEPSEEK = "generator_grok_4_1_fast", "generator_deepseek_v3_2"


class Run:
    """What the stubs must know: the run's number, and which question a prompt asks."""

    number = 0
    qids: dict[str, str] = {}
    generators: dict[str, str] = {}


class GeneratorClient:
    """Answers with the grade letter its answer will get."""

    def __init__(self, model_id: str) -> None:
        self.generator = Run.generators[model_id]

    async def generate(self, prompt: str, **_: Any) -> str:
        await asyncio.sleep(0)
        question = prompt.removeprefix("Answer to '").removesuffix("'")
        return letter(Run.number, Run.qids[question], self.generator)


class JudgeClient:
    """Repeats what it is asked."""

    async def generate(self, prompt: str, **_: Any) -> str:
        await asyncio.sleep(0)
        return prompt


@llm_judge_agent.register_judge("simple_qa")
class LetterJudge(llm_judge_agent.LLMJudgeAgent):
    """A = +1, B and C = -1, as the package's SimpleQA demonstration has it."""

    def format_prompt(self, *, generation: Any, user_query: Any = None) -> str:
        return str(generation.answer)

    def parse_llm_response(self, response: str) -> float:
        return 1.0 if response == "A" else -1.0

    def build_judge_feedback(
        self, *, score: float, raw_response: str, generation: Any, user_query: Any = None
    ) -> JudgeFeedback:
        return JudgeFeedback(
            score=score,
            rationale="",
            retriever_scores={},
            generator_feedback={"grade": raw_response},
        )


generator_agent.create_llm_client = lambda config: GeneratorClient(config["model_id"])
llm_judge_agent.create_llm_client = lambda config: JudgeClient()


def experiments(shipped: dict[str, Any]) -> dict[str, tuple[dict[str, Any], int, tuple[int, ...]]]:
    """Per experiment its configuration, how many questions are in the pool, and its seeds."""

    def entering(late: dict[str, int]) -> dict[str, Any]:
        config = copy.deepcopy(shipped)
        for node in config["graph"]["nodes"]:
            node.pop("introduce_from", None)
            if node["id"] in late:
                node["introduce_from"] = late[node["id"]]
        return config

    small = entering({QWEN: 20, DEEPSEEK: 20, GROK: 40})
    small["simulation"]["horizon"] = 60
    small["users"]["profiles"] = [
        {"id": "ada", "generator_preferences": {KIMI: 3, GEMINI: 1, QWEN: 5}},
        {"id": "ben", "generator_preferences": {GEMINI: 1}},
        {"id": "cy", "generator_preferences": {"generator_gpt_oss_120b": 0.2, KIMI: 0.2}},
    ]
    return {
        "qwen3_late": (shipped, 500, SEEDS),
        "deepseek_late": (entering({DEEPSEEK: 100}), 500, SEEDS),
        "small_pool": (small, 7, SMALL_SEEDS),
    }


def play(config: dict[str, Any], questions: Path, seed: int, log: Path) -> None:
    """One run of the published package."""
    config = copy.deepcopy(config)
    config["simulation"]["seed"] = seed
    config["users"]["user_data_source"] = str(questions)
    Run.number = seed
    Run.generators = {
        node["params"]["model"]["model_id"]: node["id"]
        for node in config["graph"]["nodes"]
        if node["type"] == "generator"
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        system = System()
        system.initialize_from_config(path)
        system.initialize()
        system.run(log_csv_path=log)


def blanked(log: Path) -> bytes:
    """The log without its texts, in the package's own dialect."""
    with log.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, fieldnames=reader.fieldnames or [])
        writer.writeheader()
        for row in reader:
            writer.writerow({**row, **dict.fromkeys(TEXTS, "")})
    return out.getvalue().encode()


def packed(log: Path, experiment: str, seed: int) -> pl.DataFrame:
    """The columns that tests compare; preferences in every 25th row and each user's last."""
    frame = pl.read_csv(log, infer_schema=False).with_row_index()
    last = frame.group_by("user_id").agg(pl.col("index").max())["index"].to_list()
    return frame.select(
        pl.lit(experiment).alias("experiment"),
        pl.lit(seed, pl.Int16).alias("seed"),
        pl.col("t", "tau").cast(pl.Int16),
        "user_id",
        "qid",
        "generator_id",
        pl.col("score").cast(pl.Float64),
        "judge_grade",
        pl.when((pl.col("index") % 25 == 24) | pl.col("index").is_in(last))
        .then("preference_distribution")
        .alias("preference_distribution"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--golden", type=Path)
    given = parser.parse_args()

    given.out.mkdir(parents=True, exist_ok=True)
    with given.questions.open(encoding="utf-8") as lines:
        questions = list(csv.DictReader(lines))
    Run.qids = {row["problem"]: row["qid"] for row in questions}
    if len(Run.qids) != len(questions):
        sys.exit("two questions read the same; the stub could not tell them apart")
    os.environ.setdefault("MPLBACKEND", "Agg")

    frames, digests, retention, shares = [], [], [], []
    shipped = yaml.safe_load(given.config.read_text(encoding="utf-8"))
    for experiment, (config, pool, seeds) in experiments(shipped).items():
        pool_file = given.out / f"questions_{pool}.csv"
        with pool_file.open("w", encoding="utf-8", newline="") as target:
            writer = csv.DictWriter(target, fieldnames=list(questions[0]))
            writer.writeheader()
            writer.writerows(questions[:pool])
        for seed in seeds:
            folder = given.out / experiment / f"seed_{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            log = folder / "simulation_log.csv"
            play(config, pool_file, seed, log)
            with (folder / "outcomes.csv").open("w", encoding="utf-8", newline="") as target:
                writer_ = csv.writer(target)
                writer_.writerow(["item_id", "model", "score", "grade"])
                writer_.writerows(table(seed))
            frames.append(packed(log, experiment, seed))
            digest = hashlib.sha256(blanked(log)).hexdigest()
            digests.append((experiment, seed, frames[-1].height, digest))
            if experiment == "small_pool":
                continue
            for label, (start, end) in WINDOWS.items():
                by_agent, by_user = compute_crr_windowed(str(log), start, end)
                retention += [
                    (experiment, seed, label, agent, repr(float(value)), len(by_user[agent]))
                    for agent, value in by_agent.items()
                ]
            wide = compute_market_share_windows(log, list(WINDOWS.values()))
            shares += [
                (experiment, seed, label, agent, repr(float(wide.loc[label, agent])))
                for label in WINDOWS
                for agent in wide.columns
            ]
            print(experiment, seed, digest[:12])

    if given.golden is None:
        return
    given.golden.mkdir(parents=True, exist_ok=True)
    pl.concat(frames).write_parquet(
        given.golden / "interactions.parquet", compression="zstd", compression_level=19
    )
    version = ".".join(map(str, sys.version_info[:2]))
    tables = {
        "digests.csv": (["experiment", "seed", "rows", f"sha256_python_{version}"], digests),
        "retention.csv": (["experiment", "seed", "window", "agent", "crr", "users"], retention),
        "market_share.csv": (["experiment", "seed", "window", "agent", "percent"], shares),
    }
    for name, (header, rows) in tables.items():
        with (given.golden / name).open("w", encoding="utf-8", newline="") as target:
            lines_ = csv.writer(target, lineterminator="\n")
            lines_.writerow(header)
            lines_.writerows(rows)


if __name__ == "__main__":
    main()
