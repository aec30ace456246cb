"""``penstock checkpoint``: what a state directory holds, read without a job; damage is seen and told."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import penstock
from penstock.repl.cli import main

SCRIPT = """
CREATE TABLE s (k INT, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3000', 'fields.k.min' = '1', 'fields.k.max' = '40', 'seed' = '7');
CREATE TABLE t (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'blackhole');
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of one finished job with its final checkpoint."""
    directory = tmp_path_factory.mktemp("state")
    settings = {
        "execution.checkpointing.dir": str(directory),
        "execution.checkpointing.interval": "10 ms",
        "table.dml-sync": "true",
    }
    with penstock.connect(settings=settings) as connection:
        connection.executescript(SCRIPT)
        connection.execute("INSERT INTO t SELECT k, COUNT(*) FROM s GROUP BY k")
    return directory


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        code = main(["checkpoint", *words])
    except SystemExit as end:
        code = int(str(end.code))
    out = capsys.readouterr()
    return code, out.out, out.err


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    code, out, err = told(capsys, *words, "--format", "jsonl")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def test_what_there_is(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = rows(capsys, "ls", str(state))
    assert {row["job"] for row in listed} == {"insert-into-t-1"}
    last = listed[-1]
    assert (last["current"], last["kind"]) == ("current", "final")
    shown = rows(capsys, "show", str(state))
    groups = [row for row in shown if row.get("kind") == "keyed" and "aggregate" in str(row["operator"])]
    assert [row["rows"] for row in groups] == [40]
    assert any('"finished": true' in str(row.get("item")) for row in shown)


def test_everything_is_verified(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {row["state"] for row in rows(capsys, "verify", str(state))} == {"intact"}


def test_states_as_parquet(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = rows(capsys, "export", str(state), "--to", str(tmp_path / "out"))
    tables = [pq.read_table(str(row["file"])) for row in written if str(row["file"]).endswith(".parquet")]
    assert [table.num_rows for table in tables] == [40]
    assert "key_group" in tables[0].column_names
    assert (tmp_path / "out" / "list_states.jsonl").read_text().count("\n") >= 1


def test_differences(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = [str(row["checkpoint"]) for row in rows(capsys, "ls", str(state))]
    assert {row["change"] for row in rows(capsys, "diff", str(state), numbers[-1], numbers[-1])} == {
        "same size"
    }


def test_damage_is_seen(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of the state with one bit flipped in a segment, and one without a segment at all."""
    job = next(path for path in state.iterdir() if path.is_dir())
    segment = max(
        (path for path in job.iterdir() if path.name.startswith("seg-")), key=lambda path: path.stat().st_size
    )
    for name, damage in (("flipped", True), ("gone", False)):
        copy = tmp_path / name / job.name
        copy.mkdir(parents=True)
        for path in job.iterdir():
            data = bytearray(path.read_bytes())
            if path == segment and damage:
                data[len(data) // 2] ^= 1
            if path != segment or damage:
                (copy / path.name).write_bytes(data)
        code, out, err = told(capsys, "verify", str(tmp_path / name))
        assert (code, "damaged" in out, "STA-3005" in err, segment.name in err) == (1, True, True, True)


def test_mistakes(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, message in (
        (["ls", str(tmp_path / "nowhere")], 1, "STA-3033"),
        (["ls", str(tmp_path)], 1, "there are no checkpoints"),
        (["show", str(state), "999"], 1, "STA-3031"),
        (["show", str(state), "--job", "insert-into-t-2"], 1, 'did you mean "insert-into-t-1"?'),
        (["diff", str(state), "1"], 2, "two checkpoints"),
        (["export", str(state)], 2, "export takes --to DIR"),
        (["verfy", str(state)], 2, 'did you mean "verify"?'),
    ):
        found, _, err = told(capsys, *words)
        assert found == code, words
        assert message in err, (words, err)
