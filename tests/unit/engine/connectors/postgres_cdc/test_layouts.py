"""Layouts before and after a table was altered: columns stay the same columns, and what could be wrong is
refused with the statement to run here.
"""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, INT, STRING, DataType, Decimal
from penstock.engine.connectors.postgres_cdc.layouts import (
    ColumnType,
    ReplicatedTable,
    SentColumn,
    addition,
    match_layout,
)

OLD, NEW = 50, 150
INT8, INT4, TEXT, DAY = ColumnType(20), ColumnType(23), ColumnType(25), ColumnType(1082)
FIELDS = (Field("id", BIGINT, nullable=False), Field("name", STRING), Field("n", BIGINT))


def numeric(precision: int, scale: int) -> ColumnType:
    return ColumnType(1700, (precision << 16 | scale) + 4)


def known(*, has_gaps: bool = False, **columns: ColumnType) -> ReplicatedTable:
    types = columns or {"id": INT8, "name": TEXT, "n": INT8}
    return ReplicatedTable("public.t", 7, types, "orders", 100, has_gaps)


def lines(
    table: ReplicatedTable, commit: int, fields: tuple[Field, ...] = FIELDS, **sent: ColumnType
) -> list[int]:
    found = match_layout(table, fields, [SentColumn(name, kind) for name, kind in sent.items()], commit)
    return found.lines.tolist()


def refused(
    table: ReplicatedTable, commit: int, fields: tuple[Field, ...] = FIELDS, **sent: ColumnType
) -> str:
    with pytest.raises(PenstockError) as raised:
        lines(table, commit, fields, **sent)
    assert raised.value.code == "DAT-5413"
    return f"{raised.value.message}; {raised.value.hint}"


def test_a_column_that_is_added_is_reported_with_its_declaration() -> None:
    sent = [
        SentColumn(name, kind)
        for name, kind in {"id": INT8, "name": TEXT, "n": INT8, "p": numeric(8, 2)}.items()
    ]
    layout = match_layout(known(), FIELDS, sent, NEW)
    assert layout.lines.tolist() == [0, 1, 2, -1]
    assert layout.notices == (addition(known(), "p", numeric(8, 2)),)
    assert layout.notices[0].endswith("ALTER TABLE `orders` ADD `p` DECIMAL(8, 2)")
    # the rows of a transaction before the columns were looked up say nothing new
    assert match_layout(known(), FIELDS, sent[:3], OLD).notices == ()


def test_rows_that_are_older_than_a_declared_column_lack_it() -> None:
    assert lines(known(), OLD, id=INT8, name=TEXT) == [0, 1]
    # with a column dropped before, by their names
    assert lines(known(has_gaps=True), OLD, name=TEXT, id=INT8) == [1, 0]
    required = (*FIELDS[:2], Field("n", BIGINT, nullable=False))
    refused(known(), OLD, required, id=INT8, name=TEXT)


def test_a_column_that_was_renamed_meanwhile_is_known_by_its_place() -> None:
    assert lines(known(), OLD, id=INT8, title=TEXT, n=INT8) == [0, 1, 2]
    # two columns that have exchanged their names
    assert lines(known(), OLD, id=INT8, n=TEXT, name=INT8) == [0, 1, 2]
    assert "added or renamed" in refused(known(has_gaps=True), OLD, id=INT8, title=TEXT, n=INT8)


def test_columns_that_are_renamed_or_dropped() -> None:
    assert "ALTER TABLE `orders` RENAME `name` TO `title`" in refused(
        known(), NEW, id=INT8, title=TEXT, n=INT8
    )
    assert "ALTER TABLE `orders` DROP `n`" in refused(known(), NEW, id=INT8, name=TEXT)
    assert "DROP `n`" in refused(known(has_gaps=True), NEW, id=INT8, name=TEXT, m=INT8)


@pytest.mark.parametrize(
    ("declared", "before", "now", "followed"),
    [
        (BIGINT, INT4, INT8, True),
        (INT, INT4, INT8, False),
        (STRING, INT4, INT8, True),
        (STRING, TEXT, ColumnType(1043, 14), True),
        (STRING, ColumnType(1042, 14), TEXT, False),
        (STRING, DAY, ColumnType(1114), False),
        (Decimal(10, 2), numeric(8, 2), numeric(10, 2), True),
        (Decimal(10, 2), numeric(8, 2), ColumnType(1700), True),
        (Decimal(10, 2), numeric(8, 2), numeric(8, 1), False),
    ],
)
def test_types_that_change(declared: DataType, before: ColumnType, now: ColumnType, followed: bool) -> None:
    table, fields = known(c=before), (Field("c", declared),)
    if followed:
        assert lines(table, NEW, fields, c=now) == [0]
    else:
        assert f"ALTER TABLE `orders` MODIFY `c` {now.declaration}" in refused(table, NEW, fields, c=now)


def test_a_wider_type_is_reported_once_it_is_new() -> None:
    table, fields, sent = known(c=INT4), (Field("c", BIGINT),), [SentColumn("c", INT8)]
    assert "another type now, BIGINT" in match_layout(table, fields, sent, NEW).notices[0]
    assert match_layout(table, fields, sent, OLD).notices == ()


def test_what_no_type_is_for_is_declared_as_a_text() -> None:
    assert (
        ColumnType(2950).declaration == ColumnType(1700).declaration == numeric(50, 2).declaration == "STRING"
    )
