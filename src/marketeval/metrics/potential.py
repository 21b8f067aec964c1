"""What an ecosystem could have given: regret, lost utility by cause, contributions of retrievers.

All from the tables `potential` and `perfect`, in which the market wrote what every provider with
every single retriever gives for every question, undisturbed. Where somebody had to be asked to
know, the tables are empty and the values are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import UsageError
from marketeval.metrics.base import metric
from marketeval.metrics.population import OfEcosystem
from marketeval.metrics.tables import Remembering, remembered, seeds

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Row = tuple[str | None, float | None, str | None]  # subject, value, note
UNKNOWN = "the market wrote no potential outcomes: somebody has to be asked to know them"
NONE = "no interaction"
ROWS = 1 << 18  # interactions that are looked at together
MOST = 10  # retrievers whose coalitions are all gone through
CAUSES = ("generation", "retrieval", "choice", "routing", "congestion")


@dataclass(frozen=True)
class Potential:
    """Utility of each provider with each retriever, by segment: (segments, providers, retrievers,
    questions); NaN where the provider cannot use the retriever; retriever 0 is none.

    `reliable` has the same shape with the errors to be expected; `perfect` (segments, providers) is
    the utility from perfect evidence at no cost, `ideal` (segments,) that of a perfect free answer.
    """

    providers: Sequence[int]
    retrievers: Sequence[int]
    utility: Floats
    reliable: Floats
    perfect: Floats
    ideal: Floats


@dataclass(frozen=True)
class Journeys:
    """Interactions of a log, one entry each: places in `seeds(log)` and in `Potential`."""

    seed: Integers
    segment: Integers
    provider: Integers
    retriever: Integers
    question: Integers
    topic: Integers
    routed: NDArray[np.bool_]  # whether a router chose the provider
    fetched: NDArray[np.bool_]  # whether a router chose the retriever
    utility: Floats
    single: NDArray[np.bool_]  # whether it called one retriever at most
    refused: NDArray[
        np.bool_
    ]  # whether the provider turned it away, so that no retriever was chosen


def potential(log: LogReader) -> Potential | None:
    """The potential outcomes of a log; None where it has none."""

    def read() -> Potential | None:
        table = log.scan("potential").collect()
        if not table.height:
            return None
        weights = log.scan("weights").sort("segment").collect()
        size = log.scan("question").collect().height
        providers = sorted(set(table["provider"].to_list()))
        retrievers = sorted({-1, *table["retriever"].to_list()})
        a = np.searchsorted(providers, table["provider"].to_numpy())
        b = np.searchsorted(retrievers, table["retriever"].to_numpy())
        q = table["question"].to_numpy()
        alpha, beta, gamma = (
            weights[name].to_numpy()[:, None] for name in ("quality", "cost", "latency")
        )
        less = beta * table["cost_usd"].to_numpy() + gamma * table["latency_s"].to_numpy()
        shape = (weights.height, len(providers), len(retrievers), size)
        utility, reliable = np.full(shape, np.nan), np.full(shape, np.nan)
        quality = table["quality"].to_numpy()
        utility[:, a, b, q] = alpha * quality - less
        reliable[:, a, b, q] = alpha * quality * (1.0 - table["errors"].to_numpy()) - less
        best = dict(log.scan("perfect").select("provider", "quality").collect().iter_rows())
        perfect = alpha * np.array([best[one] for one in providers])
        return Potential(providers, retrievers, utility, reliable, perfect, alpha[:, 0])

    return remembered(log, "potential", read)


def journeys(log: LogReader, known: Potential, place: int) -> Journeys:
    """The interactions that got somewhere, with the path each took: those of the seed at a place,
    and of as many seeds beside it as are read together."""
    block_of = remembered(log, "blocks of journeys", lambda: _blocks(log))
    under_way: dict[int, Journeys] = remembered(log, "journeys", dict)
    block = int(block_of[place])
    if block not in under_way:
        under_way.clear()
        here = np.array(seeds(log))[block_of == block]
        under_way[block] = _read(log, known, int(here[0]), int(here[-1]))
    return under_way[block]


def _blocks(log: LogReader) -> Integers:
    """A number per seed: those that are read together, ROWS interactions or one seed more."""
    import polars as pl

    counts = dict(log.scan("path").group_by("seed").agg(pl.len()).collect().iter_rows())
    return np.cumsum([counts.get(seed, 0) for seed in seeds(log)], dtype=np.int64) // ROWS


def _read(log: LogReader, known: Potential, first: int, last: int) -> Journeys:
    """The interactions of the seeds from one to another."""
    import polars as pl

    keys = ["seed", "step", "slot"]
    here = pl.col("seed").is_between(first, last)
    calls = (
        log.scan("retrieval").filter(here)
        .group_by(keys)
        .agg(pl.col("agent").first().alias("retriever"), pl.col("router").first().alias("via"),
             pl.len().alias("calls"))
    )  # fmt: skip
    users = log.scan("user").filter(pl.col("seed").is_null()).select("user", "segment")
    told = log.scan("interaction").filter(here)
    table = (
        log.scan("path").filter(here).select(*keys, "router", "provider", "effort")
        .join(told.select(*keys, "user", "question", "topic", "utility"), on=keys, how="inner")
        .join(users, on="user", how="left")
        .join(calls, on=keys, how="left")
        .with_columns(pl.col("retriever").fill_null(-1), pl.col("via").fill_null(-1),
                      pl.col("calls").fill_null(0))
        .sort(keys)
        .collect()
    )  # fmt: skip
    return Journeys(
        seed=np.searchsorted(seeds(log), table["seed"].to_numpy()),
        segment=table["segment"].to_numpy().astype(np.int64),
        provider=np.searchsorted(known.providers, table["provider"].to_numpy()),
        retriever=np.searchsorted(known.retrievers, table["retriever"].to_numpy()),
        question=table["question"].to_numpy().astype(np.int64),
        topic=table["topic"].to_numpy().astype(np.int64),
        routed=table["router"].to_numpy() >= 0,
        fetched=table["via"].to_numpy() >= 0,
        utility=table["utility"].to_numpy(),
        single=table["calls"].to_numpy() <= 1,
        refused=(table["effort"].to_numpy() == 0) & (table["calls"].to_numpy() == 0),
    )


class OfSeed(OfEcosystem):
    """A metric with some rows for each seed."""

    def subjects(self, log: LogReader) -> Sequence[str | None]:
        """The rows of a seed."""
        return (None,)

    def measure(self, log: LogReader, known: Potential, place: int) -> Iterator[Row]:
        """The rows of the seed at a place."""
        raise NotImplementedError

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """The rows of all seeds."""
        import polars as pl

        from marketeval.metrics.base import TIDY

        log = log if isinstance(log, Remembering) else Remembering(log)
        known = potential(log)
        rows = []
        for place, seed in enumerate(seeds(log)):
            found: Sequence[Row] = (
                [(one, None, UNKNOWN) for one in self.subjects(log)]
                if known is None
                else list(self.measure(log, known, place))
            )
            rows += [
                (seed, str(self), "all", None, subject, value, note)
                for subject, value, note in found
            ]
        return pl.DataFrame(rows, schema=TIDY, orient="row")


@metric
class Regret(OfSeed):
    """Mean utility per interaction that a better path in hindsight would have added.

        best=fixed   of the one provider and retriever best over all interactions; may be negative
        best=topic   of the best for each topic
        best=item    of the best for each question; never negative where answers are as declared

    S. Bubeck, N. Cesa-Bianchi, Foundations and Trends in Machine Learning 5 (2012). `of=retrieval`
    keeps the provider of each interaction and compares retrievers alone. Interactions that put
    several retrievers together have no single path and are left out; the note counts them.
    """

    best: Literal["fixed", "topic", "item"] = "fixed"
    of: Literal["path", "retrieval"] = "path"

    def __post_init__(self) -> None:
        if self.best not in ("fixed", "topic", "item") or self.of not in ("path", "retrieval"):
            raise UsageError(f"{self}: best takes fixed, topic or item; of takes path or retrieval")

    def measure(self, log: LogReader, known: Potential, place: int) -> Iterator[Row]:
        """One value."""
        trips = journeys(log, known, place)
        here = (trips.seed == place) & trips.single
        out = int(((trips.seed == place) & ~trips.single).sum())
        note = f"{out} interactions with several retrievers are left out" if out else None
        if not here.any():
            yield None, None, note or NONE
            return
        table = known.utility if self.best == "item" else known.reliable
        segment, question = trips.segment[here], trips.question[here]
        if self.of == "path":
            could = table[segment, :, :, question].reshape(segment.size, -1)
        else:
            could = table[segment, trips.provider[here], :, question]
        if self.best == "item":
            best = np.nanmax(could, axis=1).sum()
        else:
            could = np.where(np.isnan(could), -np.inf, could)
            group = trips.topic[here] if self.best == "topic" else np.zeros(segment.size, np.int64)
            best = sum(could[group == one].sum(axis=0).max() for one in np.unique(group))
        yield None, float((best - trips.utility[here].sum()) / segment.size), note


@metric
class AllocationEfficiency(OfSeed):
    """Utility of all interactions over that of the best path for each question.

    At most 1; undefined where the best is not above 0. Interactions as in Regret.
    """

    def measure(self, log: LogReader, known: Potential, place: int) -> Iterator[Row]:
        """One value."""
        trips = journeys(log, known, place)
        here = (trips.seed == place) & trips.single
        could = known.utility[trips.segment[here], :, :, trips.question[here]]
        size = int(here.sum())
        best = float(np.nanmax(could.reshape(size, -1), axis=1).sum()) if size else 0.0
        if best <= 0:
            yield None, None, "the best paths have no utility" if here.any() else NONE
        else:
            yield None, float(trips.utility[here].sum() / best), None


@metric
class LostUtility(OfSeed):
    """Mean utility lost against a perfect free answer, by who lost it.

        generation  1 less the best generator's answer from perfect evidence
        retrieval   that, less the best path with a retriever that is there
        choice      that, less what was left once users and generators had chosen themselves
        routing     the same, once routers had chosen
        congestion  what was left, less what came of it: load, capacity, errors, penalties

    The parts sum to the utility of a perfect answer less the mean utility; they may be negative
    where prices set them off. The difference between two runs is the difference of the parts.
    Interactions as in Regret.
    """

    def subjects(self, log: LogReader) -> Sequence[str | None]:
        """The causes."""
        return CAUSES

    def measure(self, log: LogReader, known: Potential, place: int) -> Iterator[Row]:
        """A value per cause."""
        trips = journeys(log, known, place)
        here = (trips.seed == place) & trips.single
        if not here.any():
            yield from ((one, None, NONE) for one in CAUSES)
            return
        segment, question = trips.segment[here], trips.question[here]
        provider, retriever = trips.provider[here], trips.retriever[here]
        table = known.utility[segment, :, :, question]
        best = np.nanmax(table.reshape(segment.size, -1), axis=1)
        mine = table[np.arange(segment.size), provider]
        after_provider = np.nanmax(mine, axis=1)
        after_retriever = np.where(
            trips.refused[here], after_provider, mine[np.arange(segment.size), retriever]
        )
        lost = dict.fromkeys(CAUSES, 0.0)
        ideal, perfect = known.ideal[segment], known.perfect[segment].max(axis=1)
        lost["generation"] = float((ideal - perfect).mean())
        lost["retrieval"] = float((perfect - best).mean())
        for by_router, gap in (
            (trips.routed[here], best - after_provider),
            (trips.fetched[here], after_provider - after_retriever),
        ):
            lost["routing"] += float(np.where(by_router, gap, 0.0).mean())
            lost["choice"] += float(np.where(by_router, 0.0, gap).mean())
        lost["congestion"] = float((after_retriever - trips.utility[here]).mean())
        yield from ((one, lost[one], None) for one in CAUSES)


class _Coalitions(OfSeed):
    """What sets of retrievers are worth together."""

    routing: Literal["traffic", "best"] = "traffic"
    topic: str = ""

    def __post_init__(self) -> None:
        if self.routing not in ("traffic", "best"):
            raise UsageError(f"{self}: routing takes traffic or best")

    def subjects(self, log: LogReader) -> Sequence[str | None]:
        """The retrievers."""
        return [name for _, name in _retrievers(log)]

    def worths(self, log: LogReader, known: Potential, place: int) -> tuple[list[int], Game] | None:
        """The retrievers' places and the worth of their coalitions; None without interactions."""
        trips = journeys(log, known, place)
        here = trips.seed == place
        if self.topic:
            names = dict(log.scan("topic").select("name", "topic").collect().iter_rows())
            if self.topic not in names:
                raise UsageError(f"{self}: unknown topic; known: {', '.join(names)}")
            here &= trips.topic == names[self.topic]
        if not here.any():
            return None
        there = [one for one, _ in _retrievers(log)]
        players = [known.retrievers.index(one) if one in known.retrievers else 0 for one in there]
        traffic = np.zeros((len(known.providers), len(known.retrievers)))
        np.add.at(traffic, (trips.provider[here], trips.retriever[here]), 1.0)
        return players, Game(
            known.reliable[trips.segment[here], trips.provider[here], :, trips.question[here]],
            traffic[trips.provider[here]],
            players,
            self.routing,
        )


class Game:
    """v(S): mean utility if the retrievers in S alone were there, of the interactions as they were.

    routing=traffic: a provider's traffic is shared out over those of S that it can use, in
    proportion to what it sent them (evenly, if nothing). routing=best: the best of S for each
    question, or none. With none in S it answers without retrieval.
    """

    def __init__(
        self, could: Floats, traffic: Floats, players: Sequence[int], routing: str
    ) -> None:
        self._routing = routing
        # interactions with the same provider and question have the same worth
        both = np.concatenate([np.nan_to_num(could, nan=-1e18), traffic], axis=1)
        rows, count = np.unique(both, axis=0, return_counts=True)
        values, self._traffic = np.split(rows, [could.shape[1]], axis=1)
        self._could = np.where(values == -1e18, np.nan, values)
        self._count = count / count.sum()
        self._players = list(players)

    def worth(self, coalition: int) -> float:
        """v of the players whose bits are set."""
        those = [one for bit, one in enumerate(self._players) if coalition >> bit & 1 and one]
        closed = self._could[:, 0]
        here = self._could[:, those]
        usable = ~np.isnan(here)
        if self._routing == "best":
            every = np.column_stack([closed, here])
            value = np.nanmax(np.where(np.isnan(every), -np.inf, every), axis=1)
        else:
            weight = np.where(usable, self._traffic[:, those], 0.0)
            idle = weight.sum(axis=1) == 0
            weight[idle] = usable[idle]
            total = weight.sum(axis=1)
            mean = (weight * np.nan_to_num(here)).sum(axis=1) / np.maximum(total, 1e-300)
            value = np.where(total > 0, mean, closed)
        value = np.where(np.isfinite(value), value, 0.0)  # a search engine without itself
        return float((value * self._count).sum())


@metric
class MarginalContribution(_Coalitions):
    """What a retriever adds to the mean utility: with all there, less with all but it there.

    From the potential outcomes of the interactions as they were; `routing` as in Contribution. A
    control with `market.without` plays the market itself again without it, on the same seeds.
    `topic` keeps one topic's interactions.
    """

    routing: Literal["traffic", "best"] = "traffic"
    topic: str = ""

    def measure(self, log: LogReader, known: Potential, place: int) -> Iterator[Row]:
        """A value per retriever."""
        found = self.worths(log, known, place)
        names = self.subjects(log)
        if found is None:
            yield from ((name, None, NONE) for name in names)
            return
        players, game = found
        everyone = (1 << len(players)) - 1
        whole = game.worth(everyone)
        for bit, name in enumerate(names):
            yield name, whole - game.worth(everyone & ~(1 << bit)), None


@metric
class Contribution(_Coalitions):
    """Shapley value of each retriever, and `(none)` for the answers without retrieval.

        phi_r = sum over S without r of |S|! (n - |S| - 1)! / n! (v(S + r) - v(S))

    L. S. Shapley, A value for n-person games, 1953. With v as in the text of Game: all values and
    that of `(none)` sum to v of all retrievers. Exact, so undefined above 10 retrievers.
    """

    routing: Literal["traffic", "best"] = "traffic"
    topic: str = ""

    def subjects(self, log: LogReader) -> Sequence[str | None]:
        """The retrievers, and none."""
        return [*super().subjects(log), "(none)"]

    def measure(self, log: LogReader, known: Potential, place: int) -> Iterator[Row]:
        """A value per retriever, then that of answers without retrieval."""
        names = self.subjects(log)
        found = self.worths(log, known, place)
        if found is None or len(names) - 1 > MOST:
            why = NONE if found is None else f"exact for at most {MOST} retrievers"
            yield from ((name, None, why) for name in names)
            return
        players, game = found
        n = len(players)
        worth = [game.worth(coalition) for coalition in range(1 << n)]
        for bit, name in enumerate(names[:-1]):
            value = 0.0
            for coalition in range(1 << n):
                if coalition >> bit & 1:
                    continue
                size = coalition.bit_count()
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                value += weight * (worth[coalition | 1 << bit] - worth[coalition])
            yield name, value, None
        yield "(none)", worth[0], None


def _retrievers(log: LogReader) -> Sequence[tuple[int, str]]:
    """Number and name of the retrievers, by number."""
    import polars as pl

    table = log.scan("agent").filter(pl.col("role").cast(pl.String) == "retriever")
    return list(table.select("agent", "seat").sort("agent").collect().iter_rows())
