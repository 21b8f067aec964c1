"""The paper's two experiments over 10,000 seeds against independent programs.

The expected means and their standard errors come from independent re-statements of the
marketplace paper's package, run over 32,000 seeds with its semantics: 10 users, 5 a step with
replacement, 200 steps, ties to configuration order, updates after the step in slot order, answers
drawn at the F1 rates of Table 1.
"""

from pathlib import Path

import pytest

from marketeval.experiments.executors import Processes
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import read_tree

EXPECTED = {
    "late-entry-qwen3": {"before": (2027, 2), "after": (2648, 3)},
    "late-entry-deepseek": {"before": (3196, 4), "after": (4956, 6)},
}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", EXPECTED)
def test_mean_concentration_before_and_after_the_entry_is_that_of_independent_programs(
    scenario: str, tmp_path: Path
) -> None:
    tree = read_tree(scenario)
    tree["controls"] = {}
    tree["metrics"] = [f"HHI(points=true, phase={phase})" for phase in EXPECTED[scenario]]

    done = run(tree, tmp_path / "run", executor=Processes(), seeds=range(10_000))

    for phase, (mean, error) in EXPECTED[scenario].items():
        values = done.metrics().filter(window=phase)["value"]
        assert values.len() == 10_000
        spread = values.std()
        assert isinstance(spread, float)
        allowed = 4 * (spread**2 / 10_000 + error**2) ** 0.5
        assert values.mean() == pytest.approx(mean, abs=allowed)
