"""Compaction: a checkpoint's files become one before anybody sees them, exactly once, wherever a process dies."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import INT, STRING
from penstock.client.session import Session
from penstock.engine.api.operator import RestoredFrom
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.filesystem import compaction
from penstock.engine.connectors.filesystem.commit_log import COMMITS, CommitLog
from penstock.engine.operators.sink import SinkOperator
from tests.harness.patience import PATIENCE_S
from tests.harness.reading import Taken, read, table_of
from tests.unit.engine.connectors.filesystem.commits import Died, barrier, dying, entries, logged
from tests.unit.engine.connectors.filesystem.test_sink import batch, ids, sink, staged, visible

COMPACT = {"auto-compaction": "true"}


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # a process dies here, not the machine: hundreds of flushes would only cost time
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def sinks(
    root: Path,
    parallelism: int,
    owner: str = "job1",
    restored: RestoredFrom | None = None,
    options: dict[str, str] = COMPACT,
) -> list[SinkOperator]:
    return [
        sink(ids(root, **options), subtask=i, parallelism=parallelism, owner=owner, restored=restored)
        for i in range(parallelism)
    ]


def complete(operators: list[SinkOperator], checkpoint: int) -> None:
    for operator in operators:
        operator.on_checkpoint_complete(checkpoint)


def parts(root: Path) -> list[Path]:
    return sorted(root.glob("**/part-*.parquet")) if root.exists() else []


def published(root: Path) -> list[Path]:
    return [path for path in parts(root) if ".penstock" not in str(path.relative_to(root))]


def ids_of(files: list[Path]) -> list[int]:
    return sorted(value for path in files for value in pq.read_table(path).column("id").to_pylist())


def left_over(root: Path) -> list[str]:
    """Return what is there besides published files and the entries of the log. The staging directory stays as
    long as a sink has not been closed, as here those of processes that died.
    """
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path not in published(root)
        and path.suffix != ".commit"
        and path not in (root / COMMITS, root / ".penstock.staging")
    ]


def test_a_checkpoint_of_many_subtasks_becomes_one_file(tmp_path: Path) -> None:
    operators = sinks(tmp_path, 4)
    for number, operator in enumerate(operators):
        operator.on_batch(batch(number, 10 + number), 0, Taken())
        operator.before_barrier(1, Taken())
    for operator in operators[:3]:
        operator.on_checkpoint_complete(1)
        # readers see all of a checkpoint or nothing
        assert visible(tmp_path) == [] and entries(tmp_path)[1:] == []
    operators[3].on_checkpoint_complete(1)
    assert visible(tmp_path) == [0, 1, 2, 3, 10, 11, 12, 13]
    (file,) = published(tmp_path)
    (entry,) = entries(tmp_path)[1:]
    assert [named.path for named in entry.files] == [file.name]
    assert (entry.rows, entry.files[0].length, len(entry.compacted)) == (8, file.stat().st_size, 4)
    # rows stay in the order of their subtasks
    assert pq.read_table(file).column("id").to_pylist() == [0, 10, 1, 11, 2, 12, 3, 13]
    for operator in operators:
        operator.close()
    assert left_over(tmp_path) == []


def test_files_are_merged_up_to_the_target_size(tmp_path: Path) -> None:
    """A file that is alone is published as it is."""
    (small, large), rows = sinks(tmp_path, 2, options={**COMPACT, "compaction.file-size": "4 kb"}), 5_000
    for _ in range(3):
        small.on_batch(batch(1), 0, Taken())
        small._writer._finish("")
    large.on_batch(batch(*range(rows)), 0, Taken())
    for operator in (small, large):
        operator.before_barrier(1, Taken())
    sizes = sorted(path.stat().st_size for path in staged(tmp_path))
    complete([small, large], 1)
    assert len(sizes) == 4 and sizes[-1] > 4096 > 3 * sizes[0]
    assert sorted(pq.read_metadata(path).num_rows for path in published(tmp_path)) == [3, rows]
    assert sizes[-1] in [path.stat().st_size for path in published(tmp_path)]


def test_partitions_are_merged_each_by_itself(tmp_path: Path) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "csv", **COMPACT}
    table = table_of({"k": STRING, "id": INT}, options, partitioned_by=["k"])
    operators = [sink(table, subtask=i, parallelism=2) for i in range(2)]
    for number, operator in enumerate(operators):
        rows = pa.record_batch({"k": ["a/b", None, "x" * 60], "id": pa.array([number, 10, 20], pa.int32())})
        operator.on_batch(Batch(rows), 0, Taken())
        operator.before_barrier(1, Taken())
    complete(operators, 1)
    assert Counter(str(path.parent.name) for path in tmp_path.glob("k=*/part-*")) == {
        "k=a%2Fb": 1,
        "k=__HIVE_DEFAULT_PARTITION__": 1,
        "k=" + "x" * 60: 1,
    }
    assert sorted(row["id"] for row in read(table)) == [0, 1, 10, 10, 20, 20]


@pytest.mark.parametrize(("parallelism", "after", "stride"), [(1, 2, 3), (2, 1, 4), (3, 2, 7)])
def test_wherever_a_process_dies(
    parallelism: int, after: int, stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with a stride of 1 all of the steps pass too, in half a minute
    wrong, steps = tried(tmp_path, parallelism, after, stride, monkeypatch)
    assert wrong == []
    assert steps > 25


def test_a_compaction_without_intents_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what a process had published before it died is merged and published again."""
    monkeypatch.setattr(compaction.Compaction, "_finish_intents", lambda self: None)
    assert tried(tmp_path, 2, 1, 3, monkeypatch)[0]


def tried(
    place: Path, parallelism: int, after: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], int]:
    """Die at every ``stride``-th step of two checkpoints' commits, go on at another parallelism, and return what was wrong."""
    wrong, step, whole = [], 0, False
    while not whole:
        root = place / str(step)
        operators = sinks(root, parallelism)
        pending, last = barrier_of_all(operators, 1, 1), 1
        with dying(step, monkeypatch) as count:
            try:
                operators[0].on_checkpoint_complete(1)
                pending, last = barrier_of_all(operators, 2, 10), 2
                complete(operators, 2)
                whole = True
            except Died:
                whole = False
        try:
            go_on(sinks(root, after), pending, last + 1)
        except PenstockError as error:
            wrong.append(f"step {step}: {error}")
        expected = [*range(1, 1 + parallelism), *(range(10, 10 + parallelism) if last == 2 else ())]
        expected += range(100, 100 + after)
        facts = (sorted(logged(root)), ids_of(published(root)), left_over(root))
        if facts != (expected, expected, []):
            wrong.append(f"step {step}: {facts}")
        step += stride
    return wrong, count[0]


def go_on(operators: list[SinkOperator], pending: list[dict[str, Any]], checkpoint: int) -> None:
    """Restore from a checkpoint, and go on to one more."""
    for operator in operators:
        operator.restore_items(pending)
    barrier_of_all(operators, checkpoint, 100)
    complete(operators[::-1], checkpoint)
    for operator in operators:
        operator.close()


def barrier_of_all(operators: list[SinkOperator], checkpoint: int, first: int) -> list[dict[str, Any]]:
    for subtask, operator in enumerate(operators):
        operator.on_batch(batch(first + subtask), 0, Taken())
        operator.before_barrier(checkpoint, Taken())
    return [item for operator in operators for item in operator.snapshot_items()]


def test_a_reader_that_takes_files_away_gets_each_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves every file it sees, also in the middle of a compaction whose process dies."""
    step, whole = 0, False
    while not whole:
        root, seen = tmp_path / str(step), []
        operators = sinks(root, 2)
        pending = barrier_of_all(operators, 1, 1)
        with dying(step, monkeypatch):
            try:
                complete(operators, 1)
                whole = True
            except Died:
                whole = False
        for _ in range(2):
            for path in published(root):
                seen += ids_of([path])
                path.unlink()
            again = sinks(root, 2)
            for operator in again:
                operator.restore_items(pending)
            pending = barrier_of_all(again, 2, 10) if len(pending) == 2 and not whole else pending
            complete(again, 2)
        seen += ids_of(published(root))
        assert Counter(value for value in seen if value < 10) == {1: 1, 2: 1}, step
        step += 2


@pytest.mark.parametrize("copies", [1, 3])
def test_a_job_and_its_copy_publish_what_was_pending_once(copies: int, tmp_path: Path) -> None:
    job = sinks(tmp_path, 2)
    pending = barrier_of_all(job, 1, 1)
    job[0].on_checkpoint_complete(1)
    copy = sinks(tmp_path, copies, "copy", RestoredFrom("job1", 1))
    for operator in copy:
        operator.restore_items(pending)
    for operator in copy:
        operator.before_barrier(2, Taken())
    complete(copy, 2)
    assert visible(tmp_path) == [1, 2]
    # the job lives, and comes to commit the same files
    job[1].on_checkpoint_complete(1)
    barrier_of_all(job, 2, 10)
    complete(job, 2)
    for operator in (*job, *copy):
        operator.close()
    assert visible(tmp_path) == sorted(logged(tmp_path)) == [1, 2, 10, 11]
    assert left_over(tmp_path) == []


def test_jobs_of_one_table_finish_what_a_dead_one_had_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, alive = sinks(tmp_path, 2), sinks(tmp_path, 2, "other")
    barrier_of_all(dead, 1, 1)
    with monkeypatch.context() as patched:
        patched.setattr(compaction.Compaction, "_publish", lambda *_: (_ for _ in ()).throw(Died()))
        with pytest.raises(Died):
            complete(dead, 1)
    assert visible(tmp_path) == []
    barrier_of_all(alive, 1, 50)
    complete(alive, 1)
    assert visible(tmp_path) == sorted(logged(tmp_path)) == [1, 2, 50, 51]


@pytest.mark.parametrize(("before", "now"), [(COMPACT, {}), ({}, COMPACT)])
def test_the_option_may_change_between_commit_and_restore(
    before: dict[str, str], now: dict[str, str], tmp_path: Path
) -> None:
    first = sinks(tmp_path, 2, options=before)
    pending = barrier_of_all(first, 1, 1)
    # one subtask has committed by the old option, the other commits by the new one
    first[0].on_checkpoint_complete(1)
    again = sinks(tmp_path, 2, restored=RestoredFrom("job1", 1), options=now)
    for operator in again:
        operator.restore_items(pending)
    barrier_of_all(again, 2, 10)
    complete(again, 2)
    for operator in again:
        operator.close()
    assert visible(tmp_path) == sorted(logged(tmp_path)) == [1, 2, 10, 11]
    assert left_over(tmp_path) == []


def test_an_entry_of_a_log_before_compaction_is_read(tmp_path: Path) -> None:
    (operator,) = sinks(tmp_path, 1, options={})
    barrier([operator], 1, 1)
    operator.on_checkpoint_complete(1)
    text = (tmp_path / COMMITS / f"{1:012d}.commit").read_text()
    assert "compacted" not in text
    assert CommitLog(tmp_path).read(1).compacted == ()


def test_a_job_of_several_subtasks_leaves_one_file(tmp_path: Path) -> None:
    for number in range(3):
        lines = "".join(f'{{"id": {number * 100 + i}}}\n' for i in range(100))
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{number}.jsonl").write_text(lines)
    for name, options, files in (("small", "", 3), ("merged", ", 'auto-compaction' = 'true'", 1)):
        run_job(tmp_path, name, options)
        written = list((tmp_path / name).glob("part-*"))
        rows = [json.loads(line)["id"] for path in written for line in path.read_text().splitlines()]
        assert sorted(rows) == list(range(300))
        assert len(written) == files
        assert not (tmp_path / name / ".penstock.staging").exists()


def run_job(root: Path, name: str, options: str) -> None:
    """Copy the files of a directory as a job of three subtasks."""
    table = "CREATE TABLE {} (id INT) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'json' {})"
    script = ";".join(
        (
            table.format("s", root / "in", ", 'source.replay' = 'true'"),
            table.format("out", root / name, options),
            "INSERT INTO out SELECT id FROM s",
        )
    )
    with closing(Session({"parallelism.default": "3"})) as session:
        for statement in session.parse(script):
            result = session.run(statement)
        assert result.job is not None
        assert result.job.wait(PATIENCE_S)
        assert result.job.error is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compaction.file-size": "1 mb"}, "no effect without auto-compaction"),
        ({**COMPACT, "format": "debezium-json"}, "cannot merge files of format debezium-json"),
        ({**COMPACT, "format": "csv", "csv.encoding": "utf-16"}, "cannot merge files of csv.encoding"),
        ({**COMPACT, "changelog.mode": "upsert"}, "cannot merge files of this changelog.mode"),
        ({**COMPACT, "changelog.mode": "retract"}, "cannot merge files of this changelog.mode"),
    ],
)
def test_what_cannot_be_merged_is_refused_at_planning(options: dict[str, str], message: str) -> None:
    given = {"connector": "filesystem", "path": "out", "format": "json", **options}
    words = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    with closing(Session({})) as session, pytest.raises(PenstockError, match=message) as raised:
        for statement in session.parse(
            f"CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) WITH ({words})"
        ):
            session.run(statement)
    assert raised.value.code == "SQL-1507"
    assert raised.value.hint


def test_stdout_has_no_files_to_merge() -> None:
    table = "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '-', 'format' = 'csv', 'auto-compaction' = 'true')"
    with closing(Session({})) as session, pytest.raises(PenstockError, match="stdout has no files to merge"):
        for statement in session.parse(f"{table}; INSERT INTO t SELECT 1"):
            session.run(statement)
