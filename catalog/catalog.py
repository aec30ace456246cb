"""The catalogs as one session sees them: tables and views by name, compared without case."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.namespaces import Databases
from penstock.catalog.python_functions import FunctionEntry, PythonFunction, PythonFunctions
from penstock.catalog.secrets import redact_url
from penstock.catalog.state_reference import NoStates, StateLookup
from penstock.catalog.system_tables import SYSTEM, SYSTEM_PATH, SYSTEM_TABLES, refuse_system, system_table
from penstock.catalog.tables import (
    CatalogTable,
    FileColumns,
    InferredFiles,
    MaterializedView,
    ObjectPath,
    View,
)

Relation = CatalogTable | View


class Catalog:
    """Tables and views in databases, Python functions beside them.

    A relation is kept under its full name (``ObjectPath.name_of``); a name as a user writes it is looked
    for from ``current``. A temporary relation hides a permanent one of the same name until it is dropped.

    Sessions of one engine share all but temporary relations and functions, and ``current``. With a re-entrant
    ``lock`` each method is one step for other sessions; a caller may hold it for several. It is not held
    while files or other systems are asked.
    """

    def __init__(
        self,
        functions: PythonFunctions | None = None,
        files: FileColumns | None = None,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        # Two dictionaries: a temporary relation may have the name of a permanent one.
        # By full name in lower case, in the order of creation.
        self._permanent: dict[str, Relation] = {}
        self._temporary: dict[str, Relation] = {}
        self.lock: AbstractContextManager[object] = lock or nullcontext()
        # Late rows of jobs, by the name as written: they belong to no database.
        self._late: dict[str, CatalogTable] = {}
        self.functions = functions or PythonFunctions(_no_import)
        # Columns of files that no table declares.
        self.files: FileColumns = files or _NoFiles()
        # States of jobs, which only a session knows.
        self.states: StateLookup = NoStates()
        self.databases = Databases()
        # Changed by USE; names of one part are looked for here.
        self.current = ObjectPath()
        # A list: the twins that ``at`` and ``for_session`` make count together.
        self._changes = [0]

    @property
    def version(self) -> tuple[object, ...]:
        """What a bound name depends on: it differs after any change of a relation, a function or the current
        database. Tables of external catalogs change without it.
        """
        return self._changes[0], self.functions.changes, self.current

    def at(self, path: ObjectPath) -> Catalog:
        """Return the same catalogs with names looked for from another database."""
        # A shallow copy: both see the tables that either creates.
        twin = copy(self)
        twin.current = path
        return twin

    def for_session(self) -> Catalog:
        """Return the same catalogs for another session, which has no temporary names yet."""
        twin = self.at(ObjectPath())
        twin._temporary = {}
        twin.functions = self.functions.for_session()
        return twin

    def qualified(self, name: str, span: Span | None = None) -> str:
        """Return the full name of a written one; raise SQL-1351 for a path that does not exist
        and SQL-1353 for too many parts.
        """
        parts = name.split(".")
        if len(parts) > 3:
            hint = "write catalog.database.table, or less"
            raise PenstockError(
                "SQL-1353", f'"{name}" has too many parts', span=span, hint=hint, sqlstate="42601"
            )
        # t, database.t or catalog.database.t
        before = [part.lower() for part in parts[:-1]]
        path = (
            ObjectPath(*before)
            if len(before) == 2
            else ObjectPath(self.current.catalog, before[0])
            if before
            else self.current
        )
        # A typo in the database's name is reported as one, not as a missing table.
        # An external catalog is asked for the table alone, not for its databases before.
        if path.catalog not in self.databases.external:
            self.databases.require(path, span)
        return path.name_of(parts[-1])

    def find(self, name: str) -> Relation | None:
        """Return the table or view of that name, or ``None``."""
        # A job's name may look like a path that does not exist: its late rows can be read all the same.
        late = self._late.get(name.lower())
        try:
            folded = self.qualified(name).lower()
        except PenstockError:
            # system.jobs is found from every catalog that has no database of that name
            return late or SYSTEM_TABLES.get(name.lower())
        with self.lock:
            # A temporary relation hides a permanent one.
            known = self._temporary.get(folded) or self._permanent.get(folded) or late
        # Another system is asked last and without the lock, as that may be slow.
        return (
            known
            or system_table(folded)
            or self._external(self.qualified(name))
            or SYSTEM_TABLES.get(name.lower())
        )

    def _external(self, full_name: str) -> CatalogTable | None:
        """A table of an external catalog."""
        path = ObjectPath.of(full_name)
        external = self.databases.external.get(path.catalog)
        return (
            None
            if external is None
            else external.table(full_name, path.database, full_name.rpartition(".")[2])
        )

    def external_tables(self) -> list[str]:
        """Return the names of the tables of the current database in an external catalog; none in one of
        ours.
        """
        external = self.databases.external.get(self.current.catalog)
        return [] if external is None else sorted(external.tables(self.current.database))

    def external_connector(self) -> str:
        """Return the connector of the tables of the current catalog, which is an external one."""
        return self.databases.external[self.current.catalog].system.lower()

    def keep_late_rows(self, table: CatalogTable) -> None:
        """Let the late rows of a job be read by name; they are listed nowhere."""
        with self.lock:
            self._changes[0] += 1
            self._late[table.name.lower()] = table

    def forget_late_rows(self, job_id: str) -> None:
        """Remove the tables of late rows of a job that nobody can ask for any more."""
        with self.lock:
            for name in [n for n, table in self._late.items() if table.options.get("job") == job_id]:
                del self._late[name]

    def resolve(self, name: str, span: Span | None = None) -> Relation:
        """Return the table or view of that name; raise SQL-1041 with the nearest name when there is none."""
        relation = self.find(name)
        if relation is None:
            # A wrong path is reported before the table: qualified and require raise for it.
            path = self.databases.require(ObjectPath.of(self.qualified(name, span)), span)
            external = self.databases.external.get(path.catalog)
            hint = (
                self._near(name)
                if external is None
                else did_you_mean(name.rpartition(".")[2], external.tables(path.database), others=True)
            )
            raise PenstockError(
                "SQL-1041", f'table "{name}" does not exist', span=span, hint=hint, sqlstate="42P01"
            )
        return relation

    def owns(self, table: CatalogTable) -> bool:
        """Return whether a table was created here, so that ``version`` differs when it changes."""
        folded = table.name.lower()
        with self.lock:
            return folded in self._temporary or folded in self._permanent

    def table(self, name: str, span: Span | None = None) -> CatalogTable:
        """Return the table of that name; raise SQL-1041 when there is none and SQL-1303 when it is a view."""
        relation = self.resolve(name, span)
        if isinstance(relation, View):
            raise PenstockError(
                "SQL-1303",
                f'"{relation.name}" is a view, not a table',
                span=span,
                hint=f"write VIEW: DROP VIEW {relation.name}, SHOW CREATE VIEW {relation.name}",
                sqlstate="42809",
            )
        return relation

    def stored_table(self, name: str, span: Span | None = None) -> CatalogTable:
        """Return a table that is no materialized view; raise SQL-1303 for one that is."""
        table = self.table(name, span)
        if isinstance(table, MaterializedView):
            message = f'"{table.name}" is a materialized view, not a table'
            raise PenstockError(
                "SQL-1303",
                message,
                span=span,
                hint="drop it with DROP MATERIALIZED VIEW and create it again",
                sqlstate="42809",
            )
        return table

    def materialized_view(self, name: str, span: Span | None = None) -> MaterializedView:
        """Return the materialized view of that name; raise SQL-1041 when there is none and SQL-1303 when
        it is something else.
        """
        relation = self.resolve(name, span)
        if not isinstance(relation, MaterializedView):
            noun = "a view" if isinstance(relation, View) else "a table"
            raise PenstockError(
                "SQL-1303",
                f'"{relation.name}" is {noun}, not a materialized view',
                span=span,
                sqlstate="42809",
            )
        return relation

    def view(self, name: str, span: Span | None = None) -> View:
        """Return the view of that name; raise SQL-1041 when there is none and SQL-1303 when it is a table."""
        relation = self.resolve(name, span)
        if not isinstance(relation, View):
            held = isinstance(relation, MaterializedView)
            message = f'"{relation.name}" is {"a materialized view" if held else "a table"}, not a view'
            hint = (
                "it is dropped and shown by DROP MATERIALIZED VIEW and SHOW CREATE MATERIALIZED VIEW"
                if held
                else f"write TABLE: DROP TABLE {relation.name}, SHOW CREATE TABLE {relation.name}"
            )
            raise PenstockError("SQL-1303", message, span=span, hint=hint, sqlstate="42809")
        return relation

    def create_table(
        self, table: CatalogTable, if_not_exists: bool = False, span: Span | None = None
    ) -> bool:
        """Add a table and return whether it was added; raise SQL-1302 when the name is taken and
        ``if_not_exists`` is not set.
        """
        return self._create(table, if_not_exists, span)

    def create_view(
        self, view: View, *, or_replace: bool = False, if_not_exists: bool = False, span: Span | None = None
    ) -> bool:
        """Add a view and return whether it was added; ``or_replace`` replaces a view, never a table."""
        # OR REPLACE replaces a view in its position of the order of creation.
        space = self._space(view)
        with self.lock:
            if or_replace and isinstance(space.get(view.name.lower()), View):
                space[view.name.lower()] = view
                self._changes[0] += 1
                return True
            return self._create(view, if_not_exists, span)

    def replace_table(self, table: CatalogTable, name: str, span: Span | None = None) -> None:
        """Replace the table called ``name`` by a changed one, perhaps of another name; raise
        SQL-1302 when the new name is taken.
        """
        self._refuse_built_in(self.qualified(name), span)
        space, old = self._space(table), self.qualified(name, span).lower()
        with self.lock:
            held = space.get(table.name.lower())
            # A changed table without a new name meets itself: that is no conflict.
            if held is not None and table.name.lower() != old:
                raise self._already_exists(held, span)
            # Rebuilt, so that the table stays in its position: views that read it come later.
            changed = {
                table.name.lower() if key == old else key: table if key == old else kept
                for key, kept in space.items()
            }
            space.clear()
            space.update(changed)
            self._changes[0] += 1

    def refuse_external(self, name: str, span: Span | None = None) -> None:
        """Raise SQL-1358 for a definition of what is called ``name``, in a catalog of another system."""
        self.databases.refuse_external(ObjectPath.of(self.qualified(name, span)), name, span)

    def drop_table(self, name: str, if_exists: bool = False, span: Span | None = None) -> bool:
        """Remove a table and return whether there was one."""
        # IF EXISTS covers a missing name only: a view of that name still raises SQL-1303.
        with self.lock:
            if if_exists and self.find(name) is None:
                return False
            return self._remove(self.stored_table(name, span), span)

    def drop_materialized_view(self, name: str, span: Span | None = None) -> bool:
        """Remove a materialized view."""
        with self.lock:
            return self._remove(self.materialized_view(name, span), span)

    def drop_view(self, name: str, if_exists: bool = False, span: Span | None = None) -> bool:
        """Remove a view and return whether there was one."""
        # As above: a table of that name still raises SQL-1303.
        with self.lock:
            if if_exists and self.find(name) is None:
                return False
            return self._remove(self.view(name, span), span)

    def tables(self) -> list[CatalogTable]:
        """Return the tables of the current database, by name."""
        return [
            relation
            for relation in self._visible()
            # A materialized view is a CatalogTable; SHOW TABLES does not list it.
            if isinstance(relation, CatalogTable) and not isinstance(relation, MaterializedView)
        ]

    def materialized_views(self) -> list[MaterializedView]:
        """Return the materialized views of the current database, by name."""
        return [relation for relation in self._visible() if isinstance(relation, MaterializedView)]

    def views(self) -> list[View]:
        """Return the views of the current database, by name."""
        return [relation for relation in self._visible() if isinstance(relation, View)]

    def permanent(self) -> list[Relation]:
        """Return what outlives the session, in the order it was created (a view after the tables it
        reads).
        """
        with self.lock:
            return list(self._permanent.values())

    def temporary(self) -> list[Relation]:
        """Return what ends with this session, in the order it was created."""
        with self.lock:
            return list(self._temporary.values())

    def names(self) -> list[str]:
        """Return the names of all visible tables and views, as a statement of this session may write them."""
        merged = self._merged()
        return [self.written(merged[name].name) for name in sorted(merged)]

    def written(self, full_name: str) -> str:
        """Return a full name as it may be written here."""
        path, name = ObjectPath.of(full_name), full_name.rpartition(".")[2]
        if path == self.current:
            return name
        # a name of two parts is looked for in the current catalog
        return f"{path.database}.{name}" if path.catalog == self.current.catalog else f"{path}.{name}"

    def relations_of(self, path: ObjectPath) -> list[Relation]:
        """Return all relations of a database."""
        built_in = SYSTEM_TABLES.values() if path == SYSTEM_PATH else ()
        all_of_them = (*built_in, *self.permanent(), *self.temporary())
        return [relation for relation in all_of_them if ObjectPath.of(relation.name) == path]

    def forget(self, path: ObjectPath) -> None:
        """Drop all relations of a database."""
        # relations_of makes a list: _remove changes the dictionaries.
        for relation in self.relations_of(path):
            self._remove(relation, None)

    def _merged(self) -> dict[str, Relation]:
        with self.lock:
            # Temporary names come second and so replace permanent ones.
            return {**self._permanent, **self._temporary}

    def _visible(self) -> list[Relation]:
        merged = self._merged()
        if self.current == SYSTEM_PATH:
            merged = {**SYSTEM_TABLES, **merged}
        return [merged[name] for name in sorted(merged) if ObjectPath.of(merged[name].name) == self.current]

    def _space(self, relation: Relation) -> dict[str, Relation]:
        return self._temporary if relation.temporary else self._permanent

    def _create(self, relation: Relation, if_not_exists: bool, span: Span | None) -> bool:
        self._refuse_built_in(relation.name, span)
        self.databases.refuse_external(ObjectPath.of(relation.name), relation.name, span)
        space = self._space(relation)
        with self.lock:
            held = space.get(relation.name.lower())
            # A permanent relation may be created under the name of a temporary one, and the other way round.
            if held is None:
                space[relation.name.lower()] = relation
                self._changes[0] += 1
                return True
        if if_not_exists:
            return False
        raise self._already_exists(held, span)

    def _already_exists(self, held: Relation, span: Span | None) -> PenstockError:
        # MaterializedView first: it is a CatalogTable, too.
        noun = (
            "materialized view"
            if isinstance(held, MaterializedView)
            else "table"
            if isinstance(held, CatalogTable)
            else "view"
        )
        hint = (
            f"drop it first with DROP {noun.upper()} {held.name}, or write CREATE {noun.upper()} IF NOT "
            "EXISTS"
        )
        return PenstockError(
            "SQL-1302", f'{noun} "{held.name}" exists already', span=span, hint=hint, sqlstate="42P07"
        )

    def _remove(self, relation: Relation, span: Span | None) -> bool:
        self._refuse_built_in(relation.name, span)
        self.databases.refuse_external(ObjectPath.of(relation.name), relation.name, span)
        with self.lock:
            self._space(relation).pop(relation.name.lower(), None)
            self._changes[0] += 1
        return True

    def _refuse_built_in(self, full_name: str, span: Span | None) -> None:
        """Refuse a definition in the built-in database, unless an old catalog file has one of that name."""
        if SYSTEM not in self.databases.by_catalog.get(SYSTEM_PATH.catalog, ()):
            refuse_system(ObjectPath.of(full_name), f'"{full_name}"', span)

    def _near(self, name: str) -> str:
        if name.lower().startswith(f"{SYSTEM}."):
            return did_you_mean(name, SYSTEM_TABLES, others=True) or ""
        # a table of another database, asked for without it
        elsewhere = [known for known in self.names() if known.lower().endswith(f".{name.lower()}")]
        if elsewhere:
            return f'did you mean "{elsewhere[0]}"?'
        return (
            did_you_mean(name, self.names(), others=True)
            or "no table is declared yet: CREATE TABLE declares one"
        )


class _NoFiles:
    """Refuses every path: a catalog by itself reads no files."""

    def format(self, path: str) -> str:
        """Raise DAT-4121."""
        raise self._error(path)

    def columns(self, options: Mapping[str, str]) -> InferredFiles:
        """Raise DAT-4121."""
        raise self._error(options["path"])

    def _error(self, path: str) -> PenstockError:
        message = f"this catalog reads no files, not even for the columns of {redact_url(path)}"
        return PenstockError("DAT-4121", message, hint="declare the columns of the table")


def _no_import(entry: FunctionEntry, span: Span | None) -> PythonFunction:
    raise PenstockError(
        "SQL-1335",
        f"this catalog imports no Python modules, not even for function {entry.name}",
        span=span,
        sqlstate="42501",
    )
