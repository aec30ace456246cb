"""The page of bad inputs, made of the golden cases and the scenarios: ``python -m
tests.streaming.bad_inputs.page docs``.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from tests.harness.case_files import case_files
from tests.harness.golden import GoldenCase, read_cases
from tests.streaming.bad_inputs.lakehouse_resuming import DELTA_CASES, ICEBERG_CASES
from tests.streaming.bad_inputs.resuming import FILE_CASES, SINK_CASES

SCRIPTS = Path(__file__).parent / "scripts"
TOPICS = {
    "files": "Files, databases and small connectors",
    "messages": "Messages and their formats",
    "http": "HTTP",
    "kafka": "Kafka",
    "redis": "Redis streams",
    "delta": "Delta tables",
    "iceberg": "Iceberg tables and catalogs",
    "storage": "Object stores",
}
"""The files of cases in the order of the page, with their headings."""
RESUMED = (*FILE_CASES, *SINK_CASES, *DELTA_CASES, *ICEBERG_CASES)
_HEAD = """# Bad inputs

Written by `python -m tests.streaming.bad_inputs.page docs`; do not edit.
{count} bad inputs of sources, formats, stores and sinks are here, each with the error that it gives.
A test runs each: no error has a traceback or a secret in it. Words in braces replace addresses and directories.
[MISTAKES.md](MISTAKES.md) has mistakes of statements, [ERRORS.md](ERRORS.md) every error code.

## Nothing is lost

Each of these ends a job in mid-run, with checkpoints and without restarts. What was committed before stays.
When the cause is cured, the same statement resumes, and every row is there once. A test plays each.

| | what ends the job | error | cured by |
|---|---|---|---|
{resumed}

A record that cannot be read ends the job by default. With `'on-error' = 'skip'` it is skipped and counted, with
`'on-error' = 'table'` it is kept in the table `<name>$errors`.
Errors that may pass, such as a server that does not answer, restart the job by its
[strategy](RELIABILITY.md#what-follows-a-failure) before they end it.
"""


def page() -> str:
    """Return the page as Markdown."""
    cases = {topic: read_cases(SCRIPTS / topic) for topic in TOPICS}
    count = sum(map(len, cases.values())) + len(RESUMED)
    lines = []
    for topic, group in groupby(RESUMED, key=lambda case: case.topic):
        for number, case in enumerate(group):
            lines.append(f"| {'' if number else topic} | {case.title} | {case.code} | {case.cured_by} |")
    parts = [_HEAD.format(count=count, resumed="\n".join(lines))]
    for topic, heading in TOPICS.items():
        parts.append(f"## {heading}\n\n```\n" + "\n\n".join(map(_entry, cases[topic])) + "\n```\n")
    return "\n".join(parts)


def _entry(case: GoldenCase) -> str:
    said = [line for line in case.expected.split("\n") if not line.startswith("operator: ")]
    return case.comment.strip().removeprefix("# ") + "\n" + "\n".join(f"  {line}" for line in said)


if __name__ == "__main__":
    assert {path.name for path in case_files(SCRIPTS, "*")} == set(TOPICS)
    (Path(sys.argv[1]) / "BAD_INPUTS.md").write_text(page(), encoding="utf-8")
