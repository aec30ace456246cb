"""Row groups without a row that passes are skipped by their values: never one that has such a row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING
from penstock.engine.formats import parquet, row_group_probe
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.parquet import ParquetReader
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal

FIELDS = (Field("n", BIGINT), Field("i", INT), Field("s", STRING), Field("wide", STRING))
ROWS, GROUP = 200_000, 20_000


@pytest.fixture(scope="module")
def data() -> pa.Table:
    random = np.random.default_rng(5)
    # statistics of each row group reach from 0 to 999,999: they skip none
    n = random.integers(0, 1_000_000, ROWS)
    n[::GROUP], n[1::GROUP] = 0, 999_999
    n[n == 500_000] = 1
    # one row of one group
    n[3 * GROUP + 17] = 500_000
    i = pa.array(n % 1000, pa.int32(), mask=random.random(ROWS) < 0.1)
    # texts of few values, as dictionaries; "only" in one row
    s = random.choice(["a", "b", "z"], ROWS).astype(object)
    s[7 * GROUP + GROUP - 1] = "only"
    return pa.table({"n": n, "i": i, "s": pa.array(s, pa.string()), "wide": pa.array([f"{x:06}" for x in n])})


def call(name: str, column: int, kind: Any, *values: Any) -> Expression:
    constants = [Literal(kind, value is None, value=value) for value in values]
    return Call(BOOLEAN, True, function=name, args=(Column(kind, True, index=column), *constants))


def both(left: Expression, right: Expression) -> Expression:
    return Call(BOOLEAN, True, function="and", args=(left, right))


def read(path: Path, predicate: Expression | None) -> tuple[pa.Table, list[int]]:
    reader = ParquetReader(
        FileTask(pafs.LocalFileSystem(), str(path), FIELDS, FIELDS, predicate=predicate), None
    )
    pieces, firsts = [], []
    while (piece := reader.next()) is not None:
        pieces.append(piece.rows)
        firsts.append(piece.first)
    reader.close()
    schema = pa.schema([("n", pa.int64()), ("i", pa.int32()), ("s", pa.string()), ("wide", pa.string())])
    return pa.Table.from_batches(pieces, schema), firsts


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize(
    ("predicate", "groups"),
    [
        (call("equal", 0, BIGINT, 500_000), [3]),
        (call("in", 0, BIGINT, 500_000, None), [3]),
        (call("equal", 2, STRING, "only"), [7]),
        (call("in", 2, STRING, "only", "none"), [7]),
        (call("equal", 2, STRING, "none"), []),
        (both(call("greater", 0, BIGINT, 10), call("equal", 2, STRING, "only")), [7]),
        # both are true somewhere in each group, in one row of none
        (both(call("equal", 0, BIGINT, 0), call("equal", 1, INT, 999)), []),
    ],
)
def test_only_row_groups_with_a_row_that_passes_are_read(
    tmp_path: Path, data: pa.Table, predicate: Expression, groups: list[int], dictionary: bool
) -> None:
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=GROUP, use_dictionary=dictionary)
    rows, firsts = read(tmp_path / "a.parquet", predicate)
    assert sorted({first // GROUP for first in firsts}) == groups
    # ordinals of the rows are those of the file
    assert [first % GROUP for first in firsts] == [0] * len(groups)
    expected = pa.concat_tables([data.slice(group * GROUP, GROUP) for group in groups] or [data.slice(0, 0)])
    assert rows.equals(expected.cast(rows.schema))


def test_no_first_query_imports_pandas() -> None:
    program = (
        "import sys; import pyarrow as pa;"
        "from penstock.engine.formats.row_group_probe import RowGroupProbe;"
        "schema = pa.schema([('n', pa.int64()), ('s', pa.string())]);"
        "probe = RowGroupProbe(schema, [('n', 'greater', (1,)), ('s', 'equal', ('a', 'b', None))]);"
        "rows = pa.RecordBatch.from_arrays([pa.nulls(2, kind) for kind in schema.types], schema=schema);"
        "assert probe.columns == ['n', 's'] and not probe.passes(rows);"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_filter_that_keeps_rows_of_every_group_is_tested_no_more(
    tmp_path: Path, data: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = []
    passes = row_group_probe.RowGroupProbe.passes
    monkeypatch.setattr(
        row_group_probe.RowGroupProbe, "passes", lambda self, batch: tested.append(1) or passes(self, batch)
    )
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=GROUP)
    rows, _ = read(tmp_path / "a.parquet", call("equal", 2, STRING, "a"))
    assert rows.num_rows == ROWS
    assert len(tested) == 4


@pytest.mark.parametrize("value", [2**40, -1, True])
def test_a_constant_that_is_no_value_of_the_column_leaves_the_filter_to_decide(
    tmp_path: Path, data: pa.Table, value: Any
) -> None:
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=GROUP, write_statistics=False)
    rows, _ = read(tmp_path / "a.parquet", call("equal", 1, INT, value))
    assert rows.num_rows == (0 if value == -1 else ROWS)


def test_a_damaged_filter_column_is_an_error_of_the_read(tmp_path: Path, data: pa.Table) -> None:
    pq.write_table(data, tmp_path / "a.parquet", row_group_size=GROUP, compression="snappy")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    chunk = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(0)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content[begin + 200 : begin + 5_000] = b"\xff" * 4_800
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(PenstockError) as caught:
        read(tmp_path / "a.parquet", call("equal", 0, BIGINT, 500_000))
    assert caught.value.code.startswith("DAT-")


def test_a_file_with_a_byte_changed_is_tested_and_read_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a file of a few rows is tested too
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 4)
    path = tmp_path / "a.parquet"
    rows = pa.table(
        {
            "n": range(24),
            "i": pa.array(range(24), pa.int32()),
            "s": ["a", "b", "only"] * 8,
            "wide": [str(x) for x in range(24)],
        }
    )
    pq.write_table(rows, path, row_group_size=12, compression="none", write_statistics=False)
    predicate = both(call("in", 0, BIGINT, 4, 17), call("equal", 2, STRING, "b"))
    assert read(path, predicate)[0].num_rows == 12
    whole, refused = path.read_bytes(), 0
    # the pages, without the footer; each fifth byte, for a file is read in milliseconds
    for at in range(4, whole.index(b"schema"), 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            read(path, predicate)
        except PenstockError as error:
            assert error.code.startswith("DAT-")
            refused += 1
    assert refused > 20
