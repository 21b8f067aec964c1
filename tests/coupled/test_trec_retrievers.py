"""Recorded TREC systems as a retriever market (DL 2019): real runs, real judgments."""

from __future__ import annotations

import polars as pl
import pytest
from ecosystems import data, value

from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.experiments.assembly import assemble
from marketeval.experiments.scenario import check, override, read_tree
from marketeval.metrics.base import evaluate, parse_metric

# nDCG@10 by ir_measures on these files, as the README of the data states them
PUBLISHED = {
    "bm25": 0.5058,
    "bm25-rm3": 0.5216,
    "tas-b": 0.7210,
    "ada2": 0.7035,
    "splade": 0.7308,
    "rep-llama": 0.7384,
}
NEURAL = ["tas-b", "ada2", "splade", "rep-llama"]


def played(scenario: str, seeds, **settings) -> EventLog:
    tree = read_tree(scenario)
    override(tree, "folder", str(data("trec_dl19")))
    for key, setting in settings.items():
        override(tree, key.replace("__", "."), setting)
    made = assemble(check(tree))
    log = EventLog(made.market.events)
    for seed in seeds:
        lockstep(made.market, made.seats, seed=seed, log=log)
    return log


def shares(log: EventLog) -> pl.DataFrame:
    tidy = evaluate(log, [parse_metric("In(retrievers, MarketShare)")])
    return tidy.pivot(on="subject", index="seed", values="value").drop("seed")


def reported(log: EventLog, retriever: str) -> float:
    """The mean of what a retriever says its first documents are worth."""
    calls = log.scan("retrieval").join(log.scan("agent").select("agent", "seat"), on="agent")
    mine = calls.filter(pl.col("seat") == retriever).select(pl.col("reported").mean()).collect()
    return float(mine.item())


def test_each_system_is_worth_its_published_ndcg():
    log = played("trec-dl19-retrievers", [1], market__horizon=1)
    names = dict(log.scan("agent").select("agent", "seat").collect().iter_rows())
    table = log.scan("potential").filter(pl.col("retriever") >= 0).collect()
    means = table.group_by("retriever").agg(pl.col("quality").mean())
    found = {names[one]: round(mean, 4) for one, mean in means.iter_rows()}
    assert found == PUBLISHED


def test_a_thousand_queries_already_favour_the_neural_systems():
    log = played("trec-dl19-retrievers", [1, 2, 3], market__horizon=100)
    table = shares(log)
    assert (table.select(pl.sum_horizontal(NEURAL)).to_series() > 0.75).all()
    assert table["bm25"].mean() < table["rep-llama"].mean()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ucb1", "thompson", "linucb"])
def test_the_best_system_has_the_plurality_after_ten_thousand_queries(policy):
    log = played(
        "trec-dl19-retrievers", range(1, 13), market__populations__router__choose__policy=policy
    )
    table = shares(log)
    first = table.select(pl.all() == pl.max_horizontal(pl.all()))["rep-llama"].sum()
    assert first >= 9
    assert (table.select(pl.sum_horizontal(NEURAL)).to_series() >= 0.85).all()


def test_a_retriever_that_inflates_its_scores_gains_nothing():
    lying = played("trec-dl19-liar", [1, 2], market__horizon=50)
    honest = played("trec-dl19-liar", [1, 2], market__horizon=50, seats__liar__options__inflate=1)
    said = [reported(log, "liar") for log in (lying, honest)]
    assert said[0] == pytest.approx(1000 * said[1])
    for kind in ("choice", "interaction", "path"):
        assert lying.scan(kind).collect().equals(honest.scan(kind).collect())
    # nor does it gain on the retriever whose documents it copies
    assert value(lying, "In(retrievers, MeanScore)", "liar") == pytest.approx(
        value(lying, "In(retrievers, MeanScore)", "bm25"), abs=0.15
    )


def test_putting_results_together_is_blind_to_reported_scores():
    from marketeval.markets.coupled.answering import interleave
    from marketeval.markets.coupled.retrieving import Call

    modest = Call(0, 0, 1, -1, 2, documents=("a", "b", "c"), reported=0.1)
    loud = Call(0, 0, 1, -1, 3, documents=("x", "b", "y"), reported=1e9)
    assert interleave([modest, loud], None) == ("a", "x", "b", "c", "y")
    assert interleave([modest, loud], 3) == ("a", "x", "b")
