"""Models by their short text: `openai:gpt-4.1`, `http://127.0.0.1:8000/v1#model`, `local:smollm2`.

Packages outside add kinds of endpoints through the entry point group `marketeval.model_providers`:
a function that takes the whole text and the name of the variable with the key, and gives a model.
"""

from __future__ import annotations

from collections.abc import Callable

from marketeval.core.errors import ScenarioError
from marketeval.core.registry import Registry
from marketeval.llm.client import Model

ModelMaker = Callable[[str, str], Model]

PROVIDERS: Registry[ModelMaker] = Registry(
    "model provider",
    {
        "openai": "marketeval.llm.registry:openai",
        "openrouter": "marketeval.llm.registry:openrouter",
        "http": "marketeval.llm.registry:own_endpoint",
        "https": "marketeval.llm.registry:own_endpoint",
        "local": "marketeval.llm.registry:local",
    },
    plural="model_providers",
)


def make_model(text: str, *, key_variable: str = "") -> Model:
    """The model that a short text names; nothing is connected and no key is read yet."""
    prefix, colon, _ = text.partition(":")
    if not colon:
        raise ScenarioError(
            f"expected a model such as openai:MODEL or http://HOST/v1#MODEL, got '{text}'"
        )
    return PROVIDERS[prefix](text, key_variable)


def openai(text: str, key_variable: str) -> Model:
    """`openai:MODEL`, with the key in OPENAI_API_KEY."""
    return _known("openai", text, key_variable)


def openrouter(text: str, key_variable: str) -> Model:
    """`openrouter:MODEL`, with the key in OPENROUTER_API_KEY."""
    return _known("openrouter", text, key_variable)


def own_endpoint(text: str, key_variable: str) -> Model:
    """`http://HOST/v1#MODEL`, with a key in MARKETEVAL_API_KEY where one is needed."""
    from marketeval.llm.openai_compatible import endpoint_model

    return endpoint_model(text, key_variable=key_variable)


def local(text: str, key_variable: str) -> Model:
    """`local:smollm2`: the small model of the extra `local`, served by this very process."""
    from marketeval.llm.local import local_model

    return local_model(text.partition(":")[2])


def _known(provider: str, text: str, key_variable: str) -> Model:
    from marketeval.llm.openai_compatible import provider_model

    return provider_model(provider, text.partition(":")[2], key_variable=key_variable)
