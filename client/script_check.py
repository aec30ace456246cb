"""The check of a script without running it: every statement is parsed and bound, each cause of errors
reported once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.client.statements.dispatch import LocatedStatement, parse_statements, run_statement
from penstock.client.statements.explained_query import explained_query
from penstock.client.statements.materialized_views import declare_view
from penstock.client.statements.tables import declare_table_as
from penstock.planner.parser.scanner import scan
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import AlterTable
from penstock.planner.statements.script import split_script

if TYPE_CHECKING:
    from penstock.client.session import Session

# a script of another dialect has an error in each line
MAX_ERRORS = 20
# statements that are executed in a check: they change names and settings, and no data
_HARMLESS = (
    nodes.CreateTable,
    nodes.CreateView,
    nodes.AlterView,
    nodes.DropTable,
    nodes.CreateTableLike,
    nodes.DropView,
    nodes.CreateFunction,
    nodes.DropFunction,
    nodes.CreateCatalog,
    nodes.DropCatalog,
    nodes.CreateDatabase,
    nodes.DropDatabase,
    nodes.Use,
    AlterTable,
    nodes.Set,
    nodes.Reset,
    nodes.ShowCreate,
    nodes.Describe,
)
# CREATE [TEMPORARY] TABLE name: the noun is the last word before the name
_MAKES = {"TABLE", "VIEW", "FUNCTION", "DATABASE", "SCHEMA", "CATALOG"}
_BEFORE_NAMES = {"IF", "NOT", "EXISTS"}
_NOT_THERE = ("SQL-1041", "SQL-1101", "SQL-1351")
"""Codes of a table, function, catalog or database that does not exist: where one could not be created, its
uses are no causes.
"""
# reported at their first position, which lists the others
_ONCE = (*_NOT_THERE, "SQL-1204", "SQL-1401")


def check_script(
    session: Session, text: str, file: str | None = None, missing: set[str] | None = None
) -> list[PenstockError]:
    """Return the errors of a script (up to 20), by position. DDL, USE and SET change names and settings of
    the session, because later statements need them. Nothing else happens: the session only checks from now
    on. CREATE FUNCTION imports its module, which declares the function's types. ``missing``: names that
    scripts before this one could not create; this script's are added.
    """
    session.state.checks_only = True
    check = _Check(session, text, set() if missing is None else missing)
    errors: list[PenstockError] = []
    statements = parse_statements(text, file, errors=errors)
    for error in errors:
        # a statement that cannot be parsed creates nothing: uses of its name are no errors of their own
        check.note_failed(error)
    for statement in statements:
        errors += check.errors_of(statement)
    # parse errors were collected before the others
    errors.sort(key=lambda error: (error.line or 0, error.column or 0))
    return list(_each_cause_once(errors))[:MAX_ERRORS]


class _Check:
    """The names a script could not create, so that statements that use them are not reported."""

    def __init__(self, session: Session, text: str, missing: set[str]) -> None:
        self._session = session
        self._text = text
        self._pieces = split_script(text)
        self._missing = missing
        self._lost = False

    def errors_of(self, statement: LocatedStatement) -> Iterator[PenstockError]:
        """Check a statement and yield its error, unless that only follows from another."""
        is_use = isinstance(statement.node, nodes.Use)
        try:
            _check_statement(self._session, statement)
        except PenstockError as error:
            placed = statement.locate(error)
            follows = self._follows(placed, is_use=is_use)
            self.note_failed(placed)
            # after a failed USE all unqualified names are looked up in a wrong place, until the next USE
            self._lost = self._lost or is_use
            if not follows:
                yield placed
        else:
            self._lost = self._lost and not is_use

    def note_failed(self, error: PenstockError) -> None:
        """Add the name that the statement of an error would have created."""
        ordinal = error.source.statement if error.source is not None else None
        if ordinal is not None:
            start, end = self._pieces[ordinal - 1]
            self._missing.update(_created_name(self._text[start:end])[-1:])

    def _follows(self, error: PenstockError, *, is_use: bool) -> bool:
        """Whether an error only follows from another: its name could not be created, or a failed USE
        changed where names are looked up.
        """
        if error.code not in _NOT_THERE or error.span is None:
            return False
        named = set(_parts(self._text[error.span.start : error.span.end]))
        return not named.isdisjoint(self._missing) or (self._lost and not is_use and error.code != "SQL-1101")


def _created_name(piece: str) -> list[str]:
    """Return the parts of the name a statement creates, even if it cannot be parsed; none for other
    statements.
    """
    pieces = [piece[start:end] for _, start, end in scan(piece)]
    # the noun and IF NOT EXISTS are among the first words, however long the statement is
    words = [word.upper() for word in pieces[:12]]
    if words[:1] != ["CREATE"]:
        return []
    noun = next((place for place, word in enumerate(words) if word in _MAKES), None)
    if noun is None:
        return []
    name = pieces[noun + 1 :]
    # IF NOT EXISTS
    while name and name[0].upper() in _BEFORE_NAMES:
        name = name[1:]
    end = 1
    # catalog.database.name
    while name[end : end + 1] == ["."]:
        end += 2
    return _parts("".join(name[:end]))


def _parts(name: str) -> list[str]:
    return [part.strip(' `"').lower() for part in name.split(".")]


def _each_cause_once(errors: list[PenstockError]) -> Iterator[PenstockError]:
    """Yield errors without repetitions of a missing name; the first error lists the other positions."""
    firsts: dict[tuple[str, str], PenstockError] = {}
    lines: dict[tuple[str, str], list[str]] = {}
    for error in errors:
        cause = (error.code, error.message)
        if error.code in _ONCE and cause in firsts:
            lines.setdefault(cause, []).append(f"{error.line}:{error.column}")
        else:
            firsts.setdefault(cause, error)
    for cause, places in lines.items():
        first = firsts[cause]
        first.detail = "\n".join(filter(None, [first.detail, f"the same at {', '.join(places)}"]))
    seen = {id(error) for error in firsts.values()}
    return (error for error in errors if error.code not in _ONCE or id(error) in seen)


def _check_statement(session: Session, statement: LocatedStatement) -> None:
    state, pipeline, catalog = session.state, session.pipeline, session.catalog
    match statement.node:
        # SUBSCRIBE and VERIFY run on our own runtime in every mode
        case nodes.Subscribe() as subscribed:
            pipeline.plan(pipeline.bind(subscribed), mode="streaming")
        case nodes.ExplainWhy() as why:
            explained_query(state, why)
        case nodes.Verify(query):
            pipeline.plan(pipeline.bind(query), mode="streaming")
        case nodes.Query() | nodes.Insert() | nodes.ExecuteStatementSet() as query:
            pipeline.plan(pipeline.bind(query))
        # a name is declared without its job, so that later statements find it
        case nodes.CreateMaterializedView() as view:
            if not (view.if_not_exists and catalog.find(view.name.text) is not None):
                declare_view(state, pipeline, view)
        case nodes.DropMaterializedView(name, if_exists):
            if not (if_exists and catalog.find(name.text) is None):
                catalog.drop_materialized_view(name.text, name.span)
        case nodes.CreateTableAs(table) as filled:
            if not (table.if_not_exists and catalog.find(table.name.text) is not None):
                declare_table_as(state, pipeline, filled)
        case nodes.Explain(_, query):
            pipeline.plan(pipeline.bind(query))
        case node if isinstance(node, _HARMLESS):
            run_statement(state, pipeline, node)
