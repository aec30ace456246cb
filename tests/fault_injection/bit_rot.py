"""Real checkpoints, damaged: every bit flipped, file cut, swapped, lost or spliced is told before use,
naming it and what is intact.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from random import Random

import penstock.engine.checkpoint.store as checkpoint_store
from penstock.catalog.errors import PenstockError
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.checkpoint.store import CURRENT, CheckpointStore
from penstock.engine.storage.local import LocalStorage
from tests.compatibility.archive import unpack
from tests.fault_injection.verdict import Verdict

JOBS = ("layered", "join")
DAMAGED = ("STA-3005", "STA-3006")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say how much."""
    parser.add_argument("--flips", type=int, default=400)
    parser.add_argument("--cuts", type=int, default=40)


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Damage the checkpoints of golden jobs; then once more, not looking at segments, which must be seen
    to miss damage.
    """
    for job in JOBS:
        unpacked = arguments.directory / "golden" / job
        unpack(f"1.1/{job}", unpacked)
        (unpacked / "state" / f"{job}-1").rename(arguments.directory / job)
    verdict.least = {
        "bits flipped": arguments.flips,
        "cut": arguments.cuts,
        "swapped": 1,
        "spliced": 1,
        "gone": 4,
        "unused": 1,
        "layers": 2,
    }
    for job in JOBS:
        Damage(arguments.directory, job, Random(arguments.seed), verdict).all(
            arguments.flips // 2, arguments.cuts // 2
        )
    checked = checkpoint_store.check_file
    blind = Verdict(verdict.card, verdict.seed)
    checkpoint_store.check_file = lambda storage, file: None
    try:
        Damage(arguments.directory, JOBS[0], Random(arguments.seed), blind).all(60, 0)
    finally:
        checkpoint_store.check_file = checked
    verdict.check(bool(blind.wrong), "without checksums nothing is missed: the experiment sees nothing")
    verdict.figures["missed without checksums"] = len(blind.wrong)


class Damage:
    """Damages one job's directory and puts it right again."""

    def __init__(self, root: Path, job: str, random: Random, verdict: Verdict) -> None:
        self._root, self._job, self._random, self._verdict = root / job, job, random, verdict
        self._other = root / next(other for other in JOBS if other != job)
        reader = CheckpointReader(LocalStorage(self._root))
        manifest = reader.manifest()
        verdict.coverage["layers"] = max(
            [verdict.coverage["layers"], *(line.increments for line in reader.states(manifest))]
        )
        self._segments = [self._root / file.name for file in manifest.files]
        self._needed = [
            self._root / CURRENT,
            self._root / f"chk-{manifest.checkpoint_id}.manifest.json",
            *self._segments,
        ]
        older = [line.manifest for line in reader.lines() if line.manifest is not None and not line.current]
        self._beside = {file.name for one in older for file in one.files}

    def all(self, flips: int, cuts: int) -> None:
        """Do everything."""
        for number in range(flips):
            self._change("bits flipped", self._needed[number % len(self._needed)], self._flip)
        for number in range(cuts):
            self._change(
                "cut",
                self._needed[number % len(self._needed)],
                lambda data: data[: self._random.randrange(len(data))],
            )
        for path in self._needed:
            self._change("gone", path, None)
        for one, other in itertools.islice(itertools.combinations(self._segments, 2), 8):
            whole, foreign = one.read_bytes(), other.read_bytes()
            other.write_bytes(whole)
            if whole != foreign:
                self._change("swapped", one, lambda data, foreign=foreign: foreign, also=other)
            other.write_bytes(foreign)
        for path, foreign in zip(
            self._segments, itertools.cycle(sorted(self._other.glob("seg-*"))), strict=False
        ):
            self._change(
                "spliced",
                path,
                lambda data, foreign=foreign: data[: len(data) // 2] + foreign.read_bytes()[len(data) // 2 :],
            )
        unused = self._root / "notes.txt"
        unused.write_text("mine", encoding="utf-8")
        error = self._refusal()
        self._verdict.coverage["unused"] += error is None
        self._verdict.check(error is None, f"undamaged, it is refused: {error}")
        self._verdict.check(unused.exists(), "a file that is not ours was deleted")

    def _flip(self, data: bytes) -> bytes:
        place = self._random.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << self._random.randrange(8)]) + data[place + 1 :]

    def _change(
        self, what: str, path: Path, change: Callable[[bytes], bytes] | None, also: Path | None = None
    ) -> None:
        whole = path.read_bytes()
        if change is None:
            path.unlink()
        else:
            path.write_bytes(change(whole))
        error = self._refusal()
        path.write_bytes(whole)
        self._verdict.coverage[what] += 1
        if not self._verdict.check(
            error is not None and error.code in DAMAGED, f"{self._job}: {path.name} {what}: told as {error}"
        ):
            return
        assert error is not None
        told = f"{error.message} {error.detail} {error.hint}"
        names = [path.name] if also is None else [path.name, also.name]
        self._verdict.check(
            any(name in told for name in names), f"{self._job}: {path.name} {what}: not named in {told}"
        )
        intact = not {path.name, *([] if also is None else [also.name])} & self._beside
        said = " is intact" in (error.hint or "")
        self._verdict.check(
            said or error.code == "STA-3006" or not (self._beside and intact),
            f"{self._job}: {path.name} {what}: what is intact is not said",
        )

    def _refusal(self) -> PenstockError | None:
        store = CheckpointStore(LocalStorage(self._root), f"{self._job}-1")
        try:
            store.latest()
        except PenstockError as error:
            return error
        return None
