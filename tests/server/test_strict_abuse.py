"""Strict rules under attack: each abuse is refused with a reason, nothing of it stays, and others
are served."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time

import pytest
from real_servers import (
    ANN,
    BY_OPERATOR,
    OPERATOR,
    TACO,
    Served,
    as_agent,
    offer,
    pay,
    profile,
    send,
    text,
)

from marketeval.adapters.market_client import MarketClient


@pytest.fixture
def trio(strict):
    """Two customers and a business with their tokens; every test leaves the books balanced."""
    end = str(time.time_ns())
    names = {"ann": f"customer_{end}", "bob": f"customer_{end}b", "shop": f"business_{end}"}
    tokens = {}
    for who, name in names.items():
        reply = strict.register(profile(name, like=TACO if who == "shop" else ANN))
        assert reply.status == 200
        tokens[who] = as_agent(reply.json["token"])
    yield strict, names, tokens
    numbers = strict.ask("GET", "/v1/metrics").json
    assert numbers["books_balance"] is True
    assert strict.ask("GET", "/health").status == 200


def act(strict, tokens, who, parameters, **more):
    body = {"name": "x", "parameters": parameters}
    return strict.ask("POST", "/actions/execute", body, **tokens[who], **more)


def state(strict, tokens):
    """What abuse may not change: everybody's view, and what is in the inboxes."""
    return [
        {k: v for k, v in strict.ask("GET", "/v1/view", **token).json.items()
         if k not in ("now", "tick")}
        for token in tokens.values()
    ]  # fmt: skip


def offered(trio, **more):
    """An offer from the shop to Ann; its id."""
    strict, names, tokens = trio
    name = f"o{time.time_ns()}"
    reply = act(strict, tokens, "shop", send(names["shop"], names["ann"], offer(name, **more)))
    assert reply.json["metadata"] == {"status": "sent"}, reply.json
    return name


def is_refused(trio, who, parameters, reason):
    """Refused with this reason, and nothing has changed."""
    strict, _, tokens = trio
    before = state(strict, tokens)
    reply = act(strict, tokens, who, parameters)
    assert (reply.status, reply.json["is_error"]) == (200, True), reply.json
    content = reply.json["content"]
    assert content["error_type"] == reason
    assert content["message"]
    assert state(strict, tokens) == before


# ---- who one is


def test_nobody_sends_in_anothers_name(trio):
    _, names, _ = trio
    is_refused(trio, "bob", send(names["ann"], names["shop"], text("hi")), "spoofed_sender")


def test_a_name_is_not_enough_and_a_wrong_token_is_none(trio):
    strict, names, tokens = trio
    parameters = send(names["ann"], names["shop"], text("hi"))
    body = {"name": "x", "parameters": parameters}
    for headers in (
        {"X_Agent_Id": names["ann"]}, as_agent("guessed"), {"Authorization": "Basic YTpi"},
        {**tokens["bob"], "X_Agent_Id": names["ann"]},
    ):  # fmt: skip
        assert strict.ask("POST", "/actions/execute", body, **headers).status == 401


def test_nobody_replaces_anothers_profile(trio):
    strict, names, tokens = trio
    mine = profile(names["shop"], like=TACO)
    mine["business"]["description"] = "closed"
    assert strict.register(mine).status == 403
    assert strict.register(mine, **tokens["bob"]).status == 403
    assert strict.register(mine, **tokens["shop"]).status == 200


def test_private_wishes_and_floors_are_not_shown_to_strangers(trio):
    strict, names, tokens = trio
    seen = strict.ask("GET", f"/agents/{names['ann']}", **tokens["bob"]).json["agent"]
    assert seen == {"id": names["ann"], "metadata": {"type": "customer"}}
    listed = strict.ask("GET", "/agents").body.decode()
    assert "menu_features" in listed
    assert "12.0" not in listed
    assert "0.8" not in listed
    own = strict.ask("GET", f"/agents/{names['ann']}", **tokens["ann"]).json["agent"]
    assert own["customer"]["menu_features"] == {"Taco": 12.0}
    search = {"type": "search", "query": "taco", "search_algorithm": "lexical", "limit": 0}
    hits = act(strict, tokens, "ann", search).json["content"]["businesses"]
    assert {one["business"]["min_price_factor"] for one in hits} == {None}


def test_logs_are_for_the_operator(trio):
    strict, _, tokens = trio
    log = {"log": {"level": "info", "name": "n"}}
    assert strict.ask("POST", "/logs/create", log).status == 401
    assert strict.ask("POST", "/logs/create", log, **tokens["ann"]).status == 200
    assert strict.ask("GET", "/logs", **tokens["ann"]).status == 403
    assert strict.ask("GET", "/logs", **BY_OPERATOR).json["items"]


def test_the_bank_and_odd_ids_cannot_be_registered(strict):
    for name in ("(bank)", "", "a b", "x" * 129, "-a", "a\u0000", "ü"):
        assert strict.register(profile(name)).status == 422, name


@pytest.mark.parametrize(
    "change", [{"rating": 1e9}, {"rating": -1}, {"menu_features": {"Taco": -1.0}},
               {"menu_features": {"Taco": "cheap"}}, {"min_price_factor": 7}]
)  # fmt: skip
def test_a_profile_that_cheats_is_refused(strict, change):
    made = profile("cheat", like=TACO)
    made["business"] |= change
    assert strict.register(made).status == 422
    assert strict.ask("GET", "/agents/cheat").status == 404


# ---- money


def test_a_proposal_is_paid_once(trio):
    strict, names, tokens = trio
    name = offered(trio)
    payment = send(names["ann"], names["shop"], pay(name))
    assert act(strict, tokens, "ann", payment).json["metadata"] == {"status": "sent"}
    assert strict.ask("GET", "/v1/view", **tokens["ann"]).json["balance_cents"] == 9000
    is_refused(trio, "ann", payment, "paid_before")


def test_two_payments_at_the_same_moment_are_one(trio):
    strict, names, tokens = trio
    payment = send(names["ann"], names["shop"], pay(offered(trio)))
    replies = []
    threads = [
        threading.Thread(target=lambda: replies.append(act(strict, tokens, "ann", payment).json))
        for _ in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sum(not one["is_error"] for one in replies) == 1
    assert strict.ask("GET", "/v1/view", **tokens["shop"]).json["balance_cents"] == 1000


def test_a_stranger_does_not_pay(trio):
    _, names, _ = trio
    payment = send(names["bob"], names["shop"], pay(offered(trio)))
    is_refused(trio, "bob", payment, "not_the_addressee")


def test_what_has_expired_is_not_paid(trio):
    _, names, _ = trio
    soon = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() + 1))
    name = offered(trio, expiry_time=soon)
    time.sleep(2.5)
    is_refused(trio, "ann", send(names["ann"], names["shop"], pay(name)), "invalid_proposal")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (offer("n", total=-50.0), "malformed"),
        (offer("t", total=9.0), "total_does_not_add_up"),
        (offer("c", price=10.001), "not_whole_cents"),
        (offer("s", price=11.0), "surcharge"),
        (offer("f", price=1.0), "below_floor"),
        ({**offer("m"), "items": [{"id": "1", "item_name": "Gold", "quantity": 1,
                                   "unit_price": 10.0}]}, "not_on_menu"),
        (offer("e", expiry_time="2024-01-01T00:00:00Z"), "already_expired"),
        (offer("l", special_instructions="x" * 20_001), "too_long"),
    ],
)  # fmt: skip
def test_an_offer_that_cheats_is_refused(trio, made, reason):
    _, names, _ = trio
    is_refused(trio, "shop", send(names["shop"], names["ann"], made), reason)


def test_an_id_is_used_once(trio):
    _, names, _ = trio
    is_refused(trio, "shop", send(names["shop"], names["bob"], offer(offered(trio))), "reused_id")


def test_customers_do_not_propose_and_nobody_pays_beyond_their_means(trio):
    _, names, _ = trio
    is_refused(trio, "ann", send(names["ann"], names["bob"], offer("x")), "not_a_business")
    big = offer(f"big{time.time_ns()}", total=200.0)
    big["items"][0]["quantity"] = 20
    strict, names, tokens = trio
    assert not act(strict, tokens, "shop", send(names["shop"], names["ann"], big)).json["is_error"]
    payment = send(names["ann"], names["shop"], pay(big["id"]))
    is_refused(trio, "ann", payment, "balance_too_low")


# ---- what bodies may hold

SQL = "x'; DROP TABLE journal; --"


def test_sql_in_every_text_is_text(trio):
    strict, names, tokens = trio
    message = {**offer(f"{SQL}{time.time_ns()}"), "special_instructions": SQL,
               "estimated_delivery": SQL, "expiry_time": SQL}  # fmt: skip
    message["items"][0]["id"] = SQL
    assert not act(strict, tokens, "shop", send(names["shop"], names["ann"], message)).json[
        "is_error"
    ]
    payment = {**pay(message["id"]), "payment_method": SQL, "delivery_address": SQL,
               "payment_message": SQL}  # fmt: skip
    for one in (payment, text(SQL)):
        reply = act(
            strict, tokens, "ann", send(names["ann"], names["shop"], one, metadata={SQL: SQL})
        )
        assert not reply.json["is_error"]
    for rule in ("lexical", "filtered", "simple", "optimal", "bm25", "hybrid", "rnr"):
        search = {
            "type": "search", "query": SQL, "search_algorithm": rule,
            "constraints": {"amenity_features": [SQL], "menu_items": [SQL]},
        }  # fmt: skip
        assert not act(strict, tokens, "ann", search).json["is_error"]
    fetch = {"type": "fetch_messages", "from_agent_id": SQL}
    assert act(strict, tokens, "ann", fetch).json["content"]["messages"] == []
    mail = act(strict, tokens, "shop", {"type": "fetch_messages"}).json["content"]["messages"]
    assert mail[-1]["message"]["content"] == SQL
    log = {"log": {"level": "info", "name": SQL, "message": SQL}}
    assert strict.ask("POST", "/logs/create", log, **tokens["ann"]).status == 200
    assert strict.ask("GET", f"/agents/{SQL.replace(' ', '%20')}").status == 404


def test_a_megabyte_is_too_much_whatever_it_says_of_itself(trio):
    strict, names, tokens = trio
    before = state(strict, tokens)
    reply = act(strict, tokens, "ann", send(names["ann"], names["shop"], text("x" * 2**20)))
    assert (reply.status, "at most" in reply.json["detail"]) == (413, True)
    with socket.create_connection(("127.0.0.1", strict.port), timeout=20) as wire:
        wire.sendall(
            b"POST /actions/execute HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        answer = b""
        try:
            for _ in range(40):
                wire.sendall(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
        except OSError:
            pass
        wire.settimeout(5)
        try:
            answer = wire.recv(4096)
        except OSError:
            answer = b"HTTP/1.1 413 (the connection was reset)"
        assert b" 413 " in answer
    assert state(strict, tokens) == before


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (b'"content": NaN', "JSON decode error"),
        (b'"content": "a", "x": Infinity', "JSON decode error"),
        (b'"content": "a", "x": -Infinity', "JSON decode error"),
        (b'"content": "a", "x": 1e999', "must be finite"),
        (b'"content": "a", "x": ' + b"9" * 400, "within 2"),
        (b'"content": "bell \\u0007"', "control characters"),
        (b'"content": "escape \\u001b[2J"', "control characters"),
        (b'"content": "nul \\u0000"', "control characters"),
        (b'"content": "raw \x01"', "JSON decode error"),
        (b'"content": "lone \\ud800"', "JSON decode error"),
        (b'"content": "lone \\udc00 low"', "JSON decode error"),
        (b'"content": "not utf-8 \xff"', "JSON decode error"),
        (b'"content": "a", "x": ' + b"[" * 100_000, "JSON decode error"),
        (b'"content": "a", "x": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "JSON decode error"),
    ],
)  # fmt: skip
def test_what_is_no_plain_json_is_422_with_a_reason(trio, inside, told):
    strict, names, tokens = trio
    before = state(strict, tokens)
    template = json.dumps({"name": "x", "parameters": send(names["ann"], names["shop"], text("@"))})
    body = template.encode().replace(b'"content": "@"', inside)
    reply = strict.ask("POST", "/actions/execute", body, **tokens["ann"])
    assert reply.status == 422
    assert told in reply.json["detail"][0]["msg"]
    assert state(strict, tokens) == before


def test_a_message_too_long_is_refused(trio):
    _, names, _ = trio
    is_refused(trio, "ann", send(names["ann"], names["shop"], text("x" * 20_001)), "too_long")


# ---- taking more than one's share


def test_one_client_that_sends_as_fast_as_it_can_does_not_stop_others():
    with Served("memory:", "--agent-rate", "50") as server:
        flood = as_agent(server.register(profile("flood")).json["token"])
        calm = as_agent(server.register(profile("calm")).json["token"])
        server.register(TACO)
        seen, over = [], threading.Event()

        def flooding() -> None:
            body = {"name": "x", "parameters": send("flood", "business_1", text("!"))}
            while not over.is_set():
                seen.append(server.ask("POST", "/actions/execute", body, **flood).status)

        threads = [threading.Thread(target=flooding) for _ in range(4)]
        for one in threads:
            one.start()
        time.sleep(1)
        body = {"name": "x", "parameters": send("calm", "business_1", text("hello"))}
        times = []
        for _ in range(20):
            start = time.perf_counter()
            assert server.ask("POST", "/actions/execute", body, **calm).status == 200
            times.append(time.perf_counter() - start)
        time.sleep(1)
        over.set()
        for one in threads:
            one.join()
        assert set(seen) == {200, 429}
        assert sorted(times)[10] < 1.0


def test_a_limit_for_all_is_kept_too():
    with Served("memory:", "--rate", "5", "--rules", "compatible") as server:
        replies = [server.ask("GET", "/agents") for _ in range(30)]
        refused = next(one for one in replies if one.status == 429)
        assert refused.headers["retry-after"] == "1"
        assert server.ask("GET", "/health").status == 200


def test_slow_senders_are_let_go_and_others_served():
    with Served("memory:", "--header-timeout", "1", "--body-timeout", "1") as server:
        wires = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for wire in wires[:25]:
            wire.sendall(b"POST /actions/execute HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        for wire in wires[25:]:
            wire.sendall(b"POST /logs/create HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
        assert server.ask("GET", "/health").status == 200
        for number in range(4):
            time.sleep(0.5)
            for wire in wires[:25]:
                try:
                    wire.sendall(b"a")  # one byte now and then, as the attack does
                except OSError:
                    assert number  # let go already
        for wire in wires:
            wire.settimeout(10)
            try:
                answer = wire.recv(4096)
            except ConnectionResetError:
                answer = b""
            assert answer == b"" or b" 408 " in answer
            wire.close()


def test_a_head_without_end_is_cut_off():
    with Served("memory:") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
            wire.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    wire.sendall(b"X-Long: " + b"a" * 1000 + b"\r\n")
            try:
                answer = wire.recv(4096)
            except ConnectionResetError:
                answer = b"HTTP/1.1 431 (the connection was reset)"
            assert b" 431 " in answer
        assert server.ask("GET", "/health").status == 200


def test_a_long_inbox_comes_in_pages(tmp_path):
    with Served(str(tmp_path / "m.sqlite"), "--agent-rate", "1e6", "--rules",
                "strict,actions_per_tick=null") as server:  # fmt: skip
        who = {name: f"token-of-{name}-1234" for name in ("customer_1", "business_1")}
        with MarketClient(server.url, agent="business_1", token=who["business_1"]) as shop:
            shop.register({"business": TACO["business"]})
            server.register(ANN, **as_agent(who["customer_1"]))

            def write(part: int) -> None:
                for number in range(part, 1100, 8):
                    parameters = send("customer_1", "business_1", text(str(number)))
                    server.ask("POST", "/v1/actions", parameters, **as_agent(who["customer_1"]))

            threads = [threading.Thread(target=write, args=(part,)) for part in range(8)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            page = shop.execute({"type": "fetch_messages"})
            assert (len(page["messages"]), page["has_more"]) == (1000, True)
            found = {one["message"]["content"] for one in shop.inbox()}
            assert found == {str(number) for number in range(1100)}


def test_connections_beyond_the_limit_are_turned_away():
    with Served("memory:", "--connections", "10") as server:
        wires = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
        time.sleep(0.3)
        with socket.create_connection(("127.0.0.1", server.port)) as one:
            one.settimeout(10)
            assert b" 503 " in one.recv(4096)
        for wire in wires:
            wire.close()
        time.sleep(0.3)
        assert server.ask("GET", "/health").status == 200


def test_the_access_log_holds_no_body_and_no_secret(tmp_path):
    log = tmp_path / "access.jsonl"
    with Served("memory:", "--access-log", str(log), **OPERATOR) as server:
        token = server.register(ANN).json["token"]
        server.register(TACO)
        body = {"name": "x", "parameters": send("customer_1", "business_1", text("a secret"))}
        server.ask("POST", "/actions/execute", body, **as_agent(token))
        server.ask("GET", "/agents/customer_1?token=hidden", **BY_OPERATOR)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert set(lines[0]) == {"at", "method", "route", "status", "agent", "ms", "in", "out"}
    assert [one["route"] for one in lines] == [
        "/agents/register", "/agents/register", "/actions/execute", "/agents/{id:path}",
    ]  # fmt: skip
    assert lines[2]["agent"] == "customer_1"
    for secret in (token, "secret", "hidden", OPERATOR["MARKETEVAL_OPERATOR_TOKEN"]):
        assert secret not in log.read_text()
