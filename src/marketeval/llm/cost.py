"""What a call costs: genai-prices' bundled table, or the caller's own. Unknown is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from marketeval.core.errors import UsageError
from marketeval.llm.client import Completion, Model

MILLION = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model; `own` is keyed by the model's name, or by `ENDPOINT#NAME` where endpoints
    differ, and goes before the bundled table."""

    own: Mapping[str, Price] = field(default_factory=dict)

    def cost(self, model: Model, completion: Completion) -> float | None:
        """Dollars for a completion; None where the price or the usage is unknown."""
        if completion.input_tokens is None or completion.output_tokens is None:
            return 0.0 if model.endpoint == "local" else None
        return self._of(
            model, completion.input_tokens, completion.output_tokens, completion.cached_tokens or 0
        )

    def at_most(self, model: Model, *, input_tokens: int, output_tokens: int) -> float | None:
        """Dollars that a call with at most so many tokens costs at most; None if unpriced."""
        return self._of(model, input_tokens, output_tokens, 0)

    def _of(self, model: Model, inputs: int, outputs: int, cached: int) -> float | None:
        if model.endpoint == "local":  # runs on this machine: nobody bills it
            return 0.0
        own = self.own.get(f"{model.endpoint}#{model.name}") or self.own.get(model.name)
        if own is not None:
            return (inputs * own.input + outputs * own.output) / MILLION
        if "://" in model.endpoint:  # someone's own server: a like-named model tells nothing
            return None
        return _bundled(model.endpoint, model.name, inputs, outputs, cached)


@lru_cache(maxsize=4096)
def _bundled(provider: str, name: str, inputs: int, outputs: int, cached: int) -> float | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        raise UsageError("prices need the extra llm: pip install 'marketeval[llm]'") from None
    usage = Usage(input_tokens=inputs, output_tokens=outputs, cache_read_tokens=min(cached, inputs))
    try:
        return float(calc_price(usage, name, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None
