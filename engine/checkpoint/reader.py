"""Reads the checkpoints of a job without running it: lists them, verifies them, and returns their state. It
locks and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.checkpoint.manifest import Manifest, check_version, decode_manifest, unseal
from penstock.engine.checkpoint.snapshot_format import check_file, damaged, read_items, read_pieces
from penstock.engine.checkpoint.store import CURRENT
from penstock.engine.storage.storage import Storage

# The number is the checkpoint's id.
_MANIFEST = re.compile(r"chk-(\d+)\.manifest\.json")


@dataclass(frozen=True)
class CheckpointLine:
    """One checkpoint of a list. ``error``: why its manifest cannot be read."""

    checkpoint_id: int
    current: bool
    manifest: Manifest | None
    error: PenstockError | None = None


@dataclass(frozen=True)
class StateLine:
    """One state of one operator over all its subtasks. ``rows``: items of a list, or entries of a keyed
    state, including those that later increments supersede.

    ``increments``: the highest number of any subtask. ``new_bytes``: those written for this checkpoint.
    """

    operator_id: str
    operator: str
    state: str
    keyed: bool
    rows: int
    size_bytes: int
    new_bytes: int
    increments: int


class CheckpointReader:
    """Reads the checkpoints in one job's directory. STA-3005 for damage, STA-3006 for a newer format,
    STA-3031 for a missing checkpoint.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def is_job(self) -> bool:
        """Whether the directory has checkpoints."""
        return any(_MANIFEST.fullmatch(name) for name in self._storage.list())

    def lines(self) -> list[CheckpointLine]:
        """Return all checkpoints, oldest first."""
        try:
            current = self._current()
        except PenstockError:
            # a damaged CURRENT must not hide the list
            current = None
        lines = []
        for number in self._numbers():
            try:
                lines.append(CheckpointLine(number, number == current, self._read(number)))
            except FileNotFoundError:  # superseded and deleted since it was listed: its job runs
                continue
            except PenstockError as error:
                lines.append(CheckpointLine(number, number == current, None, error))
        return lines

    def manifest(self, number: int | None = None) -> Manifest:
        """Return one checkpoint's manifest, by default the current one's."""
        if number is None:
            number = self._current()
        if number is None or number not in self._numbers():
            known = ", ".join(map(str, self._numbers())) or "none"
            what = "no current checkpoint" if number is None else f"no checkpoint {number}"
            raise PenstockError(
                "STA-3031",
                f"there is {what} in {self._storage}",
                hint=f"there are: {known}",
                kind=Kind.USER,
                sqlstate="42704",
            )
        return self._read(number)

    def damage(self, manifest: Manifest) -> list[PenstockError]:
        """Read every byte of a checkpoint and return an error per damaged file."""
        # A damaged file is one line of the report; the others are read all the same.
        errors = []
        for file in manifest.files:
            try:
                check_file(self._storage, file)
            except FileNotFoundError:
                errors.append(
                    damaged(file.name, f"the file is gone; checkpoint {manifest.checkpoint_id} needs it")
                )
            except PenstockError as error:
                errors.append(error)
        return errors

    def current_damage(self) -> PenstockError | None:
        """Return the damage of CURRENT, the file that names the current checkpoint."""
        try:
            self._current()
        except PenstockError as error:
            return error
        return None

    def states(self, manifest: Manifest) -> list[StateLine]:
        """Return the states of a checkpoint, by operator in the order of the plan."""
        sums: dict[tuple[str, str, bool], list[int]] = {}
        new = f"-c{manifest.checkpoint_id}-"
        for task in manifest.tasks:
            lines = [
                (part.key, True, sum(group.rows for group in part.groups), part.length, part.file)
                for part in task.keyed
            ]
            lines += [
                ((part.operator_id, part.state), False, part.count, part.length, part.file)
                for part in task.items
            ]
            for key, keyed, rows, length, file in lines:
                # Rows, bytes, bytes written for this checkpoint, the most increments of a subtask.
                total = sums.setdefault((*key, keyed), [0, 0, 0, 0])
                total[0] += rows
                total[1] += length
                # file names carry the checkpoint that wrote them
                total[2] += length if new in file else 0
                total[3] = max(total[3], len(task.increments(*key)))
        names = {operator.operator_id: operator.name for operator in manifest.operators}
        order = {operator_id: position for position, operator_id in enumerate(names)}
        state_lines = [
            StateLine(operator_id, names.get(operator_id, "?"), state, keyed, *total)
            for (operator_id, state, keyed), total in sums.items()
        ]
        return sorted(state_lines, key=lambda line: (order.get(line.operator_id, len(order)), line.state))

    def items(self, manifest: Manifest) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield operator id, state and item of every list state: split positions, watermarks, pending
        commits.
        """
        for task in sorted(manifest.tasks, key=lambda task: task.task):
            for part in task.items:
                for item in read_items(self._storage, task.file_of(part), part):
                    yield part.operator_id, part.state, item

    def table(self, manifest: Manifest, operator_id: str, state: str) -> pa.Table | None:
        """Return a keyed state of all subtasks with ``key_group`` as its first column; ``None`` when it is
        empty.
        """
        tables = list(self.pieces(manifest, operator_id, state))
        return pa.concat_tables(tables) if tables else None

    def pieces(self, manifest: Manifest, operator_id: str, state: str) -> Iterator[pa.Table]:
        """Yield a keyed state of all subtasks piece by piece, each read on demand; nothing when it is
        empty.
        """
        for task in sorted(manifest.tasks, key=lambda task: task.task):
            increments = task.increments(operator_id, state)
            if increments:
                yield from read_pieces(self._storage, task, increments, 0, manifest.max_parallelism)

    def _numbers(self) -> list[int]:
        return sorted(int(match[1]) for name in self._storage.list() if (match := _MANIFEST.fullmatch(name)))

    def _current(self) -> int | None:
        if CURRENT not in self._storage.list():
            return None
        fields = unseal(CURRENT, self._storage.read(CURRENT))
        check_version(CURRENT, fields)
        # CURRENT names a file; only the pattern of a manifest is followed.
        match = _MANIFEST.fullmatch(str(fields.get("manifest")))
        if match is None:
            raise damaged(CURRENT, "it names no checkpoint")
        return int(match[1])

    def _read(self, number: int) -> Manifest:
        name = f"chk-{number}.manifest.json"
        return decode_manifest(name, self._storage.read(name))
