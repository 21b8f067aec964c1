"""Results as the reference protocol writes them: content, is_error, metadata."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from marketeval.actions import two_sided as act
from marketeval.markets.two_sided.rules import EPOCH
from marketeval.markets.two_sided.state import Found, Mail, Refused, Registered, Result, Sent

Json = dict[str, Any]  # any: parsed JSON


def result_document(result: Result, caller: str) -> Json:
    """The body of an answer to `POST /actions/execute` (specification, sections 2 and 3)."""
    if isinstance(result, Refused):
        return {"content": _refusal(result), "is_error": True, "metadata": {}}
    if isinstance(result, Sent):
        content: Json = act.plain(result.action)
        return {"content": content, "is_error": False, "metadata": {"status": "sent"}}
    if isinstance(result, Mail):
        content = {
            "messages": [heard_document(one, caller) for one in result.messages],
            "has_more": result.has_more,
        }
    elif isinstance(result, Found):
        content = {
            "businesses": [act.profile_document(one) for one in result.businesses],
            "search_algorithm": result.rule,
            "total_possible_results": result.total,
            "total_pages": result.pages,
        }
    else:
        assert isinstance(result, Registered)  # the only kind left
        content = {"id": result.id}
    return {"content": content, "is_error": False, "metadata": {}}


def heard_document(one: act.Heard, to: str) -> Json:
    """A message as its reader fetches it; `created_at` is the market's clock."""
    return {
        "from_agent_id": one.sender,
        "to_agent_id": to,
        "created_at": moment(one.at),
        "message": act.plain(one.message),
        "index": one.index,
    }


def moment(tick: int) -> str:
    """The timestamp of a tick, with +00:00."""
    return (EPOCH + timedelta(seconds=tick)).isoformat()


def _refusal(result: Refused) -> Json:
    if result.reason == "unknown_recipient":
        return {"error": result.words}
    if result.reason in ("unknown_proposal", "expired"):
        return {"error_type": "invalid_proposal", "message": result.words}
    return {"error_type": result.reason, "message": result.words}
