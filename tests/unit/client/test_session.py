import datetime as dt
import math
import threading
import time
from decimal import Decimal

import pyarrow as pa
import pytest

import penstock
from tests.harness.connections import WAYS, connected
from tests.harness.patience import PATIENCE_S

TICKS = (
    "CREATE TEMPORARY TABLE ticks (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', "
    "'rows-per-second' = '1000', 'fields.k.kind' = 'random', 'fields.k.min' = '0', 'fields.k.max' = '9')"
)


@pytest.fixture(params=WAYS)
def connection(request):
    settings = {"execution.runtime-mode": "streaming", "bounded.backend": "duckdb"}
    with connected(request.param, settings) as opened:
        yield opened


@pytest.fixture
def letters(connection):
    moments = [dt.datetime(2020, 1, 1, 0, 0, second) for second in range(10)]
    table = pa.table(
        {
            "a": pa.array(range(10), pa.int64()),
            "b": ["x", "y"] * 5,
            "ts": pa.array(moments, pa.timestamp("us")),
        }
    )
    connection.register("letters", table, time_column="ts", delay="1 s")
    return connection


def test_filter_over_a_registered_table(letters):
    cursor = letters.execute("SELECT a, b FROM letters WHERE a > 6")
    assert cursor.fetchall() == [(7, "y"), (8, "x"), (9, "y")]
    assert cursor.job is not None
    assert cursor.job.wait(PATIENCE_S)


def test_parameters(letters):
    assert letters.execute("SELECT a FROM letters WHERE a > ? AND b = ?", (6, "x")).fetchall() == [(8,)]
    named = "SELECT a FROM letters WHERE a > :least AND ARRAY_CONTAINS($names, b)"
    assert letters.execute(named, {"least": 6, "names": ["x", "z"]}).fetchall() == [(8,)]
    with pytest.raises(penstock.ProgrammingError):
        letters.execute("SELECT a FROM letters WHERE a > ?")
    with pytest.raises(penstock.InterfaceError, match="takes no parameters"):
        letters.execute("SHOW TABLES", (1,))


def test_group_by_gives_final_rows_in_order(letters):
    sql = "SELECT b, COUNT(*) AS n, SUM(a) AS s FROM letters GROUP BY b ORDER BY b DESC"
    assert letters.execute(sql).fetchall() == [("y", 5, 25), ("x", 5, 20)]


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_the_one_row_without_from_is_a_group_by_its_constant(connection, mode):
    connection.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    assert connection.execute("SELECT 1 AS x GROUP BY 1").fetchall() == [(1,)]


def test_group_by_gives_changes(letters):
    cursor = letters.execute("SELECT COUNT(*) AS n FROM letters")
    assert cursor.change_mode == "upsert"
    changes = pa.Table.from_batches(list(cursor.change_batches()))
    assert changes.column("op").to_pylist()[-1] in ("+I", "+U")
    assert changes.column("n").to_pylist()[-1] == 10


def test_tumbling_windows(letters):
    cursor = letters.execute(
        "SELECT window_start, b, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE letters, DESCRIPTOR(ts), INTERVAL '5' SECOND)) "
        "GROUP BY window_start, window_end, b ORDER BY 1, 2"
    )
    first, second = dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 5)
    assert cursor.fetchall() == [(first, "x", 3), (first, "y", 2), (second, "x", 2), (second, "y", 3)]
    assert cursor.change_mode == "append"


def test_the_same_query_twice_at_once(letters):
    one, two = (letters.execute("SELECT a FROM letters WHERE a > 7") for _ in range(2))
    assert one.fetchall() == two.fetchall() == [(8,), (9,)]


def test_an_endless_query_returns_at_once_and_stops(connection):
    connection.execute(TICKS)
    cursor = connection.execute("SELECT k FROM ticks WHERE k > 4")
    assert cursor.fetchone() is not None
    with pytest.raises(penstock.NotSupportedError, match="never ends"):
        cursor.fetchall()
    assert cursor.fetchmany(5, timeout=PATIENCE_S)
    started = time.monotonic()
    threading.Timer(0.05, cursor.cancel).start()
    while cursor.fetchone() is not None:
        assert time.monotonic() - started < PATIENCE_S
    assert cursor.job.wait(PATIENCE_S)
    assert str(cursor.job.state) == "CANCELED"


@pytest.mark.parametrize("rows", [0, 3, 2_500])
def test_a_limit_ends_an_endless_query(connection, rows):
    connection.execute(TICKS.replace("'1000'", "'100000'"))
    cursor = connection.execute(f"SELECT k + 1 AS j FROM ticks WHERE k >= 0 LIMIT {rows}")
    assert len(cursor.fetchall()) == rows
    assert cursor.job.wait(PATIENCE_S)


def test_an_insert_of_what_ends_is_finished_when_it_returns(letters, tmp_path):
    letters.execute(
        f"CREATE TEMPORARY TABLE out_t (a BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'csv')"
    )
    cursor = letters.execute("INSERT INTO out_t SELECT a FROM letters WHERE a > 7")
    assert cursor.description is None
    assert cursor.note == f"job {cursor.job.job_id} finished"
    assert cursor.rowcount == 2
    assert sorted(letters.execute("SELECT a FROM out_t").fetchall()) == [(8,), (9,)]
    assert (cursor.job.job_id, "FINISHED") in [
        (row[0], row[2]) for row in letters.execute("SHOW JOBS").fetchall()
    ]
    facts = dict(letters.execute(f"DESCRIBE JOB '{cursor.job.job_id}'").fetchall())
    assert facts["rows out"] == "2"


def test_dml_sync_false_returns_at_once(letters):
    letters.execute("CREATE TEMPORARY TABLE void (a BIGINT) WITH ('connector' = 'blackhole')")
    letters.execute("SET 'table.dml-sync' = 'false'")
    cursor = letters.execute("INSERT INTO void SELECT a FROM letters")
    assert cursor.note == f"job {cursor.job.job_id} started"
    assert cursor.rowcount == -1
    assert cursor.job.wait(PATIENCE_S)


def test_stop_and_cancel_jobs(connection):
    connection.execute(TICKS)
    connection.execute("CREATE TEMPORARY TABLE void (k BIGINT) WITH ('connector' = 'blackhole')")
    for verb, state in (("STOP", "FINISHED"), ("CANCEL", "CANCELED")):
        job = connection.execute("INSERT INTO void SELECT k FROM ticks").job
        connection.execute(f"{verb} JOB '{job.job_id}'")
        assert str(job.state) == state
    with pytest.raises(penstock.Error, match="there is no job"):
        connection.execute("STOP JOB 'nothing'")


def test_statement_sets_are_one_job(letters):
    for name in ("one", "two"):
        letters.execute(f"CREATE TEMPORARY TABLE {name} (a BIGINT) WITH ('connector' = 'blackhole')")
    cursor = letters.execute(
        "EXECUTE STATEMENT SET BEGIN INSERT INTO one SELECT a FROM letters; INSERT INTO two SELECT a FROM letters; END"
    )
    assert cursor.job.name == "insert-into-one-two"
    assert cursor.job.wait(PATIENCE_S)


def test_catalog_statements(letters):
    assert letters.execute("SHOW TABLES").fetchall() == [("letters", "registered", "replay", "yes")]
    letters.execute("CREATE VIEW high AS SELECT a FROM letters WHERE a > 7")
    assert letters.execute("SELECT * FROM high").fetchall() == [(8,), (9,)]
    assert letters.execute("SHOW VIEWS LIKE 'h%'").fetchall()[0][0] == "high"
    assert [row[0] for row in letters.execute("DESCRIBE letters").fetchall()] == ["a", "b", "ts"]
    letters.execute("DROP VIEW high")
    assert letters.execute("DROP VIEW IF EXISTS high").note == "there is no view high"
    with pytest.raises(penstock.ProgrammingError) as caught:
        letters.execute("DROP TABLE leters")
    assert (caught.value.line, caught.value.column, caught.value.hint) == (1, 12, 'did you mean "letters"?')


def test_show_create_can_be_run_again_and_hides_secrets(connection):
    text = (
        "CREATE TEMPORARY TABLE t (a INT NOT NULL, b STRING, ts TIMESTAMP(3), c AS a + 1, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        "WITH ('connector' = 'filesystem', 'path' = 's3://me:hush@bucket/x', 'format' = 'json')"
    )
    connection.execute(text)
    shown = connection.execute("SHOW CREATE TABLE t").fetchone()[0]
    assert "hush" not in shown
    connection.execute("DROP TABLE t")
    connection.execute(shown)
    assert connection.execute("SHOW CREATE TABLE t").fetchone()[0] == shown


def test_settings(connection):
    connection.execute("SET 'parallelism.default' = '3'")
    assert connection.execute("SET 'parallelism.default'").fetchall() == [("parallelism.default", "3")]
    connection.execute("RESET 'parallelism.default'")
    assert connection.execute("SET 'parallelism.default'").fetchall() == [("parallelism.default", "1")]
    with pytest.raises(penstock.ProgrammingError, match="did you mean"):
        connection.execute("SET 'paralelism.default' = '3'")
    assert ("deployment", "embedded") in [row[:2] for row in connection.execute("SET").fetchall()]


@pytest.mark.parametrize(
    "stage",
    [
        "",
        "LOGICAL",
        "OPTIMIZED",
        "PHYSICAL",
        "RULES",
        "CHANGELOG_MODE",
        "JSON",
        "MERMAID",
        "LOGICAL, PHYSICAL",
    ],
)
def test_explain_in_every_stage(letters, stage):
    rows = letters.execute(
        f"EXPLAIN {stage} SELECT b, COUNT(*) AS n FROM letters WHERE a + 0 > 3 GROUP BY b"
    ).fetchall()
    text = "\n".join(row[0] for row in rows)
    assert "letters" in text


def test_several_statements_and_scripts(letters):
    with pytest.raises(penstock.InterfaceError, match="takes one statement"):
        letters.execute("SELECT 1; SELECT 2")
    with pytest.raises(penstock.InterfaceError, match="no statement"):
        letters.execute(" -- nothing")
    assert letters.cursor().executescript("SELECT 1 AS a; SELECT 2 AS a;").fetchall() == [(2,)]


@pytest.mark.parametrize("way", WAYS)
def test_a_bounded_query_runs_on_the_backend(way):
    with connected(way, {"bounded.backend": "duckdb"}) as connection:
        connection.register("t", pa.table({"a": [3, 1, 2]}))
        cursor = connection.execute("SELECT a FROM t WHERE a > 1 ORDER BY a")
        assert cursor.job is None
        assert cursor.fetchall() == [(2,), (3,)]
        assert next(connection.execute("SELECT SUM(a) AS s FROM t").batches()).to_pydict() == {"s": [6]}
        assert connection.execute("SELECT a FROM t").fetch_df()["a"].tolist() == [3, 1, 2]


def test_a_registered_table_is_removed(connection):
    connection.register("r", pa.table({"a": [1]}))
    connection.unregister("R")
    assert connection.execute("SHOW TABLES").fetchall() == []
    with pytest.raises(penstock.ProgrammingError, match='table "r" does not exist'):
        connection.unregister("r")
    connection.execute("CREATE TABLE made (a INT) WITH ('connector' = 'datagen')")
    with pytest.raises(penstock.Error, match="CLI-6043"):
        connection.unregister("made")


def test_register_refuses_what_is_no_table(connection):
    for arguments, said in (
        ((3,), "cannot be a table"),
        ((pa.table({"a": [1]}),), None),
    ):
        if said:
            with pytest.raises(penstock.Error, match=said):
                connection.register("r", *arguments)
    with pytest.raises(penstock.Error, match='did you mean "time"'):
        connection.register("r", pa.table({"time": pa.array([0], pa.timestamp("us"))}), time_column="tme")
    with pytest.raises(penstock.Error, match="not a timestamp"):
        connection.register("r", pa.table({"a": [1]}), time_column="a")
    with pytest.raises(penstock.Error, match="is no delay"):
        connection.register(
            "r", pa.table({"time": pa.array([0], pa.timestamp("us"))}), time_column="time", delay="soon"
        )


def test_iterables_are_streams_that_end():
    with connected("in process", {"execution.runtime-mode": "streaming"}) as connection:
        connection.register("numbers", iter([{"n": n} for n in range(5)]))
        assert connection.execute("SELECT n FROM numbers WHERE n > 2").fetchall() == [(3,), (4,)]


def test_closed_connections(connection):
    connection.close()
    with pytest.raises(penstock.InterfaceError, match="closed"):
        connection.execute("SELECT 1")
    with pytest.raises(penstock.NotSupportedError):
        connection.rollback()


def test_table_api(letters):
    col = penstock.col
    table = (
        letters.table("letters")
        .filter(col("a") > 2)
        .window(penstock.tumble("ts", "5 seconds"))
        .group_by("b")
        .aggregate("COUNT(*) AS n")
    )
    rows = table.order_by("window_start", "b").execute().fetchall()
    assert [(row[0].second, row[-2], row[-1]) for row in rows] == [
        (0, "x", 1),
        (0, "y", 1),
        (5, "x", 2),
        (5, "y", 3),
    ]
    letters.execute("CREATE TEMPORARY TABLE void (a BIGINT) WITH ('connector' = 'blackhole')")
    cursor = letters.table("letters").select("a").insert_into("void")
    assert cursor.note.endswith("finished")
    assert cursor.job.wait(PATIENCE_S)
    with pytest.raises(penstock.ProgrammingError):
        letters.table("leters")


@pytest.mark.parametrize("way", WAYS)
def test_views_and_values_of_the_table_api(way):
    """Names and values of others come back as they were, through SQL text too."""
    values = [
        "it's",
        "'; DROP VIEW x; --",
        'a "b" `c`',
        "日本\n--",
        b"\x00'",
        1.5,
        math.inf,
        Decimal("1E+2"),
        None,
    ]
    values += [dt.timedelta(days=-1, microseconds=1), dt.datetime(2020, 1, 2, 3, 4, 5, 6), True, 2**40]
    with connected(way, {"bounded.backend": "duckdb"}) as connection:
        connection.register("numbers", pa.table({"n": [1, 2, 3]}))
        one = connection.table("numbers").filter(penstock.col("n") == 1)
        named = {f"v`{index}": penstock.lit(value) for index, value in enumerate(values)}
        table = one.select(**named)
        view = table.create_view('a view; "x"', temporary=True)
        assert list(view) == [tuple(values)] == list(table)
        assert view.columns == list(named)
        assert one.create_view('a view; "x"', temporary=True, replace=True).to_arrow().num_rows == 1
        assert math.isnan(next(iter(one.select(x=penstock.lit(math.nan))))[0])
        assert "Scan numbers" in one.explain("LOGICAL")
        assert one.explain().startswith("== logical ==")
        assert one.to_pandas()["n"].tolist() == [1]
        with pytest.raises(penstock.ProgrammingError, match="exists"):
            one.create_view('a view; "x"', temporary=True)


def test_a_kept_catalog_is_there_again(tmp_path):
    table = f"CREATE TABLE kept (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/kept', 'format' = 'csv')"
    with penstock.connect(catalog=tmp_path / "catalog") as connection:
        connection.execute(table)
        connection.execute(table.replace("TABLE kept", "TEMPORARY TABLE gone"))
        connection.execute("CREATE VIEW high AS SELECT a FROM kept WHERE a > 1")
    with penstock.connect(catalog=tmp_path / "catalog") as connection:
        assert [row[0] for row in connection.execute("SHOW TABLES").fetchall()] == ["kept"]
        assert [row[0] for row in connection.execute("SHOW VIEWS").fetchall()] == ["high"]
        connection.execute("DROP VIEW high")
    with penstock.connect(catalog=tmp_path / "catalog") as connection:
        assert connection.execute("SHOW VIEWS").fetchall() == []


def test_waiting_for_a_job_holds_up_nobody_else(connection):
    connection.execute(TICKS)
    connection.execute("CREATE TEMPORARY TABLE void (k BIGINT) WITH ('connector' = 'blackhole')")
    connection.execute("SET 'table.dml-sync' = 'true'")
    ended = []

    def wait():
        try:
            connection.execute("INSERT INTO void SELECT k FROM ticks")
        except penstock.OperationalError as error:
            ended.append(error.code)

    waiting = threading.Thread(target=wait)
    waiting.start()
    started = time.monotonic()
    while not (jobs := connection.execute("SHOW JOBS").fetchall()):
        assert time.monotonic() - started < PATIENCE_S
    connection.execute(f"CANCEL JOB '{jobs[0][0]}'")
    waiting.join(PATIENCE_S)
    assert ended == ["RUN-2903"], "an INSERT that was cancelled has not written its rows"


def test_a_notebook_shows_connections_tables_and_jobs(letters):
    assert repr(letters) == "<penstock.Connection: open, 0 jobs, 0 running>"
    cursor = letters.execute("SELECT a FROM letters")
    assert cursor.fetchall()
    assert cursor.job is not None
    assert cursor.job.wait(PATIENCE_S)
    assert repr(cursor.job) == f"<penstock.Job {cursor.job.job_id}: query, FINISHED>"
    assert f"<td>{cursor.job.job_id}</td>" in letters._repr_html_()
    letters.register("few", pa.table({"<x>": [1, None]}))
    assert "<th>&lt;x&gt;<br>" in letters.table("few")._repr_html_()
    assert "<i>NULL</i>" in letters.table("few")._repr_html_()
    letters.execute("CREATE TABLE endless (a INT) WITH ('connector'='datagen','rows-per-second'='1')")
    before = len(list(letters.jobs()))
    assert "a stream: execute() reads it" in letters.table("endless")._repr_html_()
    assert len(list(letters.jobs())) == before
