"""A job stopped in mid-run goes on with changed SQL: what means the same keeps its state, what would
answer wrongly is refused naming operators.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.planner.logical.window_table import WindowTable
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.source_gate import gated

ROWS = 20_000
SOURCE = f"""
CREATE TABLE %s (id BIGINT, k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen',
  'number-of-rows' = '{ROWS}', 'rows-per-second' = '%d', 'splits' = '2', 'seed' = '%d', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1',
  'fields.id.end' = '{ROWS}', 'fields.k.min' = '1', 'fields.k.max' = '9', 'fields.ts.kind' = 'sequence', 'fields.ts.start' = '2020-01-01 00:00:00',
  'fields.ts.step' = '100 ms');
"""
ROWS_OF = "CREATE TABLE rows_of (id BIGINT, k INT%s) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '%s/rows');"
COUNTS_OF = "CREATE TABLE %s (k INT, n BIGINT, ids BIGINT%s) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '%s/%s');"
PLAIN = "INSERT INTO rows_of SELECT id, k FROM s;"
COUNT = "INSERT INTO %s SELECT %s FROM TABLE(TUMBLE(TABLE %s, DESCRIPTOR(ts), INTERVAL '%d' MINUTE)) GROUP BY %s, window_start, window_end;"
COUNTED = COUNT % ("counts", "k, COUNT(*), SUM(id)", "s", 10, "k")
BOTH = "EXECUTE STATEMENT SET BEGIN {} {} END;"
FLAG = "execution.state-recovery.ignore-unclaimed-state"


class Kept:
    """A job with its state and its output."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def opened(
        self, *, rate: int = 1_000_000, seed: int = 5, more: str = "", counts_more: str = "", **settings: str
    ) -> Connection:
        made = penstock.connect(
            settings={
                "execution.checkpointing.dir": str(self.root / "state"),
                "execution.checkpointing.interval": "20 ms",
                "execution.batch.max-rows": "500",
                "pipeline.name": "job",
                "table.dml-sync": "false",
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        tables = SOURCE % ("s", rate, seed) + SOURCE % ("s2", rate, 7) + ROWS_OF % (more, self.root)
        made.executescript(
            tables
            + COUNTS_OF % ("counts", counts_more, self.root, "counts")
            + COUNTS_OF % ("others", "", self.root, "others")
        )
        return made

    def stop_in_mid_run(self, statement: str) -> None:
        with gated(ROWS // 2), self.opened(rate=20_000) as made:
            job = made.execute(statement).job
            assert job is not None
            await_that(
                lambda: job.metrics().rows_in >= ROWS // 8 or job.state.terminal, "an eighth of the rows"
            )
            made.execute(f"STOP JOB '{job.job_id}'")
            assert job.wait(PATIENCE_S) and job.error is None

    def go_on(self, made: Connection, statement: str) -> list[str]:
        """Run to the end; return what became of the state."""
        with made:
            made.execute(f"SET '{FLAG}' = 'true'")
            job = made.execute(statement).job
            assert job is not None and job.wait(PATIENCE_S) and job.error is None, job and job.error
            return [str(change) for change in job.state_diff.changes] if job.state_diff is not None else []

    def refused(self, statement: str, before: str = "", **opened: Any) -> tuple[PenstockError, PenstockError]:
        """Return the errors without and with the flag."""
        errors = []
        for value in ("false", "true"):
            with self.opened(**opened) as made:
                made.executescript(f"SET '{FLAG}' = '{value}'; {before}")
                with pytest.raises(penstock.Error) as caught:
                    made.execute(statement)
                errors.append(caught.value)
        return errors[0], errors[1]

    def column(self, name: str, column: str) -> list[int | None]:
        return (
            ds.dataset(self.root / name, format="parquet", exclude_invalid_files=False)
            .to_table([column])[column]
            .to_pylist()
        )

    def total(self, name: str, column: str) -> int:
        return pc.sum(ds.dataset(self.root / name, format="parquet").to_table([column])[column]).as_py() or 0


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both jobs in one, stopped in mid-run."""
    root = tmp_path_factory.mktemp("changed") / "kept"
    Kept(root).stop_in_mid_run(BOTH.format(PLAIN, COUNTED))
    return root


@pytest.fixture
def kept(stopped: Path, tmp_path: Path) -> Kept:
    """A copy of it: paths in its options stay those of the original, whose files are put back."""
    spare = tmp_path / "spare"
    shutil.copytree(stopped, spare)
    yield Kept(stopped)
    shutil.rmtree(stopped)
    shutil.copytree(spare, stopped)


def test_a_job_that_begins_anew_beside_one_of_its_table_says_so(kept: Kept) -> None:
    with kept.opened(pipeline_name="") as made:
        into_same, into_other = (
            made.execute(text).job
            for text in (PLAIN, COUNT % ("others", "k, COUNT(*), SUM(id)", "s", 10, "k"))
        )
        assert into_same is not None and into_other is not None
        (told,) = into_same.start_notes
        assert (
            told.startswith("begins anew; job job-1 has written to rows_of and has not finished")
            and "'pipeline.name' = 'job'" in told
        )
        assert into_other.start_notes == ()
        for job in (into_same, into_other):
            job.cancel()
    with kept.opened(pipeline_name="job") as made:
        first = made.execute(BOTH.format(PLAIN, COUNTED)).job
        assert first is not None and first.start_notes == ()
        again = made.execute(PLAIN).job
        assert again is not None and again.start_notes == ()  # beside one that runs
        again.cancel()
        first.stop()
        assert first.wait(PATIENCE_S)


@pytest.mark.parametrize(("zone", "told"), [("Asia/Tokyo", 1), ("UTC", 0)])
def test_a_job_that_resumes_in_another_time_zone_says_so(kept: Kept, zone: str, told: int) -> None:
    with kept.opened() as made:
        made.execute(f"SET 'table.local-time-zone' = '{zone}'")
        job = made.execute(BOTH.format(PLAIN, COUNTED)).job
        assert job is not None and len(job.start_notes) == told
        assert all(f"in the time zone {zone}; until now it was UTC" in note for note in job.start_notes)
        job.cancel()


def test_a_statement_said_again_after_a_stop_begins_anew_and_says_so(kept: Kept) -> None:
    with gated(ROWS // 2), kept.opened(rate=20_000) as made:
        first = made.execute(BOTH.format(PLAIN, COUNTED)).job
        assert first is not None
        made.execute(f"STOP JOB '{first.job_id}'")
        assert first.wait(PATIENCE_S) and first.error is None
        again = made.execute(PLAIN).job
        assert (
            again is not None
            and "resumes from its state as the 1. of that name in another session" in again.start_notes[0]
        )


def test_unchanged_it_goes_on_exactly(kept: Kept) -> None:
    assert kept.go_on(kept.opened(), BOTH.format(PLAIN, COUNTED)) == []
    assert sorted(kept.column("rows", "id")) == list(range(1, ROWS + 1))
    assert (kept.total("counts", "n"), kept.total("counts", "ids")) == (ROWS, ROWS * (ROWS + 1) // 2)


def test_said_again_as_the_refusal_says_it_goes_on_with_the_same_state(kept: Kept) -> None:
    plain = "INSERT INTO rows_of SELECT id, k FROM s WHERE id > 0;"
    made = kept.opened()
    for _ in range(2):
        with pytest.raises(penstock.Error, match="STA-3007"):
            made.execute(BOTH.format(plain, COUNTED))
    assert {change.split(":")[0] for change in kept.go_on(made, BOTH.format(plain, COUNTED))} == {"kept"}
    assert sorted(kept.column("rows", "id")) == list(range(1, ROWS + 1))
    assert [path.name for path in (kept.root / "state").iterdir()] == ["job-1"]


def test_columns_added_at_the_end_keep_all_state(kept: Kept) -> None:
    """Above the aggregate, and in the rows of a query without any; at another parallelism."""
    made = kept.opened(more=", twice INT", counts_more=", twice BIGINT", parallelism_default="2")
    plain = "INSERT INTO rows_of SELECT id, k, k * 2 FROM s;"
    counted = COUNT % ("counts", "k, COUNT(*), SUM(id), COUNT(*) * 2", "s", 10, "k")
    changes = kept.go_on(made, BOTH.format(plain, counted))
    assert {change.split(":")[0] for change in changes} == {"kept"}
    assert any("tumble aggregate" in change and "was" not in change for change in changes)
    assert sum("resumes from its position" in change for change in changes) == 2  # the sinks
    assert sorted(kept.column("rows", "id")) == list(range(1, ROWS + 1))
    assert (kept.total("counts", "n"), kept.total("counts", "ids")) == (ROWS, ROWS * (ROWS + 1) // 2)
    newest = ds.dataset(
        max((kept.root / "rows").glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    ).to_table()
    assert newest["twice"].to_pylist() == [k * 2 for k in newest["k"].to_pylist()]


def test_a_key_cast_to_a_wider_type_is_migrated(kept: Kept) -> None:
    wider = COUNT % (
        "counts",
        "CAST(CAST(k AS BIGINT) AS INT), COUNT(*), SUM(id)",
        "s",
        10,
        "CAST(k AS BIGINT)",
    )
    changes = kept.go_on(kept.opened(parallelism_default="2"), BOTH.format(PLAIN, wider))
    assert any(change.startswith("migrated: ") and " INT is BIGINT" in change for change in changes)
    assert (kept.total("counts", "n"), kept.total("counts", "ids")) == (ROWS, ROWS * (ROWS + 1) // 2)


def test_a_filter_added_holds_from_now_on(kept: Kept) -> None:
    before = sorted(kept.column("rows", "id"))
    kept.go_on(
        kept.opened(), BOTH.format("INSERT INTO rows_of SELECT id, k FROM s WHERE MOD(id, 2) = 0;", COUNTED)
    )
    after = kept.column("rows", "id")
    assert sorted(after) == sorted({*before, *range(2, ROWS + 1, 2)})


def test_an_operator_removed_is_dropped_the_others_go_on(kept: Kept) -> None:
    rows = sorted(kept.column("rows", "id"))
    changes = kept.go_on(kept.opened(), COUNTED)
    assert any(
        change.startswith("dropped: ") and "rows_of" in change and "not repeated" in change
        for change in changes
    )
    assert (kept.total("counts", "n"), kept.total("counts", "ids")) == (ROWS, ROWS * (ROWS + 1) // 2)
    assert sorted(kept.column("rows", "id")) == rows


def test_an_operator_added_over_a_source_of_its_own_begins_at_the_beginning(kept: Kept) -> None:
    added = COUNT % ("others", "k, COUNT(*), SUM(id)", "s2", 10, "k")
    changes = kept.go_on(kept.opened(), f"EXECUTE STATEMENT SET BEGIN {PLAIN} {COUNTED} {added} END;")
    assert any(change.startswith("rebuilt from the beginning: ") for change in changes)
    assert [kept.total(name, "n") for name in ("counts", "others")] == [ROWS, ROWS]
    assert sorted(kept.column("rows", "id")) == list(range(1, ROWS + 1))


REFUSED = {
    "key changed": (COUNT % ("counts", "MOD(k, 2), COUNT(*), SUM(id)", "s", 10, "MOD(k, 2)"), {}),
    "aggregate changed": (COUNT % ("counts", "k, COUNT(*), MAX(id)", "s", 10, "k"), {}),
    "window changed": (COUNT % ("counts", "k, COUNT(*), SUM(id)", "s", 20, "k"), {}),
    "source swapped": (COUNTED, {"seed": 6}),
    "table swapped": (COUNT % ("counts", "k, COUNT(*), SUM(id)", "s2", 10, "k"), {}),
    "type narrowed": (
        COUNT
        % ("counts", "CAST(CAST(k AS SMALLINT) AS INT), COUNT(*), SUM(id)", "s", 10, "CAST(k AS SMALLINT)"),
        {},
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_answer_wrongly_is_refused(stopped: Path, what: str) -> None:
    statement, changed = REFUSED[what]
    kept = Kept(stopped)
    without, with_flag = kept.refused(BOTH.format(PLAIN, statement), **changed)
    assert (without.code, with_flag.code) == ("STA-3007", "STA-3043")
    assert "has no state in it, and " in (with_flag.detail or "") and "has rows of the former query" in (
        with_flag.detail or ""
    )
    assert "dropped: " in (without.detail or "") and "BIGINT" in (with_flag.detail or "")
    assert "--allow-changed-query" not in (without.hint or "")


def test_a_new_reader_of_a_source_that_goes_on_is_refused(stopped: Path) -> None:
    kept = Kept(stopped)
    added = COUNT % ("others", "k, COUNT(*), SUM(id)", "s", 10, "k")
    _, refused = kept.refused(f"EXECUTE STATEMENT SET BEGIN {PLAIN} {COUNTED} {added} END;")
    assert refused.code == "STA-3043" and "needs all rows of" in (refused.detail or "")


def test_without_the_flag_it_says_what_the_flag_would_do(stopped: Path) -> None:
    kept = Kept(stopped)
    with kept.opened() as made, pytest.raises(penstock.Error) as caught:
        made.execute(COUNTED)
    assert "STA-3007" in str(caught.value)
    assert "--allow-changed-query" in str(caught.value) and "kept: " in str(caught.value)


def test_the_number_of_key_groups_stays(stopped: Path) -> None:
    kept = Kept(stopped)
    refusals = kept.refused(BOTH.format(PLAIN, COUNTED), "SET 'pipeline.max-parallelism' = '64';")
    assert [error.code for error in refusals] == ["STA-3008", "STA-3008"]


SESSIONS = "INSERT INTO rows_of SELECT id, k FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '%d' MINUTE);"


@pytest.mark.parametrize("counted", [True, False])
def test_rows_of_open_sessions_are_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    """No session closes before the end, so all rows are in them. Engines before this one did not count them
    among the operators with state: their checkpoints are resumed, too.
    """
    kept = Kept(tmp_path)
    with monkeypatch.context() as former:
        if not counted:
            former.setattr(WindowTable, "keeps_state", False)
        kept.stop_in_mid_run(SESSIONS % 60)
    first, second = kept.refused(SESSIONS % 30)
    assert (first.code, second.code) == ("STA-3007", "STA-3043")
    assert "dropped: session windows" in str(first)
    assert kept.go_on(kept.opened(), SESSIONS % 60) == []
    assert sorted(kept.column("rows", "id")) == list(range(1, ROWS + 1))
