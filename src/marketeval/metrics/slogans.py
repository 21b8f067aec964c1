"""What words were worth: slogans against personas, and against being noticed (appendix C.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from marketeval.core.errors import UnknownNameError
from marketeval.metrics.base import metric
from marketeval.metrics.books import Books, Kept, ratio
from marketeval.metrics.series import Part
from marketeval.metrics.tables import Floats, remembered

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader

SILENT = "no slogan"


@metric
class MMS(Kept):
    """Mean match score: how close a seat's slogans are to the personas, from -1 to 1.

        mean over steps of sum over tribes of weight * cos(E(slogan), E(persona))

    `tribe` names one tribe instead of the weighted sum. Steps without a slogan are left out. Raw
    cosines: values of different embedders do not compare; the note names the embedder.

    `z=true` is (score - mean) / standard deviation (n - 1) of the scores of the fixed reference
    slogans by the same embedder, of any size: how many deviations better than common slogans.
    """

    tribe: str | None = None
    z: bool = False

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' scores."""
        names, weight = _tribes(log)
        if self.tribe is not None:
            if self.tribe not in names:
                raise UnknownNameError("tribe", self.tribe, names)
            weight = np.array([float(name == self.tribe) for name in names])
        score = np.asarray((_similarity(books, log) * weight).sum(axis=-1))
        if self.by == "run":
            known = ~np.isnan(score)
            total = np.where(known, score, 0.0).sum(axis=1, keepdims=True)
            score = ratio(total, known.sum(axis=1, keepdims=True).astype(np.float64))
        if not self.z:
            return Part(score, [(np.isnan(score), SILENT)], note=_embedder(log))
        mean, sd = _reference(log, -1 if self.tribe is None else names.index(self.tribe))
        silent = np.isnan(score)
        values = (score - mean) / sd if sd > 0 else np.full(score.shape, np.nan)
        reasons = [(silent, SILENT), (np.isnan(values), "the reference slogans all score alike")]
        return Part(values, reasons, note=f"deviations of reference slogans, {_embedder(log)}")


@metric
class LanguageLeverage(Kept):
    """How much more often a seat was noticed than under blind attention, from -1 to 1.

        (buyers that noticed it - sum of m / n) / buyers

    m sellers of n are noticed by each buyer. 0 in expectation where slogans do not matter.
    """

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' leverages."""
        import polars as pl

        rows = log.scan("attention").filter(pl.col("candidate"))
        columns = {
            "buyers": pl.col("buyers"),
            "lead": pl.col("seen")
            - pl.col("buyers") * pl.min_horizontal("slots", "candidates") / pl.col("candidates"),
        }
        arrays = {name: _array(books, rows, one) for name, one in columns.items()}
        if self.by == "run":
            arrays = {name: one.sum(axis=1, keepdims=True) for name, one in arrays.items()}
        values = ratio(arrays["lead"], arrays["buyers"])
        return Part(values, [(arrays["buyers"] == 0, "could not be noticed")])


def _array(books: Books, rows: pl.LazyFrame, value: pl.Expr) -> Floats:
    import polars as pl

    found = rows.group_by("seed", "step", "agent").agg(value.cast(pl.Float64).sum().alias("x"))
    table = found.collect()
    seed = np.searchsorted(np.array(books.seeds, np.int64), table["seed"].to_numpy())
    out = np.zeros((len(books.seeds), books.horizon, len(books.seats)))
    out[seed, table["step"].to_numpy(), table["agent"].to_numpy()] = table["x"].to_numpy()
    return out


def _tribes(log: LogReader) -> tuple[list[str], Floats]:
    table = log.scan("tribe").unique("tribe", keep="first").sort("tribe").collect()
    return table["name"].to_list(), table["weight"].to_numpy()


def _similarity(books: Books, log: LogReader) -> Floats:
    """Similarities, shape (seeds, steps, seats, tribes); NaN without a slogan."""

    def read() -> Floats:
        import polars as pl

        names, _ = _tribes(log)
        out = np.full((len(books.seeds), books.horizon, len(books.seats), len(names)), np.nan)
        said = log.scan("slogan").filter(pl.col("text") != "").select("seed", "step", "agent")
        rows = log.scan("attention").join(said, on=["seed", "step", "agent"], how="inner")
        table = rows.select("seed", "step", "agent", "tribe", "similarity").collect()
        seed = np.searchsorted(np.array(books.seeds, np.int64), table["seed"].to_numpy())
        place = (seed, *(table[name].to_numpy() for name in ("step", "agent", "tribe")))
        out[place] = table["similarity"].to_numpy()
        return out

    return remembered(log, "similarity", read)


def _reference(log: LogReader, tribe: int) -> tuple[float, float]:
    """Mean and standard deviation of the reference slogans' scores; NaN and 0 without them."""
    import polars as pl

    rows = log.scan("reference").filter(pl.col("tribe") == tribe).select("mean", "sd").collect()
    return rows.row(0) if rows.height else (float("nan"), 0.0)


def _embedder(log: LogReader) -> str:
    names = log.scan("embedder").select("embedder").collect()["embedder"].to_list()
    return f"embedder {names[0]}" if names else "no embedder"
