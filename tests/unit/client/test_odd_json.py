"""JSON files as programs write them: read by a stream and by a bounded query alike, and written again."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock

TEA = [(1, "tea"), (2, "mug")]
READERS = ["", ", replay => true"]
READ = {
    "lines": '{"id": 1, "name": "tea"}\n{"id": 2, "name": "mug"}\n',
    "an array on one line": '[{"id": 1, "name": "tea"}, {"id": 2, "name": "mug"}]',
    "an array over lines": '[\n  {"id": 1,\n   "name": "tea"},\n  {"id": 2, "name": "mug"}\n]\n',
    "objects over lines": '{\n  "id": 1,\n  "name": "tea"\n}\n{\n  "id": 2,\n  "name": "mug"\n}\n',
    "CRLF and a byte order mark": '\ufeff[\r\n{"id": 1, "name": "tea"},\r\n{"id": 2, "name": "mug"}\r\n]\r\n',
    "objects with blanks between": '{"id": 1, "name": "tea"} {"id": 2, "name": "mug"}',
}


@pytest.mark.parametrize("reader", READERS, ids=["bounded", "stream"])
@pytest.mark.parametrize("about", READ)
def test_it_is_read_as_it_is_meant(tmp_path: Path, about: str, reader: str) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(READ[about].encode())
    with penstock.connect() as connection:
        assert connection.execute(f"SELECT * FROM read_json('{path}'{reader})").fetchall() == TEA


def test_a_bad_element_is_left_out_where_the_query_says_so(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text('[{"id": 1, "name": "tea"},\n7,\n{"id": "x"},\n{"id": 2, "name": "mug"}]')
    options = "columns => 'id INT, name STRING', multiline => true, ignore_errors => true"
    for reader in READERS:
        with penstock.connect() as connection:
            rows = connection.execute(f"SELECT * FROM read_json('{path}', {options}{reader})").fetchall()
        assert rows == TEA


def test_what_is_written_into_such_a_table_is_read_from_it(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.json").write_text('[{"id": 1, "name": "tea"}]')
    with penstock.connect() as connection:
        connection.execute(
            "CREATE TABLE t (id INT, name STRING) WITH ('connector' = 'filesystem', 'format' = 'json', "
            f"'path' = '{tmp_path}/t', 'json.multiline' = 'true')"
        )
        connection.execute("INSERT INTO t VALUES (2, 'mug')")
        assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == TEA
