"""What retrieved evidence is worth: a ranking measure of ir_measures against judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import ScenarioError, UsageError

Wanted = tuple[str, tuple[str, ...]]  # a topic and its documents, best first


class Relevance:
    """A measure such as `nDCG@10` over fixed judgments; what was measured once is remembered.

    Raises UsageError where ir_measures is not installed, ScenarioError for an unknown measure.
    """

    def __init__(self, qrels: Mapping[str, Mapping[str, int]], measure: str) -> None:
        try:
            import ir_measures
        except ImportError:
            raise UsageError(
                "ranking measures need ir_measures; install it with pip install 'marketeval[ir]'"
            ) from None
        try:
            self._measure: Any = ir_measures.parse_measure(measure)  # any: it has no types
            self._evaluator: Any = ir_measures.evaluator(  # any: as above
                [self._measure], {topic: dict(of) for topic, of in qrels.items()}
            )
        except (NameError, ValueError, SyntaxError, KeyError, TypeError) as error:
            raise ScenarioError(
                f"expected a measure that ir_measures knows, such as nDCG@10 or AP@100, got "
                f"'{measure}' ({error})"
            ) from None
        self.measure = str(self._measure)
        self.topics = frozenset(qrels)
        self._known: dict[Wanted, float] = {}

    def of(self, wanted: Sequence[Wanted]) -> NDArray[np.float64]:
        """The measure of each ranking; 0 where nothing was retrieved. Shape (rankings,)."""
        new = [one for one in dict.fromkeys(wanted) if one not in self._known]
        while new:  # one ranking of a topic at a time
            batch: dict[str, tuple[str, ...]] = {}
            later = []
            for topic, documents in new:
                if topic in batch:
                    later.append((topic, documents))
                else:
                    batch[topic] = documents
            self._measure_all(batch)
            new = later
        return np.array([self._known[one] for one in wanted], np.float64)

    def _measure_all(self, batch: Mapping[str, tuple[str, ...]]) -> None:
        for topic, documents in batch.items():
            self._known[topic, documents] = 0.0
        run = {
            topic: {name: float(len(documents) - place) for place, name in enumerate(documents)}
            for topic, documents in batch.items()
            if documents and topic in self.topics
        }
        if not run:
            return
        for found in self._evaluator.iter_calc(run):
            if found.query_id in run:
                value = min(max(float(found.value), 0.0), 1.0)
                self._known[found.query_id, batch[found.query_id]] = value
