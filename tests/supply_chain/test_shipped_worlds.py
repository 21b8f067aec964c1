"""The paper's world and what it implies: sizes, prompts, the pattern of requests, the gouger."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from played import Scripted, bid, offer, play

from marketeval.llm.lexical import Lexical
from marketeval.markets.supply_chain.prompts import NAMES, prompt_hash, references
from marketeval.markets.supply_chain.scenario import PRESETS, SupplyChain
from marketeval.metrics.base import evaluate, parse_metric

MIXED = {
    f"s{place:02d}": f"heuristic:{name}"
    for place, name in enumerate(["reserve", "markup", "undercut", "marginal-value"] * 5)
}


def test_the_default_world_is_that_of_the_paper():
    spec = SupplyChain(preset="paper")
    assert sum(one.quantity for one in spec.items) == 1000
    assert sum(one.quantity * one.base_price for one in spec.items) == 300_000
    assert spec.funds_for(20) == 22_500
    assert [one.base_price for one in spec.items] == [50, 50, 150, 150, 150, 800, 800, 2000]
    assert [(one.weight, one.sensitivity) for one in spec.tribes] == [
        (0.4, 0.2), (0.3, 0.8), (0.2, 0.9), (0.1, 0.5),
    ]  # fmt: skip


def test_every_preset_but_the_papers_has_a_highest_markup():
    for name in PRESETS:
        assert (SupplyChain(preset=name).max_markup is None) == (name == "paper")


def test_360_questions_per_episode_with_twenty_seats():
    seats = {f"s{i}": Scripted() for i in range(20)}
    play({}, seats)
    assert sum(len(one.heard) for one in seats.values()) == 6 * (2 + 1) * 20


def test_what_is_neither_filled_nor_out_of_stock_is_a_little_more_than_nothing():
    # 20 seeds of a mixed field: 1 - Fill - Stockout is the unfilled part of last sales
    log = play({}, MIXED, seeds=range(1, 21))
    found = evaluate(
        log,
        [parse_metric(t) for t in ("PartialRate", "ProfitCorrelation(StockoutRate, of=FillRate)")],
    )
    gap = found.filter(pl.col("metric") == "PartialRate")["value"].mean()
    rho = found.filter(pl.col("metric") != "PartialRate")["value"].mean()
    assert 0.004 <= gap <= 0.02
    assert rho < -0.9


def test_fill_stockout_and_partial_are_one():
    log = play({"demand": {"basket": "multi"}}, MIXED, seeds=[1])
    names = ("FillRate", "StockoutRate", "PartialRate")
    parts = [evaluate(log, [parse_metric(one)])["value"] for one in names]
    total = parts[0] + parts[1] + parts[2]
    assert total.to_list() == pytest.approx([1.0] * 20)


def test_a_gouger_earns_without_bound_only_without_a_ceiling():
    field = {"gouger": "heuristic:gouger", **{f"s{i}": "heuristic:reserve" for i in range(9)}}
    worth = {}
    for preset in ("paper", "default"):
        log = play({"preset": preset}, field, seeds=[1, 2, 3])
        profit = evaluate(log, [parse_metric("Profit")])
        worth[preset] = profit.filter(pl.col("subject") == "gouger")["value"].mean()
    assert worth["paper"] > 1_000_000
    assert worth["default"] < 1_000_000


def test_language_decides_only_where_it_should():
    # one seat speaks to the personas, nineteen say nothing; profit aside, who is noticed?
    def leverage(preset):
        speaker = Scripted(
            offers=lambda b: offer("Green, fair, eco goods; exclusive and limited.", item1=60)
        )
        log = play(
            {"preset": preset},
            {"s00": speaker} | {f"s{i:02d}": "heuristic:idle" for i in range(1, 20)},
        )
        found = evaluate(log, [parse_metric("LanguageLeverage")])
        return found.filter(pl.col("subject") == "s00")["value"][0]

    assert leverage("language_matters") > 0.3
    assert leverage("default") < 0.2


def test_the_prompts_have_the_form_the_paper_shows():
    seat = Scripted(
        bids=lambda b: bid(item4=(19, 150), item8=(1, 2000)),
        offers=lambda b: offer("Luxury and value, redefined!", item4=200, item8=2500),
    )
    play({"horizon": 2, "funds": 22500}, {"me": seat, "rival": "heuristic:markup"})
    first, second, retail, later = (str(seat.heard[i].briefing) for i in range(4))
    assert first.startswith("Step: 0 of 0 to 1\nRound: 1 of 2\nFunds: 22500\n")
    assert "Overspent on most recent bid: False" in first
    assert "item_id,qty,base_price\nitem1,200,50\nitem2,200,50\nitem3,133,150" in first
    assert "Current inventory: item1,0; item2,0;" in first
    assert "(empty at step 0)" in first
    assert "you win item4: 19, item8: 1, cost 4850" in second
    assert "Current inventory: item4: 19, item8: 1" in retail
    assert "- you: slogan <<Luxury and value, redefined!>> item4 200" in later
    assert "Answer with one JSON object and nothing else" in seat.heard[0].instructions
    assert "3 times an item's base price" in seat.heard[2].instructions


def test_the_briefing_is_bounded_in_length():
    seat = Scripted(offers=lambda b: offer("word " * 30, **{f"item{i + 1}": 60 for i in range(8)}))
    play({"horizon": 12}, {"me": seat, **{f"s{i}": "heuristic:markup" for i in range(5)}})
    sizes = [len(str(request.briefing)) for request in seat.heard if request.decision == "offer"]
    assert sizes[-1] < 1.2 * sizes[4]


def test_briefings_travel_as_json():
    import json

    seat = Scripted()
    play({"horizon": 2}, {"me": seat, "other": "heuristic:markup"})
    for request in seat.heard:
        found = json.loads(json.dumps(request.briefing.payload()))
        assert found["items"][0] == "item1"
        assert set(request.action.schema(found["items"])["properties"]) in (
            {"bids"}, {"prices", "slogan"},
        )  # fmt: skip


def test_prompts_are_versioned_data():
    assert len(prompt_hash()) == 64
    assert len(NAMES) == 4


def test_shocks_move_supply_and_demand_around_their_means():
    log = play(
        {"horizon": 200, "demand": {"shock": 0.5, "supply_shock": 0.5}}, {"s": "heuristic:idle"}
    )
    wanted = log.scan("demand").group_by("step").agg(pl.col("wanted").sum()).collect()["wanted"]
    assert 475 <= wanted.min() < 600
    assert 1300 < wanted.max() <= 1425
    assert abs(wanted.mean() - 950) < 4 * 950 * 0.5 / (3 * 200) ** 0.5
    offered = log.scan("offer").filter(pl.col("item") == 0).collect()["quantity"]
    assert 100 <= offered.min() < 110
    assert 290 < offered.max() <= 300


def test_credit_lets_funds_go_below_zero_at_interest():
    seat = Scripted(bids=lambda b: bid(item1=(12, 50)) if b.step == 0 else bid())
    spec = {"horizon": 3, "funds": 500, "credit": {"limit": 200, "rate": 0.1}}
    log = play(spec, {"me": seat})
    books = log.scan("account").select("funds", "interest", "solvent").collect().rows()
    assert books == [(-110, 10, True), (-121, 11, True), (-133, 12, True)]


def test_unsold_supply_may_be_carried_over():
    for carry, offered in ((False, [200, 200]), (True, [200, 400])):
        log = play({"horizon": 2, "auction": {"carry_supply": carry}}, {"s": "heuristic:idle"})
        found = log.scan("offer").filter(pl.col("item") == 0).collect()["quantity"].to_list()
        assert found == offered


def test_many_items_by_one_number():
    assert len(SupplyChain(items=200).items) == 200
    log = play({"items": 30, "horizon": 1}, {"s": "heuristic:markup"})
    assert log.scan("item").collect().height == 30


def test_scarcity_is_one_number_that_leaves_money_and_demand_as_they_are():
    log = play({"scarcity": 4.0, "horizon": 1}, {f"s{i}": "heuristic:markup" for i in range(20)})
    offered = log.scan("offer").collect()["quantity"].to_list()
    assert offered == [50, 50, 33, 33, 34, 19, 19, 13]  # a quarter of each, rounded
    assert log.scan("demand").collect()["wanted"].sum() == 950
    assert log.scan("economy").collect()["funds"].to_list() == [22500]
    assert SupplyChain(items=12).items[11].category == "standard"  # categories come round again


def test_a_market_in_another_language_tells_slogans_apart():
    # personas and slogans in Spanish; the lexicon knows some of the words, hashed n-grams the rest
    spec = {
        "preset": "language_matters",
        "tribes": [
            {"name": "ahorro", "weight": 0.5, "sensitivity": 1.0, "patience": 0.2,
             "persona": "Busco precios bajos, descuentos y ofertas."},
            {"name": "ecologico", "weight": 0.5, "sensitivity": 1.0, "patience": 0.2,
             "persona": "Compro productos ecológicos, verdes y justos con el planeta."},
        ],
    }  # fmt: skip
    says = {
        "s00": "Precios bajos y descuentos: las mejores ofertas.",
        "s01": "Productos ecológicos y verdes, justos con el planeta.",
    }
    seats = {f"s{i:02d}": "heuristic:idle" for i in range(20)} | {
        seat: Scripted(offers=lambda b, t=text: offer(t, item1=60)) for seat, text in says.items()
    }
    log = play(spec, seats, seeds=[1, 2])
    rows = log.scan("attention").filter(pl.col("agent") < 2).collect()
    near = rows.group_by("agent", "tribe").agg(pl.col("similarity").first(), pl.col("seen").sum())
    found = {(agent, tribe): (sim, seen) for agent, tribe, sim, seen in near.iter_rows()}
    assert min(found[0, 0][0], found[1, 1][0]) > 0.3 + max(found[0, 1][0], found[1, 0][0])
    assert found[0, 0][1] > 1.5 * found[1, 0][1]
    assert found[1, 1][1] > 1.5 * found[0, 1][1]
    texts = log.scan("slogan").filter(pl.col("agent") == 1).collect()["text"]
    assert set(texts) == {says["s01"]}


def test_scores_of_slogans_are_put_on_the_scale_of_the_reference_slogans():
    speaker = Scripted(offers=lambda b: offer(references()[b.step], item1=60))
    log = play({"horizon": 6}, {"me": speaker, "mute": "heuristic:idle"})
    texts = list(references())
    assert len(texts) == len(set(texts)) == 20
    embedder = Lexical()
    spec = SupplyChain()
    slogans, personas = embedder.embed(texts), embedder.embed([t.persona for t in spec.tribes])
    scores = np.round(slogans @ personas.T, 6) @ [t.weight for t in spec.tribes]
    expected = (scores[:6].mean() - scores.mean()) / scores.std(ddof=1)
    found = evaluate(log, [parse_metric("MMS(z=true)")])
    assert found["value"].to_list() == [pytest.approx(expected, abs=1e-4), None]
    assert "lexical" in found["note"][0]
    by_tribe = evaluate(log, [parse_metric('MMS(z=true, tribe="hype")')])["value"][0]
    hype = np.round(slogans @ personas.T, 6)[:, 2]
    assert by_tribe == pytest.approx((hype[:6].mean() - hype.mean()) / hype.std(ddof=1), abs=1e-4)


def test_risk_over_runs_is_one_value_per_seat():
    log = play({"horizon": 2}, {f"s{i}": "heuristic:markup" for i in range(3)}, seeds=[1, 2, 3, 4])
    profit = evaluate(log, [parse_metric("Profit")])
    found = evaluate(log, [parse_metric("RAR(across_runs=true)")])
    for seat in ("s0", "s1", "s2"):
        runs = profit.filter(pl.col("subject") == seat)["value"].to_numpy()
        mine = found.filter(pl.col("subject") == seat).sort("seed")["value"].to_list()
        assert mine == [pytest.approx(runs.mean() / runs.std(ddof=1)), None, None, None]


def test_first_in_first_out_changes_costs_and_nothing_else():
    seats = {f"s{i}": f"heuristic:{name}" for i, name in enumerate(["markup", "pacing", "random"])}
    spec = {"demand": {"ratio": 0.5}}
    average, fifo = (play({**spec, "costing": one}, seats) for one in ("average", "fifo"))
    for kind in ("award", "listing", "demand"):
        assert average.scan(kind).collect().equals(fifo.scan(kind).collect())
    books = fifo.scan("account").collect()
    assert not books["cogs"].equals(average.scan("account").collect()["cogs"])
    # what was paid is in the goods sold or still on the shelves
    last = books.filter(pl.col("step") == 5)["inventory_cost"].sum()
    assert books["spend"].sum() == books["cogs"].sum() + last


def test_overbids_are_counted_over_the_bids_of_every_round():
    greedy = Scripted(bids=lambda b: bid(item8=(50, 9999)) if b.round else bid(item1=(1, 50)))
    log = play({"horizon": 3}, {"me": greedy, "other": "heuristic:reserve"})
    assert evaluate(log, [parse_metric("OverbidRate")])["value"].to_list() == [0.5, 0.0]
