"""`marketeval questions`: what it says, and what it refuses in one line with nothing written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell

from marketeval.testing.fake_endpoint import FakeEndpoint


@pytest.fixture
def rivers(tmp_path: Path) -> Path:
    """Twelve documents in the current folder."""
    path = tmp_path / "rivers.jsonl"
    rows = [{"id": number, "text": f"The Nr{number} is a long river."} for number in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def river(body: object) -> str:
    """One question per river."""
    numbers = re.findall(r"Nr\d+", json.dumps(body))
    if not numbers:
        return "OK"
    said = {"question": f"What is {numbers[0]}?", "answer": "a river", "topic": "geography"}
    return json.dumps({**said, "quote": "a long river"})


def test_it_says_what_was_made_and_what_failed_and_replaces_nothing(
    shell: Shell, rivers: Path
) -> None:
    with FakeEndpoint(reply=river) as fake:
        words = ("questions", rivers, "--model", fake.agent, "--count", 13, "--out", "made.csv")
        answer = shell(*words)
        assert (answer.code, answer.out) == (0, "made.csv\n")
        assert "12 of 13 questions made; 1 failed:\n  1 x the same question as q" in answer.err
        assert "calls: 13 made ($0.0000 and 13 unpriced), 0 from made.csv.calls" in answer.err
        again = shell(*words)
        assert (again.code, again.err.count("\n")) == (2, 1)
        assert "made.csv is there already" in again.err
        assert "calls: 0 made ($0.0000), 13 from" in shell(*words, "--force").err
        assert fake.requests == 14


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.csv", "id,body\n1,x\n", "expected the columns id and text, found id, body"),
        ("d.csv", "id,text\n1,x\n1,y\n", "row 2: the id '1' stands twice"),
        ("d.csv", "id,text\n1,\n", "row 1: expected a text in 'text', got None"),
        ("d.jsonl", '{"id": 1, "text": "x"}\n{"id": 2\n', "line 2 is not JSON"),
        ("d.jsonl", "[1]\n", "line 1: expected an object with id and text"),
        ("d.jsonl", '{"id": 1}\n', "line 1: expected a text in 'text', got None"),
        ("d.jsonl", "\n", "has no documents"),
        ("d.jsonl", b"\xff\n", "is not readable as UTF-8"),
    ],
)
def test_bad_documents_are_one_line(
    refused: Callable[..., str], tmp_path: Path, name: str, text: str | bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    words = ("--model", "openai:m", "--count", 1, "--out", "q.csv")
    assert message in refused("questions", path, *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--count", 0), "expected --count of 1 or more, got 0"),
        (("--model", "gpt"), "expected a model such as openai:MODEL"),
        (("--model", "nobody:gpt"), "unknown model provider 'nobody'"),
        (("--model", "http://127.0.0.1:9/v1#m"), "does not answer for the model m"),
        (("--taxonomy", "tuna"), "unknown taxonomy 'tuna'; known: datamorgana"),
        (("--taxonomy", "no.yaml"), "no taxonomy at no.yaml"),
        (("--prompt", "answer-v1"), "the prompt answer-v1 lacks the place {kind}"),
        (("--temperature", 3), "temperature: expected a number from 0 to 2, got 3"),
        (("--out", "no/where.csv"), "expected --out in a folder that is there; no is not"),
        (("--seed", -1), "expected a seed from 0"),
        (("--max-calls", -3), "'--max-calls': Input should be greater"),
        (("--max-cost", -1), "'--max-cost': Input should be greater"),
    ],
)
def test_bad_orders_are_one_line(
    refused: Callable[..., str], rivers: Path, words: tuple[str, object], message: str
) -> None:
    given: dict[str, object] = {"--model": "http://127.0.0.1:9/v1#m", "--count": 2}
    given |= {"--out": "q.csv", words[0]: words[1]}
    line = refused("questions", rivers, *[word for pair in given.items() for word in pair])
    assert message in line


def test_a_missing_key_names_the_variable(
    refused: Callable[..., str], rivers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ("--model", "openai:gpt-4.1", "--count", 1, "--out", "q.csv")
    assert "OPENAI_API_KEY" in refused("questions", rivers, *words)


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_no_output_takes_the_place_of_what_is_read(
    refused: Callable[..., str], rivers: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    (tmp_path / "link.csv").symlink_to(rivers)
    kinds = "name: k\ntopics: [t]\ndimensions: {a: {b: {weight: 1, told: c}}}\n"
    (tmp_path / "kinds.yaml").write_text(kinds)
    (tmp_path / "ask.txt").write_text("{kind} {topics} {document}")
    (tmp_path / "rivers.csv.json").write_text(rivers.read_text())
    words = ("--model", "http://127.0.0.1:9/v1#m", "--count", 1, *more)
    own = ("--taxonomy", "kinds.yaml", "--prompt", "ask.txt")
    for documents, out, lost in (
        (rivers, rivers, rivers),
        (rivers, "./rivers.jsonl", rivers),
        (rivers, "link.csv", rivers),
        ("rivers.csv.json", "rivers.csv", "rivers.csv.json"),
        (rivers, "kinds.yaml", "kinds.yaml"),
        (rivers, "ask.txt", "ask.txt"),
    ):
        line = refused("questions", documents, *words, *own, "--out", out)
        assert f"--out would overwrite {lost}, which is read; choose another" in line
