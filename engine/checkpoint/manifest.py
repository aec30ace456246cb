"""The manifest of a checkpoint: JSON with sorted keys; its last line is the checksum of the text before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.checkpoint.snapshot_format import (
    FileEntry,
    GroupEntry,
    ItemsPart,
    KeyedPart,
    WrittenTask,
    damaged,
)
from penstock.engine.storage import sealed_json
from penstock.engine.storage.storage import check_name
from penstock.engine.task.messages import TaskId
from penstock.planner.physical.state_compatibility import (
    CarriedColumn,
    DeclaredColumn,
    DeclaredTable,
    PlanCompatibility,
    StateCompatibility,
)

# Every sealed file of a job's directory names its format and version.
FORMAT = "penstock-checkpoint"
# Major and minor. A reader refuses another major; new minor versions only add fields.
VERSION = (1, 4)
FEATURES = ("layers", "passed times")
"""Features beyond version 1.0 that a reader must support to read files of this engine."""
# limits the JSON text that a damaged file can make us parse
MAX_BYTES = 1 << 28


class OperatorRole(StrEnum):
    """The role of an operator in its plan."""

    SOURCE = "source"
    WATERMARK = "watermark"
    INNER = "inner"
    SINK = "sink"


@dataclass(frozen=True)
class OperatorEntry:
    """An operator of the checkpoint's plan. ``former``: its id in the plan that wrote its state, if that was
    another.

    ``place``: the table of a source or sink, or the source of a watermark generator. Operators of a changed
    query are matched by it.
    """

    operator_id: str
    name: str
    keeps_state: bool
    parallelism: int
    role: OperatorRole = OperatorRole.INNER
    place: str = ""
    columns: str = ""
    former: str | None = None


@dataclass(frozen=True)
class Migration:
    """How an operator's state is migrated to the types of another plan: per port and column the former
    position, -1 for an added column (NULL).

    ``note``: what was widened and added, for users.
    """

    ports: tuple[tuple[int, ...], ...]
    note: str


@dataclass(frozen=True)
class Manifest:
    """Everything a restore needs: identity, plan, and the location of each task's state. ``ended``: tasks
    that had emitted all their output.

    ``owner``: the id under which its sinks staged pending commits; before version 1.4 that was the job's id.

    ``migrations``: by operator id, when another plan than the writer's restores it. They are not written.
    """

    job_id: str
    epoch: int
    checkpoint_id: int
    parent: int | None
    kind: str
    created_at_ms: int
    max_parallelism: int
    fingerprint: str
    operators: tuple[OperatorEntry, ...]
    tasks: tuple[WrittenTask, ...]
    ended: frozenset[TaskId]
    compatibility: PlanCompatibility = PlanCompatibility()
    owner: str = ""
    migrations: Mapping[str, Migration] = field(default_factory=dict, hash=False)

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """The segment files of the checkpoint, those it shares with earlier ones included."""
        return tuple({file.name: file for task in self.tasks for file in task.files}.values())

    @property
    def size_bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.length for file in self.files)

    @property
    def new_bytes(self) -> int:
        """The bytes of the files written for it; the others are shared with earlier checkpoints."""
        # A segment's name carries the checkpoint that wrote it.
        return sum(file.length for file in self.files if f"-c{self.checkpoint_id}-" in file.name)

    def finished(self, operator_id: str) -> bool:
        """Whether every subtask of an operator had ended."""
        mine = [task.task for task in self.tasks if operator_id in task.operators]
        return bool(mine) and all(task in self.ended for task in mine)


def unseal(name: str, data: bytes) -> dict[str, Any]:
    """Return the fields of a sealed file; raises STA-3005 naming the file when it is damaged."""
    if len(data) > MAX_BYTES:
        raise damaged(name, f"{len(data)} bytes are more than {MAX_BYTES}")
    try:
        return sealed_json.unseal(data)
    except sealed_json.BrokenSealError as cause:
        raise damaged(name, str(cause)) from cause


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest."""
    return sealed_json.seal(
        {
            # Fields that older versions did not write have a default in the decoder.
            "format": FORMAT,
            "version": list(VERSION),
            "requires": list(FEATURES),
            "job_id": manifest.job_id,
            "owner": manifest.owner,
            "epoch": manifest.epoch,
            "checkpoint_id": manifest.checkpoint_id,
            "parent": manifest.parent,
            "kind": manifest.kind,
            "created_at_ms": manifest.created_at_ms,
            "max_parallelism": manifest.max_parallelism,
            "fingerprint": manifest.fingerprint,
            "operators": [_operator_fields(o) for o in manifest.operators],
            # By operator id: its digest without widths, and by input port the columns its state stores.
            "alike": {
                i: [described.alike, _port_fields(described)]
                for i, described in manifest.compatibility.operators.items()
            },
            "reached": {i: described.reached for i, described in manifest.compatibility.operators.items()},
            # The tables as they were declared, for added columns.
            "tables": [
                [t.key, t.name, [[c.name, c.type, c.read, c.optional] for c in t.columns]]
                for t in manifest.compatibility.tables
            ],
            "tasks": [_task_fields(task, task.task in manifest.ended) for task in manifest.tasks],
            # Checksums of each block, and of the whole file.
            "files": {
                f.name: {"length": f.length, "crc32": list(f.crc32), "sha256": f.sha256}
                for f in manifest.files
            },
        }
    )


def _operator_fields(o: OperatorEntry) -> list[Any]:
    # The order is the format: fields are only added at the end.
    return [o.operator_id, o.name, o.keeps_state, o.parallelism, o.role, o.place, o.columns, o.former]


def _operator(operator: Any, name: Any, keeps: Any, parallelism: Any, *more: Any) -> OperatorEntry:
    """Decode an operator. Version 1.0 wrote only the required fields."""
    role, place, columns, former = more or (OperatorRole.INNER, "", "", None)
    known = None if former is None else str(former)
    return OperatorEntry(
        str(operator),
        str(name),
        bool(keeps),
        int(parallelism),
        OperatorRole(role),
        str(place),
        str(columns),
        known,
    )


def _port_fields(described: StateCompatibility) -> list[Any]:
    return [
        [[c.text, c.name, c.type, [list(origin) for origin in c.origins]] for c in port]
        for port in described.ports
    ]


def _decode_compatibility(fields: dict[str, Any]) -> PlanCompatibility:
    """Decode the compatibility of a plan; empty before version 1.3, which introduced it."""
    reached = fields.get("reached", {})
    operators = {
        str(i): StateCompatibility(str(alike), tuple(_port(port) for port in ports), str(reached.get(i, "")))
        for i, (alike, ports) in fields.get("alike", {}).items()
    }
    return PlanCompatibility(operators, tuple(_table(*described) for described in fields.get("tables", [])))


def _port(columns: Any) -> tuple[CarriedColumn, ...]:
    described = (
        (str(text), str(name), str(kind), tuple((str(t), str(c)) for t, c in origins))
        for text, name, kind, origins in columns
    )
    return tuple(CarriedColumn(*column) for column in described)


def _table(key: Any, name: Any, columns: Any) -> DeclaredTable:
    described = (
        DeclaredColumn(str(column), str(kind), bool(read), bool(optional))
        for column, kind, read, optional in columns
    )
    return DeclaredTable(str(key), str(name), tuple(described))


def _task_fields(task: WrittenTask, ended: bool) -> dict[str, Any]:
    # The parts of one task; offsets are into the files they name.
    return {
        "chain": task.task.chain,
        "subtask": task.task.subtask,
        "ended": ended,
        "operators": list(task.operators),
        "files": [file.name for file in task.files],
        "keyed": [
            # keyed: [operator, state, schema offset, schema bytes, fingerprint, batches, file, changed].
            [
                *p.key,
                p.offset,
                p.schema_length,
                p.fingerprint,
                # A record batch: [first group, offset, bytes, rows, last group].
                [[g.group, g.offset, g.length, g.rows, g.last] for g in p.groups],
                p.file,
                p.changed,
            ]
            for p in task.keyed
        ],
        # items: [operator, state, offset, bytes, count, file].
        "items": [[p.operator_id, p.state, p.offset, p.length, p.count, p.file] for p in task.items],
    }


def decode_manifest(name: str, data: bytes) -> Manifest:
    """Return the manifest of sealed bytes; raises STA-3005 when damaged, STA-3006 when its format is newer
    than this engine.
    """
    fields = unseal(name, data)
    check_version(name, fields)
    return _shaped(name, lambda: _manifest(fields))


def check_version(name: str, fields: dict[str, Any]) -> None:
    """Refuse a format version, or a required feature, that this engine does not support."""
    version = fields.get("version")
    # The same major version; what a minor version needs of its reader is in ``requires``.
    known = isinstance(version, list) and len(version) == 2 and version[0] == VERSION[0]
    reads = (
        f"this engine reads {FORMAT} {VERSION[0]}.x up to {VERSION[0]}.{VERSION[1]} with "
        f"{', '.join(FEATURES)}"
    )
    if fields.get("format") != FORMAT or not known:
        raise _too_new(f"checkpoint file {name} has format {fields.get('format')} {version}; {reads}")
    unknown = [str(feature) for feature in fields.get("requires", []) if feature not in FEATURES]
    if unknown:
        version_text = ".".join(map(str, version or []))
        raise _too_new(
            f"checkpoint file {name} of format {version_text} requires {', '.join(unknown)[:80]}; {reads}"
        )


def _too_new(message: str) -> PenstockError:
    hint = "run the job with the penstock that wrote it, or a newer one"
    return PenstockError("STA-3006", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="0A000")


def _shaped(name: str, build: Callable[[], Manifest]) -> Manifest:
    try:
        # The checksum matched, so a wrong field means a faulty writer; it is reported as damage all the same.
        return build()
    except (KeyError, TypeError, ValueError) as cause:
        raise damaged(name, f"a field is missing or of the wrong kind: {cause}") from cause


def _manifest(fields: dict[str, Any]) -> Manifest:
    # A name is checked before it becomes a path.
    files = {
        check_name(name): FileEntry(
            name, int(f["length"]), tuple(int(crc) for crc in f["crc32"]), str(f["sha256"])
        )
        for name, f in fields["files"].items()
    }
    tasks = tuple(_task(entry, files) for entry in fields["tasks"])
    return Manifest(
        job_id=str(fields["job_id"]),
        epoch=int(fields["epoch"]),
        checkpoint_id=int(fields["checkpoint_id"]),
        parent=None if fields["parent"] is None else int(fields["parent"]),
        kind=str(fields["kind"]),
        created_at_ms=int(fields["created_at_ms"]),
        max_parallelism=int(fields["max_parallelism"]),
        fingerprint=str(fields["fingerprint"]),
        operators=tuple(_operator(*entry) for entry in fields["operators"]),
        tasks=tasks,
        ended=frozenset(
            task.task for task, entry in zip(tasks, fields["tasks"], strict=True) if entry["ended"]
        ),
        compatibility=_decode_compatibility(fields),
        owner=str(fields.get("owner", fields["job_id"])),
    )


def _task(entry: dict[str, Any], files: dict[str, FileEntry]) -> WrittenTask:
    """Version 1.0 had one file per task, one full snapshot per state and one key group per record batch."""
    # Version 1.0: the single file of the task.
    own = entry.get("file")
    names = entry.get("files", [] if own is None else [own])
    # Version 1.0: no file and no superseded slots in a part.
    keyed = tuple(_keyed(*part[:6], *(part[6:] or (own, None))) for part in entry["keyed"])
    items = tuple(
        ItemsPart(str(o), str(s), int(at), int(n), int(count), str(*(file or [own])))
        for o, s, at, n, count, *file in entry["items"]
    )
    task = WrittenTask(
        TaskId(int(entry["chain"]), int(entry["subtask"])),
        tuple(map(str, entry["operators"])),
        tuple(files[name] for name in names),
        keyed,
        items,
    )
    # Offsets are only checked against the file a part names.
    if not {part.file for part in keyed} | {item.file for item in items} <= set(names):
        raise ValueError("a part lies in no file of its task")
    return task


def _keyed(
    operator: Any, state: Any, at: Any, length: Any, fingerprint: Any, groups: Any, file: Any, changed: Any
) -> KeyedPart:
    entries = tuple(
        # Version 1.0: one key group a batch, so the last group is the first.
        GroupEntry(int(g), int(off), int(n), int(rows), int(*(last or [g])))
        for g, off, n, rows, *last in groups
    )
    superseded = None if changed is None else (int(changed[0]), int(changed[1]))
    return KeyedPart(
        str(operator), str(state), int(at), int(length), str(fingerprint), entries, str(file), superseded
    )
