"""CREATE and DROP of catalogs and databases, USE, and what SHOW says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.connectors.iceberg import CATALOG_SETTING, ICEBERG_CATALOG_OPTIONS, ICEBERG_TYPE
from penstock.catalog.connectors.spark import CATALOG_KEYS, SETTING_PREFIX, SPARK
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.namespaces import ExternalCatalog
from penstock.catalog.persistence.catalog_store import CatalogStore
from penstock.catalog.system_tables import SYSTEM, refuse_system
from penstock.catalog.tables import DEFAULT_CATALOG, DEFAULT_DATABASE, MaterializedView, ObjectPath
from penstock.client.results.result import Result, note_result
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import Name

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState

_TYPES = {
    "memory": frozenset({"type"}),
    "file": frozenset({"type", "path"}),
    SPARK: frozenset(CATALOG_KEYS),
    ICEBERG_TYPE: frozenset(
        {"type", "default-database", *(one.key for one in ICEBERG_CATALOG_OPTIONS if "*" not in one.key)}
    ),
}
# Keys that begin so are settings of the other system.
_SETTINGS = {SPARK: SETTING_PREFIX, ICEBERG_TYPE: CATALOG_SETTING}


def change_namespaces(
    state: SessionState, node: nodes.NamespaceStatement, load: Callable[[CatalogStore], None]
) -> Result:
    """Run a statement about catalogs or databases, save what it changed, and report it. ``load`` runs the
    stored statements of a file catalog.
    """
    match node:
        # returns at once: the current database is the session's and in no catalog file
        case nodes.Use():
            return _use(state, node)
        case nodes.CreateCatalog():
            result = _create_catalog(state, node, load)
        case nodes.DropCatalog():
            # looked at and dropped in one step: no other session creates a table in between
            with state.catalog.lock:
                result = _drop_catalog(state, node)
        case nodes.CreateDatabase(name, if_not_exists):
            # a catalog file of an older version may have one: then it hides nothing
            if not state.loading:
                refuse_system(database_named(state, name), f'database "{name}"', name.span)
            with state.catalog.lock:
                made = state.catalog.databases.create(database_named(state, name), if_not_exists, name.span)
            result = note_result(f"database {name} created" if made else f"database {name} exists already")
        case nodes.DropDatabase():
            with state.catalog.lock:
                result = _drop_database(state, node)
    state.save_catalogs()
    return result


def database_named(state: SessionState, name: Name) -> ObjectPath:
    """Return the database that a name of one or two parts denotes."""
    parts = name.text.lower().split(".")
    # database, or catalog.database
    if len(parts) > 2:
        raise PenstockError(
            "SQL-1353",
            f'"{name}" has too many parts',
            span=name.span,
            hint="write catalog.database, or less",
            sqlstate="42601",
        )
    return (
        ObjectPath(parts[0], parts[1])
        if len(parts) == 2
        else ObjectPath(state.catalog.current.catalog, parts[0])
    )


def _use(state: SessionState, node: nodes.Use) -> Result:
    catalog = state.catalog
    if node.catalog:
        catalog.current = catalog.databases.default_of(
            catalog.databases.require_catalog(node.name.text, node.name.span)
        )
    else:
        catalog.current = catalog.databases.require(database_named(state, node.name), node.name.span)
    return note_result(f"names are looked for in {catalog.current}")


def _create_catalog(
    state: SessionState, node: nodes.CreateCatalog, load: Callable[[CatalogStore], None]
) -> Result:
    name, options = node.name, {option.key: option.value for option in node.options}
    kind = options.get("type", "")
    if kind not in _TYPES:
        place = next((option.value_span for option in node.options if option.key == "type"), name.span)
        hint = (
            did_you_mean(kind, _TYPES)
            or "write 'type' = 'memory', 'type' = 'file' with a 'path' that stores its tables, "
            "'type' = 'iceberg' or 'type' = 'spark'"
        )
        message = f"there are no catalogs of type '{kind}'" if kind else "the catalog has no type"
        raise PenstockError("SQL-1354", message, span=place, hint=hint, sqlstate="0A000")
    for option in node.options:
        if option.key not in _TYPES[kind] and not (
            kind in _SETTINGS and option.key.startswith(_SETTINGS[kind])
        ):
            near = did_you_mean(option.key, _TYPES[kind], others=True)
            raise PenstockError(
                "SQL-1502", f"a {kind} catalog has no option '{option.key}'", span=option.key_span, hint=near
            )
    if kind == "file" and "path" not in options:
        raise PenstockError(
            "SQL-1503",
            "a file catalog needs the option 'path'",
            span=name.span,
            hint="a directory, made when it is missing",
        )
    if kind in _SETTINGS:
        external = _external(kind, options, name)
        with state.catalog.lock:
            made = state.catalog.databases.add_external(
                name.text, options, external, node.if_not_exists, name.span
            )
        return note_result(f"catalog {name} created" if made else f"catalog {name} exists already")
    # a file catalog is an empty one, filled by its stored statements
    with state.catalog.lock:
        made = state.catalog.databases.create_catalog(name.text, options, node.if_not_exists, name.span)
    if not made:
        return note_result(f"catalog {name} exists already")
    # only now: its statements run in the catalog, which must exist
    if kind == "file":
        try:
            load(CatalogStore(Path(options["path"]), name.text.lower()))
        except PenstockError as error:
            # all or nothing: the names that were loaded before the error are dropped as well
            _forget_catalog(state, name.text.lower())
            raise PenstockError(
                "SQL-1357",
                f"catalog {name} cannot be opened",
                detail=str(error),
                span=name.span,
                sqlstate="58030",
            ) from error
    return note_result(f"catalog {name} created")


def _external(kind: str, options: dict[str, str], name: Name) -> ExternalCatalog:
    """Return a catalog of another system. It starts and asks nothing before a name of it is used."""
    if kind == SPARK:
        from penstock.engine.bounded.spark.catalog import SparkCatalog

        return SparkCatalog(options)
    declared = ICEBERG_CATALOG_OPTIONS[0]
    if declared.key not in options:
        raise PenstockError(
            "SQL-1503",
            f"an iceberg catalog needs the option '{declared.key}'",
            span=name.span,
            hint=f"it is one of {', '.join(declared.choices)}",
        )
    declared.parse(declared.key, options[declared.key], name.span)
    from penstock.engine.connectors.iceberg.catalog import IcebergCatalog

    return IcebergCatalog(options)


def _drop_catalog(state: SessionState, node: nodes.DropCatalog) -> Result:
    catalog, name = state.catalog, node.name
    if node.if_exists and name.text.lower() not in catalog.databases.by_catalog:
        return note_result(f"there is no catalog {name}")
    folded = catalog.databases.require_catalog(name.text, name.span)
    # the default always exists, and unqualified names need a current one
    if folded in (DEFAULT_CATALOG, catalog.current.catalog):
        raise _in_use(f'catalog "{name}"', name.span)
    for database in catalog.databases.by_catalog[folded]:
        # before the first change: a refused DROP changes nothing
        _refuse_running(state, ObjectPath(folded, database), name)
    state.engine.stores.pop(folded, None)  # a file catalog's tables stay in its file
    _forget_catalog(state, folded)
    return note_result(f"catalog {name} dropped")


def _forget_catalog(state: SessionState, folded: str) -> None:
    databases = state.catalog.databases
    with state.catalog.lock:
        for database in databases.by_catalog.pop(folded):
            state.catalog.forget(ObjectPath(folded, database))
        databases.external.pop(folded, None)
        del databases.options[folded]


def _drop_database(state: SessionState, node: nodes.DropDatabase) -> Result:
    catalog, path = state.catalog, database_named(state, node.name)
    if SYSTEM not in catalog.databases.by_catalog[DEFAULT_CATALOG]:
        refuse_system(path, f'database "{node.name}"', node.name.span)
    known = catalog.databases.by_catalog[catalog.databases.require_catalog(path.catalog, node.name.span)]
    # a database of a Spark catalog is dropped in Spark
    catalog.databases.refuse_external(path, f"database {path.database}", node.name.span)
    if node.if_exists and path.database not in known:
        return note_result(f"there is no database {node.name}")
    catalog.databases.require(path, node.name.span)
    # the same rule as for catalogs: unqualified names need a current database
    if path.database == DEFAULT_DATABASE or path == catalog.current:
        raise _in_use(f'database "{node.name}"', node.name.span)
    relations = [relation.name for relation in catalog.relations_of(path)]
    if relations and not node.cascade:
        listed = ", ".join(relations[:3]) + (" .." if len(relations) > 3 else "")
        hint = "drop them first, or write CASCADE to drop them with it"
        raise PenstockError(
            "SQL-1355",
            f'database "{node.name}" is not empty: {listed}',
            span=node.name.span,
            hint=hint,
            sqlstate="2BP01",
        )
    _refuse_running(state, path, node.name)
    catalog.forget(path)
    known.remove(path.database)
    return note_result(f"database {node.name} dropped")


def _refuse_running(state: SessionState, path: ObjectPath, name: Name) -> None:
    """Refuse to drop a database with a materialized view: its job would stop."""
    running = [
        relation.name
        for relation in state.catalog.relations_of(path)
        if isinstance(relation, MaterializedView)
    ]
    if running:
        hint = f"DROP MATERIALIZED VIEW {running[0]} stops it"
        raise PenstockError(
            "SQL-1355",
            f"materialized views run in {name}: {', '.join(running)}",
            span=name.span,
            hint=hint,
            sqlstate="2BP01",
        )


def _in_use(what: str, span: Span) -> PenstockError:
    hint = "the default catalog and database and the current ones cannot be dropped: USE another first"
    return PenstockError("SQL-1356", f"{what} is in use", span=span, hint=hint, sqlstate="55006")
