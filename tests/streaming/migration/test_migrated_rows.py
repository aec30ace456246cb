"""The migration of columns of state: each value stays what it is, in its key group; what does not fit is
not taken; and what is said of a plan.
"""

from __future__ import annotations

import decimal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    Decimal,
    to_arrow,
)
from penstock.engine.checkpoint.manifest import Manifest, Migration, decode_manifest, encode_manifest
from penstock.engine.checkpoint.state_migration import fits, migrated
from penstock.engine.deploy.protocol.codec import decode, encode
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.state_snapshot import WRITTEN
from penstock.planner.expressions.type_widening import keeps_layout, widens
from penstock.planner.logical.scan import Scan
from penstock.planner.physical.state_compatibility import (
    CarriedColumn,
    DeclaredColumn,
    DeclaredTable,
    PlanCompatibility,
    StateCompatibility,
    derive_compatibility,
)
from tests.harness.length import examples

INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
KINDS: tuple[DataType, ...] = (
    *INTEGERS,
    Decimal(9, 2),
    Decimal(18, 2),
    Decimal(30, 2),
    Decimal(9, 4),
    STRING,
    FLOAT,
    DOUBLE,
    TIMESTAMP,
)


def values_of(kind: DataType) -> st.SearchStrategy[object]:
    if kind in INTEGERS:
        bits = to_arrow(kind).bit_width - 1
        return st.integers(-(1 << bits), (1 << bits) - 1)
    if isinstance(kind, Decimal):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(
            lambda n: decimal.Decimal(n).scaleb(-kind.scale, decimal.Context(prec=60))
        )
    return {STRING: st.text(max_size=5)}.get(kind, st.integers(-(10**6), 10**6))


def column_of(kind: DataType, values: list[object]) -> pa.Array:
    return (
        pa.array(values, pa.int64()).cast(to_arrow(kind))
        if kind in (FLOAT, DOUBLE, TIMESTAMP)
        else pa.array(values, to_arrow(kind))
    )


def wider_of(kind: DataType) -> st.SearchStrategy[DataType]:
    return st.sampled_from([other for other in KINDS if keeps_layout(str(kind), str(other))])


@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_values_and_their_hashes_stay(data: st.DataObject) -> None:
    """Columns of any kinds are widened at random, others added anywhere among them; those a state adds
    behind its rows follow.
    """
    old = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    rows = data.draw(st.integers(0, 6))
    lists = [data.draw(st.lists(st.none() | values_of(kind), min_size=rows, max_size=rows)) for kind in old]
    columns = [column_of(kind, values) for kind, values in zip(old, lists, strict=True)]
    behind, lives = data.draw(st.booleans()), data.draw(st.booleans())
    numbers = pa.array(np.arange(rows))
    names = [
        "key_group",
        "weight",
        *[f"c{i}" for i in range(len(old) + behind)],
        *([WRITTEN] if lives else []),
    ]
    table = pa.table(
        [
            numbers.cast(pa.uint16()),
            numbers,
            *columns,
            *([numbers] if behind else []),
            *([numbers] if lives else []),
        ],
        names=names,
    )
    new, places = [], []
    for place, kind in enumerate(old):
        for added in data.draw(st.lists(st.sampled_from(KINDS), max_size=1)):
            new.append(added)
            places.append(-1)
        new.append(data.draw(wider_of(kind)))
        places.append(place)
    fields = [
        ("key_group", pa.uint16()),
        ("weight", pa.int64()),
        *((f"c{i}", to_arrow(kind)) for i, kind in enumerate(new)),
    ]
    wanted = pa.schema([*fields, *([(f"c{len(new)}", pa.int64())] if behind else [])])
    found = migrated(table, wanted, places)
    assert found is not None and found.schema.names == [*wanted.names, *([WRITTEN] if lives else [])]
    assert found.schema.types[: len(wanted)] == wanted.types
    for i, place in enumerate(places):
        column = found.column(f"c{i}").combine_chunks()
        assert column.to_pylist() == ([None] * rows if place < 0 else columns[place].to_pylist())
        if place >= 0 and rows:
            assert (stable_hash([column]) == stable_hash([columns[place]])).all()
    assert not behind or found.column(f"c{len(new)}").to_pylist() == numbers.to_pylist()


def test_what_does_not_fit_is_not_taken() -> None:
    table = pa.table(
        {"key_group": pa.array([0], pa.uint16()), "k0": pa.array([1], pa.int64()), "a0_0": pa.array([1])}
    )
    wide = table.schema
    narrow = wide.set(1, pa.field("k0", pa.int32()))
    assert migrated(table, wide, ()) is not None
    assert migrated(table, narrow, ()) is None
    assert migrated(table, wide.append(pa.field("a0_1", pa.int64())), ()) is None
    assert migrated(table, wide.remove(2), ()) is None
    assert migrated(table, wide.set(1, pa.field("k0", pa.float64())), ()) is None
    # it begins to live for a time only
    assert migrated(table, wide.append(pa.field(WRITTEN, pa.int64())), ()) is not None


def test_lists_of_values_are_widened_inside() -> None:
    pairs = pa.array(
        [[{"value": 3, "count": 1}, {"value": None, "count": 2}], []],
        pa.list_(pa.struct([("value", pa.int16()), ("count", pa.int64())])),
    )
    wanted = pa.schema(
        [
            ("key_group", pa.uint16()),
            ("a0_0", pa.list_(pa.struct([("value", pa.int64()), ("count", pa.int64())]))),
        ]
    )
    found = migrated(pa.table({"key_group": pa.array([0, 1], pa.uint16()), "a0_0": pairs}), wanted, ())
    assert (
        found is not None and found.schema == wanted and found.column("a0_0").to_pylist() == pairs.to_pylist()
    )
    assert not fits(pairs.type, pa.list_(pa.struct([("other", pa.int16()), ("count", pa.int64())])))


@pytest.mark.parametrize("old", KINDS)
def test_the_plan_and_the_columns_are_told_alike(old: DataType) -> None:
    """What the plan lets go on is what columns can be migrated to; and all of it is widened in the sense
    expressions are.
    """
    for new in KINDS:
        assert keeps_layout(str(old), str(new)) == fits(to_arrow(old), to_arrow(new)), (old, new)
        assert old == new or not keeps_layout(str(old), str(new)) or widens(old, new)


def test_columns_of_tables_of_changes_are_not_taken_for_null() -> None:
    """Rows kept with NULL would not be found when they are taken back with the default a database gave
    them.
    """
    schema = Schema((Field("id", INT, nullable=False), Field("note", STRING)))
    for kind, optional in (("json", True), ("debezium-json", False)):
        table = CatalogTable("t", schema, schema, {"connector": "filesystem", "path": "t", "format": kind})
        scan = Scan(table, (0, 1))
        (told,) = derive_compatibility({"s": scan}, {"s": ("Scan",)}).tables
        assert [(c.name, c.read, c.optional) for c in told.columns] == [
            ("id", True, False),
            ("note", True, optional),
        ]


def manifest() -> Manifest:
    column = CarriedColumn("ab12", "note", "STRING", (("t1", "note"),))
    compatibility = PlanCompatibility(
        {"op": StateCompatibility("cd34", ((column,), ()))},
        (DeclaredTable("t1", "a", (DeclaredColumn("note", "STRING", True, False),)),),
    )
    return Manifest("job", 0, 1, None, "periodic", 5, 8, "print", (), (), frozenset(), compatibility)


def test_what_is_said_of_a_plan_survives_the_manifest_and_the_way_to_workers() -> None:
    assert decode_manifest("m", encode_manifest(manifest())).compatibility == manifest().compatibility
    sent = replace(manifest(), migrations={"op": Migration(((0, -1), ()), "note STRING is added")})
    assert decode(encode(sent)) == sent
