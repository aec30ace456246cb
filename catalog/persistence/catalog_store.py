"""The catalog on disk: the statements that make its permanent tables and views, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.persistence.durable_file import exclusive_directory, replace_file
from penstock.catalog.persistence.show_create import (
    create_statement,
    function_statement,
    quoted_name,
    quoted_text,
)
from penstock.catalog.tables import DEFAULT_CATALOG, DEFAULT_DATABASE, MaterializedView, ObjectPath, View

# Of catalog.json: {"format": 1, "statements": [..]}.
# Another number is refused: statements of a later format may mean something else.
FORMAT = 1

_QUOTED = r"`(?:[^`]|``)*`"
# what a stored statement creates; it is written by this module, so its names are quoted
_CREATED = re.compile(
    rf"CREATE (CATALOG|DATABASE|FUNCTION|TABLE|VIEW|MATERIALIZED VIEW) ({_QUOTED}(?:\.{_QUOTED})*)"
)
_USED = re.compile(rf"USE ({_QUOTED}(?:\.{_QUOTED})*)")
# in this order they find one another; whatever else somebody wrote comes last
_ORDER = ("CATALOG", "DATABASE", "FUNCTION", "RELATION")

# what a statement creates: its kind and full name
Created = tuple[str, str]


@dataclass(frozen=True)
class StoredStatement:
    """A statement of the file, and the USE before it; None where it does not matter."""

    use: str | None
    text: str


class CatalogStore:
    """One file ``catalog.json`` in a directory; the session runs its statements to fill a catalog.
    Temporary tables and views are not stored.

    Several programs may use one file: each writes what it has changed, and leaves what others have written.
    ``begin`` comes before the first ``save`` of a file that was loaded.
    """

    def __init__(self, directory: Path, catalog: str = DEFAULT_CATALOG) -> None:
        self.catalog = catalog
        self.path = directory / "catalog.json"
        # of our catalog when it was last stored; of the file, when our catalog was as it
        self._known: Mapping[Created, StoredStatement] = {}
        self._seen: Mapping[Created, StoredStatement] = {}

    def load(self) -> list[str]:
        """Return the stored statements in the order they must be run, none when there is no file. Raises
        SQL-1320 for a file that is no catalog.
        """
        statements = self._read() or []
        self._seen = self._by_name(statements)
        return statements

    def begin(self, catalog: Catalog) -> None:
        """Remember what the stored statements have made: what differs from it later is a change of ours."""
        self._known = self._of_catalog(catalog)

    def save(self, catalog: Catalog) -> None:
        """Write what has changed of the permanent tables and views, whole or not at all: a new file beside
        the old one, synced, then renamed over it. SQL-1325 names what another program has changed too: that
        stays as it is in the file, all else is written.
        """
        ours = self._of_catalog(catalog)
        try:
            with exclusive_directory(self.path.parent):
                stored = self._read()
                # a file that was moved away is begun anew, with all that is here
                theirs = self._by_name(stored) if stored is not None else self._known
                seen = self._seen if stored is not None else self._known
                merged, refused = _merged(self._known, ours, seen, theirs)
                statements = self._written(merged, ours)
                text = json.dumps({"format": FORMAT, "statements": statements}, ensure_ascii=False, indent=1)
                replace_file(self.path, text + "\n")
        except OSError as error:
            message = f"the catalog cannot be written to {self.path}"
            raise PenstockError(
                "SQL-1321", message, detail=str(error), kind=Kind.EXTERNAL, sqlstate="58030"
            ) from error
        # what others have made is not seen here: a change of it is refused again. What was refused is not
        # asked for again.
        self._known = ours
        self._seen = {**self._seen, **dict(ours.items() & merged.items())}
        if refused:
            names = " and ".join(name for _, name in refused)
            raise PenstockError(
                "SQL-1325",
                f"{names} was changed in {self.path} by another program",
                hint="it stays there as it is, and as you changed it in this session: choose another name, "
                "or connect again to use what is there",
                sqlstate="40001",
            )

    def _read(self) -> list[str] | None:
        """Return the statements of the file; None where there is none."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            # strerror alone: str() of an OSError repeats the path that the message has already.
            raise self._unreadable(getattr(error, "strerror", None) or str(error)) from error
        try:
            content = json.loads(text)
        except ValueError as error:
            raise self._unreadable(str(error)) from error
        # A file that was edited by hand is reported, never read in part.
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise self._unreadable(f"it is not of format {FORMAT}")
        statements = content.get("statements")
        if not isinstance(statements, list) or not all(
            isinstance(statement, str) for statement in statements
        ):
            raise self._unreadable("it holds no list of statements")
        return statements

    def _of_catalog(self, catalog: Catalog) -> dict[Created, StoredStatement]:
        # one moment of the catalog, whatever other sessions change
        with catalog.lock:
            return self._by_name(catalog_statements(catalog, self.catalog))

    def _by_name(self, statements: Sequence[str]) -> dict[Created, StoredStatement]:
        """Return statements by what they create; a text that creates nothing is its own name."""
        found: dict[Created, StoredStatement] = {}
        used, use = ObjectPath(self.catalog), self._use_default
        for text in statements:
            if (named := _USED.match(text)) is not None:
                parts, use = _parts(named[1]), text
                used = ObjectPath(parts[-2] if len(parts) > 1 else self.catalog, parts[-1])
            elif (created := _CREATED.match(text)) is None:
                found["", text] = StoredStatement(use, text)
            elif created[1] in _ORDER:
                found[created[1], ".".join(_parts(created[2]))] = StoredStatement(None, text)
            else:
                # a table and a view cannot both have a name
                named_parts = _parts(created[2])
                # db.t is of this catalog, t of where the USE leads
                within = [self.catalog] if len(named_parts) == 2 else [used.catalog, used.database]
                full = [*within, *named_parts][-3:]
                found["RELATION", ".".join(full)] = StoredStatement(use, text)
        return found

    @property
    def _use_default(self) -> str:
        return f"USE {quoted_name(DEFAULT_DATABASE)}"

    def _written(
        self, merged: Mapping[Created, StoredStatement], ours: Mapping[Created, StoredStatement]
    ) -> list[str]:
        """Return statements in an order in which they can be run, with the USE that each needs."""
        # the order of creation; among those of other programs that of the file
        order = list(ours) if merged.keys() == ours.keys() else list(merged)
        order.sort(key=lambda created: _ORDER.index(created[0]) if created[0] else len(_ORDER))
        statements: list[str] = []
        use = self._use_default
        for created in order:
            stored = merged[created]
            if stored.use is not None and stored.use != use:
                use = stored.use
                statements.append(use)
            statements.append(stored.text)
        return statements

    def _unreadable(self, why: str) -> PenstockError:
        message = f"the catalog file {self.path} cannot be read"
        hint = "restore it from a copy, or move it away to begin with an empty catalog"
        return PenstockError("SQL-1320", message, detail=why, hint=hint, kind=Kind.EXTERNAL, sqlstate="58030")


def _merged(
    known: Mapping[Created, StoredStatement],
    ours: Mapping[Created, StoredStatement],
    seen: Mapping[Created, StoredStatement],
    theirs: Mapping[Created, StoredStatement],
) -> tuple[dict[Created, StoredStatement], list[Created]]:
    """Apply to a file what differs between ``known`` and ``ours``. Return its statements, and what another
    program has changed since the file was ``seen``: that is left as it is.
    """
    merged, refused = dict(theirs), []
    for created in dict.fromkeys((*known, *ours)):
        entry, stored = ours.get(created), theirs.get(created)
        if entry == known.get(created) or stored == entry:
            continue
        # created, altered or dropped here; who dropped it there has not changed what is created again
        if stored is not None and stored != seen.get(created):
            refused.append(created)
        elif entry is None:
            del merged[created]
        else:
            merged[created] = entry
    return merged, refused


def _parts(quoted: str) -> list[str]:
    """Return the parts of a quoted name, folded."""
    return [part[1:-1].replace("``", "`").lower() for part in re.findall(_QUOTED, quoted)]


def catalog_statements(catalog: Catalog, name_of_catalog: str = DEFAULT_CATALOG) -> list[str]:
    """Return the statements that make a catalog again when names are looked for in its default database.
    They have secrets.
    """
    databases = catalog.databases
    # Databases before the tables in them; the default one exists from the start.
    statements = [
        f"CREATE DATABASE {quoted_name(name)}"
        for name in databases.by_catalog[name_of_catalog]
        if name != DEFAULT_DATABASE
    ]
    # The default catalog's file also has what belongs to no catalog: other catalogs and functions.
    if name_of_catalog == DEFAULT_CATALOG:
        others = [name for name in databases.by_catalog if name != DEFAULT_CATALOG]
        # Other catalogs come first: a view of this one may read their tables.
        statements = [
            f"CREATE CATALOG {quoted_name(name)} WITH ({_options(databases.options[name])})"
            for name in others
        ] + statements
        statements += map(function_statement, catalog.functions.permanent())
    # The current database while the statements run; USE changes it.
    used = ObjectPath(name_of_catalog)
    # In the order of creation: a view comes after the tables it reads.
    for relation in catalog.permanent():
        path = ObjectPath.of(relation.name)
        if path.catalog != name_of_catalog:
            continue
        # The names in a view's text are looked up from the database it was created in.
        wanted = relation.path if isinstance(relation, View | MaterializedView) else path
        if wanted != used:
            statements.append(f"USE {_written(wanted, name_of_catalog)}")
            used = wanted
        # As seen from the database in use: a view may be created in one and belong to another.
        bare = relation.name.rpartition(".")[2]
        where = (
            "" if wanted == path else f"{path.database}." if wanted.catalog == name_of_catalog else f"{path}."
        )
        # With its secrets: a masked password could not connect after a restart.
        statements.append(create_statement(replace(relation, name=where + bare), redact=False))
    return statements


def _written(path: ObjectPath, name_of_catalog: str) -> str:
    # USE database, or USE catalog.database for a view whose query was written in another catalog.
    inside = path.catalog == name_of_catalog
    return (
        quoted_name(path.database) if inside else f"{quoted_name(path.catalog)}.{quoted_name(path.database)}"
    )


def _options(options: dict[str, str]) -> str:
    return ", ".join(f"{quoted_text(key)} = {quoted_text(value)}" for key, value in options.items())
