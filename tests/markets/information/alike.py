"""Two engines held together: the same log, and the same bits of the final state."""

from __future__ import annotations

from worlds import World, watched

from marketeval.core.log import EventLog
from marketeval.core.streams import Streams
from marketeval.markets.information.compiled import CompiledMarket
from marketeval.markets.information.market import InformationMarket
from marketeval.markets.information.population import Population

STATE = (
    "first", "second", "last", "mood", "discontent", "active", "successes", "trials", "segment",
)  # fmt: skip


def general(world: World, seed: int) -> tuple[EventLog, Population]:
    with watched() as populations:
        return world.play(seed), populations[-1]


def compiled_market(world: World) -> CompiledMarket:
    tables = {seat: agent.as_table() for seat, agent in world.agents.items()}
    return CompiledMarket(market=world.market, tables=tables)


def compiled(world: World, seed: int) -> tuple[EventLog, Population]:
    log = EventLog(InformationMarket.events)
    log.begin(seed)
    users = compiled_market(world).finish(Streams(seed), log)
    log.end()
    return log, users


def assert_same(world: World, seed: int) -> None:
    (log, users), (fused_log, fused_users) = general(world, seed), compiled(world, seed)
    for kind in log.kinds:
        mine, theirs = log.scan(kind).collect(), fused_log.scan(kind).collect()
        assert theirs.equals(mine), kind
    assert fused_log.digest() == log.digest()
    assert fused_users.size == users.size
    for name in STATE:
        mine, theirs = getattr(users, name), getattr(fused_users, name)
        assert theirs.tobytes() == mine.tobytes(), name
