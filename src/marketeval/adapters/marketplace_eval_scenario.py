"""The reference package's configurations as scenarios, and our runs as its logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marketeval.adapters.marketplace_eval import write_log
from marketeval.adapters.marketplace_eval_config import ReferenceProfile, load_config
from marketeval.adapters.marketplace_eval_coupled import coupled_tree
from marketeval.core.errors import DataError, UsageError
from marketeval.experiments.run_directory import RunDirectory
from marketeval.experiments.scenario import Tree, parse_yaml


def is_config(path: Path) -> bool:
    """Whether a file looks like one of the package's: a mapping with a `graph`."""
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return False
    try:
        return "graph" in parse_yaml(path.read_text("utf-8", "replace"), str(path))
    except DataError:
        return False


def load_tree(path: Path, *, replayed: bool = True) -> tuple[Tree, list[str]]:
    """A configuration as a scenario that draws from the package's own stream, and notes on it.

    Its models are replaced by recorded answers (`--outcomes`); the notes name what is left out.
    Where nothing is `replayed`, one with routers and retrievers becomes a coupled market.
    """
    config = load_config(path)
    if config.needs_retrieval and not replayed:
        coupled, more = coupled_tree(path, config)
        return coupled, [*config.warnings, *more]
    notes = list(config.warnings)
    if config.needs_retrieval:
        notes.append(
            f"not there yet, since it needs retrieval: {', '.join(config.needs_retrieval)}"
        )
    if config.needs_model:
        notes.append(f"replaced by the recorded answers: {', '.join(config.needs_model)}")
    market: dict[str, Any] = {  # any: a scenario's YAML
        "horizon": config.horizon,
        "users": {"population": config.users, "per_step": config.users_per_step},
        "draws": "mersenne",
    }
    if config.profiles:
        market["segments"] = [
            {"name": one.id, "preferences": dict(one.preferences)} for one in config.profiles
        ]
    tree: Tree = {
        "name": path.stem,
        "title": f"{path.name}, as in marketplace-eval",
        "seats": {
            one.id: {"agent": "recorded", "label": one.label, "enters": one.introduce_from}
            for one in config.generators
        },
        "market": market,
        "seeds": str(config.seed or 0),
    }
    found = [at for at in (Path(config.questions), path.parent / config.questions) if at.is_file()]
    if config.questions and found:
        tree["items"] = str(found[0].resolve())
    elif config.questions:
        notes.append(f"no question file at {config.questions}: the questions are the tables' items")
    return tree, notes


def write_run(run: RunDirectory, target: Path, *, seed: int | None) -> None:
    """Write one episode of a run as the package's simulation_log.csv.

    Raises UsageError where users do not hold the preference distributions that such a log needs.
    """
    spec = run.scenario.market
    kinds = spec.kinds_of_user()
    learning = {kind.learning for kind in kinds}
    only = learning.pop()
    if learning or only is None or only.kind != "drift" or only.per != "user" or only.forgetting:
        raise UsageError(
            "simulation_log.csv holds one drifting preference distribution per user; this run's "
            "users learn otherwise (learning.kind, per, forgetting), so it cannot be exported"
        )
    profiles = [
        ReferenceProfile(id=kind.name, preferences=tuple(kind.preferences.items()))
        for kind in kinds
        if kind.preferences
    ]
    if profiles and len(profiles) != spec.users.population:
        raise UsageError("simulation_log.csv needs one segment per user where users differ")
    write_log(run, target, seed=seed, profiles=profiles, drift=only.rate, floor=only.floor)
