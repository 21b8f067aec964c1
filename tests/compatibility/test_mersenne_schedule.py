"""The reference's stream, against vectors taken from the published package."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from outcome_rule import F1

from marketeval.markets.information.mersenne import MersenneSchedule, Slots

GOLDEN = Path(__file__).parent / "golden"
GEMINI, QWEN, KIMI, OSS, DEEPSEEK, LLAMA, GROK = F1  # in the shipped order
PICKS = {
    ("qwen3_late", "before"): {GEMINI: 13, KIMI: 17, OSS: 20, DEEPSEEK: 20, LLAMA: 14, GROK: 17},
    ("qwen3_late", "after"): {
        GEMINI: 9, KIMI: 9, OSS: 13, DEEPSEEK: 11, LLAMA: 14, GROK: 11, QWEN: 26,
    },
    ("deepseek_late", "before"): {GEMINI: 13, QWEN: 17, KIMI: 20, OSS: 20, LLAMA: 14, GROK: 17},
    ("deepseek_late", "after"): {
        GEMINI: 9, QWEN: 9, KIMI: 13, OSS: 11, LLAMA: 14, GROK: 11, DEEPSEEK: 26,
    },
}  # fmt: skip


def schedule(seed: int) -> list[Slots]:
    drawn = MersenneSchedule(seed, 10, None, 500, 5)
    return [drawn.step(t, lambda user, t=t: 6 if t < 100 else 7) for t in range(200)]


@pytest.mark.parametrize("late", [QWEN, DEEPSEEK])
def test_exploratory_picks_at_seed_42_are_those_of_the_reference(late: str) -> None:
    experiment = "qwen3_late" if late == QWEN else "deepseek_late"
    known = [agent for agent in F1 if agent != late] + [late]
    steps = schedule(42)
    for phase, half in (("before", steps[:100]), ("after", steps[100:])):
        picks = [known[place] for slots in half for place in slots.pick[slots.explored]]
        counts = {agent: picks.count(agent) for agent in known if agent in picks}
        assert counts == PICKS[experiment, phase]


def test_the_first_step_at_seed_42_is_that_of_the_reference() -> None:
    first = schedule(42)[0]
    assert (first.users + 1).tolist() == [1, 6, 4, 8, 5]
    assert (first.questions + 1).tolist() == [328, 58, 13, 380, 141]
    assert first.pick.tolist()[1] == 4  # Llama, without Qwen3
    assert not first.explored[0] or first.pick[0] == 0


@pytest.mark.parametrize("experiment", ["qwen3_late", "deepseek_late"])
def test_users_and_questions_of_21_seeds_are_those_of_the_published_package(
    experiment: str,
) -> None:
    golden = pl.read_parquet(GOLDEN / "interactions.parquet").filter(experiment=experiment)
    for (seed,), rows in golden.group_by("seed", maintain_order=True):
        assert isinstance(seed, int)
        steps = schedule(seed)
        users = [f"user_{user + 1}" for slots in steps for user in slots.users]
        questions = [str(question + 1) for slots in steps for question in slots.questions]
        assert rows["user_id"].to_list() == users
        assert rows["qid"].to_list() == questions


def test_a_pool_smaller_than_a_step_is_refilled_at_the_pop_in_the_middle_of_a_step() -> None:
    golden = pl.read_parquet(GOLDEN / "interactions.parquet").filter(experiment="small_pool")
    known = {0: 2, 1: 1, 2: 2}  # as the three manual profiles list them
    for (seed,), rows in golden.group_by("seed", maintain_order=True):
        assert isinstance(seed, int)
        drawn = MersenneSchedule(seed, 3, None, 7, 5)
        steps = [
            drawn.step(t, lambda user, t=t: known[user] + 2 * (t >= 20) + (t >= 40))
            for t in range(60)
        ]
        names = [("ada", "ben", "cy")[user] for slots in steps for user in slots.users]
        assert rows["user_id"].to_list() == names
        assert rows["qid"].to_list() == [str(q + 1) for slots in steps for q in slots.questions]


def test_steps_out_of_order_are_refused() -> None:
    drawn = MersenneSchedule(1, 10, None, 500, 5)
    with pytest.raises(ValueError, match="expected step 0"):
        drawn.step(1, lambda user: 6)


def test_weights_must_be_one_per_user() -> None:
    with pytest.raises(ValueError, match="one weight for each of 10 users, got 2"):
        MersenneSchedule(1, 10, [0.5, 0.5], 500, 5)


def test_a_user_who_is_never_weighted_is_never_drawn() -> None:
    drawn = MersenneSchedule(3, 3, [0.5, 0.0, 0.5], 10, 4)
    assert all(1 not in drawn.step(t, lambda user: 2).users for t in range(100))
