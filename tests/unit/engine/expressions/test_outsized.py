"""Values at the ends of their types, and results that would take all memory: an answer or an error with a
sentence, whatever the function.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from decimal import Decimal as PyDecimal
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    INT,
    STRING,
    Array,
    Binary,
    DataType,
    Decimal,
    Double,
    Float,
    Map,
    Row,
    String,
    to_arrow,
)
from penstock.client.session import Session
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions import compile_expression, duckdb_fallback
from penstock.engine.expressions.evaluation_errors import MOST, BatchTooLarge
from penstock.planner.expressions.nodes import Column, Expression
from tests.unit.engine.expressions import nested_cases
from tests.unit.engine.expressions.test_constants import CORPORA, leaves, shapes

TEXTS = [
    "",
    " ",
    "\0",
    "'",
    "%",
    "\\",
    "(",
    "$1",
    "💩é",
    "-",
    "9" * 400,
    "x" * 5000,
    "[1,",
    '{"a":',
    "2024-02-30",
    "+NaN",
    "١",
]


def extremes(kind: DataType) -> list[object]:
    """Values of a type that functions did not think of; integers and times at both ends of their words."""
    arrow = to_arrow(kind)
    if isinstance(kind, String):
        return list(TEXTS)
    if isinstance(kind, Binary):
        return [b"", b"\xff\x00", b"x" * 5000]
    if isinstance(kind, Double | Float):
        return [
            float("nan"),
            float("inf"),
            -float("inf"),
            -0.0,
            1e38,
            1e300 if isinstance(kind, Double) else 1e-40,
            2.0**63,
            -(2.0**31),
        ]
    if isinstance(kind, Decimal):
        nines = (9,) * kind.precision
        return [
            PyDecimal((sign, digits, -kind.scale))
            for sign, digits in ((0, nines), (1, nines), (0, (1,)), (0, (0,)))
        ]
    if isinstance(kind, Array):
        inner = extremes(kind.element)
        return [[], [None], [None, None], inner, inner[:1] * 3]
    if isinstance(kind, Map):
        return [[], [(key, None) for key in extremes(kind.key) if not is_nan(key)]]
    if isinstance(kind, Row):
        return [
            dict.fromkeys(name for name, _ in kind.fields),
            {name: extremes(inner)[0] for name, inner in kind.fields},
        ]
    if pa.types.is_boolean(arrow) or pa.types.is_null(arrow):
        return [None]
    bits = 64 if pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow) else arrow.bit_width
    return [End(value) for value in (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, 2 ** (bits - 1) - 2)]


def is_nan(value: object) -> bool:
    return value != value


class End(int):
    """A number that is the word of a value, for there may be no Python object of it."""


def column_of(values: list[object], kind: DataType) -> pa.Array:
    arrow = to_arrow(kind)
    if values and isinstance(values[0], End):
        word = pa.int32() if arrow.bit_width == 32 else pa.int64() if arrow.bit_width == 64 else arrow
        return pa.array([int(v) for v in values], word).view(arrow)  # type: ignore[call-overload]
    return pa.array(values, arrow)


def faults(expression: Expression, batch: pa.RecordBatch) -> Iterator[str]:
    """What an expression does wrong where one of its columns or constants is such a value, in a line each."""
    found = leaves(expression)
    places = {leaf: Column(leaf.type, True, index=i) for i, leaf in enumerate(found)}
    base = [
        batch.column(leaf.index).slice(1, 1)
        if isinstance(leaf, Column)
        else pa.array([leaf.value], to_arrow(leaf.type))
        for leaf in found
    ]  # type: ignore[attr-defined]
    names = [f"c{i}" for i in range(len(found))]
    try:
        run = compile_expression(expression.transform(lambda node: places.get(node, node)))
    except PenstockError:  # a constant that must be one
        columns = {leaf: place for leaf, place in places.items() if isinstance(leaf, Column)}
        run = compile_expression(expression.transform(lambda node: columns.get(node, node)))
    for place, leaf in enumerate(found):
        values = extremes(leaf.type)
        column = column_of(values, leaf.type)
        for first, count in [(0, len(values)), *((i, 1) for i in range(len(values)))]:
            columns = [
                column.slice(first, count) if i == place else pa.repeat(other[0], count)
                for i, other in enumerate(base)
            ]
            told = fault(run, pa.RecordBatch.from_arrays(columns, names=names))
            if told is None and count > 1:
                break  # all of them at once are well
            if told and count == 1:
                yield f"{expression} where {leaf} is {values[first]!r:.60}: {told}"


def fault(run: Callable[[pa.RecordBatch], pa.Array], batch: pa.RecordBatch) -> str | None:
    """What was raised: empty for an error with a sentence."""
    try:
        run(batch).validate(full=True)
    except PenstockError as error:
        return (
            f"{error.code} {error.message}"
            if error.code.startswith("INT") or error.sqlstate == "53200"
            else ""
        )
    except Exception as error:  # noqa: BLE001 - a bare one is what is looked for
        return f"{type(error).__name__} {error!s:.150}"
    return None


@pytest.fixture(autouse=True)
def some_memory() -> Iterator[None]:
    """Two gigabytes more than there are: what asks for more is told that there are none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("corpus", CORPORA)
def test_the_ends_of_types_give_an_answer_or_a_sentence(corpus: str) -> None:
    wrong = [line for expression, batch in shapes(corpus) for line in faults(expression, batch)]
    assert not wrong, f"{len(wrong)}, such as {wrong[:5]}"


OUTSIZED = """
sequence(1, 2000000000); sequence(-9223372036854775807L, 9223372036854775807L); sequence(9223372036854775807L, -9223372036854775807L, -1L)
sequence(DATE '0001-01-01', DATE '9999-12-31', INTERVAL '1' MICROSECOND); sequence(TIMESTAMP '0001-01-01 00:00:00', v, INTERVAL '1' SECOND)
repeat('ab', 2147483647); repeat(k, 2147483647); repeat('ab', CAST(n + 1000000000 AS INT)); space(2000000000); space(n + 2000000000)
lpad(k, 2147483647, '*'); rpad(k, 2147483647, 'ab'); lpad(k, n + 2000000000, '*'); rpad('', 2147483647); array_repeat('x', 2147483647)
array_repeat(a, n + 2000000000); replace(repeat('a', 100000), 'a', repeat('b', 100000)); replace(repeat('a', 100000), 'a', repeat(k, 100000))
regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000)); array_join(array_repeat('x', 100000), repeat('y', 100000))
transform(sequence(1, 100000), e -> repeat('x', 100000)); transform(sequence(1, 100000), e -> sequence(1, 100000))
format_string('%2000000000d', n); format_number(n, 2147483647); flatten(array_repeat(sequence(1, 100000), 100000))
"""


@pytest.mark.parametrize(
    "text", [text for line in OUTSIZED.strip().splitlines() for text in line.split("; ")]
)
def test_what_would_take_all_memory_is_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("first", ["'ab'", "array(1)"])
def test_what_doubles_is_refused_in_time(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST, "bytes", 1 << 20)
    monkeypatch.setitem(MOST, "elements", 1 << 16)
    refused(f"aggregate(sequence(1, 40), {first}, (s, e) -> concat(s, s))")


def refused(text: str) -> None:
    columns = nested_cases.COLUMNS
    row = pa.record_batch(
        [pa.array([next(filter(None, pool))], to_arrow(kind)) for kind, pool in columns.values()],
        names=list(columns),
    )
    with pytest.raises(PenstockError) as caught:
        compile_expression(nested_cases.bound(text))(row)
    assert caught.value.code in ("RUN-2004", "RUN-2006") and caught.value.sqlstate != "53200", caught.value


@pytest.mark.parametrize("kept", ["", " WHERE k % 2 = 0", " WHERE char_length(hex(repeat('ab', k))) % 8 = 0"])
def test_what_is_computed_of_too_much_for_one_batch_goes_on_with_fewer_rows(
    monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    session = Session({"bounded.backend": "duckdb", "execution.runtime-mode": "streaming"})
    sequence = "'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '100'"
    session.execute(
        f"CREATE TABLE n (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '100', {sequence})"
    )
    query = f"SELECT k, hex(repeat('ab', k)) AS x, repeat('z', k) AS y FROM n{kept}"
    expected = session.execute(query).final_rows().sort_by("k")
    monkeypatch.setitem(MOST, "bytes", 300)
    monkeypatch.setattr(LIMITS, "array_bytes", 900)
    found = session.execute(query).final_rows().sort_by("k")
    assert found.equals(expected) and found.num_rows == (50 if kept else 100)
    monkeypatch.setitem(MOST, "bytes", 80)
    with pytest.raises(PenstockError, match="repeat would return") as caught:
        session.execute(query).final_rows()
    assert caught.value.code == "RUN-2006", "one row by itself is too large"


WIDE = """
url_encode(x); base64(x); translate(x, 'a', 'é'); replace(x, x, y); regexp_replace(x, concat('(', x, ')'), '$1$1'); overlay(x, y, 1, 0)
format_string('%s%s', x, x); split(x, concat(x, 'b')); regexp_extract_all(x, '(.*)', 1); substr(x, k, 1000); lpad(x, k, y)
from_json(concat('["', x, '"]'), 'ARRAY<STRING>'); get_json_object(concat('{"a":"', x, '"}'), '$.a'); substring_index(x, y, 1)
"""


@pytest.mark.parametrize("text", [text for line in WIDE.strip().splitlines() for text in line.split("; ")])
def test_a_result_over_the_limit_of_one_array_is_refused_by_its_size(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that DuckDB or Python computes: neither stops where an array of Arrow ends."""
    columns = {"x": STRING, "y": STRING, "k": INT}
    monkeypatch.setattr(nested_cases, "COLUMNS", {name: (kind, []) for name, kind in columns.items()})
    rows = [[f"{i}" + "a" * 300 for i in range(8)], ["bc" * 300] * 8, list(range(1, 9))]
    batch = pa.record_batch(
        [pa.array(column, to_arrow(kind)) for column, kind in zip(rows, columns.values(), strict=True)],
        names=list(columns),
    )
    run = compile_expression(nested_cases.bound(text))
    expected = run(batch)
    assert isinstance(expected, pa.Array) and expected.type == run(batch.slice(0, 1)).type
    size = run(batch.slice(0, 1)).nbytes
    monkeypatch.setattr(LIMITS, "array_bytes", size + 10)
    with pytest.raises(
        BatchTooLarge, match=f"the values of one batch would take more than {size + 10:,} bytes"
    ) as caught:
        run(batch)
    assert caught.value.code == "RUN-2006" and "execution.batch.max-rows" in str(caught.value.hint)
    assert not caught.value.retriable
    assert pa.concat_arrays([run(batch.slice(i, 1)) for i in range(8)]).equals(expected), (
        "one row by itself fits"
    )
    monkeypatch.setattr(LIMITS, "array_bytes", size // 2)
    with pytest.raises(PenstockError, match="one value would take more than") as caught:
        run(batch.slice(0, 1))
    assert caught.value.hint == "check the size before the call", "fewer rows are no help"


def test_what_is_small_in_the_end_is_computed_of_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument of an aggregate, or a condition: not only of a projection."""
    monkeypatch.setattr(nested_cases, "COLUMNS", {"x": (STRING, [])})
    batch = pa.record_batch([pa.array([f"{i}" * 300 for i in range(8)])], names=["x"])
    length = compile_expression(nested_cases.bound("char_length(format_string('%s%s', x, x))"))
    monkeypatch.setattr(LIMITS, "array_bytes", 2000)
    assert length(batch).to_pylist() == [600] * 8
    monkeypatch.setattr(LIMITS, "array_bytes", 200)
    with pytest.raises(BatchTooLarge, match="one value would take more than 200 bytes"):
        length(batch)


SENTENCES = [
    pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes, have 2400000000"),
    pa.ArrowInvalid("offset overflow while concatenating arrays, consider casting input from `string`"),
    pa.ArrowInvalid("Take operation overflowed binary array capacity"),
    duckdb.InvalidInputException(
        "Invalid Input Error: Arrow Appender: The maximum total string size for regular string buffers is "
        "2147483647 but the offset of 2160000000 exceeds this."
    ),
]


@pytest.mark.parametrize("raised", SENTENCES, ids=lambda raised: type(raised).__name__)
def test_what_says_that_an_array_is_full_is_one_sentence(
    raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What libraries raise at the true limit, as recorded with columns of 2.4 GB."""

    def full(*_: object, **__: object) -> pa.Array:
        raise raised

    if isinstance(raised, duckdb.Error):
        monkeypatch.setattr(duckdb_fallback._Database, "connection", SimpleNamespace(from_arrow=full))
        text = "translate(k, 'a', 'é')"
    else:
        monkeypatch.setattr(pc, "binary_join_element_wise", full)
        text = "concat(k, k)"
    row = pa.record_batch([pa.array(["a", "b"])], names=["k"])
    monkeypatch.setattr(nested_cases, "COLUMNS", {"k": (STRING, [])})
    with pytest.raises(
        BatchTooLarge, match="the values of one batch would take more than 2,147,483,647 bytes"
    ):
        compile_expression(nested_cases.bound(text))(row)


def test_another_fault_of_a_library_is_no_matter_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object, **__: object) -> pa.Array:
        raise pa.ArrowInvalid("value overflow")

    monkeypatch.setattr(pc, "binary_join_element_wise", wrong)
    monkeypatch.setattr(nested_cases, "COLUMNS", {"k": (STRING, [])})
    with pytest.raises(PenstockError) as caught:
        compile_expression(nested_cases.bound("concat(k, k)"))(
            pa.record_batch([pa.array(["a"])], names=["k"])
        )
    assert caught.value.code == "RUN-2002"


@pytest.mark.parametrize(
    "text", ["array(repeat('x', 100))", "named_struct('a', repeat('x', 100))", "map('a', repeat('x', 100))"]
)
def test_a_constant_is_measured_in_bytes_whatever_is_around_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow repeats a value without a look at its offsets: what they cannot hold turns negative."""
    run = compile_expression(nested_cases.bound(text))
    rows = pa.record_batch([pa.array(range(10))], names=["n"])
    assert len(run(rows)) == 10
    monkeypatch.setitem(MOST, "bytes", 900)
    with pytest.raises(BatchTooLarge, match="a constant would return"):
        run(rows)
