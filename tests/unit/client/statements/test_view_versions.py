"""Versions of materialized views: rows AS OF a checkpoint or a time, and the DIFF of two."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.api.locations import parse_location
from tests.harness.patience import await_that

NEWEST = "SELECT checkpoint FROM STATE OF JOB '{job}' LIMIT 1"


@dataclass(frozen=True)
class Versions:
    """A view in two versions: what their checkpoints are, their rows, and a time between them."""

    session: Session
    root: Path
    checkpoints: tuple[int, int]
    rows: tuple[list[tuple[object, ...]], list[tuple[object, ...]]]
    between: str


@contextmanager
def versions_in(root: Path, parallelism: str) -> Iterator[Versions]:
    (root / "t").mkdir()
    settings = {
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.num-retained": "1000",
        "execution.checkpointing.dir": str(root / "state"),
        "bounded.backend": "duckdb",
        "parallelism.default": parallelism,
    }
    session = Session(settings, state_dir=parse_location(str(root / "state")))
    try:
        session.execute(
            "CREATE TABLE t (k STRING, v DECIMAL(8, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', "
            f"'path' = '{root}/t', 'format' = 'csv', 'csv.header' = 'false', 'source.monitor-interval' = '20 ms')"
        )
        session.execute(
            "CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(v) AS s, MAX(ts) AS last FROM t GROUP BY k"
        )
        first = put(
            session, root, "a.csv", "a,5.00,2024-01-01 00:00:01\nb,7.50,2024-01-01 00:00:02\n", expected=2
        )
        before = rows(session, "SELECT * FROM sums")
        between = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 1))
        time.sleep(1.1)
        second = put(
            session,
            root,
            "b.csv",
            "a,-5.00,2024-01-01 00:00:03\nc,9.00,2024-01-01 00:00:04\nd,6.00,2024-01-01 00:00:05\n",
            expected=3,
        )
        after = rows(session, "SELECT * FROM sums")
        yield Versions(session, root, (first, second), (before, after), between)
    finally:
        session.close()


@pytest.fixture(scope="module", params=["1", "2"])
def versions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Versions]:
    with versions_in(tmp_path_factory.mktemp("versions"), request.param) as made:
        yield made


@pytest.fixture
def session(versions: Versions) -> Session:
    return versions.session


def rows(session: Session, query: str) -> list[tuple[object, ...]]:
    found = session.execute(query).final_rows()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def put(session: Session, root: Path, name: str, text: str, *, expected: int) -> int:
    """Add a file, wait until the view has its rows, and return the checkpoint that has them."""
    (root / "t" / f".{name}").write_text(text)
    (root / "t" / f".{name}").rename(root / "t" / name)
    await_that(lambda: len(rows(session, "SELECT * FROM sums WHERE s >= 5")) == expected)
    job = session.jobs()[-1].job_id
    return int(rows(session, NEWEST.format(job=job))[0][0])  # type: ignore[call-overload]


def test_a_version_has_the_rows_of_its_checkpoint(versions: Versions) -> None:
    session, (first, second), (before, after) = versions.session, versions.checkpoints, versions.rows
    assert before != after
    assert len(after) == 4
    assert rows(session, f"SELECT * FROM sums AS OF CHECKPOINT {first}") == before
    assert rows(session, f"SELECT * FROM sums AS OF CHECKPOINT {second} AS v WHERE v.s >= 0") == after
    assert rows(session, f"SELECT * FROM sums AS OF TIMESTAMP '{versions.between}Z'") == before
    names = session.execute(f"SELECT * FROM sums AS OF CHECKPOINT {first}").schema
    assert [str(field.type) for field in names] == ["STRING", "DECIMAL(18, 2)", "TIMESTAMP(3)"]
    # what has come and what has gone, with the columns of the view and the weight
    changed = rows(
        session, f"SELECT * FROM DIFF(sums AS OF CHECKPOINT {first}, sums AS OF CHECKPOINT {second})"
    )
    assert changed == sorted(
        [
            *((*row, -1) for row in before if row not in after),
            *((*row, 1) for row in after if row not in before),
        ]
    )
    assert (
        rows(session, f"SELECT * FROM DIFF(sums AS OF CHECKPOINT {first}, sums AS OF CHECKPOINT {first})")
        == []
    )
    # joined with the present rows
    joined = f"SELECT n.k, n.s - o.s FROM sums AS n JOIN sums AS OF CHECKPOINT {first} AS o ON n.k = o.k"
    assert [row[0] for row in rows(session, joined)] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT * FROM sums AS OF CHECKPOINT 999999", "STA-3062"),
        ("SELECT * FROM sums AS OF TIMESTAMP '2000-01-01 00:00:00'", "STA-3062"),
        ("SELECT * FROM sums AS OF TIMESTAMP 'noon'", "STA-3063"),
        ("SELECT * FROM t AS OF CHECKPOINT 1", "SQL-1303"),
        ("SELECT * FROM sums AS OF CHECKPOINT one", "SQL-1001"),
        ("SELECT * FROM DIFF(sums AS OF CHECKPOINT 1, sums)", "SQL-1001"),
    ],
)
def test_refused(session: Session, query: str, code: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(query)
    assert refused.value.code == code
    assert refused.value.span is not None
    if "999999" in query:
        assert "there are: " in (refused.value.hint or "")


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_a_view_is_explained_by_what_its_job_has_read(tmp_path: Path, parallelism: str) -> None:
    with versions_in(tmp_path, parallelism) as versions:
        session = versions.session
        session.execute(f"STOP JOB '{session.jobs()[-1].job_id}'")
        late = "a,100.00,2024-01-01 00:00:09\nz,1.00,2024-01-01 00:00:09\n"
        (tmp_path / "t" / "late.csv").write_text(late)
        made = session.execute("EXPLAIN WHY ROW (k = 'a') OF VIEW sums").final_rows().to_pylist()
        missing = session.execute("EXPLAIN WHY NOT ROW (k = 'z') OF VIEW sums")
    assert [row["position"].rpartition("/")[2] for row in made] == ["a.csv, row 0", "b.csv, row 0"]
    assert missing.note == "the job of the view has not read the only candidate at its last checkpoint"


def test_an_alias_may_be_called_of(session: Session) -> None:
    assert rows(session, "SELECT of.x FROM (VALUES (1)) AS of (x)") == [(1,)]
