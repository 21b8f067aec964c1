"""The market against a slow program of its own: the same events, the same bits of final state."""

from __future__ import annotations

import pytest
from one_at_a_time import simulate
from worlds import a_world, interactions, watched

TABLE_1 = {
    "gemini": 0.1683,
    "qwen3": 0.6024,
    "kimi": 0.4251,
    "gptoss": 0.1442,
    "deepseek": 0.2759,
    "llama": 0.2774,
    "grok": 0.1921,
}  # the paper, Table 1, as F1
NINE = {**TABLE_1, "aya": 0.55, "zephyr": 0.35}
COLUMNS = ("step", "slot", "user", "question", "seat", "explored", "score")


@pytest.mark.parametrize("one_at_a_time", [False, True])
@pytest.mark.parametrize(
    ("rates", "enters"),
    [
        (TABLE_1, {"qwen3": 30}),
        (NINE, {"qwen3": 20, "aya": 20, "zephyr": 45}),
        (dict.fromkeys(TABLE_1, 0.0), {"kimi": 30}),
        (dict.fromkeys(NINE, 0.0), {"deepseek": 1}),
        (dict.fromkeys(NINE, 1.0), {}),
        (dict(reversed(NINE.items())), {"grok": 50}),
    ],
)
def test_events_and_the_bits_of_final_preferences_are_those_of_plain_python(
    rates, enters, one_at_a_time
):
    for seed in (1, 2, 2**40 + 7):
        size = {"users": 6, "per_step": 8, "horizon": 60}
        expected, preferences = simulate(
            seed, rates, enters=enters, pool=50, one_at_a_time=one_at_a_time, **size
        )
        world = a_world(
            rates,
            enters=enters,
            pool=50,
            horizon=size["horizon"],
            users={"population": size["users"], "per_step": size["per_step"]},
            timing="asynchronous" if one_at_a_time else "synchronous",
        )
        with watched() as populations:
            log = world.play(seed)
        assert interactions(log).select(COLUMNS).rows() == expected
        final = [[mine[seat] for seat in sorted(rates)] for mine in preferences]
        assert populations[0].first.tolist() == final


def test_where_everybody_fails_preferences_reach_the_floor_and_rounding_decides():
    rows, preferences = simulate(
        1, dict.fromkeys(NINE, 0.0), users=2, per_step=8, horizon=60, pool=50, one_at_a_time=True
    )
    assert len({seat for *_, seat, _, _ in rows}) == 9
    for mine in preferences:
        assert sum(mine.values()) == pytest.approx(1.0, abs=1e-12)
        assert min(mine.values()) > 0
