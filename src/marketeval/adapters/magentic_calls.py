"""Model calls as the log documents of the Magentic Marketplace (`data.type` is `llm_call`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from marketeval.experiments.exchanges import Exchange
from marketeval.llm.client import Message
from marketeval.llm.recorded_calls import RecordedCall

Json = dict[str, Any]  # any: parsed JSON


def call_documents(said: Iterable[Exchange]) -> Iterator[tuple[int, Json]]:
    """Every call with the round of its decision, in the order of the decisions."""
    for one in said:
        for call in one.calls:
            yield one.round, _document(one.agent, call)


def statistics(documents: Iterable[Json]) -> Json:
    """The reference's keys on model calls, from log documents of any kind."""
    calls = [one["data"] for one in documents if is_call(one)]
    return {
        "llm_providers": sorted({str(one.get("provider")) for one in calls}),
        "llm_models": sorted({str(one.get("model")) for one in calls}),
        "total_llm_calls": len(calls),
        "failed_llm_calls": sum(not one.get("success", True) for one in calls),
    }


def is_call(document: Json) -> bool:
    """Whether a log document tells of a model call."""
    return (document.get("data") or {}).get("type") == "llm_call"


def _document(agent: str, call: RecordedCall) -> Json:
    system = [Message("system", call.system)] if call.system else []
    tokens = [call.input_tokens, call.output_tokens]
    return {
        "level": "debug",
        "name": agent,
        "message": "LLM call",
        "data": {
            "type": "llm_call",
            "success": call.response is not None,
            "provider": call.endpoint,
            "model": call.model,
            "duration_ms": round(call.latency_s * 1000, 3),
            "token_count": None if None in tokens else sum(one or 0 for one in tokens),
            "error_message": call.reason or None,
            "prompt": [
                {"role": one.role, "content": one.text} for one in (*system, *call.messages)
            ],
            "response": _parsed(call.response),
            "response_format": call.schema,
            "api_args": dict(call.parameters),
        },
        "metadata": {"agent_id": agent},
    }


def _parsed(text: str | None) -> Json | str:
    """The decision as an object where the reply is one, else the reply as it stands."""
    try:
        tree = json.loads(text or "")
    except ValueError:
        return text or ""
    return tree if isinstance(tree, dict) else text or ""
