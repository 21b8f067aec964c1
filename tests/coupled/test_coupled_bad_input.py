"""What is wrong with a scenario or its files is said in one line, before anything is played."""

from __future__ import annotations

import copy
import json

import pytest
from ecosystems import experiment

from marketeval.apps.cli.main import run as command
from marketeval.core.errors import UsageError

MARKET = {
    "horizon": 2,
    "populations": {
        "users": {"role": "user"},
        "gens": {"role": "generator", "members": ["g"]},
        "router": {"role": "router"},
        "rets": {"role": "retriever", "members": {"r": {"evidence": 0.5}, "s": {"evidence": 0.1}}},
    },
    "edges": ["users -> gens", "gens -> router", "router -> rets"],
}
QRELS = "1 0 d1 1\n1 0 d2 0\n2 0 d1 0\n"
RUN = "1 Q0 d1 1 2.0 x\n1 Q0 d2 2 1.0 x\n2 Q0 d1 1 1.0 x\n"


def changed(**changes):
    """The market above with values set by dotted path."""
    market = copy.deepcopy(MARKET)
    for path, value in changes.items():
        at = market
        *above, last = path.split("__")
        for part in above:
            at = at[part]
        at[last] = value
    return market


def refusal(market, seats=None) -> str:
    with pytest.raises(UsageError) as caught:
        experiment(market, seats)
    text = str(caught.value)
    assert "\n" not in text
    return text


def files(tmp_path, *, qrels=QRELS, run=RUN, corpus=None):
    """A market over files, and the seats of its retrievers."""
    (tmp_path / "qrels.txt").write_text(qrels, "utf-8")
    (tmp_path / "run.txt").write_text(run, "utf-8")
    if corpus is not None:
        (tmp_path / "docs.jsonl").write_text(corpus, "utf-8")
    market = changed(folder=str(tmp_path), qrels="qrels.txt")
    market["populations"]["rets"]["members"] = {"r": {}}
    return market, {"r": "run:run.txt" if corpus is None else "bm25:docs.jsonl"}


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (
            ["users -> gens", "gens -> router", "router -> gens", "router -> rets"],
            "cycle: gens -> router -> gens",
        ),
        (["users -> gens", "gens -> rets", "rets -> router", "router -> rets"], "has a cycle"),
        (["users -> gens", "gens -> gens"], "cycle: gens -> gens"),
        (
            ["users -> gens", "users -> router", "router -> rets", "rets -> gens"],
            "a retriever selects nobody, not a generator",
        ),
        (["users -> gens", "gens -> router", "router -> rets", "gens -> users"], "cycle"),
        (["gens -> router", "router -> rets"], "no edge leads from it"),
        (["users -> gens", "gens -> router"], "router 'router': no edge leads from it"),
        (["users -> gens", "gens -> router", "router -> r"], "retriever 's': no edge leads to it"),
        (["users -> gens", "gens -> router", "router -> retz"], "did you mean 'rets'"),
        (["users gens"], "expected an edge such as 'users -> generators'"),
        (
            ["users -> gens", "gens -> router", "router -> rets", "users -> gens"],
            "the edge 'users -> gens' stands twice",
        ),
    ],
)
def test_a_graph_that_is_none_is_named(edges, said):
    assert said in refusal(changed(edges=edges))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("populations__rets__price", {"query": -0.1}, "price.query"),
        ("populations__rets__capacity", -1, "capacity"),
        ("populations__gens__capacity", 0, "capacity"),
        ("populations__users__budget", -1, "budget"),
        ("populations__users__count", 0, "count"),
        (
            "populations__router__choose",
            {"policy": "ucb"},
            ".router.choose: unknown policy 'ucb'; did you mean 'ucb1'",
        ),
        ("populations__router__choose", {"policy": "ucb1", "learning": "drift"}, "valid: mean"),
        ("populations__router__choose", {"exclusive": ["rr"]}, "exclusive target of 'router'"),
        ("populations__rets__members__r", {}, "nothing to retrieve from"),
        ("populations__rets__members__r", {"evidence": 1.5}, "evidence"),
        ("populations__rets__members__r", {"evidence": {"nil": 1}}, "unknown topic 'nil'"),
        (
            "populations__rets__members__r",
            {"evidence": {"all": 2}},
            "members.r.evidence.all: input",
        ),
        (
            "populations__rets__members__r",
            {"evidence": 1, "owns": ["x"]},
            "'r' owns x but reads no",
        ),
        ("populations__gens__closed_book", {}, "g.closed_book: expected a number for each topic"),
        ("populations__users__count", True, "expected a number as 'count', got True"),
        ("populations__rets__rol", 1, "unknown key 'rol' in market.populations.rets"),
        ("populations__rets__role", "retriver", "populations.rets.role: expected 'user'"),
        ("edges", ["users -> gans"], "agent or population 'gans'; did you mean 'gens'?"),
        ("measure", "AP", "give market.qrels"),
        ("demand", {"label": "colour"}, "names a column ('colour') of market.questions"),
        ("populations__rets__members__r", {"evidence": 1, "topics": ["x"]}, "unknown topic 'x'"),
        ("populations__gens__strategy", {"kind": "agentc"}, "strategy"),
        ("populations__gens__adapt", {"lever": "focus", "options": ["a", "b"]}, "cannot set its"),
        ("without", ["nobody"], "market.without"),
        ("demand", {"weights": {"art": 1}}, "topic of the demand"),
        ("demand", {"taxonomy": "tuna"}, "no question has a label of 'tuna'"),
        ("credit", "reported", "credit"),
        ("pool", {}, "pool"),
        ("edgez", [], "unknown key 'edgez'"),
        ("questions", "nothing.csv", "nothing.csv"),
        ("qrels", "nothing.txt", "nothing.txt"),
    ],
)
def test_a_value_that_cannot_be_is_named(path, value, said):
    assert said in refusal(changed(**{path: value}))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (RUN + "1 Q0 d1 3 0.5 x\n", "line 4: document 'd1' stands twice for topic '1'"),
        ("1 Q0 d1 1 2.0 x\n1 Q0 d2 2\n", "line 2: expected 6 columns"),
        ("1 Q0 d1 1 high x\n", "line 1: expected a number as score, got 'high'"),
        ("1 Q0 d1 1 nan x\n", "line 1: expected a number as score"),
        ("\n\n", "found no line"),
        ("901 Q0 d1 1 2.0 x\n", "share no topic"),
    ],
)
def test_a_broken_run_is_named_with_its_line(tmp_path, run, said):
    market, seats = files(tmp_path, run=run)
    assert said in refusal(market, seats)


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        ("1 0 d1\n", "line 1: expected 4 columns"),
        ("1 0 d1 yes\n", "line 1: expected a whole number as grade"),
        (QRELS + "1 0 d1 1\n", "line 4: document 'd1' is judged twice"),
        ("", "found none"),
    ],
)
def test_broken_judgments_are_named_with_their_line(tmp_path, qrels, said):
    market, seats = files(tmp_path, qrels=qrels)
    assert said in refusal(market, seats)


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ("", "the corpus is empty"),
        ('{"id": "a", "text": "  "}\n', "the corpus is empty"),
        ('{"id": "a", "text": "x y"}\n{"id": "a", "text": "z"}\n', "line 2: document 'a' stands"),
        ('{"id": "a", "text": "x y"}\n{"id"\n', "line 2: expected a JSON object with a text"),
    ],
)
def test_a_corpus_that_is_none_is_named(tmp_path, corpus, said):
    market, seats = files(tmp_path, corpus=corpus)
    assert said in refusal(market, seats)


def test_questions_and_judgments_must_share_a_topic(tmp_path):
    market, seats = files(tmp_path)
    (tmp_path / "questions.csv").write_text("query_id,text\n7,what\n", "utf-8")
    assert "share no topic" in refusal({**market, "questions": "questions.csv"}, seats)


def test_a_collection_that_belongs_to_one_retriever_is_kept_from_others(tmp_path):
    corpus = "".join(json.dumps({"id": f"d{n}", "text": f"word{n} law"}) + "\n" for n in (1, 2))
    market, seats = files(tmp_path, corpus=corpus)
    market["populations"]["rets"]["members"] = {"r": {"owns": ["docs.jsonl"]}, "s": {}}
    said = refusal(market, {**seats, "s": "bm25:docs.jsonl"})
    assert "belongs to retriever 'r' alone" in said


def test_a_recorded_run_takes_no_other_words(tmp_path):
    market, seats = files(tmp_path)
    market["populations"]["rets"]["noise"] = 0.1
    assert "it takes no noise" in refusal(market, seats)


def test_the_command_line_says_it_in_one_line_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "market.yaml").write_text(
        json.dumps({"family": "coupled", "market": changed(edges=["users -> gens"])}), "utf-8"
    )
    assert command(["run", "market.yaml", "--out", "run"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_shipped_scenario_without_its_data_says_where_to_give_them(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(["run", "trec-dl19-retrievers"]) == 2
    assert "--set folder=FOLDER" in capsys.readouterr().err
