"""``penstock checkpoint ls | show | verify | diff | export``: what a state directory holds, read without
running a job.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.engine.api.locations import Location, parse_location
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.reader import CheckpointReader, StateLine
from penstock.engine.storage.locations import exists, folders_in, storage_at
from penstock.repl.launch.parser import EXIT_OK, EXIT_QUERY, Parser
from penstock.repl.launch.session_factory import configured, messages_for, printer_for

Print = Callable[[Sequence[str], Sequence[tuple[Any, ...]]], None]


def run_checkpoint(arguments: argparse.Namespace, parser: Parser) -> int:
    """Run one checkpoint command and return the exit code: 1 when something is damaged or not there."""
    messages = messages_for(arguments)
    try:
        printer = printer_for(configured(arguments, parser), messages)

        def show(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
            # Of no rows zip makes no columns: each is empty then, and of type STRING.
            values = list(zip(*rows, strict=True)) or [()] * len(columns)
            arrays = [pa.array(column, None if column else pa.string()) for column in values]
            printer.table(
                pa.table(arrays, names=list(columns)),
                ["BIGINT" if pa.types.is_integer(array.type) else "STRING" for array in arrays],
            )

        # An action returns the damage it meets, so that what is intact is still shown.
        errors = _COMMANDS[arguments.action](arguments, show, messages.note)
    except PenstockError as refusal:
        errors = [refusal]
    for error in errors:
        messages.error(error)
    return EXIT_QUERY if errors else EXIT_OK


def _list(arguments: argparse.Namespace, show: Print, note: Callable[[str], None]) -> list[PenstockError]:
    rows: list[tuple[Any, ...]] = []
    errors = []
    for job, reader in _readers(parse_location(arguments.directory), arguments.job):
        for line in reader.lines():
            mark = "current" if line.current else None
            # A damaged manifest has a row too: the list has every checkpoint.
            if line.manifest is None:
                assert line.error is not None
                errors.append(line.error)
                rows.append((job, line.checkpoint_id, mark, "damaged", None, None, None, None, None))
                continue
            manifest = line.manifest
            sizes = (len(manifest.tasks), len(manifest.files), manifest.size_bytes, manifest.new_bytes)
            rows.append((job, line.checkpoint_id, mark, manifest.kind, _moment(manifest), *sizes))
    show(("job", "checkpoint", "current", "kind", "taken", "tasks", "files", "bytes", "new bytes"), rows)
    return errors


def _show(arguments: argparse.Namespace, show: Print, note: Callable[[str], None]) -> list[PenstockError]:
    job, reader = _reader(arguments)
    manifest = reader.manifest(arguments.checkpoint)
    parallelism = {operator.operator_id: operator.parallelism for operator in manifest.operators}
    note(
        f"job {job}, checkpoint {manifest.checkpoint_id} ({manifest.kind}), taken "
        f"{_moment(manifest)}, epoch {manifest.epoch}"
    )
    note(
        f"{manifest.max_parallelism} key groups, {len(manifest.operators)} operators, "
        f"{len(manifest.ended)} of {len(manifest.tasks)} tasks ended"
    )
    rows = [
        (
            line.operator,
            line.operator_id,
            parallelism.get(line.operator_id),
            line.state,
            "keyed" if line.keyed else "list",
            line.rows,
            line.size_bytes,
            line.new_bytes,
            # Only keyed states are written in increments.
            line.increments if line.keyed else None,
        )
        for line in reader.states(manifest)
    ]
    show(("operator", "id", "parallelism", "state", "kind", "rows", "bytes", "new bytes", "layers"), rows)
    names = {operator.operator_id: operator.name for operator in manifest.operators}
    items = [
        (names.get(operator, operator), state, json.dumps(item, sort_keys=True))
        for operator, state, item in reader.items(manifest)
    ]
    if items:
        show(("operator", "state", "item"), items)
    return []


def _verify(arguments: argparse.Namespace, show: Print, note: Callable[[str], None]) -> list[PenstockError]:
    rows, errors = [], []
    for job, reader in _readers(parse_location(arguments.directory), arguments.job):
        # CURRENT names the checkpoint that a job resumes from, and is a part of none.
        if (broken := reader.current_damage()) is not None:
            errors.append(broken)
        for line in reader.lines():
            # One checkpoint was named: the others are not read.
            if arguments.checkpoint not in (None, line.checkpoint_id):
                continue
            found = (
                [line.error]
                if line.error is not None
                else reader.damage(line.manifest)
                if line.manifest is not None
                else []
            )
            size = 0 if line.manifest is None else line.manifest.size_bytes
            rows.append((job, line.checkpoint_id, "damaged" if found else "intact", size))
            errors += [error for error in found if error is not None]
    show(("job", "checkpoint", "state", "bytes read"), rows)
    return errors


def _diff(arguments: argparse.Namespace, show: Print, note: Callable[[str], None]) -> list[PenstockError]:
    _, reader = _reader(arguments)
    before, after = (reader.manifest(number) for number in (arguments.first, arguments.second))
    old, new = (
        {(s.operator_id, s.state): s for s in reader.states(manifest)} for manifest in (before, after)
    )
    rows = []
    # States of the second checkpoint in the order of its plan, then those that only the first one has.
    for key in [*new, *(key for key in old if key not in new)]:
        one, other = old.get(key), new.get(key)
        named = other or one
        assert named is not None
        rows.append((named.operator, named.state, _change(one, other), *_counts(one, other)))
    show(("operator", "state", "change", "rows before", "rows after", "bytes before", "bytes after"), rows)
    return []


def _change(one: StateLine | None, other: StateLine | None) -> str:
    if one is None:
        return "added"
    if other is None:
        return "dropped"
    # Only counts are compared: equal ones do not prove that the rows are equal.
    return "same size" if (one.rows, one.size_bytes) == (other.rows, other.size_bytes) else "changed"


def _counts(
    one: StateLine | None, other: StateLine | None
) -> tuple[int | None, int | None, int | None, int | None]:
    rows = tuple(None if line is None else line.rows for line in (one, other))
    sizes = tuple(None if line is None else line.size_bytes for line in (one, other))
    return rows[0], rows[1], sizes[0], sizes[1]


def _export(arguments: argparse.Namespace, show: Print, note: Callable[[str], None]) -> list[PenstockError]:
    _, reader = _reader(arguments)
    manifest, target = reader.manifest(arguments.checkpoint), Path(arguments.to)
    # The whole checkpoint is verified before the first file is written: a damaged one exports nothing.
    damage = reader.damage(manifest)
    if damage:
        return damage
    rows: list[tuple[Any, ...]] = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for line in reader.states(manifest):
            # List states go into one file of JSON lines, below.
            if not line.keyed:
                continue
            table = reader.table(manifest, line.operator_id, line.state)
            # An empty state has no file.
            if table is not None:
                # One file a state, with the rows of all subtasks; the first column is key_group.
                path = target / f"{line.operator_id}.{line.state}.parquet"
                pq.write_table(table, path)
                rows.append((line.operator, line.state, table.num_rows, str(path)))
        items = [
            {"operator": operator, "state": state, "item": item}
            for operator, state, item in reader.items(manifest)
        ]
        # One object a line: {"item": .., "operator": .., "state": ..}.
        path = target / "list_states.jsonl"
        path.write_text("".join(json.dumps(item, sort_keys=True) + "\n" for item in items), encoding="utf-8")
        rows.append(("all operators", "list states", len(items), str(path)))
    except OSError as error:
        message = f"the state cannot be written to {target}: {error.strerror or error}"
        return [PenstockError("STA-3032", message, kind=Kind.EXTERNAL, sqlstate="58030")]
    show(("operator", "state", "rows", "file"), rows)
    return []


_COMMANDS = {"ls": _list, "show": _show, "verify": _verify, "diff": _diff, "export": _export}


def _moment(manifest: Manifest) -> str:
    # UTC: two machines print the same text of one checkpoint.
    return datetime.fromtimestamp(manifest.created_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _readers(directory: Location, job: str | None) -> list[tuple[str, CheckpointReader]]:
    """Return the jobs whose checkpoints lie in a state directory, or in a job's own; STA-3033 when there
    are none.
    """
    if not exists(directory):
        raise PenstockError(
            "STA-3033",
            f"there is no directory {directory}",
            hint="give the directory of --state",
            sqlstate="42704",
        )
    # DIRECTORY is that of --state, with one directory a job, or a job's own.
    places = [directory, *folders_in(directory)]
    found = [(_name(place), CheckpointReader(storage_at(place))) for place in places]
    # Directories without a checkpoint may be beside those of jobs.
    found = [(name, reader) for name, reader in found if reader.is_job]
    if job is not None:
        names = [name for name, _ in found]
        found = [(name, reader) for name, reader in found if name == job]
        if not found:
            hint = did_you_mean(job, names) or f"jobs are {', '.join(names) or 'none'}"
            raise PenstockError(
                "STA-3033", f"there is no job {job} in {directory}", hint=hint, sqlstate="42704"
            )
    if not found:
        raise PenstockError(
            "STA-3033",
            f"there are no checkpoints in {directory}",
            hint="give the directory of --state",
            sqlstate="42704",
        )
    return found


def _name(place: Location) -> str:
    return place.resolve().name if isinstance(place, Path) else place.name


def _reader(arguments: argparse.Namespace) -> tuple[str, CheckpointReader]:
    """Return the one job that the arguments select."""
    found = _readers(parse_location(arguments.directory), arguments.job)
    # ls and verify read all jobs; show, diff and export read one.
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise PenstockError(
            "STA-3033",
            f"{arguments.directory} holds several jobs",
            hint=f"add --job with one of {names}",
            sqlstate="42704",
        )
    return found[0]
