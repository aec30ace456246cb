"""SUBSCRIBE: the changes of a query as rows, each with its op, in every client."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import STRING
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import op_rows
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import OP_FIELD
from penstock.planner.binder.parameters import Parameters
from penstock.planner.logical.sort import last_sort
from penstock.planner.parser.syntax_nodes import span_of
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.query_pipeline import QueryPipeline


class ChangeStream:
    """The stream of a result's changes as new rows: the op, then the row."""

    def __init__(self, result: Result) -> None:
        self._stream, self._visible = result.stream, result.visible
        self._update_key = result.shape.update_key

    def next(self, timeout_s: float | None) -> Batch | None:
        batch = self._stream.next(timeout_s)
        return None if batch is None else Batch(op_rows(self._visible(batch), self._update_key))

    @property
    def ended(self) -> bool:
        return self._stream.ended

    def close(self) -> None:
        self._stream.close()


def subscribe(pipeline: QueryPipeline, node: nodes.Subscribe, params: Parameters = ()) -> Result:
    """Start the job of a query and return its changes. Our own runtime runs it in every mode: a backend
    returns final rows only.
    """
    bound = pipeline.bind(node, params)
    # a sort without LIMIT has no answer before the end, so it has no changes
    if last_sort(bound.inputs[0]) is not None:
        span = span_of(node.query.tree.args["order"])
        hint = "leave the order out, or add LIMIT n to follow the first n rows"
        raise PenstockError(
            "SQL-1703",
            "changes come as they are made, not in an order",
            span=span,
            hint=hint,
            sqlstate="0A000",
        )
    result = pipeline.start(pipeline.plan(bound, mode="streaming"))
    shape = result.shape
    schema = Schema((Field(OP_FIELD.name, STRING, False), *shape.schema.without_roles()))
    # insert-only by default: a change, once emitted, is never retracted
    changes = Shape(schema, shape.finite, streamed=True, limit=shape.limit, subscribed=True)
    return replace(result, shape=changes, stream=ChangeStream(result))
