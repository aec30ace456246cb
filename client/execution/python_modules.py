"""The one door through which SQL reaches Python by name: CREATE FUNCTION .. AS 'module.object'."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.python_functions import PROGRAM_ERRORS, FunctionEntry, PythonFunction
from penstock.catalog.settings import Settings


class PythonModules:
    """Imports the objects functions are made of.

    A name typed in a statement is imported at once: whoever runs the statement runs the process. A name that
    comes out of a stored catalog is data, and is imported only from the modules ``python.modules`` lists.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def allowed(self) -> list[str]:
        """Return the modules that names out of data may be imported from."""
        listed = str(self._settings.get("python.modules")).split(",")
        return [part.strip() for part in listed if part.strip()]

    def module(self, path: str) -> object:
        """Import a module that is allowed; raise SQL-1333 when it cannot be imported."""
        return _module(path, None)

    def import_stored(self, entry: FunctionEntry, span: Span | None) -> PythonFunction:
        """Return the function of an entry of a stored catalog; raise SQL-1335 when its module is not among
        those allowed.
        """
        assert entry.target is not None
        allowed = self.allowed()
        module = entry.target.rpartition(".")[0]
        # the module itself or one below it: 'a' allows a and a.b, not ab
        if not any(module == name or module.startswith(f"{name}.") for name in allowed):
            hint = (
                f"SET 'python.modules' = '{','.join([*allowed, module])}' allows it, or run its CREATE "
                "OR REPLACE FUNCTION again"
            )
            message = (
                f"the stored catalog wants Python module {module} for function {entry.name}, which is "
                "not allowed"
            )
            raise PenstockError("SQL-1335", message, span=span, hint=hint, sqlstate="42501")
        return self.load(entry.target, span)

    def load(self, target: str, span: Span | None) -> PythonFunction:
        """Return the decorated function that ``module.object`` names; raise SQL-1333 when it cannot be
        imported and SQL-1334 when it is none.
        """
        path, _, name = target.rpartition(".")
        if not path or not all(part.isidentifier() for part in target.split(".")):
            raise PenstockError(
                "SQL-1333",
                f"'{target}' does not name a Python object",
                span=span,
                hint="write 'module.function'",
                sqlstate="42883",
            )
        module = _module(path, span)
        found = getattr(module, name, None)
        if found is None:
            decorated = [key for key, value in vars(module).items() if isinstance(value, PythonFunction)]
            hint = did_you_mean(name, decorated) or _listed(decorated)
            raise PenstockError(
                "SQL-1333", f"module {path} has no {name}", span=span, hint=hint, sqlstate="42883"
            )
        # only decorated functions: os.system has no SQL types, and a statement must not reach it
        if not isinstance(found, PythonFunction):
            hint = 'decorate it: @penstock.udf(["BIGINT"], "DOUBLE"), or @penstock.udaf, udtf, ptf'
            raise PenstockError(
                "SQL-1334", f"{target} is no function of SQL", span=span, hint=hint, sqlstate="42883"
            )
        return found


def _module(path: str, span: Span | None) -> object:
    """Import a module; the working directory is searched last, so that nothing in it hides an installed
    module.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(path)
    # perhaps a module that the named one imports: error.name is the one that is missing
    except ModuleNotFoundError as error:
        hint = f"there is no module {error.name} on Python's path or in the working directory"
        raise PenstockError(
            "SQL-1333", f"Python module {path} cannot be imported", span=span, hint=hint, sqlstate="42883"
        ) from error
    except PROGRAM_ERRORS as error:
        message = f"Python module {path} cannot be imported: {type(error).__name__}: {error}"
        raise PenstockError(
            "SQL-1333", message, span=span, hint="importing it must not fail", sqlstate="42883"
        ) from error


def _listed(names: Sequence[str]) -> str:
    return f"it has {', '.join(sorted(names))}" if names else "it has no decorated function"
