"""Messages of pgoutput, made by hand after the protocol's description, as rows of a changelog."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges
from penstock.engine.connectors.postgres_cdc.layouts import ColumnType, ReplicatedTable
from penstock.engine.connectors.postgres_cdc.link import CopyMessages
from penstock.engine.connectors.postgres_cdc.pgoutput import (
    EPOCH_US,
    ChangeDecoder,
    DecodedChanges,
)

OID = 700
FIELDS = (Field("id", BIGINT), Field("name", STRING))


def data(payload: bytes) -> bytes:
    return struct.pack(">cQQq", b"w", 1, 1, 1) + payload


def begin(commit: int, time: int = 0) -> bytes:
    return data(struct.pack(">cQqI", b"B", commit, time, 9))


def commit(end: int) -> bytes:
    return data(struct.pack(">cBQQq", b"C", 0, end - 1, end, 0))


def relation(
    oid: int = OID, identity: bytes = b"f", names: tuple[str, ...] = ("id", "name"), key: str = "id"
) -> bytes:
    types = {"id": 20, "name": 25, "more": 25}
    columns = b"".join(
        (b"\1" if name == key else b"\0") + name.encode() + struct.pack(">BIi", 0, types[name], -1)
        for name in names
    )
    return data(
        struct.pack(">cI", b"R", oid) + b"public\0t\0" + identity + struct.pack(">H", len(names)) + columns
    )


def row(*values: str | None) -> bytes:
    parts = [
        b"n"
        if value is None
        else b"u"
        if value == "?"
        else b"t" + struct.pack(">I", len(value)) + value.encode()
        for value in values
    ]
    return struct.pack(">H", len(values)) + b"".join(parts)


def insert(*values: str | None, oid: int = OID) -> bytes:
    return data(struct.pack(">cIc", b"I", oid, b"N") + row(*values))


def update(old: bytes, new: bytes, kind: bytes = b"O") -> bytes:
    return data(struct.pack(">cIc", b"U", OID, kind) + old + b"N" + new)


def delete(old: bytes, kind: bytes = b"O") -> bytes:
    return data(struct.pack(">cIc", b"D", OID, kind) + old)


def keepalive(at: int, answer: int = 0) -> bytes:
    return struct.pack(">cQqB", b"k", at, 0, answer)


def sent(*parts: bytes) -> CopyMessages:
    messages = CopyMessages()
    whole = b"".join(parts)
    messages.data = np.frombuffer(whole, np.uint8).copy()
    messages.ends = np.cumsum([len(part) for part in parts]).astype(np.int64)
    messages.state[0], messages.state[1] = len(whole), len(parts)
    return messages


def decoder(
    position: int = 0, partial: list[int] | None = None, *, grows: bool = False, upserts: bool = False
) -> ChangeDecoder:
    known = ReplicatedTable("public.t", OID, {"id": ColumnType(20), "name": ColumnType(25)}, "t")
    return ChangeDecoder(
        known, FIELDS, [0], KeyRanges(), position, partial, upserts=upserts, inserts_only=grows
    )


def weighted(changes: DecodedChanges) -> list[tuple[int, str | None, int]]:
    rows = changes.rows.to_pylist()
    return [
        (made["id"], made["name"], weight)
        for made, weight in zip(rows, changes.weights.tolist(), strict=True)
    ]


def test_inserts_updates_and_deletes() -> None:
    made = decoder()
    changes = made.decode(
        sent(
            begin(100, 5),
            relation(),
            insert("1", "a"),
            insert("7", "x", oid=1),
            update(row("1", "long"), row("2", "?")),
            delete(row("2", None)),
            commit(110),
            keepalive(120, 1),
        )
    )
    assert weighted(changes) == [(1, "a", 1), (1, "long", -1), (2, "long", 1), (2, None, -1)]
    assert changes.updates.tolist() == [False, True, True, False]
    assert changes.times.tolist() == [EPOCH_US + 5] * 4 and set(changes.commits.tolist()) == {100}
    assert (changes.whole, changes.complete, changes.answer, made.safe) == (4, True, True, 120)


def test_a_transaction_in_two_pieces_and_a_restart_between_them() -> None:
    made = decoder()
    first = made.decode(
        sent(begin(50), relation(), insert("0", None), commit(60), begin(100), insert("1", "a"))
    )
    assert (first.whole, first.complete, made.safe, made.partial) == (1, True, 60, [100, 1])
    # the server's position within a transaction says nothing of it
    second = made.decode(sent(insert("2", "b"), keepalive(95)))
    assert (second.whole, second.complete, made.safe, made.partial) == (0, False, 60, [100, 2])
    last = made.decode(sent(insert("3", "c"), commit(110)))
    assert (last.whole, last.complete, made.safe, made.partial) == (1, True, 110, None)
    # from the second piece on: the first two changes are not emitted again
    again = decoder(60, [100, 2])
    pieces = [
        again.decode(sent(begin(100), relation(), insert("1", "a"))),
        again.decode(sent(insert("2", "b"), insert("3", "c"), commit(110))),
    ]
    assert [found for piece in pieces for found in weighted(piece)] == [(3, "c", 1)]


def test_the_layout_of_rows_may_change_within_a_piece() -> None:
    changes = decoder().decode(
        sent(
            begin(1),
            relation(),
            insert("1", "a"),
            relation(oid=1),
            relation(names=("more", "name", "id")),
            insert("m", "b", "2"),
            commit(2),
        )
    )
    assert weighted(changes) == [(1, "a", 1), (2, "b", 1)]


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("DAT-5405", (relation(identity=b"d"),)),
        ("DAT-5405", (relation(), update(row("1", None), row("2", "a"), b"K"))),
        ("DAT-5405", (relation(), delete(row("1", None), b"K"))),
        ("DAT-5405", (relation(), insert("1", "?"))),
        ("DAT-5413", (relation(names=("id", "more")),)),
        ("DAT-5416", (relation(), data(struct.pack(">cIBII", b"T", 2, 0, 1, OID)))),
    ],
)
def test_what_cannot_be_followed(code: str, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(PenstockError) as raised:
        decoder().decode(sent(begin(1), *parts, commit(2)))
    assert raised.value.code == code


def test_another_table_may_be_truncated() -> None:
    decoder().decode(sent(begin(1), relation(), data(struct.pack(">cIBI", b"T", 1, 0, 5)), commit(2)))


def test_only_inserts_from_the_latest_offset_on() -> None:
    assert weighted(decoder(grows=True).decode(sent(begin(1), relation(), insert("1", "a"), commit(2))))
    with pytest.raises(PenstockError) as raised:
        decoder(grows=True).decode(sent(begin(1), relation(), delete(row("1", "a")), commit(2)))
    assert raised.value.code == "DAT-5414"


def test_upserts_are_new_rows_and_keys() -> None:
    changes = decoder(upserts=True).decode(
        sent(
            begin(1),
            relation(identity=b"d"),
            insert("1", "a"),
            data(struct.pack(">cIc", b"U", OID, b"N") + row("1", "b")),
            data(struct.pack(">cIc", b"U", OID, b"N") + row("1", "?")),
            # the key itself changes
            update(row("1", None), row("2", "c"), b"K"),
            # the server sends a key that is stored out of line also when it stays
            update(row("2", None), row("?", "?"), b"K"),
            update(row("2", "c"), row("2", "?"), b"O"),
            delete(row("2", None), b"K"),
            commit(2),
        )
    )
    assert weighted(changes) == [
        (1, "a", 1),
        (1, "b", 1),
        (1, None, 1),
        (1, None, -1),
        (2, "c", 1),
        (2, None, 1),
        (2, "c", 1),
        (2, None, -1),
    ]
    assert changes.unchanged.tolist() == [[False, place in (2, 5)] for place in range(8)]


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("DAT-5405", (relation(identity=b"i", key="name"),)),
        ("DAT-5418", (relation(identity=b"d"), update(row("1", None), row("2", "?"), b"K"))),
    ],
)
def test_upserts_that_cannot_be_followed(code: str, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(PenstockError) as raised:
        decoder(upserts=True).decode(sent(begin(1), *parts, commit(2)))
    assert raised.value.code == code


def test_columns_that_are_added_are_reported_with_the_changes() -> None:
    changes = decoder().decode(sent(begin(1), relation(names=("id", "name", "more")), commit(2)))
    assert len(changes.notices) == 1 and "ADD `more` STRING" in changes.notices[0]
