"""The API of queries: a statement's first rows, its rows and changes as they come, and its plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError
from penstock.client.results.result_stream import op_rows
from penstock.client.server.security.statement_roles import required_role
from penstock.client.server.web.api_call import ApiCall, ApiRoute, BodyField, bad_request
from penstock.client.server.web.error_response import json_error
from penstock.client.server.web.json_rows import json_columns, json_schema
from penstock.client.server.web.stream_event import StreamEvent
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.cursor import Cursor
    from penstock.client.results.result import Result

_PLANNED = (nodes.Query, nodes.Insert, nodes.ExecuteStatementSet, nodes.Explain)
_WAIT_S = 0.25
"""How long one wait for rows takes: a reader that is gone is noticed after it."""
_ANSWER_S = 10.0
"""How long an answer waits for the rows of a query, where the body does not say."""


def run_query(call: ApiCall) -> dict[str, Any]:
    """Run one statement and return its rows so far, at most ``limit``."""
    limit = min(call.number("limit", call.limits.rows), call.limits.rows)
    timeout_s = call.number("timeout_ms", int(_ANSWER_S * 1000)) / 1000
    with _execute(call) as cursor:
        if not cursor.result.has_rows:
            return {"columns": [], "data": [], "note": cursor.note, "rows": 0}
        # one more: whether there are more rows than are shown
        rows = cursor.fetch_arrow_table(timeout=timeout_s, limit=limit + 1)
        shown = rows.slice(0, limit)
        return {
            "columns": json_schema(cursor.schema),
            "data": json_columns(shown),
            "rows": shown.num_rows,
            "more": rows.num_rows > limit or not cursor.result.ended,
            "note": cursor.note,
        }


def stream_query(call: ApiCall) -> Iterator[StreamEvent]:
    """Run one statement and yield its columns, its rows or changes as they come, then its end. A reader that
    leaves ends the query.
    """
    try:
        with _execute(call) as cursor:
            result = cursor.result
            yield StreamEvent("columns", _described(cursor, result))
            if not result.has_rows:
                yield StreamEvent("end", {"note": cursor.note})
                return
            rows = _final_batches(result) if result.shape.finite else _changes(result)
            sent = 0
            for batch in rows:
                if batch is None:
                    yield StreamEvent("progress", {"rows": sent, "elapsed_s": round(result.elapsed_s, 3)})
                    continue
                for start in range(0, batch.num_rows, call.limits.rows):
                    part = batch.slice(start, call.limits.rows)
                    sent += part.num_rows
                    yield StreamEvent("rows", _event_of(part, result))
            yield StreamEvent(
                "end", {"rows": sent, "elapsed_s": round(result.elapsed_s, 3), "note": cursor.note}
            )
    # the answer has begun, so the error is an event and no status
    except PenstockError as error:
        yield StreamEvent("failure", {"error": json_error(error)})


def explain_query(call: ApiCall) -> dict[str, Any]:
    """Return the plan of one query or INSERT; nothing is started."""
    engine = call.engine
    statements = engine.parse(call.text("sql"))
    if len(statements) != 1:
        raise bad_request(f"a plan is of one statement, here are {len(statements)}")
    if not isinstance(
        statements[0].node, nodes.Query | nodes.Insert | nodes.ExecuteStatementSet | nodes.Explain
    ):
        raise bad_request("only queries and INSERT have a plan")
    rows = engine.explain(statements[0]).final_rows()
    return {"plan": "\n".join(str(line) for line in rows.column(0).to_pylist())}


def _execute(call: ApiCall) -> Cursor:
    """Return a cursor with the result of the statement of a call. Raises CLI-6211 where the role does not
    allow it.
    """
    sql = call.text("sql")
    statements = call.engine.parse(sql)
    for one in statements:
        call.require(required_role(one.node), "this statement")
    # more than one statement: a script, whose last result is shown
    cursor = call.session.connection.cursor()
    return cursor.executescript(sql) if len(statements) > 1 else cursor.execute(sql)


def _described(cursor: Cursor, result: Result) -> dict[str, Any]:
    shape = result.shape
    return {
        "columns": json_schema(shape.schema),
        "mode": shape.change_mode,
        "key": list(shape.upsert_key) if shape.upsert_key is not None else None,
        "finite": shape.finite,
        "verbatim": shape.verbatim,
        "job": None if result.job is None else result.job.job_id,
        "note": cursor.note,
    }


def _changes(result: Result) -> Iterator[pa.RecordBatch | None]:
    """Yield changes with their op first, of SUBSCRIBE as a column; None when there is nothing new."""
    while not result.ended:
        batch = result.next(_WAIT_S)
        if batch is None:
            yield None
        else:
            yield batch.rows if result.shape.subscribed else op_rows(batch, result.shape.update_key)


def _final_batches(result: Result) -> Iterator[pa.RecordBatch | None]:
    """Yield the final rows of a result that ends; None while they are computed."""
    # a row may be retracted until the end, so nothing is final before it
    while result.shape.folds and not result.ended:
        rows = result.final_rows(timeout_s=_WAIT_S)
        if result.ended:
            yield from rows.to_batches()
            return
        yield None
    while not result.ended:
        batch = result.next(_WAIT_S)
        yield None if batch is None else batch.rows


def _event_of(batch: pa.RecordBatch, result: Result) -> dict[str, Any]:
    columns = json_columns(batch)
    # of SUBSCRIBE the changes are the rows: who asks for them wants to read each
    if result.shape.finite or result.shape.subscribed:
        return {"data": columns}
    return {"ops": columns[0], "data": columns[1:]}


_SQL = BodyField("sql", "string", "one statement, or several whose last result is returned")
QUERY_ROUTES = (
    ApiRoute(
        "POST",
        "/query",
        "runQuery",
        "The rows of a statement, column by column.",
        run_query,
        (
            _SQL,
            BodyField("limit", "integer", "the most rows to return", required=False),
            BodyField("timeout_ms", "integer", "how long to wait for rows", required=False),
        ),
    ),
    ApiRoute(
        "POST",
        "/query/stream",
        "streamQuery",
        "The rows or changes of a statement as they come; closing the connection ends it.",
        stream_query,
        (_SQL,),
        streams=True,
    ),
    ApiRoute(
        "POST", "/explain", "explainQuery", "The plan of a query; nothing is started.", explain_query, (_SQL,)
    ),
)
