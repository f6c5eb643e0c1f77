"""Reading a long list out of untrusted JSON: what is read, what is refused, and the limits."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from firstflight.base import large_json

PATH = ("log", "entries")
ANYTHING = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.floats(allow_nan=False)
    | strategies.integers(-10**15, 10**15) | strategies.text(max_size=30),
    lambda inner: strategies.lists(inner, max_size=4)
    | strategies.dictionaries(strategies.text(max_size=5), inner, max_size=4), max_leaves=20)


def read(content: bytes, most: int = 1000) -> large_json.LongList[object] | None:
    """The list log.entries of at most so many items, with log.creator and log.pages."""
    return large_json.read(content, PATH, lambda item: item, most, ("creator", "pages"))


@settings(deadline=None)
@given(strategies.lists(ANYTHING, max_size=20), ANYTHING, ANYTHING, ANYTHING,
       strategies.integers(1, 40), strategies.booleans(), strategies.sampled_from((None, 2)))
def test_json_that_python_reads_is_read_in_pieces_of_any_size(items: list[Any], creator: Any,
                                                              other: Any, before: Any, piece: int,
                                                              is_ascii: bool,
                                                              indent: int | None) -> None:
    text = json.dumps({"before": before, "log": {"other": other, "entries": items,
                                                 "creator": creator}, "entries": [1]},
                      ensure_ascii=is_ascii, indent=indent)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(large_json, "PIECE_BYTES", piece)
        found = read(text.encode(errors="surrogatepass"))
    assert found is not None
    assert found.items == items and found.beside == {"creator": creator}


@pytest.mark.parametrize("text", [
    "a" * 9000, '\\"' * 9000, "\\" * 9001, "\U0001f600" * 9000, "a" * 100_000 + "\\\\",
    'x"y' + "\u00e9" * 9000], ids=lambda text: text[:4])
@pytest.mark.parametrize("piece", [5000, 8191, 8192, 8193, 1 << 18])
def test_a_text_longer_than_the_limit_is_read_as_its_beginning(text: str, piece: int,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_json, "PIECE_BYTES", piece)
    for is_ascii in (True, False):
        found = read(json.dumps({"log": {"entries": [text, "b", "c" * 8192, text]}},
                                ensure_ascii=is_ascii).encode())
        assert found is not None
        first, second, third, fourth = found.items
        assert first == fourth and isinstance(first, str)
        assert text.startswith(first) and len(first) <= 60
        assert (second, third) == ("b", "c" * 8192)


def test_a_number_is_not_cut_where_a_piece_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_json, "PIECE_BYTES", 1)
    found = read(b'{"log": {"entries": [123456, -1.25e-3 , 7]}}')
    assert found is not None and found.items == [123456, -0.00125, 7]


@pytest.mark.parametrize(("content", "why"), [
    (b"", "cut off"), (b'{"log": {"entries": [1, 2', "in entry 2|cut off"),
    (b'{"log": {"entries": [1, 2]}', "cut off"), (b'{"log": {"entries": [1 2]}}', "cut off"),
    (b'{"log": {"entries": [1, ]}}', "in entry 2: Expecting value"),
    (b'{"log": {"entries": []}} x', "something follows its end"),
    (b'{"log": {"entries": [], "entries": []}}', "has log.entries twice"),
    (b'{1: 2}', "Expecting property name|a key"), (b'{"log" 1}', "expecting ':'"),
    (b"\xff{}", "is not UTF-8 text: it has the byte 0xff"),
    (b'{"a": "\xe9"}', "is not UTF-8 text: it has the byte 0xe9"),
    (b'{"a": "\xff\xfe"}', "is not UTF-8 text"),
    (b'{"log": {"entries": ["\xc3', "is not UTF-8 text"),
    (b"[" * 100_000, "nested too deep"),
    (b'{"log": {"entries": [' + b"[]," * 1000 + b"[]]}}", "has more than 1,000 entries"),
    (b"{" + b",".join(b'"%d": 0' % key for key in range(1001)) + b"}", "more than 1,000 keys"),
    (b'{"log": {"entries": [[' + b"0," * (3 << 20) + b"0]]}}", "more than 2 MB .* in entry 1"),
    (b'{"a": [' + b"0," * (3 << 20) + b"0]}", "more than 2 MB .* in the value of 'a'")])
def test_json_that_cannot_be_read_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(content)
    assert gc.isenabled()


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"3", b'{"log": []}', b'{"log": {}}',
                                     b'{"log": {"entries": {}}}', b'{"entries": [1]}',
                                     b'\xef\xbb\xbf {"log": 1}'])
def test_a_text_without_the_list_has_none(content: bytes) -> None:
    assert read(content) is None


def test_a_list_is_not_read_further_than_the_limit() -> None:
    items: list[object] = []
    with pytest.raises(ValueError, match="more than 10 entries"):
        large_json.read(b'{"log":{"entries":[' + b"[]," * 100, PATH, items.append, 10)
    assert len(items) == 10
