"""What our bridge and harness cost beside bare turns of verifiers: CPU of one process, as a ratio.

An episode of 40 seats is played against a server in another process, which answers by rule. Then
the same market is played by scripts, with its metrics: what it costs without any bridge. Then the
same messages are sent again, on as many interactions and as many at once, by the least harness
that verifiers takes: no market, no schema, no reading, no metrics. The aim is a ratio of at most
1.2 for bridge and harness, the market itself taken off. Run it with a Python that has the extra
`verifiers` and the environment's package.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import bare_turns
import verifiers.v1 as vf

from marketeval.adapters.verifiers.magentic import COMPONENTS
from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep_async
from marketeval.core.log import EventLog
from marketeval.markets.two_sided.family import build
from marketeval.markets.two_sided.market import populate
from marketeval.markets.two_sided.scenario import TwoSided
from marketeval.metrics.base import evaluate
from marketeval.metrics.tables import Remembering

SERVER = Path(__file__).parents[2] / "tests" / "environments" / "scripted_traders.py"
ROUNDS, AIM = 12, 1.2
ENVIRONMENT = "magentic-marketplace-eval"


async def market(env, task, context):
    """One episode; its CPU seconds, and what each seat was sent."""
    began = time.process_time()
    episode = await env.run_episode(task, context)
    spent = time.process_time() - began
    assert episode.ok, episode.errors
    return spent, [(trace.task.data.system_prompt, sent(trace)) for trace in episode.traces]


def sent(trace):
    """The user's messages of a trace, in order."""
    return [node.message.content for node in trace.nodes if node.message.role == "user"]


async def alone(task):
    """The CPU seconds of the market and its metrics, with scripts in the seats."""
    began = time.process_time()
    spec = TwoSided(**task.data.market)
    population = populate(spec)
    market = build(spec, [("customers", "model"), ("businesses", "model")], population=population)
    sides = {"careful-buyer": population.customers, "menu-honest": population.businesses}
    seats = {
        one.id: make_agent(f"heuristic:{script}", seat=one.id)
        for script, those in sides.items()
        for one in those
    }
    log = EventLog(market.events)
    await lockstep_async(market, seats, seed=task.data.seed, log=log)
    evaluate(Remembering(log), list(COMPONENTS.values()))
    return time.process_time() - began


async def bare(env, task, context, talks, gate):
    """The same messages on bare interactions; the CPU seconds."""
    config = vf.AgentConfig(
        model=context.model,
        client=context.client,
        runtime=vf.SubprocessConfig(),
        harness=vf.HarnessConfig(id="bare-turns"),
    )
    permits = asyncio.Semaphore(gate)
    agent = vf.make_agent(config, interception=env._interception)

    async def turn(talk, text):
        async with permits:
            segment = await talk.turn(text)
        assert segment.last_reply

    async def one(rules, texts):
        task_ = vf.Task(vf.TaskData(system_prompt=rules))
        talk = await stack.enter_async_context(agent.interaction(task_))
        for text in texts:
            await turn(talk, text)

    began = time.process_time()
    async with contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*(one(*talk) for talk in talks))
    return time.process_time() - began


async def main(port):
    for gate in (8, 32):
        config = vf.resolve_env_config(
            {
                "taskset": {"id": ENVIRONMENT, "cells": ["mexican10_lexical"], "seeds": [1]},
                "max_concurrent_agents": gate,
            }
        )
        env = vf.load_environment(config)
        context = vf.ModelContext(
            model="rule", client=vf.EvalClientConfig(base_url=f"http://127.0.0.1:{port}/v1")
        )
        (task,) = list(env.taskset)
        pairs = []
        async with env.serving(), aiohttp.ClientSession() as bare_turns.BareHarness.http:
            await market(env, task, context)  # warm
            for _ in range(ROUNDS):
                ours, talks = await market(env, task, context)
                turns = sum(len(texts) for _, texts in talks)
                theirs = await bare(env, task, context, talks, gate)
                pairs.append((ours, await alone(task), theirs))
        whole, market_alone, turns_alone = (min(column) for column in zip(*pairs, strict=True))
        least = (whole - market_alone) / turns_alone
        median = statistics.median((ours - own) / theirs for ours, own, theirs in pairs)
        print(
            f"{len(talks)} seats, {turns} turns, {gate} at once: CPU of bridge and harness over "
            f"bare turns {least:.2f} (the least of {ROUNDS} each; median of pairs {median:.2f}; "
            f"aim {AIM}); with the market and its metrics {whole / turns_alone:.2f}"
        )


if __name__ == "__main__":
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True) as rule:
        try:
            asyncio.run(main(int(rule.stdout.readline())))
        finally:
            rule.terminate()
