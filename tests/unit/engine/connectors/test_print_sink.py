"""The print sink: a line per change with its op, to the session's stream or standard output."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.catalog.types import INT, Array
from penstock.engine.api.operator import Services
from penstock.engine.api.print_stream import PrintStream
from penstock.engine.api.stream_elements import Batch
from tests.harness.reading import Taken, table_of
from tests.unit.engine.connectors.sinks import COLUMNS, changes, sink


def test_print() -> None:
    lines: list[str] = []
    services = Services(PrintStream(lines.append))
    table = table_of(COLUMNS, {"connector": "print", "print-identifier": "out"})
    operator = sink(table, services, key=(0,))
    operator.on_batch(changes((1, "a", -1), (1, None, 1)), 0, Taken())
    assert "".join(lines) == "out> -U[1, a]\nout> +U[1, NULL]\n"
    lines.clear()
    sink(table_of(COLUMNS, {"connector": "print"}), services, subtask=1, parallelism=2).on_batch(
        Batch(changes((1, "a", 1)).rows), 0, Taken()
    )
    assert lines == ["2> +I[1, a]\n"]


def test_print_without_a_stream_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    sink(table_of(COLUMNS, {"connector": "print"}), Services()).on_batch(changes((7, "x", 1)), 0, Taken())
    assert capsys.readouterr().out == "+I[7, x]\n"


def test_print_of_nested_values_and_of_no_rows() -> None:
    lines: list[str] = []
    table = table_of({"xs": Array(INT)}, {"connector": "print"})
    operator = sink(table, Services(PrintStream(lines.append)), schema=table.schema)
    for xs in ([[1, None], []], []):
        operator.on_batch(Batch(pa.record_batch({"xs": pa.array(xs, pa.list_(pa.int32()))})), 0, Taken())
    assert "".join(lines) == "+I[[1,null]]\n+I[[]]\n"
