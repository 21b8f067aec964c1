"""What the documents say is what happens: commands, outputs, code and links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import DOCUMENTS, ROOT, as_shown, play

LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one.stem)
def test_every_command_and_every_piece_of_python_in_a_document_does_what_it_shows(
    document: Path, tmp_path: Path
) -> None:
    for command, printed in play(document, tmp_path):
        if command.shown:
            assert as_shown(command, printed) == command.shown, command.text


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda one: one.stem)
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text("utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target), link


def test_the_readme_has_a_picture_and_it_is_small() -> None:
    pictures = re.findall(r"!\[[^]]+\]\((\S+\.png)\)", (ROOT / "README.md").read_text("utf-8"))
    assert pictures
    assert all((ROOT / one).stat().st_size < 150_000 for one in pictures)


def test_documents_name_no_folder_of_one_machine() -> None:
    for document in (*DOCUMENTS, ROOT / "CHANGELOG.md"):
        assert not re.search(r"(?<![\w.])/(work|tmp|home|root)\b", document.read_text("utf-8"))


@pytest.mark.parametrize("document", [*DOCUMENTS[:1], ROOT / "docs" / "how-to-add.md"])
def test_the_files_where_one_adds_something_are_there(document: Path) -> None:
    rows = re.findall(r"^\|.*\|$", document.read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", "\n".join(rows))
    assert len(named) > 6
    for one in named:
        inside = ROOT / "src" / "marketeval" / one
        assert inside.exists() or one.startswith("runs/"), one


def _anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
