"""The static benchmark on real data, and the examples of the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import polars as pl
import pytest

import marketeval.metrics
from marketeval.metrics.static import f_score

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "czech_simpleqa" / "outcomes.csv"
ALL_ITEMS = {
    "gpt-4o-2024-11-20": 31.4,
    "claude-3-5-sonnet-20241022": 31.1,
    "claude-3-5-sonnet-20240620": 25.8,
    "claude-3-5-haiku-20241022": 9.3,
    "gpt-4o-mini-2024-07-18": 8.1,
}
FIRST_500 = dict(zip(ALL_ITEMS, (33.2, 35.1, 27.0, 8.6, 8.9), strict=True))


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are not next to the repository")
@pytest.mark.parametrize(("items", "published"), [(10**9, ALL_ITEMS), (500, FIRST_500)])
def test_the_published_f_scores_come_out_of_the_recorded_grades(
    items: int, published: dict[str, float]
) -> None:
    rows = pl.read_csv(DATA).filter(pl.col("item_id") <= items)
    for model, expected in published.items():
        grades = rows.filter(model=model)["grade"]
        correct = (grades == "correct").sum()
        attempted = (grades != "not_attempted").sum()
        assert round(100 * f_score(correct, attempted, len(grades)), 1) == expected


MODULES = [one.name for one in pkgutil.iter_modules(marketeval.metrics.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_every_metrics_module_run(name: str) -> None:
    module = importlib.import_module(f"marketeval.metrics.{name}")
    assert doctest.testmod(module).failed == 0
