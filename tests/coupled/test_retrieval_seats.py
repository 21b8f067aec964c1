"""Retrievers over real corpora and real HTTP, and generators that read what they hand over."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from ecosystems import data, play, rows, value

from marketeval.adapters.marketplace_eval_scenario import load_tree
from marketeval.agents.registry import make_agent
from marketeval.agents.retriever import index_folder
from marketeval.experiments.scenario import check

DOCS = {
    "cat": "The cat is a small animal. Cats sleep most of the day.",
    "dog": "The dog is a loyal animal and barks at strangers.",
    "law": "A contract is a promise that a court enforces.",
    "tax": "A tax is a payment that the law asks of everybody.",
}
QUERIES = {"1": "what does a court enforce", "2": "small animal that sleeps"}
RELEVANT = {"1": "law", "2": "cat"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MARKETEVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """A small collection: corpus, questions, judgments."""
    lines = [json.dumps({"id": name, "text": text}) for name, text in DOCS.items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    asked = "".join(f"{one},{text}\n" for one, text in QUERIES.items())
    (tmp_path / "questions.csv").write_text("query_id,text\n" + asked, "utf-8")
    judged = "".join(f"{one} 0 {name} 1\n" for one, name in RELEVANT.items())
    (tmp_path / "qrels.txt").write_text(judged, "utf-8")
    return tmp_path


def market(folder, *, strategy=None, measure="RR@10", **retriever):
    return {
        "folder": str(folder),
        "horizon": 3,
        "per_step": 2,
        "questions": "questions.csv",
        "qrels": "qrels.txt",
        "measure": measure,
        "demand": {"replacement": False},
        "populations": {
            "users": {"role": "user", "count": 2},
            "reader": {
                "role": "generator",
                "profile": "court",
                "strategy": strategy or {"documents": 2},
            },
            "index": {"role": "retriever", **retriever},
        },
        "edges": ["users -> reader", "reader -> index"],
    }


@pytest.mark.parametrize("form", ["docs.jsonl", "docs.csv", "docs.trec"])
def test_the_same_corpus_in_each_form_gives_the_same_ranking(folder, form):
    (folder / "docs.csv").write_text(
        "doc_id,text\n" + "".join(f'{name},"{text}"\n' for name, text in DOCS.items()), "utf-8"
    )
    (folder / "docs.trec").write_text(
        "".join(f"<DOC>\n<DOCNO> {n} </DOCNO>\n<TEXT>{t}</TEXT>\n</DOC>\n" for n, t in DOCS.items())
    )
    agent = make_agent(f"bm25:{folder / form}", seat="index")
    found = agent.rank_all(["1", "2"], list(QUERIES.values()), 2)
    assert [one[0] for one in found.documents] == ["law", "cat"]


def test_an_index_is_kept_under_the_content_of_its_corpus(folder):
    def ranked():
        agent = make_agent(f"bm25:{folder / 'docs.jsonl'}", seat="index")
        return agent.rank_all(["1"], [QUERIES["1"]], 1).documents

    assert ranked() == ranked() == [("law",)]  # built, then loaded
    changed = (folder / "docs.jsonl").read_text("utf-8").replace("court enforces", "judge upholds")
    changed = changed.replace("barks", "court")
    (folder / "docs.jsonl").write_text(changed, "utf-8")
    assert ranked() == [("dog",)]
    assert index_folder("a") != index_folder("b")


def test_an_extractive_generator_quotes_what_it_was_handed(folder):
    log = play(market(folder), {"index": "bm25:docs.jsonl", "reader": "extractive"})
    answers = dict(zip(
        (row[0] for row in rows(log, "interaction", "question")),
        (row[0] for row in rows(log, "path", "text")), strict=True,
    ))  # fmt: skip
    assert answers[0].startswith("A contract is a promise that a court enforces.")
    assert value(log, "MeanScore") == 1.0


def test_a_further_round_asks_with_new_words_and_stops_when_nothing_is_new(folder):
    plan = {"kind": "agentic", "rounds": 4, "documents": 1}
    log = play(market(folder, strategy=plan), {"index": "bm25:docs.jsonl"})
    calls = rows(log, "retrieval", "step", "slot", "round", "query", "documents")
    assert {row[2] for row in calls} >= {0, 1}
    assert all((row[3] == "") == (row[2] == 0) for row in calls)
    for step, slot in {row[:2] for row in calls}:
        found = [row[4] for row in calls if row[:2] == (step, slot)]
        assert found[-1] in found[:-1] or len(found) == 4  # it ended with nothing new
    limited = play(market(folder, strategy={**plan, "calls": 1}), {"index": "bm25:docs.jsonl"})
    assert len(rows(limited, "retrieval", "slot")) == 6


def test_noise_loses_words_and_a_profile_adds_them(folder):
    noisy = play(market(folder, noise=1.0), {"index": "bm25:docs.jsonl"})
    plain = play(market(folder), {"index": "bm25:docs.jsonl"})
    assert value(noisy, "MeanScore") < value(plain, "MeanScore")
    assert {query for (query,) in rows(noisy, "retrieval", "query")} == {" "}
    personal = play(market(folder, personal=True), {"index": "bm25:docs.jsonl"})
    assert all(query.endswith(" court") for (query,) in rows(personal, "retrieval", "query"))


class _Search(BaseHTTPRequestHandler):
    """Knows one document per question; fails when asked about animals."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "animal" in asked["query"]:
            self.send_error(404)
            return
        body = json.dumps(
            {"documents": [{"id": "law", "score": 7.5, "text": DOCS["law"]}][: asked["k"]]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Quiet."""


@pytest.fixture
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Search)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/search"
    server.shutdown()


def test_a_retriever_behind_http_is_asked_and_its_failures_are_events(folder, url):
    log = play(market(folder), {"index": f"search:{url}", "reader": "extractive"})
    by_question = {
        question: (documents, reported)
        for question, documents, reported in zip(
            (row[0] for row in rows(log, "interaction", "question")),
            (row[0] for row in rows(log, "retrieval", "documents")),
            (row[0] for row in rows(log, "retrieval", "reported")),
            strict=True,
        )
    }
    assert by_question == {0: ("law", 7.5), 1: ("", None)}
    assert value(log, "MeanScore") == pytest.approx(0.5)
    from marketeval.metrics.base import evaluate, parse_metric

    told = evaluate(log, [parse_metric("Regret")])
    assert told["value"].to_list() == [None]
    assert "somebody has to be asked" in told["note"][0]


def test_a_router_in_a_seat_says_where_it_routes_and_errs_only_into_its_rule():
    import numpy as np

    from marketeval.actions.coupled import Routed

    class Last:
        """Routes to the last of its options, and once nowhere."""

        immediate = deterministic = True
        privileged = False

        async def act(self, request):
            target = np.full(request.batch["slot"].size, len(request.batch["options"]) - 1)
            return Routed(target=target + (request.step == 2))

    log = play(
        {
            "horizon": 4,
            "per_step": 2,
            "populations": {
                "users": {"role": "user"},
                "gen": {"role": "generator"},
                "desk": {"role": "router"},
                "rets": {
                    "role": "retriever",
                    "members": {"a": {"evidence": 0.9}, "b": {"evidence": 0.1}},
                },
            },
            "edges": ["users -> gen", "gen -> desk", "desk -> rets"],
        },
        {"desk": "person"},
        agents={"desk": Last()},
    )
    steps = rows(log, "retrieval", "step", "agent")
    names = dict(rows(log, "agent", "agent", "seat"))
    assert {names[agent] for step, agent in steps if step != 2} == {"b"}
    assert len(rows(log, "missing_choice", "slot")) == 2


def test_the_references_sample_with_routers_and_retrievers_loads_as_coupled_markets(tmp_path):
    import shutil

    sample = tmp_path / "sample.yaml"
    shutil.copy(data("marketplace_eval_configs") / "sample_simulation.yaml", sample)
    tree, notes = load_tree(sample, replayed=False)
    spec = check(tree).market
    assert spec.horizon == 1000
    assert spec.graph.targets["router_main"] == (
        "retriever_e5_base", "retriever_e5_small", "retriever_mini",
    )  # fmt: skip
    assert spec.agents["router_main"].choose.theta == 0.2
    assert spec.agents["generator_qwen_2_5_7b_instruct"].strategy.kind == "agentic"
    assert any("retriever_google_web" in note for note in notes)
