"""The client against a real server: every verb, both forms, retries, safe repetition."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from real_servers import ANN, TACO, Served, offer, pay, text, until

from marketeval.adapters.market_client import AsyncMarketClient, MarketClient, MarketError, Refused

KINDS = {"customer_1": {"customer": ANN["customer"]}, "business_1": {"business": TACO["business"]}}


@pytest.fixture(scope="module", params=["strict", "compatible"])
def server(request):
    with Served("memory:", "--rules", request.param) as made:
        yield made


def client(server, name):
    """A client whose token is the same each time, as a program would keep it."""
    return MarketClient(server.url, agent=name, token=f"token-of-{name}-123456")


def test_a_purchase_from_search_to_payment(server):
    with client(server, "customer_1") as ann, client(server, "business_1") as shop:
        assert shop.register(KINDS["business_1"]) == "business_1"
        assert ann.register(KINDS["customer_1"]) == "customer_1"
        assert [hit["id"] for hit in ann.search("taco")] == ["business_1"]
        ann.send("business_1", text("How much?"))
        assert [one["message"]["content"] for one in shop.wait(5)] == ["How much?"]
        name = f"offer-{ann.seen}-{shop.seen}"
        shop.send("customer_1", offer(name))
        (heard,) = ann.wait(5)
        ann.send("business_1", pay(heard["message"]["id"]))
        assert shop.wait(5)[0]["message"]["proposal_message_id"] == name
        assert shop.wait(0) == []
        assert [one["message"]["type"] for one in shop.inbox()] == ["text", "payment"]
        assert ann.get("/v1/view")["offers"][0]["paid"] is True
        with pytest.raises(Refused, match="No unexpired order proposals"):
            ann.send("business_1", pay("nothing"))


def test_the_same_in_an_event_loop_and_by_events(server):
    async def play():
        url, key = server.url, "token-of-async-agents-"
        async with (
            AsyncMarketClient(url, agent="customer_a", token=key + "c") as ann,
            AsyncMarketClient(url, agent="business_a", token=key + "b") as shop,
        ):
            await shop.register(KINDS["business_1"])
            await ann.register(KINDS["customer_1"])

            async def listen():
                heard = []
                async for one in shop.events():
                    heard.append(one["message"]["content"])
                    if len(heard) == 3:
                        return heard

            listening = asyncio.create_task(listen())
            for number in range(3):
                await ann.send("business_a", text(str(number)))
            return await asyncio.wait_for(listening, 10)

    assert asyncio.run(play()) == ["0", "1", "2"]


def test_a_message_repeated_under_its_key_is_sent_once(server):
    with client(server, "customer_1") as ann, client(server, "business_1") as shop:
        shop.register(KINDS["business_1"])
        ann.register(KINDS["customer_1"])
        before = len(shop.inbox())
        first = ann.send("business_1", text("once"), key="k1")
        message = {**first, "message": {"type": "text", "content": "once"}}
        assert ann.execute(message, key="k1") == first
        assert len(shop.inbox()) == before + 1
        with pytest.raises(MarketError, match="409"):
            ann.send("business_1", text("another"), key="k1")


@pytest.mark.parametrize("status", [429, 503])
def test_what_says_try_again_is_tried_again_and_nothing_else_is(status):
    asked = []

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            code = 404 if self.path == "/no" else 200 if len(asked) > 2 else status
            body = b'{"detail": "busy"}'
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with MarketClient(f"http://127.0.0.1:{server.server_port}", agent="a") as me:
            assert me.get("/yes") == {"detail": "busy"}
            assert asked == ["/yes"] * 3
            with pytest.raises(MarketError, match="404"):
                me.get("/no")
            assert asked[3:] == ["/no"]
    finally:
        server.shutdown()


def test_a_server_that_is_not_there_is_said_after_the_last_attempt():
    with (
        MarketClient("http://127.0.0.1:9", agent="a", attempts=2) as me,
        pytest.raises(MarketError, match="nothing"),
    ):
        me.get("/health")


def test_a_client_goes_on_when_its_server_comes_back(tmp_path):
    with Served(str(tmp_path / "m.sqlite")) as made, client(made, "customer_1") as ann:
        ann.register(KINDS["customer_1"])
        made.kill()
        threading.Timer(0.5, made.again).start()
        assert ann.get("/v1/view")["agent"]["id"] == "customer_1"
        until(lambda: made.process.poll() is None)
