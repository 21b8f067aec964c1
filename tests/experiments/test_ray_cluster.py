"""A sweep on a real Ray cluster of two nodes on this machine, one of which is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marketeval.experiments.executors import EXECUTORS, Serial
from marketeval.experiments.scenario import Tree
from marketeval.experiments.sweep import sweep

ray = pytest.importorskip("ray", reason="needs pip install 'marketeval[ray]'")
pytestmark = pytest.mark.slow
GRID = {"market.choice.epsilon": [0.1, 0.2, 0.3, 0.4], "market.users.population": [5, 10, 20]}
SEEDS = list(range(1, 5))


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes of one core each; this process is connected to the first."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    ray.init(address=made.address, log_to_driver=False)
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def test_a_node_that_is_killed_loses_no_cell_and_changes_no_result(
    tree: Tree, tmp_path: Path, cluster: Any
) -> None:
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if done >= 4 and not killed:
            killed.append(done)
            cluster.remove_node(doomed, allow_graceful=False)

    one, two = tmp_path / "serial", tmp_path / "cluster"
    serial = sweep(tree, GRID, one, seeds=SEEDS, keep="log", executor=Serial())
    spread = sweep(
        tree, GRID, two, seeds=SEEDS, keep="log", executor=EXECUTORS["ray"](), progress=kill
    )
    assert killed
    assert spread.equals(serial)
    tables = sorted(path.relative_to(one) for path in one.rglob("*.parquet"))
    assert tables == sorted(path.relative_to(two) for path in two.rglob("*.parquet"))
    for table in tables:
        assert (one / table).read_bytes() == (two / table).read_bytes(), table


def test_an_error_of_a_task_is_the_error_itself(cluster: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        list(EXECUTORS["ray"]().map(lambda number: 1 / number, [1, 0]))
