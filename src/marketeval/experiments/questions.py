"""Questions made from documents by a model, along a taxonomy: a data step before any market.

The model is given a document and a category of every dimension (`question_plan`). It gives the
question, the answer and the passage that holds the answer; a passage that is not in the document
is shown to it as an error, and in the end the question counts as failed. Every call is in a
cassette beside the output, so that nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from marketeval.agents.chat import Chat, chat
from marketeval.agents.wording import Prompt, prompt
from marketeval.core.errors import RunError, UsageError
from marketeval.experiments.question_plan import (
    COLUMNS,
    Plan,
    Taxonomy,
    plan,
    read_documents,
    read_taxonomy,
)
from marketeval.experiments.run_directory import write_text
from marketeval.experiments.targets import check_target
from marketeval.llm.calls import Calls, all_of
from marketeval.llm.cassette import Cassette
from marketeval.llm.client import CallError, Message, StopError
from marketeval.llm.limits import Budget, Limits
from marketeval.llm.structured import ask

PROMPT = "make-question-v1"
CALLS = ".calls.sqlite"  # after the name of the output: what was asked and answered
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Grounded:
    """What the model made; the quote is `document.text[start:end]`."""

    question: str
    answer: str
    topic: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A question that could not be made, and why."""

    item_id: str
    document_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The questions as a table with `COLUMNS` and one column per dimension, and what it took.

    `cost_usd` sums the calls of this run that are priced; `unpriced` counts the others.
    """

    table: pl.DataFrame
    failures: Sequence[Failed]
    prompt: str
    calls: int
    served: int
    cost_usd: float
    unpriced: int

    @property
    def reasons(self) -> Sequence[tuple[str, int]]:
        """Why questions failed, with their numbers, the most frequent first."""
        return Counter(one.reason for one in self.failures).most_common()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is wanted: how many questions, of which kinds, from which model, within what limits."""

    model: str
    count: int
    seed: int = 1
    taxonomy: str = "datamorgana"
    prompt: str = PROMPT
    temperature: float | None = 0.7
    max_tokens: int = 512
    max_calls: int | None = None
    max_cost: float | None = None
    retry_missing: bool = False


def make_questions(
    documents: Path,
    out: Path,
    order: Order,
    *,
    force: bool = False,
    limits: Limits | None = None,
    progress: Progress = lambda done, total: None,
) -> Made:
    """Make questions and write them: OUT, OUT.json (how they were made, what failed), and the
    cassette OUT.calls.sqlite, from which the same command goes on.

    Raises
    ------
    UsageError : the documents, the taxonomy, the model or the output cannot be used
    RunError : stopped by a limit or an endpoint that is gone, or no question could be made
    """
    if order.count < 1:
        raise UsageError(f"expected --count of 1 or more, got {order.count}")
    own = [Path(name) for name in (order.taxonomy, order.prompt) if Path(name).suffix]
    for end in ("", ".json", CALLS):
        check_target(Path(f"{out}{end}"), "--out", inputs=[documents, *own])
    if out.exists() and not force:
        raise UsageError(f"{out} is there already; choose another --out, or replace it by --force")
    taxonomy, template = read_taxonomy(order.taxonomy), _prompt(order.prompt)
    plans = plan(read_documents(documents), taxonomy, count=order.count, seed=order.seed)
    made = asyncio.run(_make(plans, taxonomy, template, out, order, limits or Limits(), progress))
    if made.table.is_empty():
        raise RunError(
            f"none of {order.count} questions could be made: {made.reasons[0][0]} "
            f"({made.reasons[0][1]} times); nothing was written but the calls"
        )
    _write(made, documents, out, order)
    return made


def messages(one: Plan, taxonomy: Taxonomy, template: Prompt) -> list[Message]:
    """What the model is sent for one question."""
    kind = "\n".join(
        f"- {dimension.replace('_', ' ')}: {taxonomy.dimensions[dimension][category].told}"
        for dimension, category in one.categories.items()
    )
    topics = ", ".join(_topics(one, taxonomy))
    return [Message("user", template.fill(kind=kind, topics=topics, document=one.shown))]


def read_question(value: Any, one: Plan, topics: Sequence[str]) -> Grounded:  # any: JSON
    """The question in a model's answer, its quote found in the document.

    The quote may differ from the document in case and white space.

    Raises
    ------
    ValueError : something is missing, or the quote is not in the document
    """
    if not isinstance(value, dict):
        raise ValueError("expected an object with question, answer, quote and topic")
    texts = {}
    for name in ("question", "answer", "quote", "topic"):
        text = value.get(name)
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{name}: expected a text")
        texts[name] = " ".join(text.split())
    if "|" in texts["answer"]:  # it parts accepted answers in a file of questions
        raise ValueError("answer: expected a text without the sign |")
    if texts["topic"] not in topics:
        raise ValueError(f"topic: expected one of {', '.join(topics)}")
    words = r"\s+".join(re.escape(word) for word in texts["quote"].split())
    found = re.search(words, one.shown, re.IGNORECASE)
    if found is None:
        raise ValueError("quote: this passage is not in the document; copy one letter by letter")
    return Grounded(
        question=texts["question"],
        answer=texts["answer"],
        topic=texts["topic"],
        start=one.start + found.start(),
        end=one.start + found.end(),
    )


async def _make(
    plans: Sequence[Plan],
    taxonomy: Taxonomy,
    template: Prompt,
    out: Path,
    order: Order,
    limits: Limits,
    progress: Progress,
) -> Made:
    """Ask for all questions at once, within the limits of the endpoint."""
    identity = hashlib.sha256(f"{template.hash} {taxonomy.model_dump_json()}".encode()).hexdigest()
    calls = Calls(
        cassette=Cassette(Path(f"{out}{CALLS}"), scenario=identity, name="questions"),
        budget=Budget(max_calls=order.max_calls, max_cost=order.max_cost),
        default_limits=limits,
        retry_missing=order.retry_missing,
    )
    options = {"temperature": order.temperature, "max_tokens": order.max_tokens}
    done = 0

    async def one(wanted: Plan) -> Grounded | Failed:
        nonlocal done
        made = await _ask(line, wanted, taxonomy, template, order.seed)
        done += 1
        progress(done, len(plans))
        return made

    async with calls:
        line = chat(order.model, seat="questions", options=options, calls=calls)
        await calls.preflight([(line.model, line.parameters.headers)])
        try:
            answers = await all_of(one(wanted) for wanted in plans)
        except StopError as error:  # its words are those of a run, which has --resume
            raise RunError(str(error).replace("with --resume", "by the same command")) from None
    tally = calls.tallies.get("questions")
    table, failures = _table(plans, answers, taxonomy)
    return Made(
        table=table,
        failures=failures,
        prompt=f"{template.name} {template.hash}",
        calls=tally.calls if tally else 0,
        served=tally.served if tally else 0,
        cost_usd=tally.cost_usd if tally else 0.0,
        unpriced=tally.unpriced if tally else 0,
    )


async def _ask(
    line: Chat, one: Plan, taxonomy: Taxonomy, template: Prompt, seed: int
) -> Grounded | Failed:
    topics = _topics(one, taxonomy)
    texts = {name: {"type": "string"} for name in ("question", "answer", "quote")}
    properties = {**texts, "topic": {"type": "string", "enum": list(topics)}}
    try:
        parsed = await ask(
            line.calls,
            line.model,
            messages(one, taxonomy, template),
            {"type": "object", "properties": properties},
            lambda value: read_question(value, one, topics),
            seat=line.seat,
            sample=f"{seed}/{one.number}",
            parameters=line.parameters,
        )
    except CallError as error:
        return Failed(one.item, one.document.id, error.reason)
    return parsed.value


def _table(
    plans: Sequence[Plan], answers: Sequence[Grounded | Failed], taxonomy: Taxonomy
) -> tuple[pl.DataFrame, list[Failed]]:
    """The questions in their order; one that was asked before, in the same words, has failed."""
    rows: list[tuple[Any, ...]] = []  # any: texts and numbers
    failures: list[Failed] = []
    first: dict[str, str] = {}
    for one, made in zip(plans, answers, strict=True):
        if isinstance(made, Failed):
            failures.append(made)
            continue
        again = first.setdefault(made.question.casefold(), one.item)
        if again != one.item:
            failures.append(Failed(one.item, one.document.id, f"the same question as {again}"))
            continue
        quote = one.document.text[made.start : made.end]
        rows.append(
            (
                one.item, made.question, made.answer, made.topic, one.document.id, made.start,
                made.end, quote, *one.categories.values(),
            )
        )  # fmt: skip
    numbers = {"span_start", "span_end"}
    names = (*COLUMNS, *taxonomy.dimensions)
    schema = {name: pl.Int64() if name in numbers else pl.String() for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row"), failures


def _write(made: Made, documents: Path, out: Path, order: Order) -> None:
    """The table and how it was made; each file is whole or not there."""
    facts = {
        **{name: value for name, value in asdict(order).items() if name != "prompt"},
        "prompt": made.prompt,
        "documents": {documents.name: hashlib.sha256(documents.read_bytes()).hexdigest()},
        "made": made.table.height,
        "failures": [asdict(one) for one in made.failures],
    }
    for path, text in (
        (out, made.table.write_csv()),
        (Path(f"{out}.json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n"),
    ):
        write_text(path, text)


def _prompt(name: str) -> Prompt:
    return prompt(name, places=("kind", "topics", "document"))


def _topics(one: Plan, taxonomy: Taxonomy) -> Sequence[str]:
    """The topics a question can have: the document's own, where it has one."""
    return (one.document.topic,) if one.document.topic else taxonomy.topics
