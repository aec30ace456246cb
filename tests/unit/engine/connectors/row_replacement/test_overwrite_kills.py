"""INSERT OVERWRITE of Delta and Iceberg tables by programs that are killed, and in a bucket: a table is old or
new, and what was left of temporary files is deleted by the next statement.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest

from penstock.client.session import Session
from tests.harness.length import briefly, of_length
from tests.harness.object_stores import KEY, REGION, SECRET, moto_server
from tests.harness.patience import PATIENCE_S

pytest.importorskip("deltalake", reason="the extra delta is not installed")
pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
TABLES = {
    "delta": "CREATE TABLE t (id BIGINT, n BIGINT) WITH ('connector' = 'delta', 'table-path' = '{path}/t')",
    "delta-key": "CREATE TABLE t (id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) "
    "WITH ('connector' = 'delta', 'table-path' = '{path}/t')",
    "iceberg": "CREATE TABLE t (id BIGINT, n BIGINT) WITH ('connector' = 'iceberg', 'table-name' = 'db.t', "
    "'catalog-type' = 'sql', 'uri' = 'sqlite:///{path}/catalog.db', 'warehouse' = 'file://{path}/warehouse')",
}
TABLES |= {f"{kind}-update": TABLES[kind] for kind in ("delta", "iceberg")}
TABLES["files-update"] = (
    "CREATE TABLE t (id BIGINT, n BIGINT) PARTITIONED BY (n) "
    "WITH ('connector' = 'filesystem', 'path' = '{path}/t', 'format' = 'csv')"
)
ROWS = 2_000
OVERWRITE = f"INSERT OVERWRITE t SELECT s.id, %d FROM UNNEST(sequence(1, {ROWS})) AS s (id)"
# replaces the table until it is killed; each time all rows have the next number
PROGRAM = """
import sys, penstock
from penstock.engine.job.failpoint_arming import arm_from_environment
arm_from_environment()
cursor = penstock.connect().cursor()
cursor.execute(sys.argv[1])
number = int(sys.argv[2])
while True:
    cursor.execute(sys.argv[3] % number)
    print(number, flush=True)
    number += 1
"""


def overwriting(
    table: str, first: int, tmp_path: Path, failpoints: str, statement: str = OVERWRITE
) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "PENSTOCK_TEST": "1",
        "PENSTOCK_FAILPOINTS": failpoints,
    }
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, table, str(first), statement],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def killed_after(process: subprocess.Popen[bytes], delay_s: float | None) -> int | None:
    """Kill a program so long after its first statement, or wait until it kills itself; return the last number
    it has told.
    """
    assert process.stdout is not None
    # a program that nothing kills ends, and is told from one that was killed
    watch = threading.Timer(PATIENCE_S, process.terminate)
    watch.start()
    told = [int(process.stdout.readline() or -1)] if delay_s is not None else []
    if delay_s is not None:
        time.sleep(delay_s)
        process.kill()
    told += [int(line) for line in process.stdout]
    watch.cancel()
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    process.stdout.close()
    return told[-1] if told else None


def number_of(session: Session) -> int:
    """Return the number that all rows of the table have."""
    found = session.execute("SELECT MIN(n), MAX(n), COUNT(*), COUNT(DISTINCT id) FROM t").final_rows(
        PATIENCE_S
    )
    least, most, count, ids = (column[0].as_py() for column in found.columns)
    assert (count, ids) == (ROWS, ROWS) and least == most
    return int(most)


@pytest.mark.longer
@pytest.mark.parametrize("kind", briefly(TABLES, ["iceberg"]))
def test_a_killed_program_leaves_the_old_or_the_new_rows(kind: str, tmp_path: Path) -> None:
    declared = TABLES[kind].format(path=tmp_path)
    statement = "UPDATE t SET n = %d" if kind.endswith("update") else OVERWRITE
    session = Session({"bounded.backend": "duckdb"})
    random, number = Random(kind), 0
    try:
        session.execute(declared)
        session.execute(f"INSERT OVERWRITE t SELECT s.id, 0 FROM UNNEST(sequence(1, {ROWS})) AS s (id)")
        # each kill costs the start of a program, of 3 to 12 s on a loaded machine
        kills: list[str | float] = of_length(["L2=kill@2"], [])
        kills += of_length([], [*(f"L{n}=kill@{at}" for n in (1, 2) for at in (1, 2, 3)), *([0.0] * 20)])
        if kind == "files-update":
            kills = [0.0] * 20
        for kill in kills:
            delay_s = None if isinstance(kill, str) else kill or random.random() / 3
            failpoints = kill if isinstance(kill, str) else ""
            process = overwriting(declared, number + 1, tmp_path, failpoints, statement)
            try:
                told = killed_after(process, delay_s)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            last = number if told is None else told
            number = number_of(session)
            # at L2 the commit is done: nobody has told it
            assert number in ({last + 1} if str(kill).startswith("L2") else {last, last + 1}), kill
            assert kill != "L1=kill@1" or number == last
        again = statement if kind.endswith("update") else "INSERT OVERWRITE t SELECT id, %d FROM t"
        session.execute(again % (number + 1))
        assert number_of(session) == number + 1
    finally:
        session.close()
    if kind == "files-update":
        return
    # the last program's own directory, and those of workers that it has not closed
    process = overwriting(declared, number + 2, tmp_path, "L1=kill@1")
    killed_after(process, None)
    assert len(list(tmp_path.glob("penstock-overwrite-*"))) == 1


@pytest.mark.xdist_group("moto")
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_in_a_bucket(kind: str, tmp_path: Path) -> None:
    server = moto_server()
    bucket = server.bucket("overwritten")
    store = {
        "delta": f"'connector' = 'delta', 'table-path' = 's3://{bucket}/t', 'storage.aws_endpoint' = "
        f"'{server.endpoint}', 'storage.aws_access_key_id' = '{KEY}', 'storage.aws_secret_access_key' = "
        f"'{SECRET}', 'storage.aws_region' = '{REGION}', 'storage.aws_allow_http' = 'true'",
        "iceberg": "'connector' = 'iceberg', 'table-name' = 'db.t', 'catalog-type' = 'sql', "
        f"'uri' = 'sqlite:///{tmp_path}/catalog.db', 'warehouse' = 's3://{bucket}/warehouse', "
        f"'catalog.s3.endpoint' = '{server.endpoint}', 'catalog.s3.access-key-id' = '{KEY}', "
        f"'catalog.s3.secret-access-key' = '{SECRET}', 'catalog.s3.region' = '{REGION}'",
    }[kind]
    session = Session({"bounded.backend": "duckdb"})
    try:
        session.execute(
            f"CREATE TABLE t (id BIGINT, n BIGINT, PRIMARY KEY (id, n) NOT ENFORCED) PARTITIONED BY (n) WITH ({store})"
        )
        session.execute("INSERT OVERWRITE t VALUES (1, 0), (2, 0), (1, 1)")
        session.execute("INSERT OVERWRITE t VALUES (7, 0)")
        session.execute("INSERT OVERWRITE t PARTITION (n = 1) SELECT id + 1 FROM t WHERE n = 1")
        found = session.execute("SELECT * FROM t").final_rows(PATIENCE_S).to_pylist()
        assert sorted(tuple(row.values()) for row in found) == [(2, 1), (7, 0)]
        assert session.execute("UPDATE t SET n = 2 WHERE id = 7").rowcount == 1
        merged = session.execute(
            "MERGE INTO t USING (SELECT 9 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) "
            "VALUES (s.id, 1) WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE"
        )
        assert merged.note == "1 row deleted, 1 inserted"
        found = session.execute("SELECT * FROM t").final_rows(PATIENCE_S).to_pylist()
        assert sorted(tuple(row.values()) for row in found) == [(7, 2), (9, 1)]
    finally:
        session.close()
