"""Files as tables: CREATE TABLE without columns, whose scripts SHOW CREATE TABLE fixes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.catalog.errors import PenstockError

ORDERS = "id,what,price,at\n1,tea,2.5,2024-01-01 10:00:00\n2,,3,2024-01-01 10:00:07\n"


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[penstock.Connection]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(ORDERS)
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as opened:
        yield opened


def run(connection: penstock.Connection, text: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return [] if cursor.description is None else list(cursor.fetchall())


def note(connection: penstock.Connection, text: str) -> str:
    return str(connection.session.execute(text).note)


def test_a_table_without_columns_has_those_of_its_files_in_a_stream_and_in_a_query(
    connection: penstock.Connection,
) -> None:
    run(connection, "CREATE TABLE o WITH ('connector' = 'filesystem', 'path' = 'orders.csv')")
    run(connection, "CREATE TABLE s WITH ('source.replay' = 'true') LIKE o")
    rows = run(connection, "SELECT * FROM o ORDER BY id")
    assert [row[:3] for row in rows] == [(1, "tea", 2.5), (2, None, 3.0)]
    assert sorted(run(connection, "SELECT * FROM s")) == sorted(rows)


def test_a_declaration_adds_to_what_is_inferred_and_show_create_prints_all(
    connection: penstock.Connection,
) -> None:
    run(
        connection,
        "CREATE TABLE o (WATERMARK FOR at AS at - INTERVAL '1' SECOND, cents AS price * 100, "
        "f STRING METADATA FROM 'file.name', PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'filesystem', 'path' = 'orders.csv', 'source.replay' = 'true')",
    )
    rows = run(connection, "SELECT f, cents FROM o")
    assert sorted(rows) == [("orders.csv", 250.0), ("orders.csv", 300.0)]
    times = {row[0]: row[5] for row in run(connection, "DESCRIBE o")}
    assert times["at"] == "event time"
    ((text,),) = run(connection, "SHOW CREATE TABLE o")
    assert "`price` DOUBLE" in text
    assert "`cents` AS price * 100" in text
    # the printed statement is the same table, whatever becomes of the file
    run(connection, "DROP TABLE o")
    Path("orders.csv").unlink()
    run(connection, text)
    assert run(connection, "SHOW CREATE TABLE o") == [(text,)]


def test_the_note_says_what_the_columns_were_inferred_from(connection: penstock.Connection) -> None:
    create = "CREATE TABLE {} WITH ('connector' = 'filesystem', 'path' = 'orders.csv')"
    assert note(connection, create.format("o")) == (
        f"table o created (4 columns: csv, types that fit all rows of {Path.cwd()}/orders.csv)"
    )
    # a declared table is what it says
    assert note(connection, create.format("p (id INT)")) == "table p created"


def test_a_directory_of_partitions_says_its_format_and_its_columns(connection: penstock.Connection) -> None:
    for day in (1, 2):
        path = Path(f"sales/day=2024-01-0{day}")
        path.mkdir(parents=True)
        pq.write_table(pa.table({"n": [day]}), path / "a.parquet")
    run(connection, "CREATE TABLE s WITH ('connector' = 'filesystem', 'path' = 'sales')")
    assert [tuple(map(str, row)) for row in run(connection, "SELECT * FROM s ORDER BY n")] == [
        ("1", "2024-01-01"),
        ("2", "2024-01-02"),
    ]
    ((text,),) = run(connection, "SHOW CREATE TABLE s")
    assert "PARTITIONED BY (`day`)" in text
    assert "'format' = 'parquet'" in text


@pytest.mark.parametrize(
    ("statement", "code", "under", "hint"),
    [
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'order.csv')",
            "DAT-4101",
            "'order.csv'",
            "orders.csv",
        ),
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'out/')",
            "DAT-4101",
            "'out/'",
            "AS SELECT",
        ),
        (
            "CREATE TABLE t (id AS 1) WITH ('connector' = 'filesystem', 'path' = 'orders.csv')",
            "SQL-1301",
            "id",
            "another name",
        ),
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'orders.csv', 'csv.header' = 'x')",
            "SQL-1505",
            "'x'",
            "'true' or 'false'",
        ),
        (
            "CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = 'orders.csv', 'format' = 'debezium-json')",
            "DAT-4121",
            "'orders.csv'",
            "declare the columns",
        ),
        ("CREATE TABLE t WITH ('connector' = 'datagen')", "SQL-1308", "t", "declare at least one column"),
    ],
)
def test_a_table_whose_columns_nothing_says_is_refused_under_the_path(
    connection: penstock.Connection, statement: str, code: str, under: str, hint: str
) -> None:
    with pytest.raises(PenstockError) as caught:
        connection.session.execute(statement)
    error = caught.value
    assert (error.code, hint in str(error.hint)) == (code, True)
    assert error.span is not None
    assert statement[error.span.start : error.span.end] == under


def test_a_path_in_from_is_a_table_called_as_the_file(connection: penstock.Connection) -> None:
    with gzip.open("more.csv.gz", "wt") as file:
        file.write("id,n\n1,10\n")
    Path("logs").mkdir()
    for number in (1, 2):
        Path(f"logs/{number}.ndjson").write_text(f'{{"id": {number}, "t": {{"x": {number}.5}}}}\n')
    joined = "SELECT orders.what, more.n, l.t.x FROM 'orders.csv' JOIN 'more.csv.gz' ON orders.id = more.id "
    assert run(connection, joined + "JOIN 'logs/*.ndjson' AS l ON l.id = more.id") == [("tea", 10, 1.5)]
    # the same rows in a stream
    streamed = "SELECT what FROM 'orders.csv' /*+ OPTIONS('source.replay' = 'true') */ WHERE id = 1"
    assert run(connection, streamed) == [("tea",)]
    run(connection, "CREATE VIEW v AS SELECT id FROM './orders.csv'")
    assert run(connection, "SELECT COUNT(*) FROM v") == [(2,)]


def test_odd_names_of_files_and_columns(connection: penstock.Connection) -> None:
    Path("it's [x] é.csv").write_text('`a`b,"q ""x""",é\n1,2,3\n')
    assert run(connection, "SELECT * FROM 'it''s [x] é.csv'") == [(1, 2, 3)]
    assert run(connection, "SELECT `é`, `q \"x\"`, ```a``b` FROM 'it''s [x] é.csv'") == [(3, 2, 1)]


@pytest.mark.parametrize(
    ("call", "row"),
    [
        ("read_csv('x.txt', delim => ';', nullstr => 'NA')", (7, None)),
        ("read_csv('x.txt', sep = ';', header = FALSE)", ("a", "b")),
        ("read_csv('x.txt', delimiter => ';', types => 'A DOUBLE')", (7.0, "NA")),
        ("read_csv('x.txt', delimiter => ';', all_varchar => true)", ("7", "NA")),
        ("read_csv('x.txt', delimiter => ';', columns => 'b STRING')", ("NA",)),
        ("read_json('x.jsonl', ignore_errors => true)", (1,)),
        ("read_parquet('p', hive_partitioning => FALSE)", (5,)),
        ("read_parquet('p') AS t (n, k)", (5, 1)),
    ],
)
def test_functions_read_files_as_their_options_say(
    connection: penstock.Connection, call: str, row: tuple[Any, ...]
) -> None:
    Path("x.txt").write_text("a;b\n7;NA\n")
    Path("x.jsonl").write_text('{"a": 1}\nno json\n')
    Path("p/k=1").mkdir(parents=True)
    pq.write_table(pa.table({"n": [5]}), "p/k=1/a.parquet")
    assert run(connection, f"SELECT * FROM {call}")[0] == row


def test_a_function_tells_the_file_of_a_row(connection: penstock.Connection) -> None:
    query = "SELECT DISTINCT filename FROM read_csv('orders.csv', filename => true)"
    assert run(connection, query) == [(str(Path("orders.csv").absolute()),)]


@pytest.mark.parametrize(
    ("query", "code", "under", "hint"),
    [
        ("SELECT * FROM 'order.csv'", "DAT-4101", "'order.csv'", 'did you mean "orders.csv"'),
        ("SELECT * FROM 'nowhere'", "DAT-4101", "'nowhere'", "relative to the directory"),
        ("SELECT * FROM 'o'", "DAT-4101", "'o'", "without single quotes: o"),
        ("SELECT * FROM '*.parquet'", "DAT-4102", "'*.parquet'", "the directory has orders.csv"),
        ("SELECT * FROM orders.csv", "SQL-1351", "orders.csv", "FROM 'orders.csv'"),
        ("SELECT * FROM read_csv('orders.csv', typs => 'a INT')", "SQL-1503", "typs", '"types"'),
        ("SELECT * FROM read_csv('orders.csv', header => 1)", "SQL-1505", "1", "'true' or 'false'"),
        ("SELECT * FROM read_csv('orders.csv', header => id)", "SQL-1505", "id", "header => '..'"),
        ("SELECT * FROM read_csv('orders.csv', filename => 'x')", "SQL-1505", "'x'", "TRUE or FALSE"),
        ("SELECT * FROM read_csv('orders.csv', types => 'idd INT')", "SQL-1042", "'idd INT'", '"id"'),
        ("SELECT * FROM read_csv('orders.csv', columns => 'id')", "SQL-1505", "'id'", "names and types"),
        ("SELECT * FROM read_csv(ARRAY['a'])", "SQL-1001", "ARRAY", "read_csv('path')"),
        (
            "SELECT * FROM read_parquet('orders.csv')",
            "DAT-4108",
            "read_parquet('orders.csv')",
            "read_csv('orders.csv')",
        ),
        ("DESCRIBE 'order.csv'", "DAT-4101", "'order.csv'", "orders.csv"),
        ("SELECT nam FROM 'orders.csv'", "SQL-1042", "nam", "at, id, price, what"),
    ],
)
def test_what_is_no_file_or_no_option_is_refused_in_its_place(
    connection: penstock.Connection, query: str, code: str, under: str, hint: str
) -> None:
    run(connection, "CREATE TABLE o (id INT) WITH ('connector' = 'filesystem', 'path' = 'orders.csv')")
    with pytest.raises(PenstockError) as caught:
        connection.session.execute(query)
    error = caught.value
    assert (error.code, error.span is not None and query[error.span.start : error.span.end]) == (code, under)
    assert hint in str(error.hint)


def test_describe_and_show_create_take_a_path(connection: penstock.Connection) -> None:
    described = [("id", "BIGINT"), ("what", "STRING"), ("price", "DOUBLE"), ("at", "TIMESTAMP(6)")]
    assert [row[:2] for row in run(connection, "DESCRIBE 'orders.csv'")] == described
    assert [row[:2] for row in run(connection, "SHOW COLUMNS FROM 'orders.csv' LIKE 'p%'")] == described[2:3]
    assert [row[:2] for row in run(connection, "DESC SELECT id, at FROM 'orders.csv'")] == described[::3]
    assert "all rows of" in note(connection, "DESCRIBE 'orders.csv'")
    ((text,),) = run(connection, "SHOW CREATE TABLE './orders.csv'")
    assert text.startswith("CREATE TABLE `orders` (")
    run(connection, text)
    assert run(connection, "SELECT COUNT(*) FROM orders") == [(2,)]


def encoded(name: str, encoding: str, rows: int = 1) -> None:
    Path(name).write_bytes(("größe,n\n" + "é€,1\n" * rows).encode(encoding))


@pytest.mark.parametrize(
    "encoding", ["windows-1252", "UTF-16", "utf-16-le", "utf8", "utf-8-sig", "iso8859_15"]
)
@pytest.mark.parametrize("replay", ["false", "true"])
def test_csv_in_another_encoding_is_read_and_written(
    connection: penstock.Connection, encoding: str, replay: str
) -> None:
    encoded("e.csv", encoding, 3)
    query = f"SELECT * FROM read_csv('e.csv', encoding => '{encoding}', replay => {replay})"
    assert run(connection, query) == [("é€", 1)] * 3
    options = f"'connector' = 'filesystem', 'format' = 'csv', 'csv.encoding' = '{encoding}'"
    run(connection, f"CREATE TABLE o2 (`größe` STRING, n INT) WITH ({options}, 'path' = 'out')")
    connection.session.execute(f"INSERT INTO o2 {query}").job.wait()
    (written,) = [path for path in Path("out").iterdir() if path.suffix == ".csv"]
    assert written.read_bytes().decode(encoding) == "größe,n\né€,1\né€,1\né€,1\n"
    assert run(connection, "SELECT * FROM o2") == [("é€", 1)] * 3


@pytest.mark.parametrize(
    ("written", "query", "code", "hint"),
    [
        ("latin-1", "SELECT * FROM 'e.csv'", "DAT-4125", "'csv.encoding' = 'windows-1252'"),
        ("utf-16", "SELECT * FROM 'e.csv'", "DAT-4125", "'csv.encoding' = 'utf-16'"),
        ("latin-1", "SELECT * FROM read_csv('e.csv', encoding => 'utf-16')", "DAT-4125", "'utf-8'"),
        ("latin-1", "SELECT * FROM read_csv('e.csv', encoding => 'latin1x')", "SQL-1505", "latin-1"),
        ("latin-1", "SELECT * FROM read_csv('e.csv', encoding => 'base64')", "SQL-1505", "windows-1252"),
        ("latin-1", "SELECT * FROM read_json('e.csv', encoding => 'utf-8')", "SQL-1507", "leave it out"),
    ],
)
def test_a_wrong_encoding_is_refused(
    connection: penstock.Connection, written: str, query: str, code: str, hint: str
) -> None:
    Path("e.csv").write_bytes("größe,n\né,1\n".encode(written))
    with pytest.raises(PenstockError) as caught:
        connection.session.execute(query)
    assert (caught.value.code, hint in str(caught.value.hint)) == (code, True), caught.value.hint


def test_a_character_that_an_encoding_lacks_is_not_written(connection: penstock.Connection) -> None:
    run(
        connection,
        "CREATE TABLE o2 (a STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'out', "
        "'csv.encoding' = 'latin-1')",
    )
    with pytest.raises(PenstockError, match="the character € of a value cannot be written in iso8859-1"):
        connection.session.execute("INSERT INTO o2 VALUES ('€')").job.wait()


def write_files(directory: Path) -> dict[str, str]:
    """Write one set of rows in each way that columns are inferred from; return what FROM says of each."""
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "what": ["tea", None, "a, b"],
            "price": [2.5, 3.0, None],
            "ok": [True, False, None],
            "day": pa.array([19000, None, 19002], pa.date32()),
            "at": pa.array([0, 1_000_000, None], pa.timestamp("us")),
            "part": ["x", "y", "x"],
        }
    )
    pq.write_table(rows, directory / "plain.parquet")
    lines = "\n".join(
        [
            "id,what,price,ok,day,at,part",
            "1,tea,2.5,true,2022-01-08,1970-01-01 00:00:00,x",
            "2,,3.0,false,,1970-01-01 00:00:01,y",
            '3,"a, b",,,2022-01-10,,x\n',
        ]
    )
    (directory / "plain.csv").write_text(lines)
    (directory / "packed.csv.gz").write_bytes(gzip.compress(lines.encode()))
    records = [
        '{"id": 1, "what": "tea", "price": 2.5, "tags": ["a", "b"], "inner": {"x": 1}}',
        '{"id": 2, "what": null, "price": 3, "tags": [], "inner": null}',
        '{"id": 3, "price": null, "inner": {"x": 3}}',
    ]
    (directory / "plain.json").write_text("\n".join(records) + "\n")
    pq.write_to_dataset(rows, directory / "parts", partition_cols=["part"])
    return {
        name: f"'{directory}/{name}'"
        for name in ("plain.parquet", "plain.csv", "packed.csv.gz", "plain.json")
    } | {"parts": f"READ_PARQUET('{directory}/parts', hive_partitioning => TRUE)"}


@pytest.mark.spark
def test_inferred_columns_are_the_same_on_the_stream_on_duckdb_and_on_spark(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    answers: dict[str, dict[str, tuple[str, list[str]]]] = {}
    for settings in (
        {"bounded.backend": "duckdb"},
        {"bounded.backend": "spark"},
        {"execution.runtime-mode": "streaming"},
    ):
        with penstock.connect(settings=settings) as connection:
            for name, source in files.items():
                with connection.execute(f"SELECT * FROM {source}") as cursor:
                    rows = sorted(map(repr, cursor.fetchall()))
                    answers.setdefault(name, {})[str(settings)] = (repr(cursor.schema), rows)
    for name, by_reader in answers.items():
        first, *others = by_reader.values()
        assert len(first[1]) == 3, name
        assert all(other == first for other in others), (name, by_reader)
