"""Python functions by name: the coordinator sends a function's module and name, and a worker imports it from
the allowed modules.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from penstock.catalog.errors import PenstockError
from penstock.catalog.python_functions import PROGRAM_ERRORS, PythonFunction


def import_by_name(module: str) -> object:
    """Import a module of the allow-list; whatever it raises is raised."""
    return importlib.import_module(module)


class FunctionNames:
    """Resolves functions by module and name. ``modules``: the allow-list, the setting ``python.modules``."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = tuple(modules)

    def name(self, function: PythonFunction) -> str:
        """Return ``module:object`` of a function. RUN-2913 when another process cannot import it."""
        module, name = function.body.__module__, function.body.__qualname__
        if not self._allowed(module):
            why = f"module {module} is not among those workers may import"
            hint = f"SET 'python.modules' = '{','.join([*self._modules, module])}'"
            if module == "__main__":
                why, hint = (
                    "it is defined in the program itself",
                    "put it into a module and list that in 'python.modules'",
                )
            raise _refused(function.name, why, f"{hint}, or SET 'deployment' = 'embedded'")
        # a worker imports the name and would find another object, or none
        if getattr(sys.modules.get(module), name, None) is not function:
            hint = (
                f"bind the decorated function to the name {name} in {module}, or SET 'deployment' = "
                "'embedded'"
            )
            raise _refused(function.name, f"module {module} has no such object under the name {name}", hint)
        return f"{module}:{name}"

    def find(self, text: str) -> PythonFunction:
        """Return the function with this name. RUN-2913 when it is not allowed or not a function."""
        module, _, name = text.partition(":")
        # the text comes from a peer: import nothing outside the allow-list
        if not self._allowed(module) or not name.isidentifier():
            raise _refused(
                text[:100],
                "its module is not among those workers may import",
                "SET 'python.modules' lists them",
            )
        try:
            function = getattr(importlib.import_module(module), name, None)
        except PROGRAM_ERRORS as error:
            why = f"importing {module} there failed: {type(error).__name__}: {error}"
            raise _refused(
                name, why, "a worker finds modules where this process does, but runs none of its code"
            ) from error
        if not isinstance(function, PythonFunction):
            raise _refused(text[:100], "the module has no such function", None)
        return function

    def _allowed(self, module: str) -> bool:
        # a package allows its submodules; "app" does not allow "apple"
        return any(module == name or module.startswith(f"{name}.") for name in self._modules)


def _refused(name: str, why: str, hint: str | None) -> PenstockError:
    return PenstockError(
        "RUN-2913",
        f"Python function {name} cannot run in worker processes: {why}",
        hint=hint,
        sqlstate="0A000",
    )
