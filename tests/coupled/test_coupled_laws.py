"""What holds in every ecosystem, whoever is in it."""

from __future__ import annotations

from collections import defaultdict
from unittest.mock import patch

import polars as pl
from ecosystems import play
from hypothesis import given, settings
from hypothesis import strategies as st

from marketeval.metrics import potential
from marketeval.metrics.base import evaluate, parse_metric

TOPICS = ("cats", "law", "math")
share = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])
money = st.sampled_from([0.0, 0.001, 0.01, 0.05])
by_topic = st.one_of(share, st.fixed_dictionaries(dict.fromkeys(TOPICS, share)))
policies = st.sampled_from(
    ["epsilon_greedy", "proportional", "logit", "ucb1", "thompson", "linucb", "uniform"]
)


@st.composite
def choosing(draw):
    return {"policy": draw(policies), "per": draw(st.sampled_from(["all", "topic"]))}


@st.composite
def service(draw):
    return {
        "price": {"query": draw(money), "token": draw(st.sampled_from([0.0, 0.0001]))},
        "cost": draw(money),
        "latency_s": draw(share),
        "per_call_s": draw(st.sampled_from([0.0, 0.1])),
        "capacity": draw(st.sampled_from([None, 1, 2])),
        "overflow": draw(st.sampled_from(["reject", "queue", "degrade"])),
        "patience": draw(st.integers(0, 2)),
        "promise_s": draw(st.sampled_from([None, 0.1])),
        "penalty": draw(money),
        "budget": draw(st.sampled_from([None, 0.0, 0.1])),
    }


@st.composite
def ecosystems(draw, *, declared_only=False):
    """Any small ecosystem of one to three of everybody."""
    kinds = ["none", "naive"] if declared_only else ["none", "naive", "aggregate", "agentic"]
    generators = {
        f"g{n}": {
            **draw(service()),
            "choose": draw(choosing()),
            "closed_book": draw(by_topic),
            "ceiling": draw(by_topic),
            "errors": draw(st.sampled_from([0.0, 0.3])),
            "tokens": 10,
            "strategy": {
                "kind": draw(st.sampled_from(kinds)),
                "retrievers": draw(st.integers(1, 3)),
                "router_top_k": 1 if declared_only else draw(st.integers(1, 2)),
                "calls": draw(st.sampled_from([None, 1, 2])),
                "rounds": draw(st.integers(1, 3)),
            },
        }
        for n in range(draw(st.integers(1, 3)))
    }
    retrievers = {
        f"r{n}": {
            **draw(service()),
            "evidence": draw(by_topic),
            "topics": draw(st.sampled_from([[], ["cats"], ["law", "math"]])),
        }
        for n in range(draw(st.integers(1, 3)))
    }
    edges = ["users -> gens", "gens -> router", "router -> rets"]
    if draw(st.booleans()):
        edges.append("gens -> rets")
    if draw(st.booleans()):
        edges.append("users -> rets")
    populations = {
        "users": {
            "role": "user",
            "count": draw(st.integers(1, 4)),
            "choose": draw(choosing()),
            "budget": draw(st.sampled_from([None, 0.02, 0.3])),
            "utility": {"quality": 1.0, "cost": draw(share), "latency": draw(share)},
        },
        "gens": {"role": "generator", "members": generators},
        "rets": {"role": "retriever", "members": retrievers},
        "router": {"role": "router", "choose": draw(choosing()), "fee": draw(money)},
    }
    if draw(st.booleans()):
        populations["front"] = {"role": "router", "choose": draw(choosing())}
        edges += ["users -> front", "front -> gens"]
    return {
        "horizon": draw(st.integers(1, 4)),
        "per_step": draw(st.integers(1, 6)),
        "pool": dict.fromkeys(TOPICS, 2),
        "credit": draw(st.sampled_from(["answer", "gain", "split", "discounted"])),
        "populations": populations,
        "edges": edges,
    }


@settings(max_examples=40)
@given(ecosystems(), st.integers(0, 99))
def test_no_choice_leaves_the_graph(market, seed):
    log = play(market, seeds=[seed])
    names = dict(log.scan("agent").select("agent", "seat").collect().iter_rows())
    allowed = set(log.scan("admissible").select("chooser", "target").collect().iter_rows())
    for chooser, target in log.scan("choice").select("chooser", "agent").collect().iter_rows():
        assert (names.get(chooser, "users"), target) in allowed
    for kind in ("caller", "router"):  # and no call without the choices that lead to it
        for source, agent in log.scan("retrieval").select(kind, "agent").collect().iter_rows():
            assert source == -1 or kind == "caller" or (names[source], agent) in allowed


@settings(max_examples=40)
@given(ecosystems(), st.integers(0, 99))
def test_money_is_conserved_and_no_budget_exceeded(market, seed):
    log = play(market, seeds=[seed])
    held: dict[str, int] = defaultdict(int)
    closing = {}
    for account, opening, end in (
        log.scan("balance").select("account", "opening", "closing").collect().iter_rows()
    ):
        held[account], closing[account] = opening, end
    limited = {f"user {n}" for n in range(market["populations"]["users"]["count"])}
    if market["populations"]["users"]["budget"] is None:
        limited = set()
    for population in ("gens", "rets"):
        for name, one in market["populations"][population]["members"].items():
            if one["budget"] is not None:
                limited.add(name)
    assert sum(held.values()) == 0
    for payer, payee, micros in (
        log.scan("payment").select("payer", "payee", "micros").collect().iter_rows()
    ):
        assert micros > 0
        held[payer] -= micros
        held[payee] += micros
        assert payer not in limited or held[payer] >= 0
    assert dict(held) == closing
    # what users paid for answers is what the log says they paid, less what came back
    paid = log.scan("interaction").select(pl.col("cost_usd").sum()).collect().item() or 0.0
    mine = pl.col("payer").str.starts_with("user ")
    back = pl.col("payee").str.starts_with("user ")
    moved = log.scan("payment")
    out = moved.filter(mine).select(pl.col("micros").sum()).collect().item() or 0
    assert round(paid * 1_000_000) == out
    assert (moved.filter(mine & back).collect()).height == 0


@settings(max_examples=40)
@given(ecosystems(), st.integers(0, 99))
def test_no_capacity_is_exceeded_in_any_step(market, seed):
    log = play(market, seeds=[seed])
    both = pl.concat(
        [
            log.scan("retrieval").filter(pl.col("caller") >= 0).select("agent", "served", "effort"),
            log.scan("path").select(pl.col("provider").alias("agent"), "served", "effort"),
        ]
    )
    spent = both.group_by("agent", "served").agg(pl.col("effort").sum())
    table = spent.join(log.scan("agent"), on="agent").filter(pl.col("capacity") >= 0).collect()
    assert (table["effort"] <= table["capacity"] + 1e-9).all()


@settings(max_examples=40)
@given(ecosystems(declared_only=True), st.integers(0, 99))
def test_nothing_beats_the_best_path_of_each_question_and_the_parts_make_the_whole(market, seed):
    for one in market["populations"]["gens"]["members"].values():
        one["penalty"] = 0.0  # a refund is worth something that no path promises
        one["ceiling"] = 1.0  # evidence never harms
    for one in market["populations"]["rets"]["members"].values():
        one["penalty"] = 0.0
    log = play(market, seeds=[seed])
    texts = ["Regret(best=item)", "LostUtility", "LongitudinalUtility", "Regret", "Contribution"]
    tidy = evaluate(log, [parse_metric(text) for text in texts])
    found = {text: tidy.filter(pl.col("metric") == str(parse_metric(text))) for text in texts}
    regret = found["Regret(best=item)"]["value"][0]
    if regret is None:
        return
    assert regret >= -1e-12
    assert found["Regret"]["value"][0] <= regret + 1e-12 + 0.3  # errors count in the fixed one only
    mean = found["LongitudinalUtility"].filter(pl.col("subject").is_null())["value"][0]
    assert abs(found["LostUtility"]["value"].sum() - (1.0 - mean)) < 1e-9


@settings(max_examples=10)
@given(ecosystems(), st.integers(1, 60))
def test_how_many_interactions_are_looked_at_together_makes_no_difference(market, rows):
    log = play(market, seeds=[1, 2, 5, 8])
    texts = ["Regret(best=item)", "AllocationEfficiency", "LostUtility", "Regret", "Contribution"]
    metrics = [parse_metric(text) for text in texts]
    whole = evaluate(log, metrics)
    with patch.object(potential, "ROWS", rows):
        assert evaluate(log, metrics).equals(whole)
        for one in metrics:  # and by itself, on a log that remembers nothing
            assert one.compute(log).equals(whole.filter(pl.col("metric") == str(one)))


@settings(max_examples=40)
@given(ecosystems(declared_only=True), st.integers(0, 99), st.sampled_from(["traffic", "best"]))
def test_contributions_and_the_closed_book_sum_to_the_whole(market, seed, routing):
    log = play(market, seeds=[seed])
    text = f"(routing={routing})" if routing == "best" else ""
    tidy = evaluate(log, [parse_metric(f"Contribution{text}")])
    alone = evaluate(log, [parse_metric(f"MarginalContribution{text}")])
    if tidy["value"].null_count():
        return
    from marketeval.metrics.potential import Contribution

    known = potential.potential(log)
    _, game = Contribution(routing=routing).worths(log, known, 0)
    retrievers = alone.height
    whole, closed = game.worth((1 << retrievers) - 1), game.worth(0)
    assert abs(tidy["value"].sum() - whole) < 1e-9
    assert abs(tidy.filter(pl.col("subject") == "(none)")["value"][0] - closed) < 1e-12
    if routing == "best" and "users -> rets" not in market["edges"]:  # more never harm then
        assert (alone["value"] >= -1e-12).all()


@settings(max_examples=40)
@given(ecosystems(), st.integers(0, 99))
def test_the_same_seed_gives_the_same_log_and_agents_keep_their_draws(market, seed):
    assert play(market, seeds=[seed]).digest() == play(market, seeds=[seed]).digest()


def test_renaming_the_order_of_the_scenario_changes_nothing_but_ties():
    members = {"a": {"evidence": 0.9}, "b": {"evidence": 0.2}, "c": {"evidence": 0.5}}

    def shares(order):
        log = play(
            {
                "horizon": 20,
                "populations": {
                    "users": {"role": "user"},
                    "gen": {"role": "generator"},
                    "rets": {"role": "retriever", "members": {one: members[one] for one in order}},
                },
                "edges": ["users -> gen", "gen -> rets"],
            }
        )
        return evaluate(log, [parse_metric("In(rets, MarketShare)")])["value"].to_list()

    assert shares("abc") == shares("cab")
