"""When processes, databases and disks fail, nothing acknowledged is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter

import pytest
from real_servers import ANN, TACO, Served, offer, pay, send, text, until

from marketeval.adapters.market_client import AsyncMarketClient

SLOW = pytest.mark.slow


def fetch(server, agent):
    parameters = {"type": "fetch_messages"}
    return server.execute(agent, parameters).json["content"]["messages"]


def test_everything_is_there_again_after_a_kill(lasting):
    with Served(lasting, "--rules", "compatible") as server:
        server.register(ANN)
        server.register(TACO)
        server.execute("customer_1", send("customer_1", "business_1", text("\x00 it's 🌮 ü")))
        server.execute("business_1", send("business_1", "customer_1", offer("p1")))
        server.execute("customer_1", send("customer_1", "business_1", pay("p1")))
        server.execute("customer_1", send("customer_1", "business_1", pay("none")))
        search = {"type": "search", "query": "taco", "search_algorithm": "lexical"}
        server.execute("customer_1", search)
        server.ask("POST", "/logs/create", {"log": {"level": "info", "name": "n"}})
        seen = [
            server.ask("GET", "/agents").json, fetch(server, "business_1"),
            fetch(server, "customer_1"), server.ask("GET", "/logs").json,
        ]  # fmt: skip
        paid = server.ask("GET", "/v1/view", X_Agent_Id="customer_1").json["offers"]
        server.kill()
        server.again()
        assert seen == [
            server.ask("GET", "/agents").json, fetch(server, "business_1"),
            fetch(server, "customer_1"), server.ask("GET", "/logs").json,
        ]  # fmt: skip
        assert server.ask("GET", "/v1/view", X_Agent_Id="customer_1").json["offers"] == paid
        server.execute("customer_1", send("customer_1", "business_1", text("next")))
        rows = [one["index"] for one in fetch(server, "business_1")]
        assert rows == sorted(set(rows))


def test_keys_and_tokens_outlive_the_server(lasting):
    with Served(lasting) as server:
        token = server.register(ANN).json["token"]
        server.register(TACO)
        who = {"Authorization": f"Bearer {token}", "Idempotency_Key": "k"}
        body = {"name": "x", "parameters": send("customer_1", "business_1", text("once"))}
        first = server.ask("POST", "/actions/execute", body, **who)
        server.kill()
        server.again()
        assert server.ask("POST", "/actions/execute", body, **who).json == first.json
        assert server.ask("GET", "/v1/metrics").json["messages"] == {"text": 1}
        assert "repeated_total 1" in server.ask("GET", "/metrics").body.decode()


def test_a_stop_is_orderly(lasting):
    with Served(lasting) as server:
        server.register(ANN)
        assert server.stop() == 0
        server.again()
        assert server.ask("GET", "/agents/customer_1").status == 200


async def _under_load(server, clients: int, seconds: float, trouble) -> tuple[Counter, Counter]:
    """Clients that send numbered texts; what was acknowledged, and what is there in the end.

    `trouble` is given a function that waits for the next so many acknowledgements.
    """
    acknowledged: Counter[str] = Counter()
    start, over = time.monotonic(), asyncio.Event()

    async def one(number: int) -> None:
        name = f"customer_{number}"
        async with AsyncMarketClient(
            server.url, agent=name, token=f"token-of-{name}-123", attempts=500
        ) as me:
            await me.register({"customer": ANN["customer"]})
            turn = 0
            while not over.is_set():
                words = f"{number}/{turn}"
                await me.send("business_1", text(words), key=words)
                acknowledged[words] += 1
                turn += 1

    async def progress(count: int = 150) -> None:
        goal = len(acknowledged) + count
        while len(acknowledged) < goal:
            await asyncio.sleep(0.05)

    who = {"agent": "business_1", "token": "token-of-the-shop-1", "attempts": 500}
    async with AsyncMarketClient(server.url, **who) as shop:
        await shop.register({"business": TACO["business"]})
        tasks = [asyncio.create_task(one(number)) for number in range(clients)]
        await trouble(progress)
        await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))
        over.set()
        await asyncio.gather(*tasks)
        mail = await shop.inbox()
    rows = [one["index"] for one in mail]
    assert rows == sorted(set(rows))
    return acknowledged, Counter(one["message"]["content"] for one in mail)


def _nothing_lost_nothing_doubled(acknowledged: Counter, there: Counter) -> None:
    assert not acknowledged - there, "an acknowledged message was lost"
    assert max(there.values()) == 1, "a message was doubled"


@pytest.mark.parametrize(("clients", "seconds"), [(16, 1), pytest.param(64, 60, marks=SLOW)])
def test_under_load_two_kills_lose_nothing_and_double_nothing(lasting, clients, seconds):
    async def trouble(progress) -> None:
        for _ in range(2):
            await progress()
            await asyncio.sleep(seconds / 3)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.again)
        await progress()

    with Served(lasting) as server:
        _nothing_lost_nothing_doubled(*asyncio.run(_under_load(server, clients, seconds, trouble)))


def test_a_database_that_stops_under_load_is_503_until_it_is_back(postgres):
    async def trouble(progress) -> None:
        await progress()
        await asyncio.to_thread(postgres.stop)
        for _ in range(100):
            reply = await asyncio.to_thread(server.ask, "GET", "/health")
            if reply.status == 503:
                break
            await asyncio.sleep(0.1)
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert "nothing can be stored now" in reply.json["detail"]
        await asyncio.to_thread(postgres.start)
        await progress()

    with Served(postgres.url()) as server:
        try:
            found = asyncio.run(_under_load(server, 16, 1, trouble))
        finally:
            postgres.start()
        _nothing_lost_nothing_doubled(*found)
        assert server.ask("GET", "/health").status == 200


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few megabytes, where one can be made."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def _fill(path) -> None:
    with path.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


def test_a_full_disk_is_refused_cleanly_and_served_again_when_space_is_back(small_disk):
    with Served(str(small_disk / "m.sqlite"), "--rules", "compatible") as server:
        server.register(ANN)
        server.register(TACO)
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            _fill(ballast)
        stored, refused = [], None
        for number in range(2000):
            words = f"{number} " + "x" * 2000
            reply = server.execute("customer_1", send("customer_1", "business_1", text(words)))
            if reply.status != 200:
                refused = reply
                break
            stored.append(words)
        assert refused is not None
        assert refused.status == 503
        assert "nothing can be stored now" in refused.json["detail"]
        assert [one["message"]["content"] for one in fetch(server, "business_1")] == stored
        ballast.unlink()
        until(lambda: server.ask("GET", "/health").status == 200)
        reply = server.execute("customer_1", send("customer_1", "business_1", text("after")))
        assert reply.status == 200
        server.kill()
        server.again()
        found = [one["message"]["content"] for one in fetch(server, "business_1")]
        assert found == [*stored, "after"]


# ---- what cannot be served is said in one line


def refused(*options: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "marketeval", "serve", *options],
        capture_output=True, text=True, timeout=60, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_a_port_in_use_is_one_line(tmp_path):
    with Served() as server:
        database = tmp_path / "m.sqlite"
        line = refused("--port", str(server.port), "--database", str(database))
        assert f"cannot listen on 127.0.0.1:{server.port}" in line
        assert not database.exists()


@pytest.mark.parametrize(
    ("database", "words"),
    [("no/such/folder/m.sqlite", "there is no folder"),
     ("postgresql://127.0.0.1:9/none", "cannot be reached"),
     ("mysql://127.0.0.1/x", "expected memory:")]
)  # fmt: skip
def test_a_database_that_is_not_there_is_one_line(database, words):
    assert words in refused("--port", "0", "--database", database)


def test_an_older_format_and_a_foreign_schema_are_one_line(tmp_path):
    import sqlite3

    path = tmp_path / "m.sqlite"
    with Served(str(path)) as server:
        server.register(ANN)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE market SET value = '0' WHERE key = 'format'")
    assert "holds a market of format 0, expected 1" in refused("--database", str(path))
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE things (x)")
    assert "tables of another program" in refused("--database", str(other))
    text_file = tmp_path / "notes.txt"
    text_file.write_text("no database at all, but long enough to be looked at" * 50)
    assert "cannot be used as a database" in refused("--database", str(text_file))


def test_a_foreign_schema_in_postgresql_is_one_line(postgres):
    async def make(url: str) -> None:
        import asyncpg

        there = await asyncpg.connect(url.partition("schema=")[0].rstrip("?&"))
        await there.execute("CREATE SCHEMA strange; CREATE TABLE strange.things (x int)")
        await there.close()

    url = postgres.url("strange")
    asyncio.run(make(url))
    assert "tables of another program" in refused("--database", url)


def test_other_rules_than_the_market_began_with_are_one_line(lasting):
    with Served(lasting) as server:
        server.register(ANN)
    assert "holds a market with" in refused("--database", lasting, "--rules", "compatible")


def test_a_second_server_on_the_same_market_is_one_line(lasting):
    with Served(lasting):
        assert "one writer per market" in refused("--database", lasting, "--port", "0")


@pytest.mark.parametrize("harm", ["half a line", "a gap", "half a file"])
def test_a_journal_cut_off_recovers_to_the_last_whole_action_and_says_so(tmp_path, harm):
    import sqlite3

    path = tmp_path / "m.sqlite"
    with Served(str(path), "--rules", "compatible") as server:
        server.register(ANN)
        server.register(TACO)
        for number in range(160):
            words = f"{number} " + "y" * 300
            server.execute("customer_1", send("customer_1", "business_1", text(words)))
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        if harm == "half a line":
            database.execute("UPDATE journal SET line = substr(line, 1, 40) WHERE number = 123")
        if harm == "a gap":
            database.execute("DELETE FROM journal WHERE number = 123")
    if harm == "half a file":
        os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
    with Served(str(path), "--rules", "compatible") as server:
        until(lambda: server.errors)
        assert "the journal breaks off after action" in server.errors[0]
        mail = [one["message"]["content"].split()[0] for one in fetch(server, "business_1")]
        assert mail == [str(number) for number in range(len(mail))]
        assert len(mail) == 120 if harm != "half a file" else 20 < len(mail) < 160
        reply = server.execute("customer_1", send("customer_1", "business_1", text("on")))
        assert reply.status == 200
        count = len(mail) + 1
    with Served(str(path), "--rules", "compatible") as server:
        assert len(fetch(server, "business_1")) == count
        assert not any("breaks off" in line for line in server.errors)


def test_beyond_this_machine_tokens_are_needed():
    assert "only strict rules" in refused("--host", "0.0.0.0", "--rules", "compatible")
    line = refused("--host", "0.0.0.0")
    assert "MARKETEVAL_REGISTRATION_TOKEN" in line


def test_unknown_rules_and_clocks_are_one_line():
    assert "did you mean 'strict'" in refused("--rules", "strikt")
    assert "did you mean 'logical'" in refused("--clock", "logica")
    assert "offers_last" in refused("--rules", "strict,offers_last=soon")
    assert "form of SQLite" in refused("--layout", "reference", "--database", "memory:")
