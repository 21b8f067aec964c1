"""The registry of components and the errors that name near misses."""

from __future__ import annotations

import json
import pickle

import pytest

from marketeval.core.errors import UnknownNameError, near_miss
from marketeval.core.registry import Registry, registered


def test_a_component_is_imported_when_its_name_is_asked_for():
    registry = Registry("coder", {"json": "json", "dumps": "json:dumps"})
    assert list(registry) == ["dumps", "json"]
    assert registry["json"] is json
    assert registry["dumps"] is json.dumps


def test_an_unknown_name_gets_its_near_miss_and_the_known_ones():
    registry = Registry("coder", {"json": "json", "pickle": "pickle"})
    with pytest.raises(UnknownNameError, match="unknown coder 'JSN'; did you mean 'json'"):
        registry["JSN"]
    with pytest.raises(LookupError, match="known: json, pickle"):
        registry["zzz"]


def test_a_component_can_be_added_at_run_time():
    registry: Registry[object] = Registry("coder", {})
    made = registered(registry, "mine")(object())
    assert registry["mine"] is made
    assert "mine" in registry
    assert "yours" not in registry


def test_near_misses_ignore_case_and_are_none_when_nothing_is_near():
    assert near_miss("hhi", ["HHI", "Gini"]) == "HHI"
    assert near_miss("qqqq", ["HHI", "Gini"]) is None


def test_an_unknown_name_reads_the_same_from_another_process():
    error = UnknownNameError("metric", "HIH", ["HHI", "Gini"])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (UnknownNameError, str(error))
