"""The package's configuration files: its shipped ones where they are at hand, and made-up ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marketeval.adapters.marketplace_eval import ReferenceGenerator, load_config
from marketeval.core.errors import DataError

SHIPPED = Path(__file__).parents[3] / "shared" / "data" / "marketplace_eval_configs"


def shipped(name: str) -> Path:
    path = SHIPPED / name
    if not path.exists():
        pytest.skip("the package's own configurations are not in ../shared/data")
    return path


def config(**changes: Any) -> dict[str, Any]:
    nodes = [{"id": "user_input", "type": "input"}, {"id": "a", "type": "Generator"}]
    nodes += [{"id": "b", "type": "generator", "introduce_from": 3, "params": {"name": "Bee"}}]  # type: ignore[list-item]
    return {"simulation": {}, "users": {}, "graph": {"nodes": nodes, "edges": []}} | changes


def written(folder: Path, content: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_the_shipped_simple_qa_configuration_is_read() -> None:
    found = load_config(shipped("simple_qa_simulation.yaml"))
    assert (found.horizon, found.total_num_users, found.users_per_step, found.seed) == (
        200, 10, 5, 42,
    )  # fmt: skip
    assert [one.label for one in found.generators] == [
        "Gemini-2.5-Flash-Lite",
        "Qwen3-235b-A22b-2507",
        "Kimi-K2.5",
        "GPT-OSS-120B",
        "DeepSeek-V3.2",
        "Llama-3.3-70b-Instruct",
        "Grok-4.1-Fast",
    ]
    assert {one.id: one.introduce_from for one in found.generators if one.introduce_from} == {
        "generator_qwen3_235b_a22b_2507": 100
    }
    assert found.questions == "user_data/simple_qa_test_subset_qid.csv"
    assert found.needs_model == ("judge simple_qa_judge (openai/gpt-4.1)",)
    assert (found.needs_retrieval, found.profiles, found.warnings) == ((), (), ())


def test_the_shipped_sample_configuration_names_what_needs_retrieval() -> None:
    found = load_config(shipped("sample_simulation.yaml"))
    assert found.needs_retrieval == (
        "router router_main",
        "retriever retriever_e5_base",
        "retriever retriever_e5_small",
        "retriever retriever_mini",
        "retriever retriever_google_web",
        "retrieval_strategy agentic of generator_qwen_2_5_7b_instruct",
        "retrieval_strategy naive of generator_gpt_oss_20b",
    )
    assert (found.horizon, found.users, found.users_per_step) == (1000, 100, 50)


def test_the_shipped_default_configuration_generates_its_questions() -> None:
    found = load_config(shipped("default.yaml"))
    assert (len(found.generators), found.horizon, found.questions) == (2, 100, "")


def test_what_is_left_out_has_the_packages_defaults(tmp_path: Path) -> None:
    found = load_config(written(tmp_path, config()))
    assert (found.horizon, found.total_num_users, found.users_per_step, found.seed) == (
        100, 10, 1, None,
    )  # fmt: skip
    assert found.generators == (ReferenceGenerator("a", "a", 0), ReferenceGenerator("b", "Bee", 3))


def test_json_with_comments_and_trailing_commas_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text('{"graph": {"nodes": [{"id": "a", "type": "generator",}]}, # so\n}')
    assert [one.id for one in load_config(path).generators] == ["a"]


def test_keys_without_effect_are_tolerated_and_named(tmp_path: Path) -> None:
    given = config(
        simulation={"epsilon": 0.5}, users={"patience": 3}, judges=[{"id": 1}, {"id": 2}]
    )
    assert load_config(written(tmp_path, given)).warnings == (
        "simulation.epsilon has no effect in marketplace-eval and is ignored",
        "users.patience has no effect in marketplace-eval and is ignored",
        "of 2 judges marketplace-eval uses the last only",
    )


def test_profiles_count_as_the_users(tmp_path: Path) -> None:
    profiles = [{"id": "ada", "generator_preferences": {"b": 2, "a": 1}}]
    found = load_config(written(tmp_path, config(users={"profiles": profiles})))
    assert found.users == 1
    assert found.profiles[0].preferences == (("b", 2.0), ("a", 1.0))


BAD: dict[str, Any] = {
    "got scenario, market": {"scenario": "late-entry", "market": {}},
    "got nothing": None,
    "keys and values in the file": [1, 2],
    "at least one node of type generator": config(graph={"nodes": []}),
    "a list in graph.nodes": config(graph={"nodes": {"a": 1}}),
    "one of input, output, generator, router, retriever": config(
        graph={"nodes": [{"id": "j", "type": "judge"}]}
    ),
    "an id of its own": config(graph={"nodes": [{"id": "a", "type": "generator"}] * 2}),
    "a step from 0 in a.introduce_from": config(
        graph={"nodes": [{"id": "a", "type": "generator", "introduce_from": -1}]}
    ),
    "every generator enters late": config(
        graph={"nodes": [{"id": "a", "type": "generator", "introduce_from": 5}]}
    ),
    "a whole number from 1 in simulation.horizon": config(simulation={"horizon": "long"}),
    "a whole number from 1 in simulation.users_per_step": config(simulation={"users_per_step": 0}),
    "a whole number or null in simulation.seed": config(simulation={"seed": 1.5}),
    "keys and values in users": config(users=[1]),
    "weights with a positive sum": config(
        users={"profiles": [{"id": "ada", "generator_preferences": {"b": 1}}]}
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_a_file_that_is_not_a_configuration_is_refused_in_one_line(
    message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_config(written(tmp_path, BAD[message]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"a: [1, 2", b"\xff\xfe\x00\x01", b"t,tau\n0,0\n"])
def test_a_file_that_is_no_yaml_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)
