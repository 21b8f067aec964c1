"""The text form of metrics: what parses, what it is written as, what is refused and how."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pencil_logs import pencil

from marketeval.core.errors import UnknownNameError, UsageError
from marketeval.metrics.base import METRICS, TIDY, describe, evaluate, parse_metric
from marketeval.metrics.concentration import CR, HHI, Dominance
from marketeval.metrics.retention import Retention
from marketeval.metrics.share import MarketShare


@pytest.mark.parametrize(
    ("text", "value", "canonical"),
    [
        ("HHI", HHI(), "HHI"),
        ("HHI()", HHI(), "HHI"),
        (" HHI( window = 10 ) ", HHI(window=10), "HHI(window=10)"),
        ("HHI(window=10, mode=sliding)", HHI(window=10), "HHI(window=10)"),
        ("HHI(phase=before,points=true)", HHI(phase="before", points=True), None),
        ("MarketShare(mode=cumulative)", MarketShare(mode="cumulative"), None),
        ("MarketShare(start=0, stop=100)", MarketShare(start=0, stop=100), None),
        ("Retention(10)", Retention(10), "Retention(m=10)"),
        ("Retention(5, phase=after)", Retention(5, phase="after"), "Retention(m=5, phase=after)"),
        ("CR", CR(4), "CR(k=4)"),
        ("Dominance(target=earned, own=true)", Dominance(target="earned", own=True), None),
        ("HHI(phase=after entry)", HHI(phase="after entry"), "HHI(phase=after entry)"),
        ('HHI(phase="a, b")', HHI(phase="a, b"), 'HHI(phase="a, b")'),
        ("Survival(threshold=0.05)", parse_metric("Survival(threshold=.05)"), None),
    ],
)
def test_a_text_parses_and_is_written_back(text: str, value: object, canonical: str | None) -> None:
    assert parse_metric(text) == value
    if canonical is not None:
        assert str(value) == canonical
    assert parse_metric(str(value)) == value


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_has_a_text_that_parses_back_and_a_first_line(name: str) -> None:
    given = ("retrievers",) if name == "In" else ()  # it has no default: which population?
    value = METRICS[name](*given)
    assert parse_metric(f"{name}({', '.join(given)})") == value
    assert parse_metric(str(value)) == value
    assert describe(name).endswith(".") or ":" in describe(name) or describe(name)


def test_a_metric_without_what_it_must_be_given_says_what_that_is() -> None:
    with pytest.raises(UsageError, match="In: population is missing"):
        parse_metric("In")


def test_an_unknown_metric_is_named_with_its_near_miss() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown metric 'HIH'; did you mean 'HHI'\?"):
        parse_metric("HIH(window=10)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HHI(windw=10)", "HHI: unknown parameter 'windw'; did you mean 'window'\\? known: points"),
        ("HHI(window=ten)", "HHI: window takes a whole number, got 'ten'"),
        ("HHI(window=1.5)", "HHI: window takes a whole number, got '1.5'"),
        ("HHI(points=yes)", "HHI: points takes true or false, got 'yes'"),
        ("HHI(window=10, mode=slidng)", "mode takes sliding or .* did you mean 'sliding'"),
        ("HHI(window=0)", "window takes a whole number from 1, got 0"),
        ("HHI(mode=tumbling)", "mode=tumbling needs a window"),
        ("HHI(window=5, mode=cumulative)", "mode=cumulative takes no window"),
        ("HHI(start=5, stop=5)", "stop is the step after the last"),
        ("HHI(start=-1)", "start takes a step from 0, got -1"),
        ("HHI(phase=before, start=1)", "give either phase or start and stop"),
        ("HHI(10)", "HHI: expected parameter=value, got '10'"),
        ("HHI(window=10, window=20)", "'window' is given twice"),
        ("HHI(window=)", "expected parameter=value"),
        ("Retention(0)", "m takes a whole number from 1, got 0"),
        ("Retention(5, 6)", "expected parameter=value, got '6'"),
        ("CR(0)", "k takes a whole number from 1, got 0"),
        ("Dominance(target=fair)", "target takes equal or static or earned, got 'fair'"),
        ("Survival(threshold=0)", "threshold takes a share above 0"),
        ("HHI(window=10", "expected a metric such as HHI"),
        ("", "expected a metric such as HHI"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_metric(text)
    assert "\n" not in str(caught.value)


def test_an_unknown_phase_is_named_with_those_of_the_log() -> None:
    log = pencil("a:A", "a:B", phases={"before": (0, 1), "after": (1, 2)})
    with pytest.raises(UnknownNameError, match="unknown phase 'befor'; did you mean 'before'"):
        HHI(phase="befor").compute(log)


def test_a_range_past_the_end_of_the_log_is_refused() -> None:
    with pytest.raises(UsageError, match=r"HHI\(stop=9\): the log has 1 steps"):
        HHI(stop=9).compute(pencil("a:A"))


def test_listing_and_describing_metrics_loads_neither_polars_nor_numba() -> None:
    code = (
        "import sys; from marketeval.metrics.base import METRICS, describe, parse_metric;"
        "[describe(name) for name in METRICS]; parse_metric('HHI(window=3)');"
        "print(sorted({'polars', 'numba'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_evaluate_puts_metrics_one_below_the_other_and_counts_repeats_once() -> None:
    log = pencil("a:A b:B", "a:A b:A")
    table = evaluate(log, [HHI(), MarketShare(), HHI()])
    assert table["metric"].to_list() == ["HHI", "MarketShare", "MarketShare"]
    assert table.schema == TIDY
    assert evaluate(log, []).schema == TIDY


def is_of_this_family(name: str) -> bool:
    """Whether a metric reads the information market's events; others read their own family's."""
    return METRICS[name].__module__.rpartition(".")[2] in {
        "share", "concentration", "inequality", "retention", "dynamics", "ranking", "agreement",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(filter(is_of_this_family, METRICS)))
def test_every_metric_gives_the_tidy_schema_even_for_a_log_without_interactions(name: str) -> None:
    for log in (pencil("a:A b:B", "a:B"), pencil("", "", horizon=2)):
        table = METRICS[name]().compute(log)
        assert table.schema == TIDY
        assert table["window"].null_count() == 0
        assert table.filter(table["value"].is_null())["note"].null_count() == 0
        assert not table["value"].is_nan().any()


@pytest.mark.parametrize("name", ["Profit", "CustomerUtility"])
def test_a_metric_of_another_family_says_that_the_log_has_not_its_events(name: str) -> None:
    with pytest.raises(UsageError, match=r"log.*: unknown event '\w+'"):
        evaluate(pencil("a:A b:B"), [METRICS[name]()])
