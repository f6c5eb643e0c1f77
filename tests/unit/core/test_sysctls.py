"""Which sysctls a scenario may set, and to what."""

from __future__ import annotations

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs import scenario_file
from firstflight.runs.sysctls import KNOWN, sysctls_of
from firstflight.study import registry
from firstflight.testbed.network.kernel import TCP_SYSCTLS


def read(key: str, value: object, one_word: bool = False) -> dict[str, str]:
    return sysctls_of({"sysctls": {key: value}}, "here", one_word)


def test_numbers_and_words_are_taken() -> None:
    for value in ("0", "-1", "1 2 3", "cubic", "0,5", "01234567-89abcdef-01234567-89abcdef"):
        assert read("net.ipv4.tcp_sack", value) == {"net.ipv4.tcp_sack": value}
    assert read("net.core.somaxconn", "128")
    assert sysctls_of({}, "here") == {}


def test_all_that_is_pinned_may_be_set_otherwise() -> None:
    assert set(TCP_SYSCTLS) <= KNOWN


@pytest.mark.parametrize(("key", "words"), [
    ("net.ipv4.tcp_sak", "unknown 'net.ipv4.tcp_sak' (did you mean 'net.ipv4.tcp_sack'?)"),
    ("net.ipv4.ip_forward", "unknown 'net.ipv4.ip_forward'"),
    ("net.core.rmem_max", "unknown 'net.core.rmem_max'"),
    ("kernel.core_pattern", "unknown 'kernel.core_pattern'"),
    ("net.ipv4.tcp_sack/../../../../etc/x", "unknown "),
    ("net.ipv4.tcp_sack; reboot", "unknown "),
])
def test_other_names_are_refused(key: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(key, "0")
    assert str(caught.value).startswith(f"here: [sysctls]: {words}")


@pytest.mark.parametrize("value", [
    0, True, "", " 0", "0 ", "0  1", "0'; touch /tmp/x; '", "$(reboot)", "`reboot`", "0\n1",
    "0\x00", "0\t1", "a|b", "1 2 3 4 5", "x" * 65, "٣"])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(UsageError, match=r"net.ipv4.tcp_rmem = .* is not numbers or words"):
        read("net.ipv4.tcp_rmem", value)


def test_a_value_of_one_word() -> None:
    assert read("net.ipv4.tcp_rmem", "1 2 3")
    with pytest.raises(UsageError, match="here: .*tcp_rmem = '1 2 3' is not a number or a word"):
        read("net.ipv4.tcp_rmem", "1 2 3", one_word=True)


@pytest.mark.parametrize("name", ["zhao2019", "ietf78_load", "handley1999_clock"])
@pytest.mark.parametrize(("key", "value", "words"), [
    ("net.ipv4.tcp_sak", "0", "unknown 'net.ipv4.tcp_sak' (did you mean 'net.ipv4.tcp_sack'?)"),
    ("net.ipv4.tcp_sack", "0'; touch /tmp/x; '", "is not numbers or words")])
def test_a_scenario_of_every_kind_is_refused_before_it_is_measured(name: str, key: str, value: str,
                                                                   words: str) -> None:
    first, _, rest = scenario_file.find(name).text.partition("\n")
    own = scenario_file.parsed("own", f'{first}\nsysctls = {{ "{key}" = "{value}" }}\n{rest}')
    with pytest.raises(UsageError) as caught:
        registry.study_of(own)
    assert words in str(caught.value)
