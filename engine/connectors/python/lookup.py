"""Python sources and sinks by the name a table has: those of this program, and those of modules that may be
imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.catalog.connectors.python import USER_OPTION
from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.python_connectors import ProgramConnectors, PythonConnector, PythonSink, PythonSource
from penstock.catalog.python_functions import PROGRAM_ERRORS
from penstock.catalog.tables import CatalogTable

Found = TypeVar("Found", PythonSource, PythonSink)


class PythonConnectors:
    """Finds Python connectors. ``modules`` returns the allow-list, the setting ``python.modules``: a table
    may come out of a stored catalog, and that is data. ``importer`` imports one of them by its name.
    """

    def __init__(
        self,
        program: ProgramConnectors,
        modules: Callable[[], Sequence[str]],
        importer: Callable[[str], Any],
    ) -> None:
        self._program = program
        self._modules = modules
        self._importer = importer

    def source(self, table: CatalogTable) -> PythonSource:
        """Return the source of a table. DAT-5601 when there is none."""
        return self._find(table, PythonSource, "source")

    def sink(self, table: CatalogTable) -> PythonSink:
        """Return the sink of a table. DAT-5601 when there is none."""
        return self._find(table, PythonSink, "sink")

    def _find(self, table: CatalogTable, kind: type[Found], word: str) -> Found:
        name = table.options["name"]
        found = self._program.by_name.get(name.lower()) or self._imported(table, name, word)
        if not isinstance(found, kind):
            other = "sink" if isinstance(found, PythonSink) else "source"
            message = f"table {table.name}: '{name}' is a Python {other}, not a {word}"
            raise PenstockError("DAT-5601", message, hint=f"decorate what is meant: @penstock.{word}")
        return found

    def _imported(self, table: CatalogTable, name: str, word: str) -> PythonConnector:
        module, _, attribute = name.rpartition(".")
        if not module:
            hint = did_you_mean(name, self._program.by_name) or (
                "connection.create_connector(..) registers one of this program; 'module.object' names one of "
                "a module"
            )
            raise PenstockError(
                "DAT-5601", f"table {table.name}: there is no Python {word} '{name}'", hint=hint
            )
        allowed = self._modules()
        # a package allows its submodules; "app" does not allow "apple"
        if not any(module == one or module.startswith(f"{one}.") for one in allowed):
            raise PenstockError(
                "DAT-5601",
                f"table {table.name}: module {module} is not among those that may be imported",
                hint=f"SET 'python.modules' = '{','.join([*allowed, module])}'",
                sqlstate="42501",
            )
        try:
            found = getattr(self._importer(module), attribute, None)
        except PenstockError:
            raise
        except PROGRAM_ERRORS as error:
            message = (
                f"table {table.name}: module {module} cannot be imported: {type(error).__name__}: {error}"
            )
            raise PenstockError("DAT-5601", message, hint="importing it must not fail") from error
        if not isinstance(found, PythonSource | PythonSink):
            message = f"table {table.name}: module {module} has no Python {word} {attribute}"
            raise PenstockError("DAT-5601", message, hint=f"decorate it: @penstock.{word}")
        return found


def user_options(table: CatalogTable) -> dict[str, str]:
    """Return what the table has for the Python code: ``'option.url'`` by the key ``url``."""
    return {
        key.removeprefix(USER_OPTION): value
        for key, value in table.options.items()
        if key.startswith(USER_OPTION)
    }
