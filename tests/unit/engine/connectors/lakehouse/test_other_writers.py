"""Another tool compacts a table, deletes and replaces rows between what a commit has read and the commit itself,
and at the moment before: the commit is tried again, and nothing of either is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.failpoints import armed
from tests.unit.engine.connectors.delta import delta_files
from tests.unit.engine.connectors.delta.delta_files import deltalake, rows, upserts
from tests.unit.engine.connectors.iceberg import iceberg_files

KEY = ("k",)
WRITER = delta_files.WRITER
Act = Callable[[Path], Any]


def _delta(path: Path) -> Any:
    return deltalake.DeltaTable(str(path))


def _rewrite(path: Path) -> None:
    """Write all rows of an Iceberg table anew, as a compaction does; the library does not try it again."""
    table = iceberg_files.loaded(path)
    table.metadata.properties["commit.retry.num-retries"] = "0"
    table.overwrite(table.scan().to_arrow())


def _one(k: int) -> pa.Table:
    return pa.table({"k": pa.array([k], pa.int64()), "v": ["theirs"]})


def _replace(path: Path) -> None:
    _delta(path).update(updates={"v": "'theirs'"}, predicate="k = 3")


def _replace_in_iceberg(path: Path) -> None:
    iceberg_files.loaded(path).overwrite(_one(3), "k = 3")


# what another tool does, and the rows that it leaves of 1, 2, 3
STRANGERS: dict[str, tuple[Act, Act, dict[int, str]]] = {
    "compacts": (lambda path: _delta(path).optimize.compact(), _rewrite, {1: "v1", 2: "v2", 3: "v3"}),
    "deletes": (
        lambda path: _delta(path).delete("k = 2"),
        lambda path: iceberg_files.loaded(path).delete("k = 2"),
        {1: "v1", 3: "v3"},
    ),
    "replaces": (_replace, _replace_in_iceberg, {1: "v1", 2: "v2", 3: "theirs"}),
    "appends": (
        lambda path: deltalake.write_deltalake(str(path), _one(7), mode="append"),
        lambda path: iceberg_files.loaded(path).append(_one(7)),
        {1: "v1", 2: "v2", 3: "v3", 7: "theirs"},
    ),
}


def _target(kind: str, path: Path, key: tuple[str, ...], **options: str) -> Any:
    if kind == "delta":
        table = delta_files.with_options(delta_files.declared(path, key=key), **options)
        return delta_files.target(table)
    return iceberg_files.target(iceberg_files.declared(path, key=key, options=options))


def _there(kind: str, path: Path) -> list[tuple[Any, ...]]:
    return delta_files.there(path) if kind == "delta" else iceberg_files.there(path)


def _filled(kind: str, path: Path) -> None:
    one = _target(kind, path, ())
    for epoch in (1, 2, 3):
        one.commit(WRITER, epoch, rows(epoch))


# any other commit to an Iceberg table is a conflict: two are tried out
CASES = [*(("delta", stranger) for stranger in STRANGERS), ("iceberg", "compacts"), ("iceberg", "deletes")]


@pytest.mark.parametrize(("kind", "stranger"), CASES)
@pytest.mark.parametrize("key", [(), KEY])
def test_another_writer_gets_ahead(tmp_path: Path, kind: str, stranger: str, key: tuple[str, ...]) -> None:
    in_delta, in_iceberg, left = STRANGERS[stranger]
    act = in_delta if kind == "delta" else in_iceberg
    _filled(kind, tmp_path)
    one = _target(kind, tmp_path, key)
    epoch = one.last_committed(WRITER) + 1
    left_to_do = [act]

    def get_ahead(point: str) -> None:
        if left_to_do:
            left_to_do.pop()(tmp_path)

    with armed({"L1": get_ahead}):
        one.commit(WRITER, epoch, upserts(k1="ours", k3=None, k8="ours") if key else rows(8))
    assert not left_to_do
    expected = dict(left)
    if key:
        expected |= {1: "ours", 8: "ours"}
        expected.pop(3, None)
    else:
        expected[8] = "v8"
    assert _there(kind, tmp_path) == sorted(expected.items())
    assert one.last_committed(WRITER) == epoch
    # once more: the table has the epoch
    one.commit(WRITER, epoch, upserts(k1="ours", k3=None, k8="ours") if key else rows(8))
    assert _there(kind, tmp_path) == sorted(expected.items())


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_writer_that_is_always_ahead(tmp_path: Path, kind: str) -> None:
    _filled(kind, tmp_path)
    one = _target(kind, tmp_path, KEY, **{"sink.max-retries": "1"})
    # an append by another is no conflict of a merge in Delta
    act = STRANGERS["replaces"][0] if kind == "delta" else STRANGERS["appends"][1]
    before = one.last_committed(WRITER)
    with armed({"L1": lambda point: act(tmp_path)}), pytest.raises(PenstockError) as raised:
        one.commit(WRITER, before + 1, upserts(k3="ours"))
    assert raised.value.code == "DAT-5313"
    assert raised.value.retriable
    assert one.last_committed(WRITER) == before
    one.commit(WRITER, before + 1, upserts(k3="ours"))
    assert (3, "ours") in _there(kind, tmp_path)


def test_a_compaction_that_began_before_our_commit_fails(tmp_path: Path) -> None:
    _filled("delta", tmp_path)
    one = _target("delta", tmp_path, KEY)
    stale = _delta(tmp_path)
    one.commit(WRITER, one.last_committed(WRITER) + 1, upserts(k1="ours", k2=None))
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        stale.optimize.compact()
    assert _there("delta", tmp_path) == [(1, "ours"), (3, "v3")]
