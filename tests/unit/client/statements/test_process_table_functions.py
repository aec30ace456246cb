"""Process table functions in SQL and the Table API: declared, called, refused; state that outlives another
query and another declaration.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.planner.table_api.table import Table
from tests.streaming.three_acts import process_functions as program
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.change_files import Changes, declared

ROWS = pa.table({"id": [1, 2, 3, 4, 5], "k": ["a", "b", "a", "a", None], "v": [1, 2, 3, 4, 5]})


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with penstock.connect(settings={"bounded.backend": "duckdb", "parallelism.default": "2"}) as made:
        made.register("t", ROWS)
        made.register("u", ROWS)
        made.execute(
            "CREATE TABLE s (k STRING, v BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('connector' = 'datagen')"
        )
        made.execute("CREATE VIEW wide AS SELECT k, CAST(v AS DOUBLE) AS v FROM t")
        for name in ("Totals", "Sessions", "Pairs", "Marked"):
            made.execute(
                f"CREATE FUNCTION {name} AS 'tests.streaming.three_acts.process_functions.{name}' LANGUAGE PYTHON"
            )
        yield made


def answer(made: Connection, query: str) -> list[tuple[Any, ...]]:
    return sorted(made.execute(query).fetchall(), key=str)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM Totals(input => TABLE t PARTITION BY k)", [("a", 3, 8), ("b", 1, 2), (None, 1, 5)]),
        ("SELECT k, n FROM totals(TABLE t PARTITION BY (k), uid => 'x') WHERE k = 'a'", [("a", 3)]),
        ("SELECT x.n FROM TABLE(Totals(TABLE (SELECT 1 AS o, v FROM t) PARTITION BY o)) AS x", [(5,)]),
        ("SELECT a, c FROM Totals(TABLE t PARTITION BY k) AS x(a, b, c) WHERE b = 1", [("b", 2), (None, 5)]),
        ("SELECT id, high FROM Marked(TABLE t, 2) WHERE id > 3", [(4, True), (5, True)]),
        ("SELECT id FROM Marked(input => TABLE t, threshold => CAST(4 AS INT)) WHERE high", [(5,)]),
        (
            "SELECT k, k0, mine FROM Pairs(paid => TABLE t PARTITION BY k, sent => TABLE u PARTITION BY k) WHERE other = 2",
            [("b", "b", 2)],
        ),
        (
            "SELECT p.n, t.id FROM Totals(TABLE t PARTITION BY k) AS p JOIN t ON p.k = t.k WHERE t.id = 1",
            [(3, 1)],
        ),
    ],
)
def test_calls(connection: Connection, query: str, expected: list[Any]) -> None:
    assert answer(connection, query) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("call", "code", "hint"),
    [
        ("Totals(TABLE t)", "SQL-1733", "PARTITION BY k"),
        ("Totals(TABLE t PARTITION BY nothing)", "SQL-1042", ""),
        ("Totals(TABLE t PARTITION BY k ORDER BY id)", "SQL-1601", "list state"),
        ("Totals(TABLE s PARTITION BY k ORDER BY v)", "SQL-1601", "ORDER BY at, v"),
        ("Totals(TABLE s PARTITION BY k ORDER BY at)", "SQL-1733", "without updates"),
        ("Totals(TABLE t PARTITION BY k, thresold => 5)", "SQL-1102", ""),
        ("Totals(TABLE t PARTITION BY k, TABLE u PARTITION BY k, TABLE u, 4)", "SQL-1102", ""),
        ("Totals(input => TABLE t PARTITION BY k, input => TABLE t PARTITION BY k)", "SQL-1102", ""),
        ("Totals(input => 5)", "SQL-1102", "TABLE t"),
        ("Totals(uid => 'x')", "SQL-1102", "TABLE t"),
        ("Totals(TABLE t PARTITION BY k, uid => 5)", "SQL-1733", "my-totals"),
        ("Totals(5)", "SQL-1107", "TABLE t"),
        ("Marked(TABLE t PARTITION BY k, 5)", "SQL-1733", "semantics"),
        ("Marked(TABLE t, threshold => DATE '2024-01-01')", "SQL-1103", "CAST"),
        ("Marked(TABLE t, threshold => v)", "SQL-1042", ""),
        ("Marked(TABLE t, threshold => TABLE u)", "SQL-1102", ""),
        ("Marked(TABLE t, UNIX_TIMESTAMP(CURRENT_TIMESTAMP))", "SQL-1733", "constant"),
        ("Marked(TABLE t)", "SQL-1102", "threshold"),
        ("Sessions(TABLE s PARTITION BY k, gap => INTERVAL '1' SECOND)", "SQL-1733", "on_time"),
        (
            "Sessions(TABLE s PARTITION BY k, INTERVAL '1' SECOND, DESCRIPTOR(v))",
            "SQL-1733",
            "event time is at",
        ),
        ("Pairs(TABLE t PARTITION BY k, TABLE wide PARTITION BY v)", "SQL-1733", "same types"),
        ("Sessionz(TABLE s PARTITION BY k)", "SQL-1101", "Sessions"),
        ("TUMBEL(TABLE s, DESCRIPTOR(at), INTERVAL '1' SECOND)", "SQL-1101", "TUMBLE"),
        ("greatest(TABLE s, 5)", "SQL-1101", "table functions"),
        ("Marked(TABLE (SELECT k, COUNT(*) AS v FROM s GROUP BY k), 5)", "SQL-1324", "updates=True"),
    ],
)
def test_refused_calls(connection: Connection, call: str, code: str, hint: str) -> None:
    with pytest.raises(penstock.Error) as refused:
        connection.execute(f"SELECT * FROM {call}")
    error = refused.value.__cause__
    assert isinstance(error, PenstockError)
    assert (error.code, hint in str(error.hint)) == (code, True), error
    assert error.span is not None


def test_it_is_no_scalar_function(connection: Connection) -> None:
    with pytest.raises(penstock.Error, match="it is a table function"):
        connection.execute("SELECT Totals(1) FROM t")
    kinds = dict(connection.execute("SHOW FUNCTIONS LIKE 'tot%'").fetchall())
    assert kinds == {"Totals": "python process table"}


def test_a_function_that_wavers_is_refused_over_updates(connection: Connection) -> None:
    @penstock.ptf({"n": "BIGINT"}, deterministic=False)
    class Wavering:
        input = penstock.table_input(updates=True)

        def process(self, ctx: Any) -> None:
            pass

    connection.create_function(Wavering)
    connection.execute("EXPLAIN SELECT * FROM Wavering(TABLE s PARTITION BY k)")
    with pytest.raises(penstock.Error, match="SQL-1315"):
        connection.execute(
            "SELECT * FROM Wavering(TABLE (SELECT k, COUNT(*) AS n FROM s GROUP BY k) PARTITION BY k)"
        )


def test_two_calls_have_two_uids(connection: Connection) -> None:
    one = "SELECT k, n FROM Totals(TABLE t PARTITION BY k, uid => 'same')"
    with pytest.raises(penstock.Error, match="SQL-1733"):
        connection.execute(f"{one} UNION ALL {one.replace('TABLE t', 'TABLE u')}")
    assert answer(connection, f"SELECT COUNT(*) FROM ({one} UNION ALL {one})") == [(6,)]


def test_the_table_api_makes_the_same_rows_and_their_sql(connection: Connection) -> None:
    t, u = connection.table("t"), connection.table("u")
    some = u.filter("v > 1").partition_by("k")
    for table, count in (
        (t.partition_by("k").process("Totals", uid="x").filter("n > 1").select("k", "n"), 1),
        (t.partition_by("k").process(program.Pairs, paid=some), 8),
        (t.partition_by().process("Marked", threshold=3), 5),
    ):
        assert isinstance(table, Table)
        found = sorted(table.execute().fetchall(), key=str)
        assert len(found) == count
        assert answer(connection, table.to_sql()) == found


@pytest.mark.parametrize(
    "declare",
    [
        lambda: penstock.ptf({"n": "BIGNT"}),
        lambda: penstock.ptf({"n": "BIGINT"}, mode="rows"),
        lambda: penstock.ptf({"n": "BIGINT", "N": "BIGINT"})(type("F", (), {"process": print})),
        lambda: penstock.ptf({"n": "BIGINT"})(type("F", (), {})),
        lambda: penstock.ptf({"n": "BIGINT"})(print),  # type: ignore[arg-type]
        lambda: penstock.value_state("BIGINT", ttl="soon"),
        lambda: penstock.table_input(semantics="bag"),
        lambda: penstock.table_input(semantics="row", optional_partition_by=True),
        lambda: penstock.table_input(updates=True, pass_columns_through=True),
        lambda: _declared(uid=penstock.value_state("BIGINT")),
        lambda: _declared(t=penstock.table_input(semantics="row"), n=penstock.value_state("BIGINT")),
        lambda: _declared(t=penstock.table_input(pass_columns_through=True), u=penstock.table_input()),
    ],
)
def test_refused_declarations(declare: Any) -> None:
    with pytest.raises(PenstockError) as refused:
        declare()
    assert refused.value.code in ("SQL-1332", "SQL-1204")


def _declared(**attributes: Any) -> Any:
    return penstock.ptf({"n": "BIGINT"})(type("F", (), {"process": print, **attributes}))


def counting(kind: str, **more: Any) -> Any:
    """Counts the rows of each partition in a state of this type."""

    @penstock.ptf({"n": "BIGINT"}, mode="row", name="Counting")
    class Counting:
        row = penstock.value_state(kind)
        seen = penstock.list_state(kind)
        locals().update(more)

        def process(self, ctx: Any, row: dict[str, Any]) -> None:
            before = ctx.state.row
            n = (before["n"] if before else 0) + 1
            ctx.state.row = {"n": n} | ({"note": f"{n}"} if "note" in kind else {})
            ctx.state.seen.append(ctx.state.row)
            assert [one["n"] for one in ctx.state.seen] == list(range(1, n + 1))
            ctx.emit(n)

    return Counting


NARROW, NOTED = "ROW<n INT>", "ROW<n BIGINT, note STRING>"
QUERY = "SELECT k, MAX(n) FROM Counting(TABLE {source} PARTITION BY k, uid => 'count') GROUP BY k"


class Stopped(NamedTuple):
    """A job that was stopped in the middle: its state, the script of its table, the counts there would be at
    its end, and what it gave so far.
    """

    state: Path
    table: str
    counts: dict[Any, int]
    taken: Counter[Any]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    root = tmp_path_factory.mktemp("evolving")
    changes = Changes(3, 3000)
    for number in range(900):
        changes.note("c", None, {**changes._row(number, number), "id": number})
    counts: dict[Any, int] = {}
    for row in changes.rows.values():
        counts[row["k"]] = counts.get(row["k"], 0) + 1
    path = changes.write(root / "t")
    table = (
        declared("t", path).replace("debezium-json", "json").replace(", PRIMARY KEY (id) NOT ENFORCED", "")
    )
    for file in Path(path).iterdir():
        lines = file.read_text(encoding="utf-8").splitlines()
        file.write_text("".join(f"{_after(line)}\n" for line in lines), encoding="utf-8")
    script = acting(table, QUERY.format(source="t"), counting(NARROW))
    try:
        job, channel = script.submit(2, root / "state", 20)
        taken = Folded()
        run_and_stop(job, channel, taken, 300)
    finally:
        script.close()
    return Stopped(root / "state", table, counts, taken.rows)


def _after(line: str) -> str:
    return json.dumps(json.loads(line)["after"])


def acting(table: str, query: str, function: Any) -> Script:
    script = Script("evolving", {"execution.batch.max-rows": "61"}, table + query)
    script.session.create_function(function)
    return script


def resumed(stopped: Stopped, tmp_path: Path, query: str, function: Any) -> tuple[Counter[Any], int]:
    """Go on from a copy of the stopped job's state; return what it gave, and the rows read."""
    shutil.copytree(stopped.state, tmp_path / "state")
    script = acting(stopped.table, query, function)
    try:
        folded = Folded(Counter(stopped.taken))
        job, channel = script.submit(3, tmp_path / "state", 50)
        run_to_end(job, channel, folded)
        return folded.rows, rows_read(job)
    finally:
        script.close()


def test_state_has_fields_more_and_wider_numbers(stopped: Stopped, tmp_path: Path) -> None:
    added = {"fresh": penstock.map_state("STRING", "BIGINT")}
    found, read = resumed(stopped, tmp_path, QUERY.format(source="t"), counting(NOTED, **added))
    assert dict(found.keys()) == stopped.counts
    assert read < 900, "it was to resume, not to begin again"


def test_a_uid_finds_the_state_over_other_tables(stopped: Stopped, tmp_path: Path) -> None:
    query = QUERY.format(source="(SELECT *, v + 1 AS w FROM t)")
    found, read = resumed(stopped, tmp_path / "uid", query, counting(NARROW))
    assert dict(found.keys()) == stopped.counts
    assert read < 900
    # without it the function over other rows is another one
    with pytest.raises(PenstockError, match="STA-3"):
        resumed(stopped, tmp_path / "none", query.replace(", uid => 'count'", ""), counting(NARROW))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (counting("ROW<m INT>"), "field n is not declared any more"),
        (counting("ROW<n STRING>"), "are no string"),
        (counting(NARROW, seen=penstock.value_state("BIGINT")), "which is not declared"),
    ],
)
def test_what_would_lose_state_is_refused(
    stopped: Stopped, tmp_path: Path, function: Any, reason: str
) -> None:
    with pytest.raises(PenstockError, match=reason) as refused:
        resumed(stopped, tmp_path, QUERY.format(source="t"), function)
    assert refused.value.code == "STA-3009"


def test_constants_with_defaults_may_be_left_out() -> None:
    @penstock.ptf({"x": "STRING"}, arguments={"a": "DOUBLE", "b": "STRING"}, defaults={"a": 2, "b": None})
    class Shown:
        input = penstock.table_input(semantics="row")

        def process(self, ctx: Any) -> None:
            ctx.emit([f"{ctx.args['a']} {ctx.args['b']}"] * ctx.rows.num_rows, rows=range(ctx.rows.num_rows))

    with penstock.connect(settings={"bounded.backend": "duckdb"}) as made:
        made.register("t", ROWS.slice(0, 1))
        made.create_function(Shown)
        calls = {"": "2.0 None", ", 3": "3.0 None", ", b => 'y'": "2.0 y", ", b => 'y', a => 0.5": "0.5 y"}
        for call, text in calls.items():
            assert answer(made, f"SELECT x FROM Shown(TABLE t{call})") == [(text,)]


@pytest.mark.parametrize(
    ("defaults", "message"),
    [({"b": 1}, "which is no argument"), ({"a": "x"}, "is no BIGINT"), ({"a": [1]}, "is no BIGINT")],
)
def test_defaults_that_are_refused(defaults: dict[str, object], message: str) -> None:
    with pytest.raises(PenstockError, match=message) as refused:

        @penstock.ptf({"x": "BIGINT"}, arguments={"a": "BIGINT"}, defaults=defaults)
        class Wrong:
            def process(self, ctx: Any) -> None: ...

    assert refused.value.code == "SQL-1332"
