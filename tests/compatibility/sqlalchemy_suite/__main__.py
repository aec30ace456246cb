"""Runs SQLAlchemy's dialect suite: ``python -m tests.compatibility.sqlalchemy_suite [OPTIONS OF PYTEST]``.

Prints the counts, and the tests that fail besides those of ``expected.txt``. Exit code 0: no other test failed,
and each expected one did.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import pytest
from sqlalchemy.testing.plugin import pytestplugin

from tests.compatibility.sqlalchemy_suite import provision

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


class Counts:
    """Which tests passed, were skipped, and failed."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the worst outcome of a test's three phases."""
        # the suite adds the dialect and its version to the name of each class
        name = re.sub(r"_penstock\+penstock[\d_]*::", "::", report.nodeid.rpartition("suite.py::")[2])
        if report.failed or (name not in self.outcomes and (report.skipped or report.when == "call")):
            self.outcomes[name] = report.outcome

    def named(self, outcome: str) -> set[str]:
        """Return the names of the tests with an outcome."""
        return {name for name, found in self.outcomes.items() if found == outcome}


def expected_failures() -> dict[str, str]:
    """Return the tests that are expected to fail, with the reason above them."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in (HERE / "expected.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line:
            reasons[line] = reason
    return reasons


def main(options: list[str]) -> int:
    """Run the suite, and compare what fails with what is expected to."""
    counts = Counts()
    with tempfile.TemporaryDirectory() as directory:
        url = f"penstock:///?table_directory={directory}&set.bounded.backend=duckdb"
        pytest.main(
            [
                *(
                    "-c",
                    str(HERE / "setup.cfg"),
                    "--rootdir",
                    str(HERE),
                    "-q",
                    "--tb=short",
                    "-p",
                    "no:xdist",
                ),
                *(
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "no:warnings",
                    "--dburi",
                    url,
                    *options,
                    str(HERE / "suite.py"),
                ),
            ],
            plugins=[pytestplugin, provision, counts],
        )
    expected, failed = expected_failures(), counts.named("failed")
    print(
        f"passed {len(counts.named('passed'))}, skipped {len(counts.named('skipped'))}, failed {len(failed)}"
    )
    unexpected = failed - expected.keys()
    # a part of the suite was asked for: the rest of the list did not run
    mended = expected.keys() & counts.named("passed")
    for name in sorted(unexpected):
        print(f"failed, and is not in expected.txt: {name}")
    for name in sorted(mended):
        print(f"passed, and is in expected.txt: {name}")
    return 1 if unexpected or mended or not counts.outcomes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
