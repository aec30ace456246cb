"""The catalog on disk: the statements that make its permanent tables and views, as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

from catalog.catalog import Catalog
from catalog.errors import Kind, PenstockError
from catalog.show_create import create_statement, function_statement

FORMAT = 1


class CatalogStore:
    """One file ``catalog.json`` in a directory; the session runs its statements to fill a catalog. Temporary tables and views are not kept."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "catalog.json"

    def load(self) -> list[str]:
        """Return the stored statements in the order they must be run; none when there is no file; raise SQL-1320 for a file that is no catalog."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(getattr(error, "strerror", None) or str(error)) from error
        try:
            content = json.loads(text)
        except ValueError as error:
            raise self._unreadable(str(error)) from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise self._unreadable(f"it is not of format {FORMAT}")
        statements = content.get("statements")
        if not isinstance(statements, list) or not all(isinstance(statement, str) for statement in statements):
            raise self._unreadable("it holds no list of statements")
        return statements

    def save(self, catalog: Catalog) -> None:
        """Write the permanent tables and views, whole or not at all: a new file beside the old one, synced, then renamed over it."""
        statements = [function_statement(entry) for entry in catalog.functions.entries() if not entry.temporary]
        statements += [create_statement(relation, redact=False) for relation in catalog.permanent()]
        text = json.dumps({"format": FORMAT, "statements": statements}, ensure_ascii=False, indent=1) + "\n"
        fresh = self.path.with_suffix(".json.new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            message = f"the catalog cannot be written to {self.path}"
            raise PenstockError("SQL-1321", message, detail=str(error), kind=Kind.EXTERNAL, sqlstate="58030") from error

    def _unreadable(self, why: str) -> PenstockError:
        message = f"the catalog file {self.path} cannot be read"
        hint = "restore it from a copy, or move it away to begin with an empty catalog"
        return PenstockError("SQL-1320", message, detail=why, hint=hint, kind=Kind.EXTERNAL, sqlstate="58030")
