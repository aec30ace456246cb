"""``--check`` of script files: their statements, their meta commands, and the scripts that these include."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.client.script_check import check_script
from penstock.client.session import Session
from penstock.repl.launch.script_parts import MetaCommand, meta_commands, without_commands
from penstock.repl.launch.script_runner import read_script, substitute
from penstock.repl.meta_commands.execution import included_path
from penstock.repl.meta_commands.registry import check_command

_INCLUDES = (r"\i", r"\ir")


class ScriptCheck:
    """Checks script files in one session, in their order."""

    def __init__(self, session: Session, variables: Mapping[str, str]) -> None:
        self._session = session
        self._variables = variables
        # Names that one file could not create: uses in later files are no causes of errors.
        self._missing: set[str] = set()
        self._included: list[Path] = []

    def errors_of(self, name: str) -> list[PenstockError]:
        """Return the errors of a script file (``-`` is stdin)."""
        self._included.append(Path(name).resolve())
        try:
            return self._errors_of(name)
        finally:
            self._included.pop()

    def _errors_of(self, name: str) -> list[PenstockError]:
        # Errors in stdin have a position and no file.
        file = None if name == "-" else name
        try:
            text = substitute(read_script(name), self._variables, file)
        except PenstockError as error:
            return [error]
        sql, start, errors = without_commands(text), 0, []
        for command in meta_commands(text, file):
            try:
                check_command(command)
                if command.name not in _INCLUDES:
                    continue
                included = included_path(command)
            except PenstockError as error:
                errors.append(command.locate(error))
                continue
            # What stands before an included script is declared for it.
            errors += self._errors_between(sql, start, command.offset, file)
            errors += self._errors_of_included(command, included)
            start = command.offset
        return errors + self._errors_between(sql, start, len(sql), file)

    def _errors_between(self, sql: str, start: int, end: int, file: str | None) -> list[PenstockError]:
        # Blank instead of cut: positions are those of the file.
        before = re.sub(r"[^\n]", " ", sql[:start])
        return check_script(self._session, before + sql[start:end], file, self._missing)

    def _errors_of_included(self, command: MetaCommand, name: str) -> list[PenstockError]:
        path = Path(name).resolve()
        if path in self._included:
            error = PenstockError(
                "CLI-6147", f"{name} would be included in itself", hint="remove the command"
            )
            return [command.locate(error)]
        return [command.locate(error) for error in self.errors_of(name)]
