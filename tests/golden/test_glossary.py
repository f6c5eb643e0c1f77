"""docs/GLOSSARY.md has the terms that other documents use."""

from __future__ import annotations

import re

from firstflight.base.files import PROJECT
from tests.golden.test_links import DOCUMENTS, text_of
from tests.golden.test_typed_numbers import WRITTEN

GLOSSARY = (PROJECT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
# What every reader knows, and names of documents, journals, programs and formats.
KNOWN = set("""TCP HTTP HTTPS RFC IPv4 IPv6 IP UDP UTC SHA MB GB VM URL OpenSSL QEMU CSV PNG TOML PATH
            SIGTERM SIGKILL ECDSA FIPS NAT MTU CS244 CCR README FreeBSD TCIntf TCLink TTFB IPC PID HZ
            COMMAND IW10""".split())
TERMS = ("AvgDC", "near", "the window alone", "two different weeks",
         "deck", "RTO", "ssthresh", "guest",
         "undecided", "direction", "held out", "fitted", "flight", "bucket", "BDP", "hit")


def test_an_abbreviation_of_two_documents_is_explained() -> None:
    names = {path.stem for path in DOCUMENTS}
    where: dict[str, set[str]] = {}
    for path in WRITTEN:
        text = re.sub(r"\]\([^)]*\)", "]", text_of(path))
        for word in re.findall(r"\b[A-Z][A-Za-z]*[A-Z][A-Za-z0-9]*\b", text):
            where.setdefault(word.removesuffix("s"), set()).add(path.name)
    used = {word for word, documents in where.items() if len(documents) > 1}
    assert not {word for word in used - names - KNOWN if not re.search(rf"\b{word}", GLOSSARY)}


def test_a_term_of_the_figures_and_tables_is_explained() -> None:
    assert not [term for term in TERMS if not re.search(rf"\*{term}\*", GLOSSARY)]
