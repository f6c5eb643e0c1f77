"""benchmarks.outside.examples: what of a document is a command, and what its output has to hold."""

from __future__ import annotations

import shlex

from benchmarks.outside import examples

TEXT = """# Questions

## One?

    ./run.sh --rtt 25 \\
        --iw 10

    a table
      of 2 rows
    …

    after a gap

An answer.

    import random
    print("users")

whose output is users.csv:

    ./run.sh --users users.csv

    3 of 3

With this:

    daemon off;
    events {}

## A probe needs a server of one's own, and is not run:

    $ ./run.sh --probe http://192.0.2.7/
"""


def test_commands_their_lines_and_the_program() -> None:
    found, program, configuration = examples.examples(TEXT)
    assert [command for command, _ in found] == ["./run.sh --rtt 25 --iw 10",
                                                 "./run.sh --users users.csv"]
    assert configuration == "daemon off;\nevents {}"
    assert found[0][1] == ["a table", "  of 2 rows", "after a gap"]
    assert program == 'import random\nprint("users")'
    assert found[1][1] == ["3 of 3"]


def test_a_line_that_is_not_printed_is_told() -> None:
    assert examples.missing("a table \n  of 2 rows\n", ["a table", "  of 2 rows"]) == []
    assert examples.missing("a table\nof 3 rows\n", ["a table", "of 2 rows"]) == ["of 2 rows"]


def test_the_document_is_read_as_it_is_meant() -> None:
    found, program, configuration = examples.examples(
        examples.QUESTIONS.read_text(encoding="utf-8"))
    assert len(found) >= 10 and all(lines for _, lines in found) and "lognormvariate" in program
    assert all(shlex.split(command) for command, _ in found) and "listen" in configuration
