"""Requests per second of a served market, as ratios to `/health` in the same run.

    python benchmarks/server.py [--seconds 3] [--stored 100000,1000000] [--postgres URL] [--dir DIR]

A server in its own process on SQLite (a file in DIR, full durability), 16 clients in this process.
"CPU" is the server's processor time per request, which travels better than rates do. The reference
platform on two cores: SendMessage 116, FetchMessages 36, lexical search over 300 businesses 9 a
second (its own /health: 2148). With a PostgreSQL address the store port is held against one bare
connection that inserts one by one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import uvloop

from marketeval.actions import two_sided as act
from marketeval.apps.server.serving import journal
from marketeval.markets.two_sided.generator import Generated, generate
from marketeval.markets.two_sided.journal import TICK, Recorded, write_line
from marketeval.markets.two_sided.state import Entry, Registered, Sent
from marketeval.stores.base import Batch

CLIENTS = 16
ABOUT = {"rules": '{"preset": "compatible"}', "clock": "wall", "auth": "header", "layout": "none"}


# ---- clients


class Client(asyncio.Protocol):
    """One connection that always has one request open."""

    def __init__(self, requests, done) -> None:
        self.requests, self.done = requests, done
        self.count, self.wrong, self.left, self.buffer = 0, 0, 0, b""
        self.times: list[float] = []

    def connection_made(self, transport) -> None:
        self.transport = transport

    def ask(self) -> None:
        self.sent = time.perf_counter()
        self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        if not self.left:
            self.buffer += data
            head, found, body = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            self.wrong += not head.startswith(b"HTTP/1.1 200")
            at = head.index(b"content-length: ") + 16
            self.left = int(head[at : head.find(b"\r\n", at) % (len(head) + 1)]) - len(body)
            self.buffer = b""
        else:
            self.left -= len(data)
        if self.left <= 0:
            self.left = 0
            self.count += 1
            self.times.append(time.perf_counter() - self.sent)
            if not self.done.is_set():
                self.ask()


def request(method: str, path: str, body=None, agent: str = "") -> bytes:
    """The bytes of a request."""
    data = b"" if body is None else json.dumps(body).encode()
    who = f"X-Agent-Id: {agent}\r\n" if agent else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{who}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def cpu(pid: int) -> float:
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(port: int, pid: int, seconds: float, requests) -> dict[str, float]:
    """Sixteen clients for some seconds; `requests` gives each an endless iterator."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    clients = []
    for number in range(CLIENTS):
        _, client = await loop.create_connection(
            lambda number=number: Client(requests(number), done), "127.0.0.1", port
        )
        clients.append(client)
    before, start = cpu(pid), time.perf_counter()
    for client in clients:
        client.ask()
    await asyncio.sleep(seconds)
    done.set()
    taken, used = time.perf_counter() - start, cpu(pid) - before
    count = sum(client.count for client in clients)
    times = sorted(one for client in clients for one in client.times)
    await asyncio.sleep(0.2)
    for client in clients:
        client.transport.close()
    assert not sum(client.wrong for client in clients), "some were not answered with 200"
    return {
        "rate": count / taken,
        "cpu_ms": 1000 * used / max(count, 1),
        "p50_ms": 1000 * times[len(times) // 2],
        "p99_ms": 1000 * times[int(len(times) * 0.99)],
    }


# ---- servers


@contextmanager
def served(database: str):
    """A server on a database; its port, its process id, seconds until it was ready."""
    words = ["serve", "--database", database, "--port", "0", "--rules", "compatible"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "marketeval", *words], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        yield port, process.pid, time.perf_counter() - start
    finally:
        process.terminate()
        process.wait()


async def fill(path: Path, actions: int, businesses: int = 300) -> int:
    """A journal of so many actions among 100 customers and 300 businesses; its size in bytes.

    Every business has a customer's ten messages in its inbox before the rest are exchanged among
    others, so that an inbox of ten is there at any size.
    """
    from marketeval.markets.two_sided.population import read_population

    people = (
        read_population("restaurants-100x300")
        if businesses == 300
        else generate(Generated(customers=businesses // 3, seed=1))
    )
    store, _ = journal(str(path))
    await store.open(ABOUT)
    number, row, lines = 0, 0, []
    for one in (*people.businesses, *people.customers):
        entry = Entry(0, 0, one.id, act.Register(one), Registered(one.id))
        document = act.profile_document(one)
        number += 1
        lines.append((number, write_line(Recorded(at=0, entry=entry, document=document))))
    names = [one.id for one in people.customers]
    shops = [one.id for one in people.businesses]
    for turn in range(actions):
        sender, to = names[turn % 50], names[50 + turn // 7 % 50]
        if turn < 10 * 16:
            to = shops[turn // 10]
        words = act.TextMessage(f"message {turn}: do you have a table, and what would it cost?")
        action = act.SendMessage(from_agent_id=sender, to_agent_id=to, message=words)
        row, number = row + 1, number + 1
        at = turn * TICK // 100
        entry = Entry(row, at // TICK, sender, action, Sent(action))
        lines.append((number, write_line(Recorded(at=at, entry=entry))))
        if len(lines) >= 20_000:
            await store.append(Batch(lines))
            lines = []
    await store.append(Batch(lines))
    await store.close()
    return path.stat().st_size


def forever(make):
    """Requests of one client, one after the other."""
    number = 0
    while True:
        yield make(number)
        number += 1


def sending(client: int):
    """Texts to a business; the sender is one of the customers."""
    sender = f"customer_{client % 50 + 1:04d}"

    def make(number: int) -> bytes:
        to = f"business_{(client * 7 + number) % 200 + 50:04d}"
        message = {"type": "text", "content": f"hello {number}, what does it cost today?"}
        parameters = {
            "type": "send_message", "from_agent_id": sender, "to_agent_id": to,
            "created_at": "2025-01-01T00:00:00Z", "message": message,
        }  # fmt: skip
        body = {"name": "SendMessage", "parameters": parameters, "metadata": {}}
        return request("POST", "/actions/execute", body, sender)

    return forever(make)


def fetching(client: int):
    """The inbox of ten of a business."""
    shop = f"business_{client + 1:04d}"
    body = {"name": "FetchMessages", "parameters": {"type": "fetch_messages"}, "metadata": {}}
    one = request("POST", "/actions/execute", body, shop)
    return forever(lambda number: one)


def searching(requests: list[str], names: list[str]):
    """Lexical searches with the customers' own requests, ten results."""

    def client(number: int):
        def make(turn: int) -> bytes:
            place = (number * 37 + turn) % len(requests)
            parameters = {
                "type": "search", "query": requests[place], "search_algorithm": "lexical",
                "limit": 10, "page": 1,
            }  # fmt: skip
            body = {"name": "Search", "parameters": parameters, "metadata": {}}
            return request("POST", "/actions/execute", body, names[place % len(names)])

        return forever(make)

    return client


def healthy(client: int):
    """The floor of the HTTP stack."""
    one = request("GET", "/health")
    return forever(lambda number: one)


# ---- what is measured


def told(name: str, found: dict[str, float], floor: float) -> None:
    print(
        f"{name:42} {found['rate']:8.0f}/s {found['rate'] / floor:7.3f} of /health "
        f"{found['cpu_ms']:7.3f} ms CPU  p50 {found['p50_ms']:6.1f} ms  "
        f"p99 {found['p99_ms']:6.1f} ms"
    )


async def rates(folder: Path, stored: list[int], seconds: float) -> None:
    """All operations, at each number of actions stored before."""
    first_cpu = 0.0
    for actions in stored:
        path = folder / f"{actions}.sqlite"
        size = await fill(path, actions)
        with served(str(path)) as (port, pid, ready):
            rss = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
            print(
                f"\n{actions:,} actions stored ({size / 2**20:.0f} MiB): ready after "
                f"{ready:.1f} s, {rss / 2**20:.0f} MiB of memory"
            )
            people = [json.loads(one) for one in await asyncio.to_thread(profiles, port)]
            wishes = [one["customer"]["request"] for one in people if "customer" in one]
            names = [one["id"] for one in people if "customer" in one]
            floor = (await load(port, pid, seconds, healthy))["rate"]
            print(f"{'GET /health':42} {floor:8.0f}/s")
            fetch = await load(port, pid, seconds, fetching)
            told("FetchMessages, an inbox of 10", fetch, floor)
            if first_cpu:
                print(
                    f"{'  CPU over that of the first size':42} {fetch['cpu_ms'] / first_cpu:8.2f}"
                )
            first_cpu = first_cpu or fetch["cpu_ms"]
            told("SendMessage, SQLite", await load(port, pid, seconds, sending), floor)
            lexical = await load(port, pid, seconds, searching(wishes, names))
            told("Search lexical, 300 businesses", lexical, floor)
    path = folder / "large.sqlite"
    await fill(path, 0, businesses=30_000)
    with served(str(path)) as (port, pid, ready):
        print(f"\n30,000 businesses: ready after {ready:.1f} s")
        people = [json.loads(one) for one in await asyncio.to_thread(profiles, port)]
        wishes = [one["customer"]["request"] for one in people if "customer" in one]
        names = [one["id"] for one in people if "customer" in one]
        floor = (await load(port, pid, seconds, healthy))["rate"]
        print(f"{'GET /health':42} {floor:8.0f}/s")
        lexical = await load(port, pid, seconds, searching(wishes, names))
        told("Search lexical, 30,000 businesses", lexical, floor)


def profiles(port: int) -> list[str]:
    """All agent documents, as JSON."""
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/agents") as answer:
        return [json.dumps(one) for one in json.load(answer)["items"]]


async def postgres(url: str, seconds: float) -> None:
    """Lines per second through the port with 16 writers, over one bare connection's inserts."""
    import asyncpg

    from marketeval.stores.postgres import PostgresJournal

    line = "x" * 300
    bare = await asyncpg.connect(url)
    await bare.execute("CREATE TABLE IF NOT EXISTS bare (number bigint PRIMARY KEY, line text)")
    await bare.execute("TRUNCATE bare")
    store = PostgresJournal(f"{url}{'&' if '?' in url else '?'}schema=bench_{time.time_ns()}")
    await store.open(ABOUT)
    lines, rounds, spent = 0, 0, [0.0, 0.0, 0.0]
    end = time.perf_counter() + 3 * seconds
    while time.perf_counter() < end:  # in turns, so that all three meet the same disk
        rounds += 1
        start = time.perf_counter()
        for number in range(CLIENTS):
            await bare.execute("INSERT INTO bare VALUES ($1, $2)", rounds * CLIENTS + number, line)
        spent[0] += time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(CLIENTS):
            lines += 1
            await store.append(Batch([(lines, line)]))
        spent[1] += time.perf_counter() - start
        start = time.perf_counter()
        await store.append(Batch([(lines + n, line) for n in range(1, CLIENTS + 1)]))
        lines += CLIENTS
        spent[2] += time.perf_counter() - start
    rate = rounds * CLIENTS / spent[0]
    print(f"\nPostgreSQL, inserts a second: {rate:.0f} bare, one by one")
    print(f"  through the port, one by one  {spent[0] / spent[1]:6.2f} of it")
    print(f"  through the port, 16 writers  {spent[0] / spent[2]:6.2f} of it")
    await store.close()
    await bare.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--stored", default="100000")
    parser.add_argument("--postgres", default="")
    parser.add_argument("--dir", default="")
    given = parser.parse_args()
    stored = [int(one) for one in given.stored.split(",")]
    with (
        tempfile.TemporaryDirectory(dir=given.dir or None) as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(rates(Path(folder), stored, given.seconds))
        if given.postgres:
            runner.run(postgres(given.postgres, given.seconds))


if __name__ == "__main__":
    main()
