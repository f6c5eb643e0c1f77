"""What stands in packetdrill's place in a guest: the options of a script, and the program itself."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from firstflight.base.files import PROJECT
from firstflight.commands import flags

PATH = PROJECT / "vtime" / "command" / "packetdrill"


@pytest.fixture(name="wrapper", scope="module")
def _wrapper() -> ModuleType:
    loader = SourceFileLoader("packetdrill_wrapper", str(PATH))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "text", "given", "expected"), [
    ("a.pkt", "0 socket()", [], "ipv4"),
    ("a.pkt", "0 socket()", ["--ip_version=ipv4-mapped-ipv6"], "ipv4-mapped-ipv6"),
    ("a.pkt", "--ip_version=ipv6\n", [], "ipv6"),
    ("a.pkt", "--ip_version=ipv6\n", ["--ip_version=ipv4"], "ipv4"),
    ("a-v6.pkt", "", [], "ipv6"),
    ("a.pkt", "--remote_ip=fd00::1 --mtu=1500\n", [], "ipv6"),
    ("a-v4.pkt", "", [], "ipv4")])
def test_a_script_runs_under_what_it_says(wrapper: ModuleType, tmp_path: Path, name: str, text: str,
                                          given: list[str], expected: str) -> None:
    script = tmp_path / name
    script.write_text(text)
    options = wrapper.options_for(str(script), given)
    assert options[0] == f"--ip_version={expected}"
    lacking = [word for word in wrapper.OPTIONS[expected] if word not in options]
    assert all(word.partition("=")[0] in text for word in lacking)


def test_what_a_script_sets_is_left_to_it_and_what_is_given_comes_last(
        wrapper: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "one.pkt"
    script.write_text("--local_ip=10.0.0.1\n--mtu=900 --tolerance_usecs=7\n")
    options = wrapper.options_for(str(script), ["-D", "A=1", "--tolerance_usecs=9"])
    assert options[0] == "--ip_version=ipv4" and options[-3:] == ["-D", "A=1", "--tolerance_usecs=9"]
    assert not any(word.startswith("--local_ip") for word in options)
    assert "--remote_ip=192.0.2.1" in options


def test_the_program_is_the_first_that_is_not_this_one(
        wrapper: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "this").touch(mode=0o755)
    monkeypatch.setattr(wrapper, "__file__", str(tmp_path / "this"))
    folders = [tmp_path / name for name in ("none", "ours", "plain", "theirs", "later")]
    for folder in folders[1:]:
        folder.mkdir()
    (folders[1] / "packetdrill").symlink_to(tmp_path / "this")
    (folders[2] / "packetdrill").touch(mode=0o644)
    for folder in folders[3:]:
        (folder / "packetdrill").touch(mode=0o755)
    found = wrapper.find_program([str(folder) for folder in folders])
    assert found == str(folders[3] / "packetdrill")
    assert wrapper.find_program([str(folder) for folder in folders[:3]]) is None


@pytest.mark.parametrize("words", [["--packetdrill", "a.pkt"], ["--packetdrill=a.pkt"]])
def test_the_flag_that_has_gone_says_what_to_type(
        words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        flags.parse(words)
    assert ended.value.code == 2
    assert "./run.sh -- packetdrill FILE..." in capsys.readouterr().err
