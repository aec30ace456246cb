"""A real state directory, damaged: bits flipped, files cut, swapped, lost. Every damage is told, naming
the file, before anything leaves the job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.job.job import Job
from penstock.engine.job.job_state import JobState
from penstock.planner.statements.nodes import Insert, Query
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.main_job import rows_in, run, sample, script
from tests.streaming.three_acts.oracle import assert_same, expected

FLIPS = of_length(25, 200)
CUTS = of_length(3, 8)
SETTINGS = {
    "parallelism.default": "2",
    "execution.batch.max-rows": "50",
    "execution.checkpointing.interval": "20 ms",
}
DAMAGED = {"STA-3005", "STA-3006"}


class Stopped:
    """The main job stopped in mid-run: its state directory, what it had published, and ways to go on."""

    def __init__(self, root: Path) -> None:
        self.out, self.state, self.flights = root / "out", root / "state", sample(root / "flights", 100)
        self.session = Session(
            {"bounded.backend": "duckdb", "table.dml-sync": "false", **SETTINGS}, state_dir=self.state
        )
        # the sample in 8 s, of which it is given one or two
        text = script(self.flights, self.out, rows_per_second=400)
        statements = self.session.parse(text, "flights.sql")
        (insert,) = (statement for statement in statements if isinstance(statement.node, Insert))
        for statement in statements:
            if not isinstance(statement.node, Insert | Query):
                self.session.run(statement)
        self._insert = insert
        job = self.start()
        deadline = time.monotonic() + PATIENCE_S
        while len(list(self.out.glob("*.parquet"))) < 3:
            assert not job.wait(0.001), "the job ended before it could be stopped"
            assert time.monotonic() < deadline
        job.stop()
        assert job.wait(PATIENCE_S) and job.error is None, job.error
        self.published = self.files()
        assert rows_in(self.out).total() < expected("flights", self.flights).total(), (
            "it was to be stopped in mid-run"
        )

    def start(self) -> Job:
        """Go on from the state."""
        self.session.state.jobs._jobs_of_name.clear()  # as a new process would
        result = self.session.run(self._insert)
        assert result.job is not None
        return result.job

    def files(self) -> list[str]:
        """Return the names of the published files."""
        return sorted(path.name for path in self.out.glob("*.parquet"))

    def refusal(self) -> PenstockError | None:
        """Go on, and return what was told of the damage; None when the job went on over it (it is
        cancelled then).
        """
        try:
            job = self.start()
        except PenstockError as error:
            return error
        while not job.wait(0.01) and job.state is JobState.RUNNING and self.files() == self.published:
            pass
        job.cancel()
        job.wait(PATIENCE_S)
        return job.error

    def needed(self) -> list[Path]:
        """Return the files of the newest checkpoint. The rows staged beside it have all been given by now;
        ``test_staging`` damages such.
        """
        (directory,) = self.state.iterdir()
        newest = max(
            directory.glob("chk-*.manifest.json"), key=lambda path: int(path.name.split("-")[1].split(".")[0])
        )
        text = newest.read_text(encoding="utf-8")
        segments = [path for path in directory.glob("seg-*") if f'"{path.name}"' in text]
        return sorted([directory / "CURRENT", newest, *segments])


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    made = Stopped(tmp_path_factory.mktemp("rot"))
    yield made
    made.session.close()


def demand_refusal(stopped: Stopped, path: Path, what: str) -> None:
    error = stopped.refusal()
    assert error is not None, f"{path.name}: {what} was not seen"
    assert error.code in DAMAGED, f"{path.name}: {what} was told as {error}"
    assert path.name in f"{error.message} {error.detail}", f"{path.name}: {what} was told as {error}"
    assert stopped.files() == stopped.published, f"{path.name}: {what} was seen after rows had left"


def damage(stopped: Stopped, path: Path, change: Callable[[bytearray], str]) -> None:
    """Change a file's bytes, demand that this is refused, change them back."""
    whole = path.read_bytes()
    data = bytearray(whole)
    what = change(data)
    path.write_bytes(data)
    try:
        demand_refusal(stopped, path, what)
    finally:
        path.write_bytes(whole)


def flip(random: Random) -> Callable[[bytearray], str]:
    def change(data: bytearray) -> str:
        position, bit = random.randrange(len(data)), random.randrange(8)
        data[position] ^= 1 << bit
        return f"bit {bit} of byte {position} flipped"

    return change


def cut(random: Random) -> Callable[[bytearray], str]:
    def change(data: bytearray) -> str:
        length = random.randrange(len(data))
        del data[length:]
        return f"cut to {length} bytes"

    return change


@pytest.mark.longer
def test_every_flipped_bit_is_told(stopped: Stopped) -> None:
    random = Random(15)
    files = stopped.needed()
    assert {path.name.split("-")[0] for path in files} == {"CURRENT", "chk", "seg"}
    for number in range(FLIPS):
        damage(stopped, files[number % len(files)], flip(random))


@pytest.mark.longer
def test_every_cut_is_told(stopped: Stopped) -> None:
    random = Random(16)
    for path in stopped.needed():
        for _ in range(CUTS):
            damage(stopped, path, cut(random))


def test_lost_and_swapped_files_are_told(stopped: Stopped, tmp_path: Path) -> None:
    files = stopped.needed()
    for path in files:
        aside = path.rename(tmp_path / path.name)
        demand_refusal(stopped, path, "its loss")
        aside.rename(path)
    segments = sorted(
        (path for path in files if path.name.startswith("seg-")), key=lambda path: path.stat().st_size
    )
    first, second = segments[0], segments[-1]
    one, two = first.read_bytes(), second.read_bytes()
    assert one != two
    first.write_bytes(two)
    second.write_bytes(one)
    error = stopped.refusal()
    assert error is not None and error.code in DAMAGED
    first.write_bytes(one)
    second.write_bytes(two)


def test_undamaged_it_goes_on(stopped: Stopped) -> None:
    run(stopped.flights, stopped.out, SETTINGS, stopped.state)
    assert_same(rows_in(stopped.out), "flights", stopped.flights)
    assert stopped.files() != stopped.published
