"""SHOW, DESCRIBE, SHOW CREATE, SHOW METRICS and HELP: names, columns, jobs and syntax as rows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness, takes_changes
from penstock.catalog.functions.registry import function_kinds
from penstock.catalog.persistence.show_create import create_statement
from penstock.catalog.schema import Role
from penstock.catalog.tables import CatalogTable, MaterializedView, ObjectPath, View
from penstock.client.results.result import Result, rows_result, text_rows, verbatim_result
from penstock.client.statements.catalogs import database_named
from penstock.client.statements.connector_list import connector_options
from penstock.client.statements.functions import python_function_rows
from penstock.client.statements.jobs import find_job, list_jobs
from penstock.client.statements.settings import all_settings, matches
from penstock.planner.binder.binder import Binder
from penstock.planner.parser.file_parser import file_stem
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import Name

if TYPE_CHECKING:
    from penstock.catalog.errors import Span
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.job.metric_registry import Metric


_ATTRIBUTES = {
    Role.EVENT_TIME: "event time",
    Role.PROCESSING_TIME: "processing time",
    Role.WINDOW_TIME: "event time",
}

_COLUMN_FACTS = ["column", "type", "null", "key", "made", "time", "watermark"]


def show(state: SessionState, node: nodes.Show | nodes.ShowCreate | nodes.Describe | nodes.Help) -> Result:
    """Answer a SHOW, DESCRIBE, SHOW CREATE or HELP."""
    match node:
        # SHOW COLUMNS FROM t, and below DESCRIBE t: the same rows
        case nodes.Show(nodes.ShowKind.COLUMNS, table, like):
            assert table is not None
            return _columns(state, table, like)
        case nodes.Show((nodes.ShowKind.CURRENT_CATALOG | nodes.ShowKind.CURRENT_DATABASE) as kind, _, like):
            here = state.catalog.current
            name = here.catalog if kind is nodes.ShowKind.CURRENT_CATALOG else here.database
            return text_rows([f"{kind} name"], [(name,)] if matches(name, like) else [])
        case nodes.Show(kind, _, like, place):
            here = state.catalog.current
            return (
                _list(state, kind, like, here) if place is None else _list_in(state, kind, like, place.name)
            )
        case nodes.Describe(nodes.Query() as query):
            return _query_columns(state, query)
        case nodes.Describe(Name() as name):
            return _columns(state, name, None)
        case nodes.ShowCreate(nodes.FilePath() as path):
            return verbatim_result("statement", [create_statement(_declaration_of(state, path))])
        case nodes.ShowCreate(name, view):
            resolved = state.catalog.resolve(name.text, name.span)
            # a materialized view is a table and a view: both SHOW CREATE TABLE and SHOW CREATE VIEW find it
            either = isinstance(resolved, MaterializedView)
            relation = (
                resolved
                if either
                else state.catalog.view(name.text, name.span)
                if view
                else state.catalog.table(name.text, name.span)
            )
            return verbatim_result("statement", [create_statement(relation)])
        case nodes.Help(topic):
            return help_on(topic)
    raise AssertionError(node)


def _list_in(state: SessionState, kind: nodes.ShowKind, like: str | None, name: Name) -> Result:
    """List the objects of another database than the current one."""
    catalog = state.catalog
    here, databases = catalog.current, catalog.databases
    if kind is nodes.ShowKind.DATABASES:
        # SHOW DATABASES IN c: the name is that of a catalog, elsewhere of a database
        catalog.current = ObjectPath(databases.require_catalog(name.text, name.span))
    else:
        catalog.current = databases.require(database_named(state, name), name.span)
    try:
        # listings read the current database, so that is set for the time of the listing
        return _list(state, kind, like, here)
    finally:
        # also after an error: the user has not written USE
        catalog.current = here


def _list(state: SessionState, kind: nodes.ShowKind, like: str | None, here: ObjectPath) -> Result:
    """List the objects of the catalog's current database; ``here`` is the user's own."""
    catalog = state.catalog
    match kind:
        case nodes.ShowKind.CATALOGS:
            kinds = {
                name: options["type"]
                for name, options in catalog.databases.options.items()
                if matches(name, like)
            }
            return text_rows(
                ["catalog", "type", "current"],
                [(n, kind, _yes_if_current(n, here.catalog)) for n, kind in kinds.items()],
            )
        case nodes.ShowKind.DATABASES:
            databases = [
                name for name in catalog.databases.of(catalog.current.catalog) if matches(name, like)
            ]
            return text_rows(
                ["database", "current"],
                [
                    (name, _yes_if_current(ObjectPath(catalog.current.catalog, name), here))
                    for name in databases
                ],
            )
        case nodes.ShowKind.TABLES:
            rows = [
                (catalog.written(t.name), t.connector, str(boundedness(t)), "yes" if t.temporary else "no")
                for t in catalog.tables()
                if matches(catalog.written(t.name), like)
            ]
            rows += [
                (name, catalog.external_connector(), str(Boundedness.BOUNDED), "no")
                # tables of a catalog of Spark or Iceberg
                for name in catalog.external_tables()
                if matches(name, like)
            ]
            return text_rows(["table", "connector", "rows", "temporary"], rows)
        case nodes.ShowKind.VIEWS:
            return text_rows(
                ["view", "query"],
                [
                    (catalog.written(v.name), v.query)
                    for v in catalog.views()
                    if matches(catalog.written(v.name), like)
                ],
            )
        case nodes.ShowKind.MATERIALIZED_VIEWS:
            rows_of_views = [
                _materialized_view_row(state, view)
                for view in catalog.materialized_views()
                if matches(view.name, like)
            ]
            return text_rows(["view", "job", "state", "rows", "query"], rows_of_views)
        case nodes.ShowKind.FUNCTIONS:
            return text_rows(
                ["function", "kind"],
                sorted(
                    row for row in (*function_kinds(), *python_function_rows(state)) if matches(row[0], like)
                ),
            )
        case nodes.ShowKind.CONNECTORS:
            return connector_options(like)
        case nodes.ShowKind.JOBS:
            return list_jobs([job for job in state.jobs.all() if matches(job.job_id, like)])
        case nodes.ShowKind.SETTINGS:
            return all_settings(state, like)
    raise AssertionError(kind)


def _materialized_view_row(state: SessionState, view: MaterializedView) -> tuple[str | None, ...]:
    """A materialized view, its job, and the number of rows of its state now."""
    job, contents = state.views.job(view.name), state.views.tables.find(view.name)
    rows = None if contents is None else str(sum(batch.num_rows for batch in contents.state()[1]))
    return (
        view.name,
        None if job is None else job.job_id,
        None if job is None else str(job.state),
        rows,
        view.query,
    )


def _yes_if_current(name: str | ObjectPath, current: str | ObjectPath) -> str | None:
    return "yes" if name == current else None


def _declaration_of(state: SessionState, path: nodes.FilePath) -> CatalogTable:
    """Return the table of a path under a name that a script may give it."""
    table = Binder(state.catalog, state.settings).describe_path(path).table
    return replace(table, name=re.sub(r"\W+", "_", file_stem(path.text)).strip("_") or "t", temporary=False)


def _query_columns(state: SessionState, query: nodes.Query) -> Result:
    """Describe the columns of a query's rows."""
    schema = Binder(state.catalog, state.settings).bind_query(query).schema
    rows = [
        (
            column.name,
            str(column.type),
            "yes" if column.nullable else "no",
            None,
            None,
            _ATTRIBUTES.get(column.role) if column.role else None,
            None,
        )
        for column in schema
    ]
    return text_rows(_COLUMN_FACTS, rows)


def _columns(state: SessionState, name: nodes.Name, like: str | None) -> Result:
    relation: CatalogTable | View
    basis = ""
    if isinstance(name, nodes.FilePath):
        described = Binder(state.catalog, state.settings).describe_path(name)
        relation, basis = described.table, f": {described.basis}"
    else:
        relation = state.catalog.resolve(name.text, name.span)
    # a view has neither computed nor metadata columns: its query made them
    computed = (
        {c.name: f"AS {c.text}" for c in relation.computed} if isinstance(relation, CatalogTable) else {}
    )
    metadata = (
        {m.name: f"METADATA FROM '{m.key}'" for m in relation.metadata}
        if isinstance(relation, CatalogTable)
        else {}
    )
    rows = []
    for column in relation.schema:
        if not matches(column.name, like):
            continue
        watermark = None
        if (
            isinstance(relation, CatalogTable)
            and relation.watermark is not None
            and relation.watermark.column.lower() == column.name.lower()
        ):
            watermark = relation.watermark.text
        key = "yes" if isinstance(relation, CatalogTable) and column.name in relation.primary_key else None
        attribute = _ATTRIBUTES.get(column.role) if column.role else None
        made = computed.get(column.name) or metadata.get(column.name)
        rows.append(
            (
                column.name,
                str(column.type),
                "yes" if column.nullable else "no",
                key,
                made,
                attribute,
                watermark,
            )
        )
    return text_rows(_COLUMN_FACTS, rows, _relation_note(state, relation) + basis)


def _relation_note(state: SessionState, relation: CatalogTable | View) -> str:
    if isinstance(relation, View):
        return f"view {relation.name}"
    if isinstance(relation, MaterializedView):
        job = state.views.job(relation.name)
        return f"materialized view {relation.name}: " + (
            "nothing fills it" if job is None else f"job {job.job_id} is {str(job.state).lower()}"
        )
    changes = "takes changes" if takes_changes(relation) else "append only"
    return f"table {relation.name}: connector {relation.connector}, {boundedness(relation)}, {changes}"


_HELP = (
    (
        "SELECT",
        "SELECT columns FROM t WHERE .. GROUP BY .. HAVING .. QUALIFY .. ORDER BY .. LIMIT n; "
        "VALUES (1, 'a'), (2, 'b')",
    ),
    (
        "WINDOW",
        "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' "
        "HOUR)) GROUP BY window_start, window_end",
    ),
    (
        "JOIN",
        "a [LEFT|RIGHT|FULL] JOIN b ON a.k = b.k [AND b.ts BETWEEN a.ts - INTERVAL '1' HOUR AND "
        "a.ts]; a JOIN v FOR SYSTEM_TIME AS OF a.ts ON ..",
    ),
    (
        "OVER",
        "SUM(x) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW); .. "
        "QUALIFY ROW_NUMBER() OVER (..) <= n",
    ),
    (
        "UNNEST",
        "FROM t CROSS JOIN UNNEST(t.a) [WITH ORDINALITY] AS u(x); FROM t, LATERAL TABLE(f(t.x)) AS u(y)",
    ),
    (
        "PIVOT, UNPIVOT",
        "PIVOT t ON c IN ('a', 'b') USING SUM(x) GROUP BY k; UNPIVOT t ON a, b INTO NAME n VALUE x; also "
        "FROM t PIVOT (SUM(x) FOR c IN ('a', 'b'))",
    ),
    ("SUMMARIZE", "SUMMARIZE t; SUMMARIZE SELECT ..: a row of facts for each column of a table that ends"),
    (
        "MATCH_RECOGNIZE",
        "FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES .. PATTERN (A B+) DEFINE B AS "
        "B.x > PREV(B.x)) AS m",
    ),
    (
        "EMIT",
        "SELECT .. EMIT ON WINDOW CLOSE | CHANGES [EVERY INTERVAL ..] | FINAL [WITH LATENESS "
        "INTERVAL ..]; INSERT .. LATE ROWS INTO t",
    ),
    (
        "CREATE TABLE",
        "CREATE TABLE t (c INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH "
        "('connector' = 'filesystem', ..)",
    ),
    (
        "CREATE TABLE LIKE",
        "CREATE TABLE a [WITH (..)] LIKE b; CREATE TABLE a WITH (..) AS SELECT ..; DROP TABLE a",
    ),
    ("ALTER TABLE", "ALTER TABLE t SET | RESET (options) | ADD | MODIFY | DROP | RENAME .."),
    ("CREATE VIEW", "CREATE [OR REPLACE] VIEW v AS SELECT ..; DROP VIEW v"),
    (
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW v AS SELECT ..: a job keeps v equal to the query; SELECT reads a "
        "consistent state",
    ),
    ("CREATE FUNCTION", "CREATE FUNCTION f AS 'module.name' LANGUAGE PYTHON; DROP FUNCTION f"),
    (
        "CREATE CATALOG",
        "CREATE CATALOG c WITH ('type' = 'memory' | 'file' | 'iceberg' | 'spark', ..); CREATE DATABASE c.d; "
        "USE CATALOG c; USE c.d; DROP ..",
    ),
    ("INSERT", "INSERT INTO t SELECT ..: a job, its id is returned"),
    ("UPDATE", "UPDATE t SET a = a + 1 WHERE b > 2: of a Delta or Iceberg table"),
    ("DELETE", "DELETE FROM t WHERE b > 2"),
    (
        "MERGE",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED [AND ..] THEN UPDATE SET .. | DELETE WHEN NOT "
        "MATCHED [BY SOURCE] THEN ..",
    ),
    ("STATEMENT SET", "EXECUTE STATEMENT SET BEGIN INSERT ..; INSERT ..; END: several sinks, one job"),
    ("SUBSCRIBE", "SUBSCRIBE TO SELECT ..: every change as a row, first column op"),
    (
        "VERIFY",
        "VERIFY SELECT .. AGAINST BATCH [ON spark | duckdb] [UP TO TIMESTAMP '..']: is the streamed "
        "result that of the bounded backend?",
    ),
    ("EXPLAIN", "EXPLAIN [LOGICAL, OPTIMIZED, PHYSICAL, RULES, CHANGELOG_MODE, MERMAID, JSON] SELECT .."),
    ("EXPLAIN JOB", "EXPLAIN ANALYZE JOB 'id'; EXPLAIN WHY NO OUTPUT FOR JOB 'id'"),
    ("SET", "SET 'parallelism.default' = '2'; SET lists all; RESET"),
    (
        "SHOW",
        "SHOW CATALOGS | DATABASES | TABLES | [MATERIALIZED] VIEWS | COLUMNS FROM t | FUNCTIONS | "
        "CONNECTORS | JOBS | SETTINGS [LIKE '..']; SHOW CURRENT CATALOG | DATABASE",
    ),
    (
        "METRICS",
        "SHOW METRICS [FOR JOB 'id'] [LIKE 'numRecords%']: what jobs, tasks and operators have counted",
    ),
    (
        "DESCRIBE",
        "DESCRIBE t | 'orders.csv' | SELECT ..; SHOW CREATE TABLE t | 'orders.csv'; "
        "SHOW CREATE [MATERIALIZED] VIEW v; DESCRIBE JOB 'id'",
    ),
    (
        "JOB",
        "SHOW JOBS; STOP JOB 'id' [WITH SAVEPOINT ['path']] [WITH DRAIN]; CANCEL JOB 'id' (now); "
        "CREATE SAVEPOINT OF JOB 'id' [TO 'path']; ALTER JOB 'id' SET PARALLELISM n",
    ),
)


def help_on(topic: str | None) -> Result:
    """Return the syntax of a topic, or of everything."""
    rows = [
        (name, example)
        for name, example in _HELP
        # both ways: HELP JOIN finds JOIN, and so does HELP LEFT JOIN
        if topic is None or topic.upper() in name or name in topic.upper()
    ]
    # an unknown topic lists everything; 26: the longest name, CREATE MATERIALIZED VIEW, and two blanks
    return verbatim_result("help", [f"{name:<26}{example}" for name, example in rows or _HELP])


def show_metrics(state: SessionState, node: nodes.ShowMetrics) -> Result:
    """Return one row per metric, or per percentile of a latency."""
    metrics = read_metrics(state, node.job_id, node.like, node.job_span)
    columns = {
        "job": pa.array([metric.job for metric in metrics], pa.string()),
        "operator": pa.array([metric.operator or None for metric in metrics], pa.string()),
        "id": pa.array([metric.operator_id or None for metric in metrics], pa.string()),
        "subtask": pa.array([metric.subtask for metric in metrics], pa.int32()),
        "metric": pa.array([_display_name(metric) for metric in metrics], pa.string()),
        "value": pa.array([metric.value for metric in metrics], pa.int64()),
        "unit": pa.array([metric.unit or None for metric in metrics], pa.string()),
    }
    return rows_result(pa.table(columns))


def read_metrics(
    state: SessionState, job_id: str | None = None, like: str | None = None, span: Span | None = None
) -> list[Metric]:
    """Return the metrics of one job, or of all, whose names match. CLI-6030 when there is no such job."""
    from penstock.engine.job.metric_registry import metrics_of  # what a job counts: not before somebody asks

    jobs = state.jobs.all() if job_id is None else [find_job(state, job_id, span)]
    return [
        metric
        for job in jobs
        for metric in metrics_of(job.job_id, job.metrics())
        if matches(metric.name, like)
    ]


def _display_name(metric: Metric) -> str:
    if metric.split:
        return f"{metric.name} of {metric.split}"
    if not metric.quantile:
        return metric.name
    # count and sum have no percentile: their names are used as they are
    word = {"0.5": "p50", "0.95": "p95", "0.99": "p99", "1": "max"}.get(metric.quantile, metric.quantile)
    return f"{metric.name}.{word} from {metric.source}"
