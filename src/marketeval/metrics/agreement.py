"""How far judges agree beyond chance: Cohen's and Fleiss' kappa."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marketeval.metrics.base import metric
from marketeval.metrics.tables import seeds

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader


def cohen_kappa(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """(p_o - p_e) / (1 - p_e) of two judges (Cohen 1960); 1 = they agree, 0 = as by chance.

    Parameters
    ----------
    one, other : the grade of each item, any integer codes; shape (items,)

    NaN without items, or where both only ever gave one and the same grade (p_e = 1).

    >>> round(cohen_kappa(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0])), 6)
    0.5
    """
    if not one.size:
        return float("nan")
    grades = np.unique(np.concatenate([one, other]))
    observed = float((one == other).mean())
    expected = float(sum((one == g).mean() * (other == g).mean() for g in grades))
    return float("nan") if expected == 1.0 else (observed - expected) / (1.0 - expected)


def fleiss_kappa(grades: NDArray[np.int64]) -> float:
    """(P - P_e) / (1 - P_e) of several judges (Fleiss 1971), each grading every item.

    Parameters
    ----------
    grades : integer codes; shape (judges, items)

    NaN without items, with fewer than two judges, or where only one grade was ever given.
    """
    judges, items = grades.shape
    if not items or judges < 2:
        return float("nan")
    counts = np.array([(grades == g).sum(axis=0) for g in np.unique(grades)])
    agreeing = (counts * (counts - 1)).sum(axis=0) / (judges * (judges - 1))
    share = counts.sum(axis=1) / (judges * items)
    expected = float((share * share).sum())
    observed = float(agreeing.mean())
    return float("nan") if expected == 1.0 else (observed - expected) / (1.0 - expected)


@metric
class JudgeAgreement:
    """Agreement of a panel's judges on the grades beyond chance: Cohen's kappa for two judges,
    Fleiss' for more; at most 1, 0 = as by chance.

    Over the answers that every judge graded; undefined where only one grade was ever given, or
    where nobody sat on a panel. One row per seed.
    """

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed."""
        import polars as pl

        from marketeval.metrics.base import TIDY

        said = log.scan("judgement").with_columns(pl.col("grade").cast(pl.String)).collect()
        graded = said.filter(pl.col("grade") != "none")
        rows = []
        for seed in seeds(log):
            table = graded.filter(seed=seed).pivot("judge", index=["step", "slot"], values="grade")
            table = table.drop_nulls().drop("step", "slot", strict=False)
            codes = {name: code for code, name in enumerate(said["grade"].unique().sort())}
            columns = [np.array([codes[one] for one in column], np.int64) for column in table]
            value, note = float("nan"), "no panel of judges"
            if len(columns) == 2:
                value, note = cohen_kappa(*columns), "only one grade was given"
            elif len(columns) > 2:
                value, note = fleiss_kappa(np.array(columns)), "only one grade was given"
            known = value == value
            rows.append((seed, str(self), "all", None, None, value if known else None,
                         None if known else note))  # fmt: skip
        return pl.DataFrame(rows, schema=TIDY, orient="row")
