"""The reference package's configurations with routers and retrievers, as coupled markets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marketeval.adapters.marketplace_eval_config import ReferenceConfig
from marketeval.core.errors import DataError
from marketeval.experiments.scenario import Tree, parse_yaml

Node = Mapping[str, Any]  # any: the file's own values
USERS = {"policy": "epsilon_greedy", "parameter": 0.2, "learning": "drift", "rate": 0.1,
         "floor": 0.01}  # fmt: skip


def coupled_tree(path: Path, config: ReferenceConfig) -> tuple[Tree, list[str]]:
    """A configuration as a scenario of coupled markets, and notes on what was read differently.

    Routers learn from the answers, where the package has them learn retrievers' own scores. Corpora
    are taken as given, ranked by the lexical embedder in the place of a transformer; a retriever
    that needs a search service, or that nothing is wired to, is left out. Generators and the judge
    ask the models that the file names.
    """
    graph = parse_yaml(path.read_text("utf-8", "replace"), str(path))["graph"]
    nodes = {str(one["id"]): one for one in graph["nodes"]}
    wired = [
        (str(one.get("source")), str(one.get("target")))
        for one in graph.get("edges", ())
        if str(one.get("source")) in nodes and str(one.get("target")) in nodes
    ]
    notes: list[str] = []
    kept = {name for name, node in nodes.items() if _kind(node) in ("generator", "router")}
    for name, node in nodes.items():
        if _kind(node) != "retriever":
            continue
        backend = _params(node).get("backend", "corpus")
        if backend != "corpus":
            notes.append(f"left out, since it needs a search service: {name} ({backend})")
        elif not any(b == name for _, b in wired):
            notes.append(f"left out, since nothing is wired to it: {name}")
        else:
            kept.add(name)
    edges = [(a, b) for a, b in wired if a in kept and b in kept and _kind(nodes[b]) != "generator"]
    retrievers = [name for name in kept if _kind(nodes[name]) == "retriever"]
    if not retrievers:
        raise DataError(f"{path}: no retriever of a corpus is wired to anything")
    seats: dict[str, Any] = {}  # any: a scenario's YAML
    folder = path.resolve().parent
    for name in sorted(retrievers):
        given = str(_params(nodes[name]).get("corpus_path", ""))
        at = next((one for one in (Path(given), folder / given) if one.is_file()), folder / given)
        seats[name] = f"dense:{at.resolve()}"
        encoder = _params(nodes[name]).get("model_id", "a transformer")
        notes.append(f"{name}: ranked by the lexical embedder, not by {encoder}")
    for one in config.generators:
        seats[one.id] = {"agent": _model(nodes[one.id]), "label": one.label}
    seats["judge"] = {"agent": "judge:ten", "options": {"model": _judge_model(path)}}
    tree: Tree = {
        "name": path.stem,
        "title": f"{path.name}, as in marketplace-eval",
        "family": "coupled",
        "seats": seats,
        "seeds": str(config.seed or 0),
        "market": {
            "horizon": config.horizon,
            "per_step": config.users_per_step,
            "ties": "configuration",
            "populations": {
                "users": {"role": "user", "count": config.users, "choose": USERS},
                "generators": {
                    "role": "generator",
                    "members": {
                        one.id: {"strategy": _strategy(nodes[one.id], one.id, edges, retrievers)}
                        for one in config.generators
                    },
                },
                **_routers(nodes, edges),
                "retrievers": {"role": "retriever", "members": sorted(retrievers)},
            },
            "edges": ["users -> generators", *(f"{a} -> {b}" for a, b in edges)],
        },
    }
    found = [at for at in (Path(config.questions), folder / config.questions) if at.is_file()]
    if config.questions and found:
        tree["market"]["questions"] = str(found[0].resolve())
    elif config.questions:
        notes.append(f"no question file at {config.questions}: questions without words")
    return tree, notes


def _routers(nodes: Mapping[str, Node], edges: Sequence[tuple[str, str]]) -> dict[str, Any]:
    used = {a for a, _ in edges} & {b for _, b in edges}
    members = {
        name: {
            "choose": {
                "policy": "epsilon_greedy",
                "parameter": _params(node).get("exploration_prob", 0.1),
            }
        }
        for name, node in nodes.items()
        if _kind(node) == "router" and name in used
    }
    return {"routers": {"role": "router", "members": members}} if members else {}


def _strategy(
    node: Node, name: str, edges: Sequence[tuple[str, str]], retrievers: Sequence[str]
) -> dict[str, Any]:
    """The package's naive planner calls every target once; the agentic one goes in rounds."""
    targets = [b for a, b in edges if a == name]
    given = _params(node).get("retrieval_strategy")
    if not targets:
        return {"kind": "none"}
    plan = given if isinstance(given, dict) else {}
    agentic = plan.get("type") == "agentic"
    many = plan.get("router_top_k", None if agentic else 1)
    return {
        "kind": "agentic" if agentic else "aggregate",
        "retrievers": len(targets),
        "router_top_k": many or len(retrievers),
        "documents": plan.get("documents_per_retriever", 3) or 100,
        "total": plan.get("max_context_documents"),
        "rounds": plan.get("max_rounds", 2),
        "calls": plan.get("max_retrieval_calls"),
        "enough": plan.get("target_num_documents"),
    }


def _model(node: Node) -> str:
    model = _params(node).get("model") or {}
    provider = str(model.get("provider") or model.get("type") or "")
    return f"{'openai' if provider == 'openai' else 'openrouter'}:{model.get('model_id', '')}"


def _judge_model(path: Path) -> str:
    judges = parse_yaml(path.read_text("utf-8", "replace"), str(path)).get("judges") or [{}]
    params = _params(judges[-1])
    provider = "openai" if params.get("provider") == "openai" else "openrouter"
    return f"{provider}:{params.get('model_id', '')}"


def _kind(node: Node) -> str:
    return str(node.get("type", "")).lower()


def _params(node: Node) -> Node:
    params = node.get("params")
    return params if isinstance(params, dict) else {}
