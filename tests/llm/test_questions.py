"""Questions made from documents: what is planned, what is kept, and what goes wrong."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

from marketeval.core.errors import RunError, UsageError
from marketeval.experiments.question_plan import (
    WINDOW,
    Document,
    plan,
    read_documents,
    read_taxonomy,
)
from marketeval.experiments.questions import Order, make_questions, read_question
from marketeval.llm.limits import Limits
from marketeval.testing.fake_endpoint import FakeEndpoint, every, refusing, status

QUICK = Limits(attempts=2, backoff_s=0.005, failures_in_a_row=50)
COUNT = 30


def text_of(number):
    return f"The river Nr{number} is\n  {100 + number} km long and flows through Town{number}."


@pytest.fixture
def rivers(tmp_path):
    path = tmp_path / "rivers.jsonl"
    rows = [{"id": f"d{number}", "text": text_of(number)} for number in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def river(body):
    """The question a good model makes of a river: the kind is in it, so few are the same."""
    asked = body["messages"][0]["content"]
    if asked == "Reply with OK.":
        return json.dumps({"question": "OK"})
    number = re.findall(r"Nr(\d+)", asked)[-1]
    kinds = re.findall(r"^- (.*)$", asked, re.MULTILINE)
    return json.dumps(
        {
            "question": f"How long is Nr{number}? {'; '.join(kinds)}",
            "answer": f"{100 + int(number)} km",
            "quote": f"the river nr{number} is {100 + int(number)} KM long",
            "topic": "geography",
        }
    )


def make(rivers, fake, out="q.csv", **more):
    how = {name: more.pop(name) for name in ("force", "progress") if name in more}
    order = Order(model=fake.agent, count=COUNT, **more)
    return make_questions(rivers, rivers.parent / out, order, limits=QUICK, **how)


def test_documents_take_turns_and_the_categories_follow_their_weights():
    documents = [Document(f"d{number}", "text") for number in range(7)]
    taxonomy = read_taxonomy("datamorgana")
    plans = plan(documents, taxonomy, count=7000, seed=1)
    for start in range(0, 70, 7):
        assert len({one.document.id for one in plans[start : start + 7]}) == 7
    weights = {  # the table of the specification
        "factuality": {"factoid": 0.7, "open-ended": 0.3},
        "premise": {"without-premise": 0.8, "with-premise": 0.2},
        "phrasing": dict.fromkeys(
            ("concise-natural", "verbose-natural", "short-search", "long-search"), 0.25
        ),
        "linguistic_variation": {"similar": 0.5, "distant": 0.5},
        "expertise": {"expert": 0.4, "novice": 0.6},
    }
    assert list(taxonomy.dimensions) == list(weights)
    for dimension, shares in weights.items():
        drawn = [one.categories[dimension] for one in plans]
        for category, share in shares.items():
            assert drawn.count(category) / 7000 == pytest.approx(share, abs=0.03)  # > 5 sd
    assert plan(documents, taxonomy, count=50, seed=1) == plans[:50]
    assert plan(documents, taxonomy, count=50, seed=2) != plans[:50]


def test_of_a_long_document_a_part_is_shown_and_the_span_counts_in_the_whole():
    (one,) = plan([Document("d", "a b " * WINDOW)], read_taxonomy("datamorgana"), count=1, seed=3)
    assert len(one.shown) == WINDOW
    assert one.start > 0
    said = {"question": "q", "answer": "a", "quote": "A  b", "topic": "t"}
    made = read_question(said, one, ["t"])
    assert one.document.text[made.start : made.end] == "a b"
    assert made.start in (one.start, one.start + 2, one.start + 1, one.start + 3)


def test_questions_are_grounded_and_a_second_time_nothing_is_asked(rivers):
    with FakeEndpoint(reply=river) as fake:
        made = make(rivers, fake)
        assert fake.requests == COUNT + 1  # one to see whether it is there
        again = make(rivers, fake, force=True)
        assert fake.requests == COUNT + 1
    assert (again.calls, again.served) == (0, COUNT)
    table = pl.read_csv(rivers.parent / "q.csv")
    assert table.equals(made.table)
    assert table.columns == [
        "item_id", "question", "answer", "topic", "document_ids", "span_start", "span_end",
        "quote", "factuality", "premise", "phrasing", "linguistic_variation", "expertise",
    ]  # fmt: skip
    for row in table.iter_rows(named=True):
        number = int(row["document_ids"][1:])
        quote = text_of(number)[row["span_start"] : row["span_end"]]
        assert quote == row["quote"] == f"The river Nr{number} is\n  {100 + number} km long"
        assert row["answer"] == f"{100 + number} km"
    facts = json.loads((rivers.parent / "q.csv.json").read_text())
    assert facts["made"] + len(facts["failures"]) == COUNT
    assert facts["prompt"].startswith("make-question-v1 ")


def test_the_same_question_twice_is_a_failure_that_names_the_first(rivers):
    with FakeEndpoint(reply=lambda body: re.sub(r"\? [^\"]*", "?", river(body))) as fake:
        made = make(rivers, fake)
    assert made.table.height == 12 == made.table["question"].n_unique()
    assert len(made.failures) == 18
    assert all(one.reason.startswith("the same question as q") for one in made.failures)


def test_failures_are_counted_by_reason_and_made_good_by_another_try(rivers):
    def nonsense(body):
        said = json.loads(river(body))
        if said["question"].startswith("How long is Nr3?"):
            return json.dumps({**said, "quote": "no such words"})
        return json.dumps(said)

    with FakeEndpoint(reply=nonsense, faults=every(4, status(400))) as fake:
        made = make(rivers, fake)
    assert {one.document_id for one in made.failures if "quote" in one.reason} == {"d3"}
    assert sum(number for _, number in made.reasons) == len(made.failures)
    assert made.table.height + len(made.failures) == COUNT
    ids = {*made.table["item_id"], *(one.item_id for one in made.failures)}
    assert ids == {f"q{number + 1}" for number in range(COUNT)}
    with FakeEndpoint(reply=river, port=fake.port) as well:
        best = make(rivers, well, force=True, retry_missing=True)
    assert 0 < well.requests < COUNT
    kept = best.table.filter(pl.col("item_id").is_in(made.table["item_id"].implode()))
    assert kept.equals(made.table)
    assert best.table.height > made.table.height


def test_a_quote_that_is_not_there_is_shown_as_an_error_and_may_be_mended(rivers):
    def mends(body):
        if "Nr" not in body["messages"][0]["content"]:
            return "OK"
        if len(body["messages"]) == 1:
            return json.dumps({**json.loads(river(body)), "quote": "made up"})
        assert "this passage is not in the document" in body["messages"][-1]["content"]
        return json.dumps({**json.loads(river(body)), "question": body["messages"][0]["content"]})

    with FakeEndpoint(reply=mends) as fake:
        made = make(rivers, fake)
        assert fake.requests == 1 + 2 * COUNT
    assert not [one for one in made.failures if "quote" in one.reason]


def test_an_endpoint_without_schemas_is_asked_in_words(rivers):
    with FakeEndpoint(reply=river, faults=refusing("json_schema", "json_object")) as fake:
        assert make(rivers, fake).table.height > 20


def test_a_limit_stops_it_and_the_same_command_goes_on(rivers):
    with FakeEndpoint(reply=river) as fake:
        with pytest.raises(RunError, match="go on by the same command, which counts anew"):
            make(rivers, fake, max_calls=10)
        assert fake.requests == 11
        assert not (rivers.parent / "q.csv").exists()
        made = make(rivers, fake)
        assert fake.requests == COUNT + 1
    assert made.served == 10
    with FakeEndpoint(reply=river, port=fake.port) as other:
        assert make(rivers, other, out="other.csv").table.equals(made.table)


def test_where_no_question_could_be_made_nothing_is_written(rivers):
    with FakeEndpoint(reply=lambda body: "no") as fake, pytest.raises(RunError, match="none of 30"):
        make(rivers, fake)
    assert not (rivers.parent / "q.csv").exists()


def test_csv_documents_may_bring_their_topics(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("id,text,topic\n7,some words,law\n")
    assert read_documents(path) == [Document("7", "some words", "law")]


def test_a_taxonomy_of_ones_own(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("dimensions: {tone: {dry: {weight: 1, told: dry}}}\ntopics: [all]\n")
    assert read_taxonomy(str(path)).dimensions["tone"]["dry"].weight == 1.0
    path.write_text("dimensions: {quote: {dry: {weight: 1, told: dry}}}\ntopics: [all]\n")
    with pytest.raises(UsageError, match="a dimension cannot be called 'quote'"):
        read_taxonomy(str(path))
    path.write_text("dimensions: {tone: {dry: {weight: 0, told: dry}}}\ntopics: [all]\n")
    with pytest.raises(UsageError, match=r"dimensions\.tone\.dry\.weight"):
        read_taxonomy(str(path))
