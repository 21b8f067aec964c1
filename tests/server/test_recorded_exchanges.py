"""A recorded exchange per route: what was sent and what was answered, on every kind of store.

`python tests/server/test_recorded_exchanges.py` records anew; look at the difference before you
commit it, since an answer that changed is a protocol that changed.
"""

from __future__ import annotations

import json
from pathlib import Path

from real_servers import ANN, BY_OPERATOR, OPERATOR, TACO, Served, offer, pay, send, text

FILE = Path(__file__).with_name("exchanges.json")
OPTIONS = ("--rules", "compatible", "--clock", "logical")
SEARCH = {
    "type": "search", "query": "taco", "search_algorithm": "lexical", "constraints": None,
    "limit": 10, "page": 1, "metadata": {},
}  # fmt: skip
FETCH = dict.fromkeys(("from_agent_id", "limit", "offset", "after", "after_index"))


def executed(name, parameters):
    return {"name": name, "parameters": parameters, "metadata": {}}


# Route, method, path, body, headers; played in this order in an empty market.
ASKED = [
    ("/health", "GET", "/health", None, {}),
    ("/agents/register", "POST", "/agents/register", {"agent": TACO}, {}),
    ("/agents/register", "POST", "/agents/register", {"agent": ANN}, {}),
    ("/agents", "GET", "/agents?offset=1&limit=1", None, {}),
    ("/agents/{id:path}", "GET", "/agents/business_1", None, {}),
    ("/agents/{id:path}", "GET", "/agents/nobody", None, {}),
    ("/actions/protocol", "GET", "/actions/protocol", None, {}),
    *(
        ("/actions/execute", "POST", "/actions/execute", executed(name, parameters), who)
        for name, parameters, who in (
            ("Search", SEARCH, {"X_Agent_Id": "customer_1"}),
            ("SendMessage", send("customer_1", "business_1", text("hi"), metadata={}),
             {"X_Agent_Id": "customer_1"}),
            ("FetchMessages", {"type": "fetch_messages", **FETCH, "metadata": {}},
             {"X_Agent_Id": "business_1"}),
            ("SendMessage", send("business_1", "customer_1", offer("p1")),
             {"X_Agent_Id": "business_1"}),
            ("SendMessage", send("customer_1", "business_1", pay("p1")),
             {"X_Agent_Id": "customer_1"}),
            ("SendMessage", send("customer_1", "business_1", pay("p2")),
             {"X_Agent_Id": "customer_1"}),
            ("SendMessage", send("customer_1", "ghost", text("hi")), {"X_Agent_Id": "customer_1"}),
            ("SendMessage", send("customer_1", "business_1", text("hi")), {}),
        )
    ),
    ("/logs/create", "POST", "/logs/create",
     {"log": {"level": "info", "name": "customer_1", "message": "m", "data": {"a": 1},
              "metadata": {"agent_id": "customer_1"}}}, {}),
    ("/logs", "GET", "/logs?offset=0&limit=10", None, {}),
    ("/v1/clock", "POST", "/v1/clock", {"tick": 60}, BY_OPERATOR),
    ("/v1/actions", "POST", "/v1/actions", send("customer_1", "business_1", text("again")),
     {"X_Agent_Id": "customer_1", "Idempotency_Key": "k1"}),
    ("/v1/actions", "POST", "/v1/actions", send("customer_1", "business_1", text("again")),
     {"X_Agent_Id": "customer_1", "Idempotency_Key": "k1"}),
    ("/v1/messages", "GET", "/v1/messages?after_index=5&wait=1", None,
     {"X_Agent_Id": "business_1"}),
    ("/v1/view", "GET", "/v1/view", None, {"X_Agent_Id": "customer_1"}),
    ("/v1/metrics", "GET", "/v1/metrics", None, {}),
]  # fmt: skip


def play(database: str) -> list[dict]:
    with Served(database, *OPTIONS, **OPERATOR) as server:
        return [
            {
                "route": route, "method": method, "path": path, "body": body, "headers": headers,
                "status": reply.status, "type": reply.headers["content-type"],
                "answer": reply.json,
            }
            for route, method, path, body, headers in ASKED
            for reply in [server.ask(method, path, body, **headers)]
        ]  # fmt: skip


def test_every_exchange_is_as_recorded(database):
    assert play(database) == json.loads(FILE.read_text("utf-8"))


def test_an_exchange_is_recorded_for_every_route():
    from marketeval.apps.server.app import ROUTES

    recorded = {one["route"] for one in json.loads(FILE.read_text("utf-8"))}
    assert recorded == {one.path for one in ROUTES} - {"/v1/events"}  # a stream: tested apart


if __name__ == "__main__":
    FILE.write_text(json.dumps(play("memory:"), indent=1, ensure_ascii=False) + "\n", "utf-8")
