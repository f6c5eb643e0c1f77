"""The step of action.yml that measures: its inputs, and what it leaves for later steps.

Inputs are environment variables, and become words of a command line without a shell: quotes keep
spaces together as in one, and nothing is evaluated. Only the input "command" is a line for a shell,
in the guest. Outputs go to $GITHUB_OUTPUT, what was printed and the findings to
$GITHUB_STEP_SUMMARY, and all files to the folder first-flight.
"""

from __future__ import annotations

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = Path("first-flight")
FINDINGS = FOLDER / "findings"
USAGE = 2
MOST_MESSAGES = 20  # lines, in the summary
MOST_SUMMARY_BYTES = 900_000  # GitHub takes 1 MiB from a step
STATUSES = {0: "measured and verified", 1: "a trial or the harness failed", 2: "not understood",
            3: "a verdict failed, or a condition cannot be decided",
            4: "this machine cannot measure it", 5: "a condition of fail-if holds"}
# Outputs, by the field of the findings; those of the first findings that have it.
FIELDS = {"recommended-iw": "recommended_iw", "iw": "iw", "at-least": "at_least"}


def main() -> int:
    """Run what the inputs request, one after the other; return the first status that is not 0."""
    shutil.rmtree(FINDINGS, ignore_errors=True)  # of an earlier step of this job
    status, printed = 0, []
    for command in commands(os.environ):
        status, text = run(command)
        printed.append(text)
        if status:
            break
    findings = [json.loads(path.read_text(encoding="utf-8"))
                for path in sorted(FINDINGS.glob("*.json"))]
    append("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in
                                    outputs(status, findings).items()))
    chapters = [path.read_text(encoding="utf-8") for path in sorted(FINDINGS.glob("*.md"))]
    append("GITHUB_STEP_SUMMARY", summary(status, printed, chapters))
    return status


# Inputs -------------------------------------------------------------------------------

def commands(inputs: Mapping[str, str]) -> list[list[str]]:
    """The command lines that the inputs request. Ends with a line where they request none."""
    run_sh = str(PROJECT / "run.sh")
    question = words(inputs["QUESTION"], "question")
    condition = inputs["FAIL_IF"].strip()
    scripts = [path for word in words(inputs["PACKETDRILL"], "packetdrill")
               for path in sorted(glob.glob(word)) or [word]]
    if condition and not question:
        refuse("fail-if is about what a question measures: give a question")

    requested = []
    if question:
        requested.append([
            run_sh, *question, *(["--fail-if", condition] if condition else []),
            "--results", str(FOLDER / "results"), "--figures", str(FOLDER / "figures"),
            "--export", "json", str(FINDINGS / "{name}.json"),
            "--export", "md", str(FINDINGS / "{name}.md")])
    if command := inputs["COMMAND"].strip():
        capture = ["--capture"] if inputs["CAPTURE"] == "true" else []
        requested.append([run_sh, *capture, "--", "bash", "-c", command])
    if scripts:
        requested.append([run_sh, "--", "packetdrill", *scripts])
    if not requested:
        refuse("give one of question, command and packetdrill")
    return requested


def words(text: str, what: str) -> list[str]:
    """The words of an input, in all its lines; quotes as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        refuse(f"{what}: {one_line(str(error))}: close each quote")


def refuse(why: str) -> NoReturn:
    """End with a line that GitHub shows at the step."""
    print(f"::error::first-flight: {why}", flush=True)
    sys.exit(USAGE)


def run(command: Sequence[str]) -> tuple[int, str]:
    """Run a command; return its status and what it printed, which is shown as it comes.

    Of a command that failed, the end of its messages too.
    """
    printed: list[str] = []
    messages: deque[str] = deque(maxlen=MOST_MESSAGES)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="backslashreplace") as process:
        assert process.stdout is not None and process.stderr is not None
        showing = threading.Thread(target=show, args=(process.stderr, sys.stderr, messages))
        showing.start()
        show(process.stdout, sys.stdout, printed)
        showing.join()
    # A signal's number is negative; a shell adds 128 to it.
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return status, "".join([*printed, *(messages if status else ())])


def show(source: IO[str], target: IO[str], lines: MutableSequence[str]) -> None:
    """Print each line as it comes, and keep it."""
    for line in source:
        print(line, end="", file=target, flush=True)
        lines.append(line)


# Outputs ------------------------------------------------------------------------------

def outputs(status: int, findings: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The values of later steps; "" where nothing was found."""
    found = {"status": str(status), "findings": str(FINDINGS) if findings else "",
             "answer": next((one_line(str(each["answer"])) for each in findings), "")}
    for name, field in FIELDS.items():
        value = next((each[field] for each in findings if each.get(field) is not None), "")
        found[name] = json.dumps(value) if isinstance(value, bool) else str(value)
    reports = [FOLDER / "results" / str(each["run"]) / "report.html" for each in findings]
    found["report"] = next((str(path) for path in reports if path.is_file()), "")
    return found


def summary(status: int, printed: Iterable[str], chapters: Iterable[str]) -> str:
    """The job's summary in Markdown: what was printed, and all findings folded."""
    text = f"### First Flight: {STATUSES.get(status, f'ended with status {status}')}\n"
    for block in printed:
        fence = "`" * 4
        while fence in block:
            fence += "`"
        text += f"\n{fence}text\n{block.rstrip()}\n{fence}\n"
    folded = "".join(f"\n<details><summary>All findings</summary>\n\n{chapter}\n</details>\n"
                     for chapter in chapters)
    for whole in (text + folded, text):
        if len(whole.encode()) <= MOST_SUMMARY_BYTES:
            return whole
    return text.encode()[:MOST_SUMMARY_BYTES].decode(errors="ignore") + "\n"


def one_line(text: str) -> str:
    """Text in which no line break begins another output."""
    return " ".join(text.split())


def append(name: str, text: str) -> None:
    """Append to the file that an environment variable names; nothing outside GitHub."""
    if path := os.environ.get(name):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
