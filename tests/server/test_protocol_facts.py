"""The facts that the specification (section 18) asks of a re-implementation, over real HTTP.

Each test carries the number of its fact; all run on memory, SQLite and PostgreSQL.
"""

from __future__ import annotations

import re
import socket
import time
import uuid

import pytest
from real_servers import ANN, TACO, Served, as_agent, offer, pay, profile, send, text

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")


@pytest.fixture
def pair(compatible):
    """A new customer and a new business, registered."""
    end = uuid.uuid4().hex[:8]
    ann, taco = profile(f"customer_{end}"), profile(f"business_{end}", like=TACO)
    assert compatible.register(ann).status == compatible.register(taco).status == 200
    return ann["id"], taco["id"]


def fetch(server, agent, **more):
    return server.execute(agent, {"type": "fetch_messages", **more}).json["content"]


# ---- 1: routes, envelopes, list fields, defaults, status codes, at the root


def test_1_health(compatible):
    reply = compatible.ask("GET", "/health")
    assert (reply.status, reply.json) == (200, {"status": "healthy"})


def test_1_lists_have_the_envelope_and_page_from_an_offset(compatible, pair):
    whole = compatible.ask("GET", "/agents").json
    assert set(whole) == {"error", "total", "offset", "limit", "has_more", "items"}
    assert (whole["error"], whole["offset"], whole["limit"], whole["has_more"]) == (
        None, 0, None, False,
    )  # fmt: skip
    assert whole["total"] == len(whole["items"]) >= 2
    page = compatible.ask("GET", f"/agents?offset={whole['total'] - 2}&limit=2").json
    assert page["items"] == whole["items"][-2:]
    assert page["has_more"] is True  # an exactly full last page claims more, as in the reference
    assert compatible.ask("GET", "/agents?offset=5000&limit=3").json["has_more"] is False


@pytest.mark.parametrize("query", ["limit=0", "offset=-1", "limit=x", "offset=1.5"])
def test_1_a_page_that_is_none_is_422(compatible, query):
    reply = compatible.ask("GET", f"/agents?{query}")
    assert reply.status == 422
    assert {"type", "loc", "msg", "input"} <= set(reply.json["detail"][0])


def test_1_unknown_agents_and_methods(compatible):
    missing = compatible.ask("GET", "/agents/nobody")
    assert (missing.status, missing.json) == (404, {"detail": "Agent not found"})
    for method in ("DELETE", "PUT", "PATCH"):
        assert compatible.ask(method, "/agents").status == 405


def test_1_logs_are_kept_and_listed_between_two_moments(compatible):
    name = uuid.uuid4().hex
    log = {"level": "debug", "name": name, "data": {"type": "llm_call", "a": 1}, "more": 2}
    made = compatible.ask("POST", "/logs/create", {"log": log})
    assert (made.status, made.json) == (200, {"error": None})
    listed = compatible.ask("GET", "/logs").json
    assert set(listed) == {"error", "total", "offset", "limit", "has_more", "items"}
    assert listed["items"][-1] == {**log, "message": None, "metadata": {}}
    future = compatible.ask("GET", "/logs?after=2100-01-01T00:00:00Z").json
    assert (future["items"], future["total"]) == ([], listed["total"])  # the total is of them all
    assert compatible.ask("GET", "/logs?before=2100-01-01T00:00:00%2B00:00").json["items"]
    assert compatible.ask("GET", "/logs?limit=1").json["has_more"] is True


@pytest.mark.parametrize("log", [{"level": "loud", "name": "n"}, {"level": "info"}, "text", None])
def test_1_a_log_that_is_none_is_422(compatible, log):
    assert compatible.ask("POST", "/logs/create", {"log": log}).status == 422


@pytest.mark.parametrize("moment", ["2025-01-01T00:00:00", "yesterday"])
def test_1_a_moment_without_zone_is_422_where_the_reference_fails(compatible, moment):
    assert compatible.ask("GET", f"/logs?after={moment}").status == 422


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"parameters": {}}', b'{"name": 1, "parameters": {}}',
             b'{"name": "x"}', b'{"name": "x", "parameters": []}']
)  # fmt: skip
def test_1_an_envelope_that_is_none_is_422(compatible, pair, body):
    reply = compatible.ask("POST", "/actions/execute", body, X_Agent_Id=pair[0])
    assert reply.status == 422
    assert {"type", "loc", "msg"} <= set(reply.json["detail"][0])


def test_1_openapi_documents_every_route(compatible):
    paths = compatible.ask("GET", "/openapi.json").json["paths"]
    assert {"/health", "/agents/register", "/agents", "/agents/{id}", "/actions/protocol",
            "/actions/execute", "/logs/create", "/logs", "/v1/actions", "/v1/messages",
            "/v1/events", "/v1/view", "/v1/metrics", "/v1/clock"} == set(paths)  # fmt: skip
    assert compatible.ask("GET", "/docs").status == 200


# ---- 2: who calls


def test_2_the_caller_is_named_by_a_header_in_any_case(compatible, pair):
    body = {"name": "FetchMessages", "parameters": {"type": "fetch_messages"}, "metadata": {}}
    nobody = compatible.ask("POST", "/actions/execute", body)
    assert (nobody.status, nobody.json) == (401, {"detail": "X-Agent-Id header required"})
    unknown = compatible.ask("POST", "/actions/execute", body, X_Agent_Id="ghost")
    assert (unknown.status, unknown.json) == (401, {"detail": "Invalid agent ID"})
    for name in ("x-agent-id", "X-AGENT-ID"):
        assert compatible.ask("POST", "/actions/execute", body, **{name: pair[0]}).status == 200


def test_2_older_clients_get_a_token_and_an_id_with_a_number(database):
    with Served(database, "--rules", "compatible", "--older-clients") as server:
        first, second = server.register(ANN).json, server.register(ANN).json
        assert first["agent"]["id"] == "customer_1-0"
        assert second["agent"]["id"] == "customer_1-1"
        uuid.UUID(first["token"])
        body = {"name": "x", "parameters": send("customer_1-0", "customer_1-1", text("hello"))}
        sent = server.ask("POST", "/actions/execute", body, **as_agent(first["token"]))
        assert sent.json["metadata"] == {"status": "sent"}
        body["parameters"] = {"type": "fetch_messages"}
        got = server.ask("POST", "/actions/execute", body, **as_agent(second["token"])).json
        assert got["content"]["messages"][0]["message"]["content"] == "hello"
        assert server.ask("POST", "/actions/execute", body, **as_agent("wrong")).status == 401
        assert server.ask("POST", "/actions/execute", body).status == 401


# ---- 3: registration


def test_3_registration_keeps_the_id_and_unknown_keys(compatible):
    document = {**profile("customer_keys"), "extra": {"kept": [1, 2]}}
    reply = compatible.register(document)
    assert (reply.status, reply.json) == (200, {"error": None, "id": "customer_keys"})
    kept = compatible.ask("GET", "/agents/customer_keys").json
    assert kept == {"error": None, "agent": document}


def test_3_registering_again_replaces_the_document_in_its_place(compatible):
    compatible.register(profile("agent_again"))
    order = [one["id"] for one in compatible.ask("GET", "/agents").json["items"]]
    compatible.register(profile("agent_again", like=TACO))  # a customer turns into a business
    assert "business" in compatible.ask("GET", "/agents/agent_again").json["agent"]
    assert [one["id"] for one in compatible.ask("GET", "/agents").json["items"]] == order


@pytest.mark.parametrize("agent", [{}, {"metadata": {}}, {"id": 3}, {"id": "a", "metadata": 3}, 4])
def test_3_a_document_without_an_id_is_422(compatible, agent):
    assert compatible.register(agent).status == 422


def test_3_an_empty_id_gets_one(compatible):
    made = compatible.register({"id": "", "metadata": {}}).json["id"]
    uuid.UUID(made)
    assert compatible.ask("GET", f"/agents/{made}").status == 200


def test_3_any_agent_may_enter_and_be_written_to(compatible, pair):
    compatible.register({"id": "observer", "metadata": {"type": "other"}})
    compatible.execute(pair[0], send(pair[0], "observer", text("hello")))
    assert fetch(compatible, "observer")["messages"]


# ---- 4: dispatch


def test_4_the_type_decides_and_the_name_does_not(compatible, pair):
    ann, taco = pair
    body = {"name": "Whatever", "parameters": send(ann, taco, text("hi"))}
    reply = compatible.ask("POST", "/actions/execute", body, X_Agent_Id=ann)
    assert reply.json["metadata"] == {"status": "sent"}
    assert fetch(compatible, taco)["messages"][0]["message"] == text("hi")


def test_4_missing_optional_fields_and_nulls_are_taken(compatible, pair):
    ann, taco = pair
    nulls = dict.fromkeys(("from_agent_id", "limit", "offset", "after", "after_index"))
    assert not compatible.execute(ann, {"type": "fetch_messages", **nulls}).json["is_error"]
    bare = send(ann, taco, text("hi"))
    del bare["created_at"]
    assert not compatible.execute(ann, bare).json["is_error"]
    search = {"type": "search", "query": "taco", "search_algorithm": "simple", "constraints": None}
    assert not compatible.execute(ann, search).json["is_error"]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"type": "dance"}, {"type": "send_message"}, {"type": "search", "query": "x"},
     {"type": "search", "query": "x", "search_algorithm": "best"},
     {"type": "fetch_messages", "after": "2025-01-01T00:00:00"}]
)  # fmt: skip
def test_4_bad_parameters_are_an_error_in_words_and_are_not_stored(compatible, pair, parameters):
    before = compatible.ask("GET", "/v1/metrics").json["rows"]
    reply = compatible.execute(pair[0], parameters)
    assert reply.status == 200
    assert reply.json["is_error"] is True
    assert isinstance(reply.json["content"], str)
    assert compatible.ask("GET", "/v1/metrics").json["rows"] == before


# ---- 5 and 6: what sending answers


def test_5_an_unknown_recipient(compatible, pair):
    reply = compatible.execute(pair[0], send(pair[0], "ghost", text("hi")))
    assert (reply.status, reply.json) == (
        200,
        {"content": {"error": "to_agent_id ghost not found"}, "is_error": True, "metadata": {}},
    )


def test_5_a_payment_for_nothing(compatible, pair):
    reply = compatible.execute(pair[0], send(pair[0], pair[1], pay("p9")))
    words = "No unexpired order proposals found with id p9"
    assert (reply.status, reply.json["is_error"]) == (200, True)
    assert reply.json["content"] == {"error_type": "invalid_proposal", "message": words}


def test_6_a_message_is_echoed_with_defaults_and_paid_by_its_own_id(compatible, pair):
    ann, taco = pair
    name = f"{taco}_{ann}_1"
    reply = compatible.execute(taco, send(taco, ann, offer(name))).json
    assert reply["metadata"] == {"status": "sent"}
    assert reply["content"] == {
        **send(taco, ann, offer(name)), "metadata": {},
        "message": {**offer(name), "special_instructions": None, "estimated_delivery": None,
                    "expiry_time": None},
    }  # fmt: skip
    paid = compatible.execute(ann, send(ann, taco, pay(name))).json
    assert paid["metadata"] == {"status": "sent"}
    assert paid["content"]["message"]["proposal_message_id"] == name


# ---- 7: constraints of messages


@pytest.mark.parametrize(
    "change",
    [{"items": []}, {"id": ""}, {"items": [{"id": "1", "item_name": "T", "quantity": 0,
                                            "unit_price": 1}]},
     {"items": [{"id": "1", "item_name": "T", "quantity": 1, "unit_price": -1}]},
     {"total_price": "much"}, {"type": "gift"}]
)  # fmt: skip
def test_7_a_message_that_is_none_is_refused(compatible, pair, change):
    message = {**offer("x"), **change}
    reply = compatible.execute(pair[1], send(pair[1], pair[0], message)).json
    assert reply["is_error"] is True
    assert fetch(compatible, pair[0])["messages"] == []


def test_7_a_negative_total_is_none_of_the_protocols_business(compatible, pair):
    reply = compatible.execute(pair[1], send(pair[1], pair[0], offer("minus", total=-50.0)))
    assert reply.json["is_error"] is False


# ---- 8: the inbox


def test_8_the_whole_inbox_comes_oldest_first_and_again(compatible, pair):
    ann, taco = pair
    for number in range(3):
        compatible.execute(ann, send(ann, taco, text(str(number))))
    first, second = fetch(compatible, taco), fetch(compatible, taco)
    assert first == second
    messages = first["messages"]
    assert [one["message"]["content"] for one in messages] == ["0", "1", "2"]
    assert set(messages[0]) == {"from_agent_id", "to_agent_id", "created_at", "message", "index"}
    indexes = [one["index"] for one in messages]
    assert indexes == sorted(set(indexes))
    assert min(indexes) >= 1
    for one in messages:  # the server's time, not the sender's
        assert STAMP.fullmatch(one["created_at"])
        assert not one["created_at"].startswith("2025-01-01")
    assert first["has_more"] is False


def test_8_rows_count_from_one_over_all_actions(database):
    with Served(database, "--rules", "compatible") as server:
        server.register(ANN)
        server.register(TACO)
        server.execute("customer_1", send("customer_1", "business_1", text("a")))
        server.execute("customer_1", {"type": "fetch_messages"})
        server.execute("customer_1", send("customer_1", "business_1", text("b")))
        assert [one["index"] for one in fetch(server, "business_1")["messages"]] == [1, 3]


def test_8_filters_are_strict_and_limits_exact(compatible, pair):
    ann, taco = pair
    for number in range(4):
        compatible.execute(ann, send(ann, taco, text(str(number))))
        time.sleep(0.002)
    all_ = fetch(compatible, taco)["messages"]

    def contents(**more):
        got = fetch(compatible, taco, **more)
        return [one["message"]["content"] for one in got["messages"]], got["has_more"]

    assert contents(after_index=all_[1]["index"]) == (["2", "3"], False)
    assert contents(after=all_[1]["created_at"]) == (["2", "3"], False)
    assert contents(limit=1) == (["0"], True)
    assert contents(limit=2, offset=1) == (["1", "2"], True)
    assert contents(limit=4) == (["0", "1", "2", "3"], False)
    assert contents(limit=0) == ([], True)
    assert contents(from_agent_id=ann) == (["0", "1", "2", "3"], False)
    assert contents(from_agent_id="another") == ([], False)


def test_8_a_refused_message_still_arrives_under_compatible_rules(compatible, pair):
    ann, taco = pair
    compatible.execute(ann, send(ann, taco, pay("nothing")))
    assert fetch(compatible, taco)["messages"][0]["message"]["proposal_message_id"] == "nothing"


# ---- 9 and 10: search


@pytest.fixture(scope="module")
def town(compatible):
    """Four businesses with words of their own; the best rated came last."""
    for name, described, rating, menu in (
        ("town_a", "Zwetschgen and more", 0.5, {"Plumcake": 3.0}),
        ("town_b", "Nothing like it", 0.5, {"Plumcake": 2.0, "Zwetschgenmus": 4.0}),
        ("town_c", "100% zwetschgen_mus, it's nice", 0.5, {"Mus": 4.0}),
        ("town_d", "Apples", 0.9, {"Applecake": 3.0}),
    ):
        made = profile(name, like=TACO)
        made["business"] |= {
            "name": name, "description": described, "rating": rating, "menu_features": menu,
            "amenity_features": {"Wifi": name == "town_a"},
        }  # fmt: skip
        assert compatible.register(made).status == 200
    buyer = profile("town_buyer")
    buyer["customer"]["menu_features"] = {"Plumcake": 4.0}
    compatible.register(buyer)
    return compatible


def found(server, query, rule, **more):
    parameters = {"type": "search", "query": query, "search_algorithm": rule, "limit": 0, **more}
    content = server.execute("town_buyer", parameters).json["content"]
    return [one["id"] for one in content["businesses"] if one["id"].startswith("town")], content


def test_9_a_page_of_results_has_the_keys_and_full_profiles(town):
    _, content = found(town, "zwetschgen", "lexical", limit=2, page=1)
    assert set(content) == {
        "businesses", "search_algorithm", "total_possible_results", "total_pages",
    }  # fmt: skip
    assert content["search_algorithm"] == "lexical"
    assert content["total_pages"] == -(-content["total_possible_results"] // 2)
    hit = content["businesses"][0]
    assert hit == town.ask("GET", f"/agents/{hit['id']}").json["agent"]
    assert hit["business"]["min_price_factor"] == 0.8


def test_9_pages_count_from_one_and_a_limit_of_zero_is_all(town):
    first = found(town, "", "simple", limit=1, page=1)[1]["businesses"]
    second = found(town, "", "simple", limit=1, page=2)[1]["businesses"]
    whole = found(town, "", "simple", limit=0)[1]
    assert first + second == whole["businesses"][:2]
    assert whole["total_pages"] == 1
    assert len(whole["businesses"]) == whole["total_possible_results"]
    assert found(town, "", "simple", limit=-3)[1]["businesses"] == whole["businesses"]


def test_10_by_rating_and_then_by_registration(town):
    assert found(town, "", "simple")[0] == ["town_d", "town_a", "town_b", "town_c"]


def test_10_lexical_counts_four_grams_in_the_order_of_the_menu_and_cuts_nothing_off(town):
    # the query's 4-grams: " zwe", "zwet", ..., "gen " (10 of them); town_a has all of them
    order, _ = found(town, "zwetschgen", "lexical")
    assert order[0] == "town_a"
    assert order[-1] == "town_d"
    assert set(order) == {"town_a", "town_b", "town_c", "town_d"}


def test_10_filtered_takes_substrings_and_constraints_and_no_wildcards(town):
    assert found(town, "ZWETSCHGEN", "filtered")[0] == ["town_a", "town_c"]
    assert found(town, "100%", "filtered")[0] == ["town_c"]
    assert found(town, "%", "filtered")[0] == ["town_c"]
    assert found(town, "it's", "filtered")[0] == ["town_c"]
    constraints = {"rating_threshold": 0.6, "amenity_features": None, "menu_items": None}
    assert found(town, "", "filtered", constraints=constraints)[0] == ["town_d"]
    constraints = {"amenity_features": ["Wifi"], "menu_items": ["Plumcake"]}
    assert found(town, "", "filtered", constraints=constraints)[0] == ["town_a"]


def test_10_optimal_is_the_callers_whole_wish_and_for_customers_alone(town):
    assert found(town, "", "optimal")[0] == ["town_a", "town_b"]
    town.register({"id": "watcher", "metadata": {}})
    search = {"type": "search", "query": "", "search_algorithm": "optimal"}
    for other in ("town_a", "watcher"):
        assert town.execute(other, search).json["is_error"] is True


# ---- 11 and 12: profiles and the protocol's own description


@pytest.mark.parametrize("document", [ANN, TACO], ids=["customer", "business"])
def test_11_profiles_keep_their_exact_form(compatible, document):
    made = profile(f"form_{document['id']}", like=document)
    compatible.register(made)
    assert compatible.ask("GET", f"/agents/{made['id']}").json["agent"] == made


def test_11_a_business_that_is_none_is_kept_but_not_found(compatible, pair):
    broken = profile("broken", like=TACO)
    del broken["business"]["menu_features"]
    assert compatible.register(broken).status == 200
    assert compatible.ask("GET", "/agents/broken").json["agent"] == broken
    search = {"type": "search", "query": "", "search_algorithm": "simple", "limit": 0}
    hits = compatible.execute(pair[0], search).json["content"]["businesses"]
    assert "broken" not in {one["id"] for one in hits}


def test_12_the_protocol_lists_three_actions_with_their_schemas(compatible):
    reply = compatible.ask("GET", "/actions/protocol").json
    assert reply["error"] is None
    assert [one["name"] for one in reply["actions"]] == ["SendMessage", "FetchMessages", "Search"]
    for one in reply["actions"]:
        assert set(one) == {"name", "description", "parameters", "metadata"}
        assert one["metadata"] == {"source": "BaseAction"}
        assert one["parameters"]["properties"]["type"]["const"]


# ---- 18: connections stay open for some seconds


def test_18_a_connection_serves_many_requests_and_stays_open_between_them(compatible):
    with socket.create_connection(("127.0.0.1", compatible.port), timeout=10) as wire:
        for pause in (0, 0, 6):
            time.sleep(pause)
            wire.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b'{"status":"healthy"}'):
                got = wire.recv(4096)
                assert got, "it closed the connection"
                answer += got
            assert answer.startswith(b"HTTP/1.1 200")
