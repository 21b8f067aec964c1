"""Evaluations as users run them: the `vf-eval` of this environment, against a server of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import verifiers.v1 as vf

MAGENTIC = "magentic-marketplace-eval"


def vf_eval(environment, url, out, *more):
    """Run it; its output, and the episodes it wrote, by the name of their task."""
    command = [
        Path(sys.executable).parent / "vf-eval", environment, "--client.base-url", url,
        "-m", "rule", "-r", "1", "--no-rich", "--no-push", "-o", out, "--run.name", "run", *more,
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:] or done.stdout[-2000:]
    return done.stdout + done.stderr, episodes(out / "run")


def episodes(run):
    """The episodes of a run's directory by the name of their task; each stands there once."""
    lines = [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]
    found = {one["task"]["data"]["name"]: one for one in lines}
    assert len(found) == len(lines)
    return found


def rewards(episode):
    """The scores of an episode by name, which are the same on all of its traces."""
    first, *others = [
        {name: one and one["score"] for name, one in trace["rewards"].items()}
        for trace in episode["traces"]
    ]
    assert all(one == first for one in others)
    return first


async def play(environment, url, *, model="rule", sampling=None, **settings):
    """One episode of the first task, in this process; settings are those of the environment."""
    taskset = {"id": environment, **settings.pop("taskset", {})}
    config = vf.resolve_env_config({**settings, "taskset": taskset})
    env = vf.load_environment(config)
    context = vf.ModelContext(
        model=model,
        client=vf.EvalClientConfig(base_url=url),
        sampling=vf.SamplingConfig(**sampling or {}),
    )
    task = next(iter(env.taskset))
    async with env.serving():
        return await env.run_episode(task, context)
