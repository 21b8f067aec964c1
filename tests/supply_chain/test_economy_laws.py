"""What holds in every economy, whoever plays."""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from played import Scripted, bid, offer, play

from marketeval.agents.registry import HEURISTICS
from marketeval.mechanisms.ledger import Ledger

ZOO = sorted(HEURISTICS)
SMALL = {
    "horizon": 3,
    "items": [
        {"name": "a", "quantity": 9, "base_price": 3},
        {"name": "b", "quantity": 4, "base_price": 20},
    ],
    "demand": {"buyers": 7},
}


@st.composite
def worlds(draw):
    """Any small economy with any four of the zoo."""
    pick = st.sampled_from
    spec = {
        **SMALL,
        "preset": draw(pick(["paper", "default", "language_matters"])),
        "funds": draw(st.integers(0, 400)),
        "auction": {
            "rounds": draw(st.integers(1, 3)),
            "pricing": draw(pick(["pay_as_bid", "uniform_lowest_accepted", "uniform_reserve"])),
            "ties": draw(pick(["random", "pro_rata", "agent_order"])),
            "final_void": draw(pick(["empty", "last_valid"])),
            "feedback": draw(pick(["own_and_market", "own", "none"])),
            "carry_supply": draw(st.booleans()),
        },
        "attention": {
            "sampler": draw(
                pick(["plackett_luce", "softmax_with_replacement", "top_m", "uniform"])
            ),
            "candidates": draw(pick(["all", "priced"])),
            "loyalty": draw(pick([0.0, 2.0])),
            "reputation": draw(pick([0.0, 2.0])),
        },
        "demand": {
            "buyers": draw(st.integers(1, 20)),
            "ratio": draw(st.floats(0.1, 3)),
            "basket": draw(pick(["single", "multi"])),
            "shock": draw(pick([0.0, 0.5])),
            "supply_shock": draw(pick([0.0, 0.9])),
        },
        "holding": {
            "rate": draw(pick([0.0, 0.2, 2.0])),
            "base": draw(pick(["cost", "base_price"])),
        },
        "credit": {"limit": draw(pick([0, 50])), "rate": draw(pick([0.0, 0.3]))},
        "rotate": draw(st.booleans()),
    }
    names = draw(st.lists(pick(ZOO), min_size=1, max_size=4))
    return spec, {f"s{i}": f"heuristic:{name}" for i, name in enumerate(names)}


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.integers(0, 50))
def test_money_stock_and_bids_keep_the_law(world, seed):
    spec, agents = world
    log = play(spec, agents, seeds=[seed])
    offers = log.scan("offer").collect()
    awards = log.scan("award").collect()
    accounts = log.scan("account").collect().sort("agent", "step")
    shelf = log.scan("shelf").collect()

    # no unit beyond supply or bid
    totals = awards.group_by("step", "item").agg(pl.col("won").sum())
    supply = totals.join(offers, on=["step", "item"])
    assert (supply["won"] <= supply["quantity"]).all()
    assert (awards["won"] <= awards["asked"]).all()
    # accepted at or above reserve
    won = awards.filter(pl.col("won") > 0).join(offers, on=["step", "item"])
    assert (won["price"] >= won["base_price"]).all()
    # money: funds move by exactly what the books say, from one step to the next
    moved = pl.col("revenue") - pl.col("spend") - pl.col("holding") - pl.col("interest")
    assert (accounts.select(pl.col("opening") + moved == pl.col("funds")).to_series()).all()
    for _, one in accounts.group_by("agent"):
        assert one["opening"][0] == spec["funds"]
        assert one["opening"][1:].to_list() == one["funds"][:-1].to_list()
    # stock: units won, less units sold, are on the shelves (or were lost in bankruptcy)
    solvent = accounts.filter(pl.col("step") == 2, "solvent")
    for agent, units in solvent.select("agent", "inventory_units").rows():
        bought = awards.filter(pl.col("agent") == agent)["won"].sum()
        sold = shelf.filter(pl.col("agent") == agent)["sold"].sum()
        assert bought - sold == units
    # requests add up, and nobody buys what was not wanted
    demand = log.scan("demand").collect()
    assert (demand["bought"] <= demand["wanted"]).all()
    assert demand["bought"].sum() == shelf["sold"].sum()


@given(worlds(), st.integers(0, 20))
def test_no_rejected_bid_beats_an_accepted_one(world, seed):
    spec, agents = world
    log = play(spec, agents, seeds=[seed])
    last = spec["auction"]["rounds"] - 1
    lines = log.scan("bid_line").filter(pl.col("round") == last)
    if spec["auction"]["final_void"] == "last_valid":
        return
    keys = ["step", "agent", "item"]
    table = lines.join(log.scan("award"), on=keys, suffix="_paid").collect()
    for _, rows in table.group_by("step", "item"):
        accepted = rows.filter(pl.col("won") > 0)
        short = rows.filter(pl.col("won") < pl.col("asked"))
        supply = log.scan("offer").collect()
        offered = supply.filter(
            (pl.col("step") == rows["step"][0]) & (pl.col("item") == rows["item"][0])
        )["quantity"][0]
        short = short.filter(pl.col("won") < min(offered, 10**9))
        if accepted.height and short.height:
            assert short["price"].max() <= accepted["price"].min()


def test_the_ledger_balances_after_every_posting(monkeypatch):
    checked = []

    def watch(name):
        plain = getattr(Ledger, name)

        def method(self, *arguments):
            found = plain(self, *arguments)
            checked.append(self.check())
            return found

        monkeypatch.setattr(Ledger, name, method)

    for name in ("buy", "sell", "lose"):
        watch(name)
    play({"holding": {"rate": 0.2}}, {f"s{i}": f"heuristic:{n}" for i, n in enumerate(ZOO)})
    assert len(checked) == 3 * 6
    assert all(checked)


def test_bankrupt_seats_never_act_again():
    hoarder = Scripted(bids=lambda b: bid(a=(9, 3)), offers=lambda b: offer(a=1000))
    spec = {**SMALL, "horizon": 4, "funds": 30, "holding": {"rate": 1.0}}
    log = play(spec, {"hoarder": hoarder, "other": "heuristic:reserve"})
    books = log.scan("account").filter(pl.col("agent") == 0).collect()
    # 27 of 30 for stock, then 27 for keeping it: 3 - 27 < 0
    assert books["funds"].to_list() == [-24] * 4
    assert books["solvent"].to_list() == [False] * 4
    assert books["inventory_units"].to_list() == [0] * 4
    assert [request.step for request in hoarder.heard] == [0, 0, 0]
    for kind in ("bid", "retail", "attention", "listing"):
        assert log.scan(kind).filter(pl.col("agent") == 0).collect()["step"].max() == 0


def test_permuting_seats_permutes_results():
    agents = {f"s{i}": f"heuristic:{name}" for i, name in enumerate(ZOO[:5])}
    plain = play(SMALL, agents)
    for order in itertools.islice(itertools.permutations(agents), 0, 120, 17):
        other = play(SMALL, {seat: agents[seat] for seat in order})
        for kind in ("account", "shelf", "award", "attention"):
            assert other.scan(kind).collect().equals(plain.scan(kind).collect())


def test_blind_attention_ignores_slogans_wholly():
    def run(words):
        spec = {**SMALL, "attention": {"sampler": "uniform"}}
        loud = Scripted(bids=lambda b: bid(a=(3, 4)), offers=lambda b: offer(words[b.step], a=5))
        return play(spec, {"loud": loud, "s1": "heuristic:markup", "s2": "heuristic:oracle"})

    one, other = run(["Green!", "", "x"]), run(["Exclusive deal", "cheap", "cheap " * 99])
    for kind in ("shelf", "account", "award", "demand"):  # turns shift: a slogan was cut
        mine, theirs = (log.scan(kind).drop("turn").collect() for log in (one, other))
        assert mine.equals(theirs)
    seen = [log.scan("attention").select("seen").collect() for log in (one, other)]
    assert seen[0].equals(seen[1])


def test_the_same_seed_gives_the_same_log_and_another_another():
    agents = {f"s{i}": f"heuristic:{name}" for i, name in enumerate(ZOO)}
    first, second = play(SMALL, agents, seeds=[1, 2]), play(SMALL, agents, seeds=[1, 2])
    assert first.digest() == second.digest()
    assert first.digests[1] != first.digests[2]


def test_privileged_knowledge_reaches_privileged_seats_only():
    curious = Scripted()
    log = play(SMALL, {"curious": curious, "oracle": "heuristic:oracle"})
    assert all(request.privileged is None for request in curious.heard)
    table = log.scan("retailer").select("seat", "privileged").collect()
    assert table.rows() == [("curious", False), ("oracle", True)]


@pytest.mark.parametrize("preset", ["paper", "default", "language_matters"])
def test_demand_is_950_units_over_200_shoppers(preset):
    log = play({"preset": preset, "horizon": 2}, {"s": "heuristic:idle"})
    demand = log.scan("demand").group_by("step").agg(pl.col("wanted").sum()).collect()
    assert demand["wanted"].to_list() == [950, 950]


def test_loyal_shoppers_come_back_to_whom_they_bought_of():
    # each shopper sees one seller; all have stock; with boundless loyalty nobody ever changes
    spec = {
        "horizon": 4,
        "patience": 0.05,
        "capital": 1.0,
        "items": [{"name": "a", "quantity": 2000, "base_price": 1}],
        "demand": {"ratio": 0.2},
    }
    agents = {f"s{i}": "heuristic:reserve" for i in range(6)}

    def seen(loyalty):
        log = play({**spec, "attention": {"loyalty": loyalty}}, agents)
        table = log.scan("attention").group_by("step", "agent").agg(pl.col("seen").sum())
        return table.sort("step", "agent").collect()["seen"].to_numpy().reshape(4, 6)

    assert (seen(700.0) == seen(700.0)[0]).all()
    assert not (seen(0.0) == seen(0.0)[0]).all()


def test_a_reputation_for_empty_shelves_costs_attention():
    def seen(reputation):
        log = play(
            {"attention": {"reputation": reputation}},
            {"empty": "heuristic:idle", **{f"s{i}": "heuristic:markup" for i in range(19)}},
            seeds=[1, 2, 3],
        )
        rows = log.scan("attention").filter(pl.col("step") == 5, pl.col("agent") == 0)
        return rows.select(pl.col("seen").sum() / pl.col("buyers").sum()).collect().item()

    assert abs(seen(0.0) - 0.6) < 0.08
    assert seen(5.0) < 0.4
