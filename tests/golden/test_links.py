"""Each link of a document leads to a file and a heading, and README leads to each document.

A heading's anchor is as GitHub makes it: in small letters, with hyphens for blanks, and without
punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstflight.base import PROJECT

PLACES = (".", "docs", "docs/results", "benchmarks", "vtime")
DOCUMENTS = sorted(path for place in PLACES for path in (PROJECT / place).glob("*.md"))
NAMED = re.compile(r"\b(?:docs/[\w/]+\.(?:md|txt|toml|png|bash)|vtime/\w+\.(?:md|png))")
PROGRAMS = sorted(path for pattern in (
    "*.py", "*/**/*.py", "*.sh", "*/**/*.sh", "*.yml", "Containerfile", "scenarios/**/*.toml",
    "vtime/command/[!_]*", "paper/*.csv", "docs/completion.bash", "docs/examples/*.toml")
                  for path in PROJECT.glob(pattern)
                  if path.parts[len(PROJECT.parts)] not in ("tests", ".ci")
                  and not any(part.startswith(".") for part in path.parts[len(PROJECT.parts):]))
LINK = re.compile(r"\]\(([^()\s]+)\)")


def text_of(path: Path) -> str:
    """A document without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def links(path: Path) -> Iterator[tuple[Path, str]]:
    """The files that a document links to, and the anchor in each, "" for none."""
    for target in LINK.findall(text_of(path)):
        if not re.match(r"[a-z]+:", target):
            name, _, anchor = target.partition("#")
            yield ((path.parent / name).resolve() if name else path), anchor


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
            for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_each_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    for target, anchor in links(path):
        assert target.exists(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(target), f"{path.name}: {target.name}#{anchor}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_item_of_a_list_runs_on_in_the_line_of_another(path: Path) -> None:
    assert not re.findall(r"^(?!\|).*[.:;] - [*\[`A-Z].*$", text_of(path), re.MULTILINE)


def test_each_document_is_within_two_clicks_of_readme() -> None:
    reached = {PROJECT / "README.md"}
    for _ in range(2):
        reached |= {target for path in reached if path.suffix == ".md"
                    for target, _ in links(path)}
    assert set(DOCUMENTS) <= reached


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_document_that_a_program_names_is_there(path: Path) -> None:
    for name in NAMED.findall(path.read_text(encoding="utf-8")):
        assert (PROJECT / name).exists(), f"{path}: {name}"


def test_the_defects_of_the_raw_values_are_on_the_page_that_their_file_names() -> None:
    raw = (PROJECT / "paper" / "zhao2019_raw.csv").read_text(encoding="utf-8")
    ((defects, page),) = re.findall(r"^# Known defects: (.*); (\S+)$", raw, re.MULTILINE)
    text = (PROJECT / page).read_text(encoding="utf-8")
    assert "integer division" in defects and "divides integers" in text
    assert defects.count("ARP") == 2 and "failed connections" in defects
    assert "curl's time includes an ARP exchange" in text and "there is no connection" in text


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text("# One two: three\n\n[x](#one-two-three) [y](B.md#z)\n")
    (tmp_path / "B.md").write_text("# Y\n")
    with pytest.raises(AssertionError, match="A.md: B.md#z"):
        test_each_link_leads_to_a_file_and_a_heading(tmp_path / "A.md")
