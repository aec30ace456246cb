"""What is computed once, and that answers and errors are those of expressions computed one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BOOLEAN, STRING, to_arrow
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.shared_subexpressions import share_subexpressions
from penstock.planner.expressions.nodes import Expression
from tests.unit.engine.expressions.nested_cases import bound
from tests.unit.engine.operators.test_calc import calc

COLUMNS = {
    "n": (BIGINT, [1, 2, 3, 4, 5, None]),
    "s": (STRING, ["a/b", "A/c", "d", None, "", "e/F"]),
    "j": (STRING, ['{"a": 1}', "no JSON", '{"a": 3}', "4", None, "{}"]),
    "unread": (BIGINT, [0] * 6),
}


def rows() -> Batch:
    columns = [pa.array(values, to_arrow(kind)) for kind, values in COLUMNS.values()]
    return Batch(pa.RecordBatch.from_arrays(columns, names=list(COLUMNS)))


def expressions(*texts: str) -> tuple[Expression, ...]:
    return tuple(bound(text, COLUMNS) for text in texts)


@pytest.mark.parametrize(
    ("where", "select", "filtered", "projected"),
    [
        # once for both; the part that both have is not computed again
        ("upper(split_index(s, '/', 1)) = 'B'", ["upper(split_index(s, '/', 1))", "n"], 1, 0),
        # in SELECT alone: after the filter
        ("n > 1", ["lower(s) || 'x'", "lower(s)", "unread"], 0, 1),
        # a part of a shared one that also occurs alone
        (None, ["upper(trim(s)) || '1'", "upper(trim(s)) || '2'", "trim(s)"], 0, 2),
        ("lower(s) = 'd' OR lower(s) = 'a/b'", None, 1, 0),
        # columns, constants, and what is as quick as a column
        ("n + 1 > 2", ["n + 1", "upper('x')", "upper('x')", "s"], 0, 0),
        # other values each time, or over elements
        (None, ["current_timestamp()", "current_timestamp()", "transform(array(n), x -> abs(x))"], 0, 0),
    ],
)
def test_computed_once(where: str | None, select: list[str] | None, filtered: int, projected: int) -> None:
    predicate = None if where is None else expressions(where)[0]
    projections = None if select is None else expressions(*select)
    shared = share_subexpressions(predicate, projections, len(COLUMNS))
    assert (
        (filtered, projected) == (0, 0)
        if shared is None
        else (
            len(shared.filtered),
            len(shared.projected),
        )
        == (filtered, projected)
    )
    if select is None or "current_timestamp()" in select:
        return
    given = rows()
    kept = given if predicate is None else given.filter(bound_values(predicate, given))
    wanted = [bound_values(one, kept) for one in projections]
    (found,) = calc(predicate, projections, given).batches
    assert [column.to_pylist() for column in found.rows.columns] == [column.to_pylist() for column in wanted]


def bound_values(expression: Expression, batch: Batch) -> pa.Array:
    from penstock.engine.expressions import compile_expression

    return compile_expression(expression)(batch.rows)


def test_a_fault_of_a_row_that_needs_no_value_is_none() -> None:
    """The shared CAST faults on texts that are no numbers; CASE and AND never ask for those."""
    number = "CAST(s AS BIGINT)"
    safe = f"CASE WHEN s LIKE '%/%' OR s = '' OR s = 'd' THEN 0 ELSE {number} END"
    found = calc(None, expressions(safe, safe + " + 1"), rows()).rows()
    assert found == [{"p0": 0, "p1": 1}] * 3 + [{"p0": None, "p1": None}] + [{"p0": 0, "p1": 1}] * 2
    with pytest.raises(PenstockError, match="BIGINT") as raised:
        calc(None, expressions(number, number + " + 1"), rows())
    assert "CAST(s AS BIGINT)" in raised.value.detail, "the user's words, not a column of ours"


def test_a_filter_alone_keeps_all_columns() -> None:
    (where,) = expressions("lower(s) = 'd' OR lower(s) = 'a/b'")
    assert where.type == BOOLEAN
    (found,) = calc(where, None, Batch(rows().rows.select([0, 1, 2]))).batches
    assert found.rows.num_columns == 3 and found.rows.column(0).to_pylist() == [1, 3]


def test_zeros_of_either_sign_are_not_one_value() -> None:
    minus, plus = expressions("concat(s, CAST(-0.0E0 AS STRING))", "concat(s, CAST(0.0E0 AS STRING))")
    assert share_subexpressions(None, (minus, plus), 3) is None
