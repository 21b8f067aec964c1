"""The work of many machines: Ray's tasks. The only file that imports Ray (`[ray]`).

All machines must see the output folder under the same path. Ray begins a task again whose worker
or machine has died; since pieces are pure functions, that changes no result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from marketeval.core.errors import RunError, UsageError
from marketeval.core.threads import limited

Work = TypeVar("Work")
Result = TypeVar("Result")
TRIES = 5  # after the first


class Ray:
    """Tasks on the cluster that RAY_ADDRESS names, or on this machine; one core each."""

    processes = True

    def __init__(self) -> None:
        try:
            import ray
        except ImportError:
            raise UsageError("--executor ray needs Ray: pip install 'marketeval[ray]'") from None
        self._ray: Any = ray  # any: Ray publishes no types for what is used here

    def map(
        self, function: Callable[[Work], Result], work: Sequence[Work]
    ) -> Generator[Result, None, None]:
        """Yield results as they come; on an error, call the other tasks off."""
        ray = self._ray
        if not work:
            return
        if not ray.is_initialized():
            address = os.environ.get("RAY_ADDRESS")
            ray.init(address=address, include_dashboard=False, log_to_driver=False)
        task = ray.remote(num_cpus=1, max_retries=TRIES)(alone)
        open_ = [task.remote(function, piece) for piece in work]
        try:
            while open_:
                done, open_ = ray.wait(open_, num_returns=1)
                yield self._result(done[0])
        finally:
            for one in open_:
                ray.cancel(one, force=True)

    def _result(self, done: Any) -> Any:  # any: as above
        ray = self._ray
        try:
            return ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[0]
            raise RunError(f"a task died {TRIES + 1} times: {first}") from None


def alone(function: Callable[[Work], Result], piece: Work) -> Result:
    """A piece of work on one thread."""
    with limited(1):
        return function(piece)
