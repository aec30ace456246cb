"""``penstock test``: unit tests of SQL scripts, their results as text and as JUnit XML."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from penstock.catalog.errors import Kind, PenstockError
from penstock.repl.launch.arguments import key_values
from penstock.repl.launch.parser import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_QUERY,
    EXIT_TEST_FAILED,
    EXIT_USAGE,
    Parser,
)
from penstock.repl.launch.session_factory import messages_for
from penstock.repl.output.messages import Messages
from penstock.repl.sql_tests.declarations import SUFFIXES, SqlTestFile, read_test_file
from penstock.repl.sql_tests.runner import Outcome, run_test

_UNPRINTABLE = {number: None for number in range(32) if number not in (9, 10, 13)}


def run_tests(arguments: argparse.Namespace, parser: Parser) -> int:
    """Run the tests of files and directories, print a line for each, and return the exit code. It is 7 when a
    test failed, 1 when a file or a statement has an error, 2 when there are no tests.
    """
    messages = messages_for(arguments)
    settings = key_values(arguments.settings, "--set", parser)
    outcomes: list[tuple[str, Outcome]] = []
    bad: list[tuple[str, PenstockError]] = []
    deselected, interrupted = 0, False
    try:
        for name in _test_files(arguments.files or ["."], bad):
            file = _read(name, bad)
            wanted = (
                [] if file is None else [t for t in file.tests if _matches(arguments.keyword, name, t.name)]
            )
            deselected += 0 if file is None else len(file.tests) - len(wanted)
            for test in wanted:
                assert file is not None, "only a file that was read has tests"
                outcome = run_test(file, test, settings)
                outcomes.append((name, outcome))
                _print(name, outcome, messages)
                if arguments.first and not outcome.passed:
                    raise StopIteration
    except StopIteration:
        pass
    # what has run so far is reported
    except KeyboardInterrupt:
        interrupted = True
    for _, error in bad:
        messages.error(error)
    if arguments.junit is not None:
        _write_junit(Path(arguments.junit), outcomes, bad)
    _summarize(outcomes, bad, deselected)
    if interrupted:
        return EXIT_INTERRUPTED
    if bad or any(outcome.error is not None for _, outcome in outcomes):
        return EXIT_QUERY
    # a name that is misspelt must not pass for success
    if not outcomes:
        return EXIT_USAGE
    return EXIT_OK if all(outcome.passed for _, outcome in outcomes) else EXIT_TEST_FAILED


def _test_files(names: list[str], bad: list[tuple[str, PenstockError]]) -> Iterator[str]:
    """Yield the files, and the test files below the directories."""
    for name in names:
        path = Path(name)
        if not path.is_dir():
            yield name
            continue
        found = sorted(
            str(each)
            for each in path.rglob("*.sql")
            if each.name.endswith(SUFFIXES)
            and not any(p.startswith(".") for p in each.relative_to(path).parts)
        )
        if not found:
            hint = f"names of test files end with {' or '.join(SUFFIXES)}"
            sys.stderr.write(f"there is no test file below {name}\nhint: {hint}\n")
        yield from found


def _read(name: str, bad: list[tuple[str, PenstockError]]) -> SqlTestFile | None:
    try:
        return read_test_file(name)
    # the other files are run all the same
    except PenstockError as error:
        bad.append((name, error))
        return None


def _matches(keyword: str | None, file: str, test: str) -> bool:
    """Return whether a test has the words of -k in its name or its file's: ``a and not b``, ``a or b``."""
    if keyword is None:
        return True
    text = f"{file} {test}".lower()
    return any(
        all(_has(text, factor.strip()) for factor in term.split(" and "))
        for term in keyword.lower().split(" or ")
    )


def _has(text: str, factor: str) -> bool:
    return factor[4:].strip() not in text if factor.startswith("not ") else factor in text


def _print(name: str, outcome: Outcome, messages: Messages) -> None:
    word = "ok  " if outcome.passed else "FAIL" if outcome.error is None else "ERROR"
    place = f"{name}:{outcome.test.line}"
    sys.stdout.write(f"{word} {place} {outcome.test.name} ({outcome.seconds * 1000:.0f} ms)\n")
    sys.stdout.writelines(f"     {line}\n" for line in outcome.lines)
    sys.stdout.flush()
    if outcome.error is not None:
        messages.error(outcome.error)


def _summarize(
    outcomes: list[tuple[str, Outcome]], bad: list[tuple[str, PenstockError]], deselected: int
) -> None:
    failed = sum(bool(outcome.lines) and outcome.error is None for _, outcome in outcomes)
    errors = sum(outcome.error is not None for _, outcome in outcomes) + len(bad)
    passed = len(outcomes) - failed - sum(outcome.error is not None for _, outcome in outcomes)
    counts = ((failed, "failed"), (passed, "passed"), (errors, "errors"), (deselected, "deselected"))
    shown = ", ".join(f"{count} {word}" for count, word in counts if count) or "no tests"
    seconds = sum(outcome.seconds for _, outcome in outcomes)
    sys.stdout.write(f"{shown} in {seconds:.2f} s\n")


def _write_junit(
    path: Path, outcomes: list[tuple[str, Outcome]], bad: list[tuple[str, PenstockError]]
) -> None:
    """Write the outcomes as JUnit XML, a test case each; a file that cannot be read is an error."""
    suite = ElementTree.Element("testsuite", name="penstock")
    failures = errors = 0
    for name, outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=name, name=_xml(outcome.test.name), time=f"{outcome.seconds:.3f}"
        )
        case.set("file", name)
        case.set("line", str(outcome.test.line))
        if outcome.error is not None:
            errors += 1
            found = ElementTree.SubElement(case, "error", message=_xml(outcome.error.message))
            found.text = _xml(outcome.error.render())
        elif outcome.lines:
            failures += 1
            found = ElementTree.SubElement(case, "failure", message=_xml(outcome.lines[0]))
            found.text = _xml("\n".join(outcome.lines))
    for name, error in bad:
        errors += 1
        case = ElementTree.SubElement(suite, "testcase", classname=name, name="collection", time="0")
        ElementTree.SubElement(case, "error", message=_xml(error.message)).text = _xml(error.render())
    suite.set("tests", str(len(outcomes) + len(bad)))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    suite.set("time", f"{sum(outcome.seconds for _, outcome in outcomes):.3f}")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        bad.append(
            (
                str(path),
                PenstockError(
                    "CLI-6131",
                    f"cannot write {path}: {reason}",
                    hint="name a file that can be written",
                    kind=Kind.EXTERNAL,
                ),
            )
        )
        sys.stderr.write(bad[-1][1].render() + "\n")


def _xml(text: str) -> str:
    # control letters have no place in XML, and would make the file unreadable
    return text.translate(_UNPRINTABLE)
