import csv
import io
import json

import pyarrow as pa
import pytest

from penstock.repl.output.row_writers import FORMATS, writer_for
from penstock.repl.output.table_rendering import Look

ROWS = pa.table(
    {
        "name": ["a,b", 'q"q', "", None, "né|日本\n"],
        "n": pa.array([1, 22, None, 4, -5], pa.int64()),
        "x": [1.0, 2.5, None, float("nan"), 0.0],
    }
)
KINDS = ["STRING", "BIGINT", "DOUBLE"]


class Out(io.TextIOWrapper):
    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def text(self):
        return self.buffer.getvalue().decode()


def written(name, rows=ROWS, batch=2, look=None):
    out = Out()
    writer = writer_for(name, out, look or Look())
    writer.begin(rows.schema, KINDS)
    for piece in rows.to_batches(max_chunksize=batch):
        writer.write(piece)
    writer.end()
    return out.text() if name != "arrow" else out.buffer.getvalue()


def test_csv():
    text = written("csv")
    assert text == 'name,n,x\n"a,b",1,1.0\n"q""q",22,2.5\n"",,\n,4,NaN\n"né|日本\n",-5,0.0\n'
    assert next(csv.reader(io.StringIO(text))) == ["name", "n", "x"]


def test_tsv():
    assert written("tsv").splitlines() == [
        "name\tn\tx",
        "a,b\t1\t1.0",
        'q"q\t22\t2.5',
        "\t\\N\t\\N",
        "\\N\t4\tNaN",
        "né|日本\\n\t-5\t0.0",
    ]


def test_json_and_jsonl_hold_the_same_objects():
    lines = [json.loads(line) for line in written("jsonl").splitlines()]
    assert lines == json.loads(written("json"))
    assert lines[3] == {"name": None, "n": 4, "x": "NaN"}
    assert lines[4]["name"] == "né|日本\n"


def test_json_of_no_rows():
    assert json.loads(written("json", ROWS.slice(0, 0))) == []
    assert written("jsonl", ROWS.slice(0, 0)) == ""


def test_markdown():
    assert written("markdown").splitlines()[:3] == [
        "| name | n | x |",
        "|---|---:|---:|",
        "| a,b | 1 | 1.0 |",
    ]
    assert "né\\|日本<br>" in written("markdown")


def test_arrow():
    assert pa.ipc.open_stream(written("arrow")).read_all().to_pydict()["n"] == [1, 22, None, 4, -5]


def test_vertical_numbers_rows_across_batches():
    text = written("vertical")
    assert "-[ row 5 ]-" in text
    assert "name | NULL" in text


def test_table():
    assert written("table", batch=10).splitlines() == [
        " name      |      n |      x",
        " STRING    | BIGINT | DOUBLE",
        "-----------+--------+--------",
        " a,b       |      1 |    1.0",
        ' q"q       |     22 |    2.5',
        "           |   NULL |   NULL",
        " NULL      |      4 |    NaN",
        " né|日本\\n |     -5 |    0.0",
    ]


def test_table_of_no_rows_has_a_heading():
    assert written("table", ROWS.slice(0, 0)).splitlines()[0].split() == ["name", "|", "n", "|", "x"]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("arrow", "table")])
def test_batches_do_not_change_the_text(name):
    assert written(name, batch=1) == written(name, batch=5)
