"""An endpoint that goes wrong in every way, in every mode of the cassette."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace

import pytest
from asked_models import QUICK, run

from marketeval.core.errors import DataError, ReplayError, UsageError
from marketeval.llm.calls import Calls
from marketeval.llm.cassette import Cassette
from marketeval.llm.client import FinalError, Message, Parameters, StopError
from marketeval.llm.limits import Budget, Limits
from marketeval.llm.openai_compatible import endpoint_model
from marketeval.testing.fake_endpoint import (
    FakeEndpoint,
    Fault,
    always,
    every,
    first,
    status,
)

TRANSIENT = {
    "HTTP 429": status(429, retry_after_s=0.02),
    "HTTP 500": status(500),
    "HTTP 503": status(503),
    "empty answer": Fault(text=""),
    "unreadable response": Fault(broken=True),
    "no answer within 0.15 s": Fault(hang=True),
    "connection failed": Fault(drop=True),
}
FINAL = {"HTTP 400": status(400), "HTTP 401": status(401), "HTTP 404": status(404)}


async def one_call(fake, path, *, mode="record", retry_missing=False, limits=QUICK, text="hello"):
    cassette = Cassette(path, mode=mode, scenario="one", name="one")
    parameters = Parameters(max_tokens=8, timeout_s=0.15)
    async with Calls(cassette, default_limits=limits, retry_missing=retry_missing) as calls:
        model = endpoint_model(fake.agent)
        return await calls.complete(
            model, [Message("user", text)], seat="anna", parameters=parameters
        )


@pytest.mark.parametrize("reason", TRANSIENT)
def test_what_may_pass_is_tried_again_until_it_does(reason, tmp_path):
    with FakeEndpoint(faults=first(2, TRANSIENT[reason])) as fake:
        call = asyncio.run(one_call(fake, tmp_path / "calls.sqlite"))
        assert (call.attempts, call.served, fake.requests) == (3, False, 3)
        again = asyncio.run(one_call(fake, tmp_path / "calls.sqlite"))
    assert (again.completion, again.served, fake.requests) == (call.completion, True, 3)


@pytest.mark.parametrize("mode", ["record", "off"])
@pytest.mark.parametrize(
    ("reason", "tries"), [(one, 4) for one in TRANSIENT] + [(one, 1) for one in FINAL]
)
def test_what_does_not_pass_is_an_outcome_with_its_reason(reason, tries, mode, tmp_path):
    with FakeEndpoint(faults=always({**TRANSIENT, **FINAL}[reason])) as fake:
        for _ in range(2):
            with pytest.raises(FinalError if mode == "record" and _ else Exception, match=reason):
                asyncio.run(one_call(fake, tmp_path / "calls.sqlite", mode=mode))
        assert fake.requests == (tries if mode == "record" else 2 * tries)


def test_a_recorded_failure_is_made_again_only_when_asked_to(tmp_path):
    path = tmp_path / "calls.sqlite"
    with FakeEndpoint(faults=first(4, status(500))) as fake:
        for mode in ("record", "record", "replay-only"):
            with pytest.raises(Exception, match="HTTP 500"):
                asyncio.run(one_call(fake, path, mode=mode))
        assert fake.requests == 4
        call = asyncio.run(one_call(fake, path, retry_missing=True))
        assert (call.attempts, fake.requests) == (1, 5)
        assert asyncio.run(one_call(fake, path, mode="replay-only")).completion == call.completion


def test_replay_only_names_the_seat_whose_call_is_missing_and_makes_none(tmp_path):
    path = tmp_path / "calls.sqlite"
    with FakeEndpoint() as fake:
        asyncio.run(one_call(fake, path))
        with pytest.raises(ReplayError, match=r"seat 'anna'.*'another question'"):
            asyncio.run(one_call(fake, path, mode="replay-only", text="another question"))
        assert fake.requests == 1


def test_a_cassette_of_another_scenario_is_refused_for_replay(tmp_path):
    path = tmp_path / "calls.sqlite"
    with FakeEndpoint() as fake:
        asyncio.run(one_call(fake, path))
    with pytest.raises(UsageError, match=r"holds the calls of one, not of this scenario \(two"):
        Cassette(path, mode="replay-only", scenario="2", name="two")
    with pytest.raises(UsageError, match="there is no"):
        Cassette(tmp_path / "nowhere.sqlite", mode="replay-only", scenario="one")


def test_an_endpoint_that_fails_one_call_in_three_changes_no_result(tmp_path):
    digests, attempts, port = [], [], 0
    for name, faults in (("well", None), ("ill", every(3, status(500)))):
        path = tmp_path / f"{name}.sqlite"
        with FakeEndpoint(faults=faults, port=port) as fake:
            port = fake.port
            limits = replace(QUICK, attempts=12)
            digests.append(asyncio.run(run(path, fake.url, limits=limits, horizon=5)))
        with sqlite3.connect(path) as file:
            attempts.append(file.execute("SELECT sum(attempts) - count(*) FROM call").fetchone()[0])
    assert digests[0] == digests[1]
    assert attempts[0] == 0
    assert attempts[1] > 10


def test_calls_that_fail_are_missing_in_the_log_and_not_wrong(tmp_path):
    logs = []
    faults = lambda number, body: status(400) if "cleo" in str(body) else None  # noqa: E731
    with FakeEndpoint(faults=faults) as fake:
        limits = replace(QUICK, failures_in_a_row=10_000)
        asyncio.run(run(tmp_path / "c.sqlite", fake.url, limits=limits, logs=logs))
    rows = logs[0].scan("interaction").collect()
    cleo = rows.filter(rows["agent"] == 2)
    assert set(cleo["status"].cast(str)) == {"missing"}
    assert cleo["score"].null_count() == cleo.height > 0
    assert set(logs[0].scan("missing").collect()["reason"]) == {"HTTP 400"}


def test_requests_longer_than_the_context_are_no_sign_that_the_endpoint_is_gone(tmp_path):
    logs = []
    overlong = status(400, message="error type exceed_context_size_error")
    with FakeEndpoint(faults=always(overlong)) as fake:
        limits = replace(QUICK, failures_in_a_row=5)
        asyncio.run(run(tmp_path / "c.sqlite", fake.url, limits=limits, logs=logs))
    reasons = logs[0].scan("missing").collect()["reason"]
    assert set(reasons) == {"HTTP 400: longer than the model's context"}
    assert len(reasons) > 5


def test_failures_in_a_row_stop_the_run_and_are_no_outcomes(tmp_path):
    path = tmp_path / "calls.sqlite"
    limits = replace(QUICK, attempts=2, failures_in_a_row=5, concurrency=2)
    with FakeEndpoint() as fake:
        expected = asyncio.run(run(tmp_path / "whole.sqlite", fake.url))
        whole = fake.requests
        gone = FakeEndpoint(faults=lambda n, body: status(503) if n > 20 else None)
    gone.port = fake.port
    with gone, pytest.raises(StopError, match="5 calls in a row failed, the last with: HTTP 503"):
        asyncio.run(run(path, gone.url, limits=limits))
    with FakeEndpoint(port=fake.port) as well:
        assert asyncio.run(run(path, well.url)) == expected
        assert well.requests == whole - 20


def test_the_limit_of_calls_stops_before_it_is_exceeded_and_can_be_resumed(tmp_path):
    path = tmp_path / "calls.sqlite"
    with FakeEndpoint() as fake:
        expected = asyncio.run(run(tmp_path / "whole.sqlite", fake.url))
        whole = fake.requests
        with pytest.raises(StopError, match="stopped after 30 calls"):
            asyncio.run(run(path, fake.url, budget=Budget(max_calls=30)))
        assert fake.requests == whole + 30
        assert asyncio.run(run(path, fake.url)) == expected
        assert fake.requests == 2 * whole


def test_two_awaits_of_one_call_make_one(tmp_path):
    async def both(fake):
        async with Calls(Cassette(tmp_path / "c.sqlite")) as calls:
            model = endpoint_model(fake.agent)
            return await asyncio.gather(
                *(calls.complete(model, [Message("user", "x")], seat=seat) for seat in "ab")
            )

    with FakeEndpoint(delay=0.02) as fake:
        one, other = asyncio.run(both(fake))
    assert one == other
    assert fake.requests == 1


def test_an_interrupt_lets_open_calls_end_and_be_recorded(tmp_path):
    path = tmp_path / "calls.sqlite"

    async def interrupted(fake):
        task = asyncio.create_task(run(path, fake.url, limits=Limits(concurrency=3)))
        while fake.requests < 7:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with FakeEndpoint(delay=0.05) as fake:
        asyncio.run(interrupted(fake))
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*) FROM call").fetchone()[0] == fake.requests


def test_a_preflight_names_the_endpoint_and_its_tries_and_leaves_nothing(tmp_path):
    path = tmp_path / "run" / "calls.sqlite"
    with FakeEndpoint() as fake:
        pass

    async def preflight():
        async with Calls(Cassette(path), default_limits=QUICK) as calls:
            await calls.preflight([(endpoint_model(fake.agent), {})])

    with pytest.raises(UsageError, match=rf"127.0.0.1:{fake.port}/v1.*connection failed.*3 tries"):
        asyncio.run(preflight())
    assert not path.parent.exists()


def test_a_missing_key_names_its_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("SOME_KEY", raising=False)
    model = endpoint_model("http://127.0.0.1:9/v1#m", key_variable="SOME_KEY")

    async def preflight():
        async with Calls() as calls:
            await calls.preflight([(model, {})])

    with pytest.raises(UsageError, match="SOME_KEY"):
        asyncio.run(preflight())


def test_a_cassette_that_was_killed_before_its_tables_is_taken_as_empty(tmp_path):
    path = tmp_path / "calls.sqlite"
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA journal_mode = WAL")
    with FakeEndpoint() as fake:
        assert not asyncio.run(one_call(fake, path)).served
        assert asyncio.run(one_call(fake, path)).served


def test_a_file_that_is_no_cassette_is_refused(tmp_path):
    path = tmp_path / "calls.sqlite"
    path.write_text("no database at all, " * 100)
    with pytest.raises(DataError, match="is no cassette of calls"):
        Cassette(path)
