"""The application: every route once, as it is answered and as OpenAPI documents it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from marketeval import __version__
from marketeval.apps.server import additions, protocol
from marketeval.apps.server.calls import Answer, Call, Stop
from marketeval.apps.server.gate import Endpoint, Gate, opened
from marketeval.apps.server.service import PARAMETERS, Service

Schema = dict[str, Any]  # any: JSON Schema
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_OBJECT: Schema = {"type": "object"}
_AGENT: Schema = {
    "type": "object",
    "required": ["agent"],
    "properties": {
        "agent": {
            "type": "object",
            "required": ["id"],
            "properties": {"id": _TEXT, "metadata": _OBJECT},
        }
    },
}
_LOG: Schema = {
    "type": "object",
    "required": ["log"],
    "properties": {
        "log": {
            "type": "object",
            "required": ["level", "name"],
            "properties": {
                "level": {"enum": list(protocol.LEVELS)},
                "name": _TEXT,
                "message": {"type": ["string", "null"]},
                "metadata": _OBJECT,
            },
        }
    },
}
_TICK: Schema = {
    "type": "object",
    "required": ["tick"],
    "properties": {"tick": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}},
}


def _envelope() -> Schema:
    return {
        "type": "object",
        "required": ["name", "parameters"],
        "properties": {"name": _TEXT, "parameters": _action(), "metadata": _OBJECT},
    }


def _action() -> Schema:
    """The three actions, with their definitions inlined, since they stand within a document."""
    made: Schema = _inlined(PARAMETERS.json_schema())
    return made


def _inlined(tree: Any, known: Mapping[str, Any] | None = None) -> Any:  # any: JSON Schema
    if isinstance(tree, list):
        return [_inlined(one, known) for one in tree]
    if not isinstance(tree, dict):
        return tree
    known = tree.get("$defs", known) or {}
    if "$ref" in tree:
        return _inlined(known[tree["$ref"].rpartition("/")[2]], known)
    dropped = ("$defs", "discriminator")
    return {name: _inlined(one, known) for name, one in tree.items() if name not in dropped}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route: how it is answered, and what its caller should know."""

    method: str
    path: str
    endpoint: Endpoint
    tag: str
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    headers: Sequence[str] = ()
    errors: Sequence[int] = ()
    kind: str = "application/json"


_WHO = ("X-Agent-Id", "Authorization")
ROUTES: Sequence[Route] = (
    Route(method="GET", path="/health", endpoint=protocol.health, tag="protocol", errors=(503,)),
    Route(
        method="POST", path="/agents/register", endpoint=protocol.register, tag="protocol",
        body=_AGENT, headers=("Authorization", "X-Registration-Token"), errors=(403, 422, 503),
    ),
    Route(
        method="GET", path="/agents", endpoint=protocol.agents, tag="protocol",
        query={"offset": _COUNT, "limit": {**_COUNT, "minimum": 1}}, errors=(422,),
    ),
    Route(
        method="GET", path="/agents/{id:path}", endpoint=protocol.agent, tag="protocol",
        errors=(404,),
    ),
    Route(
        method="GET", path="/actions/protocol", endpoint=protocol.describe, tag="protocol"
    ),
    Route(
        method="POST", path="/actions/execute", endpoint=protocol.execute, tag="protocol",
        body=_envelope(), headers=(*_WHO, "Idempotency-Key"), errors=(401, 409, 413, 422, 503),
    ),
    Route(
        method="POST", path="/logs/create", endpoint=protocol.create_log, tag="protocol",
        body=_LOG, headers=("Authorization",), errors=(401, 413, 422, 503),
    ),
    Route(
        method="GET", path="/logs", endpoint=protocol.logs, tag="protocol",
        query={
            "after": _MOMENT, "before": _MOMENT, "offset": _COUNT,
            "limit": {**_COUNT, "minimum": 1},
        },
        headers=("Authorization",), errors=(401, 403, 422, 503),
    ),
    Route(
        method="POST", path="/v1/actions", endpoint=additions.act_, tag="v1", body=_action(),
        headers=(*_WHO, "Idempotency-Key"), errors=(401, 409, 413, 422, 503),
    ),
    Route(
        method="GET", path="/v1/messages", endpoint=additions.messages, tag="v1",
        query={"after_index": _COUNT, "limit": {**_COUNT, "minimum": 1}, "wait": _COUNT},
        headers=_WHO, errors=(401, 422, 503),
    ),
    Route(
        method="GET", path="/v1/events", endpoint=additions.events, tag="v1",
        query={"after_index": _COUNT}, headers=(*_WHO, "Last-Event-ID"), errors=(401, 422),
        kind="text/event-stream",
    ),
    Route(
        method="GET", path="/v1/view", endpoint=additions.view, tag="v1", headers=_WHO,
        errors=(401, 503),
    ),
    Route(
        method="GET", path="/v1/metrics", endpoint=additions.metrics, tag="v1", errors=(503,)
    ),
    Route(
        method="POST", path="/v1/clock", endpoint=additions.clock, tag="v1", body=_TICK,
        headers=("Authorization",), errors=(403, 409, 422, 503),
    ),
)  # fmt: skip
_WORDS = {
    401: "nobody known calls", 403: "not allowed", 404: "not found", 408: "too slow",
    409: "it does not fit what was before", 413: "the body is too large", 422: "not readable",
    429: "too many requests", 503: "nothing can be stored now; nothing was done",
}  # fmt: skip


def application(service: Service) -> Gate:
    """The server's application, limits included."""
    app = FastAPI(
        title="marketeval: a two-sided marketplace",
        version=__version__,
        redirect_slashes=False,
        description=(
            "Agents register, search, write to each other, propose and pay. The routes at the root "
            "are those of the Magentic Marketplace; those under /v1 are additions."
        ),
    )
    for route in ROUTES:
        _add(app, route, service)
    often = {(one.method, one.path): one.endpoint for one in ROUTES if "{" not in one.path}
    gate = Gate(app, service, often, opened(service.settings.access_log))

    async def counted(service: Service, call: Call) -> Answer:
        return Answer(200, _numbers(gate, service).encode(), kind="text/plain; version=0.0.4")

    often["GET", "/metrics"] = counted
    return gate


def _add(app: FastAPI, route: Route, service: Service) -> None:
    async def handler(request: Request) -> Response:
        call: Call = request.scope["marketeval.call"]
        call.values = request.path_params
        try:
            answer = await route.endpoint(service, call)
        except Stop as stop:
            answer = stop.answer()
        return Response(answer.body, answer.status, dict(answer.headers), answer.kind)

    lines = (route.endpoint.__doc__ or "").strip()
    extra: Schema = {
        "parameters": [
            *(
                {"name": name, "in": "query", "required": False, "schema": schema}
                for name, schema in route.query.items()
            ),
            *(
                {"name": name, "in": "header", "required": False, "schema": _TEXT}
                for name in route.headers
            ),
            *(
                [{"name": "id", "in": "path", "required": True, "schema": _TEXT}]
                if "{id" in route.path
                else []
            ),
        ]
    }
    if route.body is not None:
        content = {"application/json": {"schema": route.body}}
        extra["requestBody"] = {"required": True, "content": content}
    app.add_api_route(
        route.path,
        handler,
        methods=[route.method],
        summary=lines.splitlines()[0].rstrip("."),
        description=lines,
        tags=[route.tag],
        operation_id=f"{route.method.lower()}_{route.path.strip('/').replace('/', '_')}",
        response_class=Response,
        responses={
            200: {"description": "done", "content": {route.kind: {}}},
            **{code: {"description": _WORDS[code]} for code in (*route.errors, 400, 408, 413, 429)
               if code in _WORDS},
            400: {"description": "the request broke off"},
        },
        openapi_extra=extra,
    )  # fmt: skip


def _numbers(gate: Gate, service: Service) -> str:
    """The counters in Prometheus's text form."""
    counters, host = gate.counters, service.host
    lines = ["# TYPE marketeval_requests_total counter"]
    for (method, route, status), count in sorted(counters.requests.items()):
        labels = f'method="{method}",route="{route}",status="{status}"'
        lines.append(f"marketeval_requests_total{{{labels}}} {count}")
    single: Mapping[str, tuple[str, float]] = {
        "request_seconds_total": ("counter", round(counters.seconds, 6)),
        "open_requests": ("gauge", counters.open),
        "rows": ("gauge", host.state.rows),
        "agents": ("gauge", len(host.documents)),
        "commits_total": ("counter", host.tally.commits),
        "lines_total": ("counter", host.tally.lines),
        "commit_failures_total": ("counter", host.tally.failures),
        "repeated_total": ("counter", host.tally.repeated),
        "down": ("gauge", int(bool(host.down))),
    }
    for name, (kind, value) in single.items():
        lines += [f"# TYPE marketeval_{name} {kind}", f"marketeval_{name} {value}"]
    return "\n".join(lines) + "\n"
