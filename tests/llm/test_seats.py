"""Seats behind HTTP, in Python and in person; what is kept; answers in words in a market."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from asked_models import a_market, run

from marketeval.actions.information import Answers, Grades
from marketeval.actions.wire import from_json, request_hash, to_json
from marketeval.agents.kept import drained, keeping
from marketeval.agents.person import Person
from marketeval.agents.preview import previews
from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep
from marketeval.core.errors import ReplayError, ScenarioError, UsageError
from marketeval.core.log import EventLog
from marketeval.core.market import Failure, Request
from marketeval.core.streams import Streams
from marketeval.llm.cassette import Cassette
from marketeval.metrics.agreement import JudgeAgreement
from marketeval.testing.fake_endpoint import FakeEndpoint


@dataclass(frozen=True)
class Bid:
    amount: int


def request(turn=0, seed=1, **more):
    given = {"seat": "bidder", "decision": "bid", "action": Bid, "step": 0, "briefing": {"cash": 9}}
    return Request(turn=turn, draws=Streams(seed), **{**given, **more})


@pytest.fixture
def endpoint():
    """A decision endpoint that bids the turn; the first request of all fails."""
    bodies: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send(200 if self.path == "/health" else 404, {})

        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            turn = bodies[-1]["turn"]
            answers = {7: {"failure": "no idea"}, 8: {"action": {"amount": "lots"}}, 9: [1]}
            code = 500 if len(bodies) == 1 else 200
            self._send(code, answers.get(turn, {"action": {"amount": turn}}))

        def _send(self, code, body):
            raw = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_decision_endpoint_gets_the_request_and_gives_the_action(endpoint):
    url, bodies = endpoint
    seat = make_agent(f"remote:{url}", seat="bidder")
    seat.check()
    assert asyncio.run(seat.act(request(turn=3))) == Bid(3)
    assert len(bodies) == 2  # tried again after HTTP 500
    assert bodies[1] == {
        "seat": "bidder", "decision": "bid", "action": "Bid", "seed": 1, "step": 0, "turn": 3,
        "instructions": "", "briefing": {"cash": 9}, "news": None, "batch": {}, "privileged": None,
    }  # fmt: skip
    assert asyncio.run(seat.act(request(turn=7))) == Failure("no idea")
    assert "unreadable action: amount" in asyncio.run(seat.act(request(turn=8))).reason
    assert "expected {'action'" in asyncio.run(seat.act(request(turn=9))).reason


def test_an_endpoint_that_is_not_there_or_no_address_is_one_line():
    with pytest.raises(UsageError, match=r"no decision endpoint at http://127\.0\.0\.1:9/health"):
        make_agent("remote:http://127.0.0.1:9", seat="a").check()
    with pytest.raises(ScenarioError, match="expected remote:http://HOST, got 'remote:here'"):
        make_agent("remote:here", seat="a")


def test_a_person_answers_in_json_and_may_skip():
    typed = iter(["seven\n", '{"amount": 7}\n', "skip\n"])
    shown = io.StringIO()
    seat = Person(read=lambda: next(typed), out=shown)
    assert asyncio.run(seat.act(request())) == Bid(7)
    assert asyncio.run(seat.act(request())) == Failure("skipped")
    assert "cash" in shown.getvalue()
    assert "not understood" in shown.getvalue()


class Moody:
    """Gives another answer each time; says no on turn 1."""

    immediate = deterministic = privileged = False

    def __init__(self):
        self.asked = 0

    async def act(self, request):
        self.asked += 1
        return Failure("no") if request.turn == 1 else Bid(self.asked)


def test_what_a_seat_did_is_kept_and_another_request_is_refused(tmp_path):
    moody, path = Moody(), tmp_path / "calls.sqlite"

    def act(asked, mode="record", **how):
        async def one():
            cassette = Cassette(path, mode=mode, scenario="s")
            try:
                return await keeping({"bidder": moody}, cassette, **how)["bidder"].act(asked)
            finally:
                cassette.close()

        return asyncio.run(one())

    first = act(request())
    assert act(request()) == act(request(), "replay-only") == first == Bid(1)
    assert act(request(turn=1)) == act(request(turn=1)) == Failure("no")
    assert moody.asked == 2
    act(request(turn=1), retry_missing=True)
    act(request(seed=2))
    act(request(), arm="without entry")
    assert moody.asked == 5
    with pytest.raises(ReplayError, match="seat 'bidder', seed 1, turn 0: expected the request"):
        act(request(briefing={"cash": 8}))
    with pytest.raises(ReplayError, match="replay-only asks nobody"):
        act(request(seed=3), "replay-only")


class Slow:
    """Bids what it is told, the larger the sooner; raises at 3."""

    immediate = deterministic = privileged = False

    def __init__(self):
        self.ended = []

    async def act(self, request):
        amount = request.briefing["cash"]
        if amount == 3:
            raise ValueError("three is too much")
        await asyncio.sleep(0.01 * (9 - amount))
        self.ended.append(amount)
        return Bid(amount)


def test_several_requests_of_a_turn_are_kept_each_in_their_order(tmp_path):
    slow, path = Slow(), tmp_path / "calls.sqlite"

    async def turn(mode="record"):
        cassette = Cassette(path, mode=mode, scenario="s")
        seat = keeping({"bidder": slow}, cassette)["bidder"]
        asked = [request(briefing={"cash": cash}) for cash in (1, 3, 7, 7)]
        done = await asyncio.gather(*(seat.act(one) for one in asked))
        cassette.close()
        return done

    said = Failure("ValueError: three is too much")
    assert asyncio.run(turn()) == [Bid(1), said, Bid(7), Bid(7)]
    assert slow.ended == [7, 7, 1]
    assert asyncio.run(turn("replay-only")) == [Bid(1), said, Bid(7), Bid(7)]
    assert len(slow.ended) == 3


def test_an_interrupt_lets_an_open_decision_end_and_be_kept(tmp_path):
    slow, path = Slow(), tmp_path / "calls.sqlite"

    async def interrupted():
        cassette = Cassette(path, scenario="s")
        seats = keeping({"bidder": slow}, cassette)
        task = asyncio.create_task(seats["bidder"].act(request(briefing={"cash": 4})))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert slow.ended == []
        await drained(seats.values())
        cassette.close()

    asyncio.run(interrupted())
    cassette = Cassette(path, mode="replay-only", scenario="s")
    assert cassette.action("", 1, 0, "bidder").action == '{"amount": 4}'
    cassette.close()


def test_an_interrupt_does_not_wait_for_somebody_to_type(tmp_path):
    typed = threading.Event()

    async def interrupted():
        cassette = Cassette(tmp_path / "calls.sqlite", scenario="s")
        person = Person(read=lambda: str(typed.wait(20.0)), out=io.StringIO())
        seats = keeping({"bidder": person}, cassette)
        task = asyncio.create_task(seats["bidder"].act(request()))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await drained(seats.values())
        cassette.close()

    asyncio.run(interrupted())
    assert not typed.is_set()  # nobody typed, and nobody was waited for
    typed.set()


def test_arrays_and_missing_numbers_survive_json():
    answers = Answers(
        score=np.array([0.1, np.nan]), grade=np.array([1, 3], np.int8), text=["x", ""],
        reason=["", "gone"],
    )  # fmt: skip
    back = from_json(Answers, json.loads(json.dumps(to_json(answers))))
    assert back.score.tobytes() == answers.score.tobytes()
    assert back.grade.dtype == np.int8
    assert (back.cost_usd, back.text, back.reason) == (None, ["x", ""], ["", "gone"])
    with pytest.raises(ValueError, match="unknown field 'scores'"):
        from_json(Answers, {"scores": [1]})
    assert request_hash(request()) == request_hash(request()) != request_hash(request(turn=1))


class Scripted:
    """A judge that says what it is told, row by row."""

    immediate = deterministic = True
    privileged = False

    def __init__(self, grades):
        self.grades = grades

    async def act(self, request):
        return self.grades(len(request.batch["text"]))


class Wordy:
    """A generator in words; every second answer is empty."""

    immediate = deterministic = True
    privileged = False

    async def act(self, request):
        asked = request.batch["asked"]
        empty = request.batch["slot"] % 2 == 1
        return Answers(
            score=np.full(len(asked), np.nan),
            text=["" if one else "said" for one in empty],
            reason=["gone" if one else "" for one in empty],
        )


def played_with(judge):
    market = a_market(horizon=3)
    log = EventLog(market.events)
    seats = {**{seat: Wordy() for seat in ("anna", "bert", "cleo")}, "judge": judge}
    lockstep(market, seats, seed=1, log=log)
    return log


def test_answers_in_words_are_graded_once_per_wave_and_the_rest_is_missing():
    sizes = []
    log = played_with(Scripted(lambda n: sizes.append(n) or Grades(score=np.full(n, 0.5))))
    assert sizes == [4, 4, 4]  # slots 0, 2, 4, 6 of 8
    rows = log.scan("interaction").collect()
    assert rows["score"].to_list() == [0.5, None] * 12
    assert set(log.scan("missing").collect()["reason"]) == {"gone"}


@pytest.mark.parametrize(
    ("grades", "reason"),
    [
        (lambda n: Failure("out of order"), "judge: out of order"),
        (lambda n: Grades(score=np.full(n + 1, 0.5)), "judge: expected 4 values in 'score'"),
        (lambda n: Grades(score=np.full(n, 2.0)), "judge: a score outside [0, 1]"),
        (lambda n: Grades(score=np.full(n, np.nan), reason=["?"] * n), "judge: ?"),
    ],
)
def test_a_judge_that_gives_no_grade_leaves_the_answer_missing(grades, reason):
    log = played_with(Scripted(grades))
    rows = log.scan("interaction").collect()
    assert rows["score"].null_count() == rows.height
    assert set(log.scan("missing").collect()["reason"]) == {"gone", reason}


def test_what_a_panel_said_is_logged_and_its_agreement_measured():
    def grades(n):
        said = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], np.int8)
        return Grades(
            score=np.full(n, 0.5), judges=("one", "other"), scores=said.astype(float), grades=said
        )

    log = played_with(Scripted(grades))
    assert log.scan("judgement").collect().height == 3 * 2 * 4
    table = JudgeAgreement().compute(log)
    assert table["value"].to_list() == [pytest.approx(0.5)]  # as in cohen_kappa's example


def test_a_pool_of_samples_is_shared_by_all_seeds(tmp_path):
    with FakeEndpoint() as fake:
        asyncio.run(run(tmp_path / "c", fake.url, seeds=range(1, 9), options={"samples": 2}))
        assert 40 * 3 < fake.requests <= 40 * 3 * 2


def test_prompts_can_be_shown_without_a_call():
    seat = make_agent("http://127.0.0.1:9/v1#m", seat="anna", options={"system": "Be brief."})
    asked = request(decision="answer", batch={"asked": ["Why {gold}?"], "slot": [0]})
    (shown,) = previews(seat, asked)
    assert [one.role for one in shown.messages] == ["system", "user"]
    assert "Question: Why {gold}?" in shown.messages[1].text
    assert shown.prompt.startswith("answer-v1 ")
    (shown,) = previews(seat, request())
    assert shown.schema["required"] == ["amount"]
