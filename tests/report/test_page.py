"""The page: whole, self-contained, harmless whatever the agents are called."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from written_run import HOSTILE, written

from marketeval.apps.report import drawing
from marketeval.apps.report.page import write_report
from marketeval.core.errors import UsageError

PICTURES = {"market-share", "hhi", "static-rank-market-rank", "retention", "effect-no-entry"}


class Reader(HTMLParser):
    """Collects tags, attributes and the text of table cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("td", "th"):
            self.cells.append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "run"
    assert write_report([written(path)]) == path / "report.html"
    return path


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text("utf-8")


def test_the_pictures_stand_beside_the_page_as_png(folder: Path) -> None:
    found = {path.stem: path.read_bytes() for path in (folder / "pictures").iterdir()}
    assert set(found) == PICTURES
    assert all(content.startswith(b"\x89PNG\r\n") for content in found.values())
    assert not list(folder.rglob("*.half"))


def test_the_page_refers_to_nothing_outside_itself(page: str) -> None:
    names = {name for name, _ in Reader(page).attributes}
    assert not names & {"src", "srcset", "action", "onclick", "onerror", "onload"}
    assert not re.findall(r"url\((?!#)|@import|<link|<iframe", page)
    places = {value for name, value in Reader(page).attributes if name.endswith("href")}
    assert all(str(one).startswith("#") for one in places)


def test_only_the_page_s_own_script_may_run(page: str) -> None:
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page


def test_an_agent_s_name_is_text_and_never_markup(page: str) -> None:
    reader = Reader(page)
    assert HOSTILE not in page
    assert reader.tags.count("script") == 1
    assert f"{HOSTILE} new" in reader.cells


def test_the_tables_hold_the_numbers_counted_by_hand(page: str) -> None:
    cells = Reader(page).cells
    assert "after (steps 3-4): HHI 5,000 [3,750, 6,250]" in cells
    for text in ("62.5", "(+42.5)", "(−35.5)", "−2,500", "[−3,750, −1,250]"):
        assert text in cells


def test_pictures_have_texts_for_those_who_do_not_see_them(page: str) -> None:
    labels = re.findall(
        r'<svg class="picture" viewBox="[^"]+" role="img" aria-label="(.*?)">', page
    )
    assert len(labels) == len(PICTURES)
    assert any("HHI after -2,500 [-3,750, -1,250] points" in label for label in labels)
    assert page.count("<caption>") == page.count("<table")


def test_the_ids_of_the_pictures_do_not_clash(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_header_says_what_was_run(page: str) -> None:
    for text in ("2 seeds (1-2)", "0123456789abcdef", "general", "marketeval 0.1.0", "pencil"):
        assert text in page


def test_without_a_control_the_page_says_that_it_shows_no_effect(tmp_path: Path) -> None:
    page = write_report([written(tmp_path / "run", control=False)]).read_text("utf-8")
    assert "No control was played, so this run shows no effect of anything" in page
    assert "a rise is not yet an effect" in page


def test_one_seed_has_neither_bands_nor_intervals(tmp_path: Path) -> None:
    page = write_report([written(tmp_path / "run", seeds=(2,))]).read_text("utf-8")
    assert "One seed was played, so there are no intervals" in page
    assert "95%" not in page


def test_several_runs_share_a_page_and_keep_their_pictures_apart(tmp_path: Path) -> None:
    runs = [written(tmp_path / "x"), written(tmp_path / "y", control=False)]
    target = write_report(runs, tmp_path / "both" / "page.html")
    page = target.read_text("utf-8")
    assert page.count('<section class="run">') == 2
    assert "Effect on HHI against no-entry, after" in page
    found = {path.name for path in (target.parent / "pictures").iterdir()}
    assert {"1-hhi.png", "2-hhi.png"} <= found
    assert not (tmp_path / "x" / "report.html").exists()


def test_a_report_that_fails_leaves_the_earlier_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = written(tmp_path / "run", seeds=(1,), control=False)
    target = run.path / "report.html"
    target.write_text("earlier", "utf-8")

    def fail(picture: object) -> str:
        raise OSError("no space left on device")

    monkeypatch.setattr(drawing, "draw", fail)
    with pytest.raises(OSError, match="no space"):
        write_report([run])
    assert target.read_text("utf-8") == "earlier"


def test_without_altair_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("charts", "marks"):
        monkeypatch.delitem(sys.modules, f"marketeval.apps.report.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(UsageError, match=r"pip install 'marketeval\[report\]'"):
        write_report([written(tmp_path / "run")])
    assert not (tmp_path / "run" / "report.html").exists()
