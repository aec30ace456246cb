"""The plugin of pytest: it collects the test files that ``penstock test`` runs, a pytest item each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.repl.sql_tests.declarations import SqlTest, SqlTestFile

# those of declarations: importing that module costs every pytest run half a second
_SUFFIXES = (".test.sql", "_test.sql")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect ``*.test.sql`` and ``*_test.sql``."""
    if not file_path.name.endswith(_SUFFIXES):
        return None
    return TestFileCollector.from_parent(parent, path=file_path)


class TestFileCollector(pytest.File):
    """One test file. One that cannot be read is an error of collection, with position and caret."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield its tests, in the order of the file."""
        from penstock.catalog.errors import PenstockError
        from penstock.repl.sql_tests.declarations import read_test_file

        try:
            file = read_test_file(str(self.path))
        except PenstockError as error:
            raise self.CollectError(error.render()) from None
        for test in file.tests:
            yield TestItem.from_parent(self, name=test.name, file=file, test=test)


class TestItem(pytest.Item):
    """One TEST statement."""

    def __init__(self, *, file: SqlTestFile, test: SqlTest, **rest: Any) -> None:
        super().__init__(**rest)
        self._file, self._test = file, test

    def runtest(self) -> None:
        """Run it, and fail with what differs."""
        from penstock.repl.sql_tests.runner import run_test

        outcome = run_test(self._file, self._test)
        if outcome.error is not None:
            raise _Failed(outcome.error.render())
        if outcome.lines:
            raise _Failed("\n".join(outcome.lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *rest: Any) -> Any:
        """Show the difference or the caret, and no traceback of ours."""
        return str(excinfo.value) if isinstance(excinfo.value, _Failed) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the test is."""
        return self.path, self._test.line - 1, self.name


class _Failed(Exception):
    """A test that failed, with its report."""
