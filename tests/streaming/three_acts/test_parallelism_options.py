"""Tables that declare their own subtasks for reading and writing: the rows of one subtask, from the first to
the last act, although both the tables' numbers and the job's change from act to act.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pytest

from penstock.client.session import Session
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end

ROWS = 24_000
TABLE = f"""
    CREATE TABLE numbers (n BIGINT, k AS n %% 7, ts AS TIMESTAMPADD(SECOND, n, TIMESTAMP '2026-01-01 00:00:00'),
                          WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE)
    WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'splits' = '4', 'fields.n.kind' = 'sequence',
          'scan.parallelism' = '%d', 'scan.watermark.alignment.max-drift' = '2 h');
"""
QUERY = """
    SELECT k, window_start, COUNT(*) AS c, SUM(n) AS s FROM TUMBLE(TABLE numbers, DESCRIPTOR(ts), INTERVAL '1' HOUR)
    GROUP BY k, window_start;
"""
# the subtasks of the source, those of the job
ACTS = ((4, 1), (1, 2), (3, 2), (2, 1))


def expected() -> Counter[tuple[object, ...]]:
    rows = (
        duckdb.connect()
        .sql(
            f"SELECT n % 7, TIMESTAMP '2026-01-01' + (n // 3600) * INTERVAL 1 HOUR, COUNT(*), SUM(n)::BIGINT "
            f"FROM range({ROWS}) AS t(n) GROUP BY ALL"
        )
        .fetchall()
    )
    return Counter(rows)


@pytest.mark.parametrize("declared", [True, False], ids=["option", "hint"])
def test_the_acts_of_a_window(declared: bool, tmp_path: Path) -> None:
    folded = Folded()
    for number, (scan, parallelism) in enumerate(ACTS, 1):
        hint = f"SELECT /*+ PARALLELISM('numbers' = '{scan}') */"
        text = TABLE % scan + QUERY if declared else TABLE % 1 + QUERY.replace("SELECT", hint)
        script = Script("", {"execution.batch.max-rows": "500"}, text)
        try:
            job, channel = script.submit(parallelism, tmp_path, 50)
            source = {
                chain.parallelism for chain in script.graph(parallelism)[0].chains if chain.chain_id == 0
            }
            assert source == {scan}
            if number < len(ACTS):
                run_and_stop(job, channel, folded, ROWS // 6)
            else:
                run_to_end(job, channel, folded)
                assert rows_read(job) < ROWS, "the last act was to go on, not to begin again"
        finally:
            script.close()
    assert folded.rows == expected()


def test_as_many_files_as_a_sink_declares_and_one_row_each(tmp_path: Path) -> None:
    session = Session({"execution.runtime-mode": "streaming", "table.dml-sync": "true"})
    try:
        for statement in (
            "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'splits' = '4', "
            f"'number-of-rows' = '{ROWS}', 'fields.n.kind' = 'sequence', 'scan.parallelism' = '4')",
            "CREATE TABLE out (n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{tmp_path}', 'sink.parallelism' = '3', 'csv.header' = 'false')",
            "INSERT INTO out SELECT n FROM numbers",
        ):
            session.execute(statement)
        written = [path for path in tmp_path.iterdir() if path.suffix == ".csv"]
        assert len(written) == 3
        numbers = sorted(int(line) for path in written for line in path.read_text().split())
        assert numbers == list(range(ROWS))
    finally:
        session.close()
