"""A measured number stands on a generated page or is quoted from one. Nobody types it.

In other documents a number looks like a result if it has a unit in a sentence on time, size or
agreement, or if it counts trials, bars and the like. RULES lists the numbers that look like results
and are none: rules, settings, arithmetic, and what a program measured once that nobody runs daily.
Not looked at are numbers in code, in tables of HOMES, and in README's chapter, which
test_results.py compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from firstflight.base import PROJECT
from tests.golden.test_links import DOCUMENTS

GENERATED = {"docs/REPRODUCE.md", "docs/GALLERY.md", "docs/REFERENCE.md", "docs/ONE_TRIAL.md",
             "vtime/EXPERIMENTS.md", "vtime/SIDE_BY_SIDE.md", "CHANGELOG.md"}
WRITTEN = [path for path in DOCUMENTS if "results" not in path.parts
           and str(path.relative_to(PROJECT)) not in GENERATED]
# Documents whose tables have results of a program of benchmarks/, which stand nowhere else.
HOMES = {"docs/METHOD.md", "docs/INSTALL.md", "docs/QUESTIONS.md", "vtime/PERFORMANCE.md",
         "benchmarks/README.md"}
RULES = {
    "benchmarks/README.md": "1.7 ms; 0.1 ms; 10 %; 5 ms; 10 instead of 3; 32 instead of 10;"
                            " 107 of 200; 3 of 16",
    "README.md": "0.1 %; 1 ms",
    "docs/GLOSSARY.md": "90 %",
    "docs/INSTALL.md": "25 seconds; three times",
    "docs/METHOD.md":
        "1 ms; two packets; 0.5 µs; 1 µs; 216 ms; 1 s; 95 %; 1 %; three times; 4 seconds;"
        " 2 seconds",
    "vtime/KERNELS.md": "11 s; two minutes",
    "vtime/MININET.md": "4 s; 80 s; 10 s; 1 ms; 1 µs; 10 µs; 20,000 TCP connections;"
                        " 200,000 packets",
    "vtime/PERFORMANCE.md": "0.01 %; 22 ms; 3.5 ms; 7 ms; 2.0 ms; 2.7 ms; 6.5 ms; 19 s; 21 s; 86 s;"
                            " 80 %; 1.7 ms; 0.4 s; 4 µs; 9 µs; 15 ms; two minutes; 0.5 s;"
                            " 19 ms; 1 %; 53 ms; 8.5 s",
    "docs/QUESTIONS.md":
        "30 instead of 10; 1 s; 100 packets; 50 packets; 20 packets; 1 %; 2 %;"
        " six connections; 26 requests of 350; 16.7 ms; eight times",
    "docs/STUDIES.md": "95 %; three parameters; 514 ms; 27 packets; 40 %;"
                       " 95 of 100",
    "vtime/README.md": "10 µs; 1.2 µs; 0.5 ms; 1 µs; 5 ms; 100 µs",
    "vtime/SECURITY.md": "90 s",
}
# RULES for templates: the numbers that each types next to its quotes.
IN_TEMPLATES = {"README": "100 ms; 22 bars; 95 %; four connections; 20 packets; 100 packets",
                "REPRODUCE": "5 %"}
_NUMBER = (r"(?<![\w.])(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
           r"fifteen|twenty)")
_OUTCOME = re.compile(
    r"\b(sav\w+|costs?|takes?|took|taken|runs?|longer|shorter|faster|slower|earlier|later|gains?|"
    r"waits?|deviat\w+|agrees?|near|reproduced|fitted|falls?|rises?|means?|median|less|more)\b")
_WITH_UNIT = re.compile(rf"{_NUMBER}\s?(?:ms|µs|%|s|min|minutes?|seconds?|points?|times)(?![\w/])")
_COUNT = re.compile(
    rf"{_NUMBER} (?:\w+ )?(?:of (?:the |its )?(?:\d[\d,]*|twenty)|bars|trials|transfers|mutants|"
    r"parameters|statements|responses|connections|packets)\b")


_BY_HAND = re.compile(r"\d+ (?:more )?by hand")


def sentences(name: str, text: str) -> Iterator[str]:
    """The sentences and table rows of a document outside code."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    if name == "README.md":
        text = re.sub(r"## What comes out\n.*?(?=\n## )", "", text, flags=re.DOTALL)
    lines = ["" if line.startswith("    ") or name in HOMES and line.startswith("|") else line
             for line in text.splitlines()]
    for paragraph in re.split(r"\n\s*\n|\n(?=- |\d+\. |\|)", "\n".join(lines)):
        yield from re.split(r"(?<=[.:!?]) (?=[A-Z`*])", " ".join(paragraph.split()))


def numbers_of(sentence: str) -> set[str]:
    """Its numbers that look like results, with their units."""
    with_unit = _WITH_UNIT.findall(sentence) if _OUTCOME.search(sentence) else []
    return {*_COUNT.findall(sentence), *with_unit}


def typed(name: str, text: str) -> list[str]:
    """The sentences with a number that looks like a result and is in no list."""
    known = set(RULES.get(name, "").split("; "))
    return [sentence for sentence in sentences(name, text) if numbers_of(sentence) - known]


@pytest.mark.parametrize("name", [str(path.relative_to(PROJECT)) for path in WRITTEN])
def test_no_document_has_a_typed_result(name: str) -> None:
    assert not typed(name, (PROJECT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name, sentence", [
    ("docs/METHOD.md", "With all causes that is 32 of the 72 ms by which the two weeks differ."),
    ("docs/METHOD.md", "SlowDC's mean with three segments is 729 ms where the paper has 823."),
    ("docs/METHOD.md", "The large sample has 96,600 transfers of its populations."),
    ("docs/METHOD.md", "./run.sh dukkipati2010 measures some 32,000 transfers."),
    ("docs/STUDIES.md", "Of Table 3's seven bars five are near: 5 of 7."),
    ("docs/STUDIES.md", "| Figure 5 | 19 of 22 | 19 | 19 | 18 |"),
    ("docs/STUDIES.md", "A connection costs 1.1 ms of one core at 50 kB."),
    ("docs/STUDIES.md", "The scenarios take two to twenty minutes each."),
    ("README.md", "Those who keep IW 3 wait 3 % longer."),
    ("README.md", "Then it runs the paper's Figure 5 in one to three minutes."),
    ("CONTRIBUTING.md", "Of 60 mutants 7 survived: 7 of 60."),
])
def test_a_typed_result_is_found(name: str, sentence: str) -> None:
    text = (PROJECT / name).read_text(encoding="utf-8")
    assert typed(name, f"{text}\n\n{sentence}\n") == [sentence]


def beside_quotes(text: str) -> set[str]:
    """The numbers of a template's sentences that look like results and are not quoted."""
    text = re.sub(r"^\|.*$", "", re.sub(r"\{[^{}]*\}", "–", text), flags=re.MULTILINE)
    return {number for sentence in sentences("", text)
            for number in {*numbers_of(sentence), *_BY_HAND.findall(sentence)}}


@pytest.mark.parametrize("name", IN_TEMPLATES)
def test_a_template_types_no_result_but_those_listed(name: str) -> None:
    text = (PROJECT / "docs" / "templates" / f"{name}.txt").read_text(encoding="utf-8")
    assert beside_quotes(text) == set(IN_TEMPLATES[name].split("; "))
    added = f"{text}\n\nOf 125,046 trials {{x / trials}} are new, and 2 more by hand.\n"
    assert {"125,046 trials", "2 more by hand"} <= beside_quotes(added)


def test_a_list_has_nothing_that_its_document_lacks() -> None:
    for name, rules in RULES.items():
        text = (PROJECT / name).read_text(encoding="utf-8")
        there = {number for sentence in sentences(name, text) for number in numbers_of(sentence)}
        assert set(rules.split("; ")) == there, name
