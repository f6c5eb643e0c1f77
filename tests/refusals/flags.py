"""Flags of run.sh: wrong values, flags that exclude each other, flags of earlier versions."""

from __future__ import annotations

from firstflight.base.removed import REMOVED
from tests.refusals import Refusal, typed

CONDITION = "neither a number nor a column"
# By a key of REMOVED, whose line is the answer: what users of an earlier version may type.
EARLIER = {"paper_arithmetic": "paper_arithmetic", "--explain": "--explain 3500ms --rtt 50",
           "--packetdrill": "--packetdrill one.pkt", "--share-link": "--users x --share-link 20M",
           "--http 3": "--http 3 --rtt 50", "quic_amplification": "quic_amplification",
           "a capture": "--users server.pcap"}

REFUSALS = [
    *typed(
        ("--rtt 5 --dry-run --fail-if 'totl_ms > 1'", "no column of numbers 'totl_ms'"),
        ("--rtt 5 --dry-run --fail-if 'verdict > 1'", "no column of numbers 'verdict'"),
        ("--rtt 5 --dry-run --iw 3,10 --fail-if 'total_ms(12) > 1'",
         "no initial window of 12, but 3, 10"),
        ("--rtt 5 --dry-run --fail-if 'total_ms(rtt=6) > 1'", "measures no rtt of 6, but 5"),
        ("--rtt 5 --dry-run --fail-if 'total_ms(rtts=6) > 1'", "'rtts' is no flag"),
        ("ietf78_load --dry-run --fail-if 'mean_ms(0) > 1'",
         "no initial window of 0, but 3, 10"),
        ("ietf78_fairness --dry-run --fail-if 'mean_ms(16) > 1'",
         "no initial window of 16, but 3, 10"),
        ("--rtt 5 --iw 10,default", "default stands alone"),
        ("--objects 5 --rtt 5 --iw default", "--iw default does not go with --objects"),
        ("ietf78_load --iw default", "--iw default"),
        ("--find-cliff response --fail-if 'total_ms > 1'", "and --probe; not with --find-cliff"),
        ("--compare a b --users f", "--compare measures nothing, and goes without --users"),
        ("--compare a b --page f", "goes without --page"), ("--list --rtt 5", "without --rtt"),
        ("--new x --objects 5", "--new measures nothing, and goes without --objects"),
        ("--check f.toml --find-cliff chain", "goes without --find-cliff"),
        ("--compare a b --list", "--list measures nothing, and goes without --compare"),
        ("--new x zhao2019", "goes without zhao2019"),
        ("--compare one --fail-if 'total_ms > 1'", "and --probe; not with --compare"),
        ("--probe http://192.0.2.1/ --fail-if 'total_ms > 1'",
         "--probe has no number 'total_ms'"),
        ("--probe http://192.0.2.1/ --fail-if 'iw(10) > 1'", "--probe has one iw"),
        ("--", "-- COMMAND"), ("--packet-cost 1 -- true", "with its unit"),
        ("--packet-cost 2s -- true", "at most 1s"), ("--packet-cost soon -- true", "such as 1us"),
        ("--clock 1999-01-01 -- true", "a day from 2026 to 2199, such as 2026-11-28"),
        ("--clock today -- true", "such as 2026-11-28"),
        ("--memory 1K -- true", "at least 128M"), ("--memory x -- true", "not a number"),
        ("--timeout 0 -- true", "above 0"), ("--timeout 1,2,3 -- true", "at most 2"),
        ("--timeout soon -- true", "not a number"), ("--limit 1G,0 -- true", "above 0"),
        ("--seed -1 -- true", "--seed"), ("--seed x -- true", "whole number"),
        ("--rtt 5 -- true", "--rtt"), ("zhao2019 -- true", "zhao2019"),
        ("--seed 1 --seed 2 -- true", "given twice"),
        ("--jobs 2 -- true", "--repeat 10 --jobs 2"),
        ("--repeat 2 --write-back -- true", "same files"),
        ("--seed 9223372036854775808 zhao2019", "--seed: "),
        ("--seed -1 zhao2019 --dry-run", "--seed: ")),
    *(Refusal(line, REMOVED[key], files={"server.pcap": b"\xd4\xc3\xb2\xa1" + bytes(20)})
      for key, line in EARLIER.items()),
    Refusal("--new mine", "--new: mine.toml is there already", files={"mine.toml": ""})]
