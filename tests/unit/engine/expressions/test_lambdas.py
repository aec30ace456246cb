"""Functions of elements beside naive loops: NULLs at every level, odd lengths, other columns and functions
inside of them, slices of batches.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

ROWS = 300
_DICE = random.Random(7)


def _numbers() -> list[int | None] | None:
    return (
        None
        if _DICE.random() < 0.1
        else [None if _DICE.random() < 0.2 else _DICE.randrange(9) for _ in range(_DICE.randrange(6))]
    )


_A, _B = [_numbers() for _ in range(ROWS)], [_numbers() for _ in range(ROWS)]
_M = [None if a is None else [(f"k{i}", x) for i, x in enumerate(a)] for a in _A]
_Y = [None if i % 11 == 3 else i % 7 for i in range(ROWS)]
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "a": pa.array(_A, pa.list_(pa.int32())),
        "b": pa.array(_B, pa.list_(pa.int32())),
        "m": pa.array(_M, pa.map_(pa.string(), pa.int32())),
        "y": pa.array(_Y, pa.int32()),
    }
)
Row = dict[str, Any]


def plus(x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else x + y


def above(x: int | None, y: int | None) -> bool | None:
    return None if x is None or y is None else x > y


def some(tests: list[bool | None]) -> bool | None:
    return True if True in tests else None if None in tests else False


def every(tests: list[bool | None]) -> bool | None:
    return False if False in tests else None if None in tests else True


def fold(
    values: list[int | None], start: int, step: Callable[[int | None, int | None], int | None]
) -> int | None:
    found: int | None = start
    for value in values:
        found = step(found, value)
    return found


def longest(r: Row) -> list[tuple[int | None, int | None]]:
    size = max(len(r["a"]), len(r["b"]))
    a, b = (r[name] + [None] * (size - len(r[name])) for name in "ab")
    return list(zip(a, b, strict=True))


CASES: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "transform(a, x -> x + y)": ("a", lambda r: [plus(x, r["y"]) for x in r["a"]]),
    "transform(a, (x, i) -> x + i * 10)": ("a", lambda r: [plus(x, i * 10) for i, x in enumerate(r["a"])]),
    "transform(a, x -> y)": ("a", lambda r: [r["y"]] * len(r["a"])),
    "transform(a, x -> 'c')": ("a", lambda r: ["c"] * len(r["a"])),
    "filter(a, x -> x > y)": ("a", lambda r: [x for x in r["a"] if above(x, r["y"])]),
    "filter(a, (x, i) -> i = 1 OR x IS NULL)": (
        "a",
        lambda r: [x for i, x in enumerate(r["a"]) if i == 1 or x is None],
    ),
    "exists(a, x -> x > y)": ("a", lambda r: some([above(x, r["y"]) for x in r["a"]])),
    "forall(a, x -> x > y)": ("a", lambda r: every([above(x, r["y"]) for x in r["a"]])),
    "aggregate(a, 0, (s, x) -> s * 2 + coalesce(x, y, 1))": (
        "a",
        lambda r: fold(
            r["a"], 0, lambda s, x: s * 2 + (x if x is not None else 1 if r["y"] is None else r["y"])
        ),
    ),
    "reduce(a, 1, (s, x) -> s + x, s -> coalesce(s, -5) * y)": (
        "a",
        lambda r: None if r["y"] is None else r["y"] * (-5 if None in r["a"] else 1 + sum(r["a"])),
    ),
    "zip_with(a, b, (p, q) -> coalesce(p, 100) - coalesce(q, y, 7))": (
        "ab",
        lambda r: [
            (100 if p is None else p) - (q if q is not None else 7 if r["y"] is None else r["y"])
            for p, q in longest(r)
        ],
    ),
    "map_filter(m, (k, v) -> v > 3 OR k = 'k0')": (
        "m",
        lambda r: [(k, v) for k, v in r["m"] if above(v, 3) or k == "k0"],
    ),
    "transform_keys(m, (k, v) -> concat(k, '-', coalesce(v, y, -1)))": (
        "m",
        lambda r: [(f"{k}-{v if v is not None else -1 if r['y'] is None else r['y']}", v) for k, v in r["m"]],
    ),
    "transform_values(m, (k, v) -> v + length(k))": (
        "m",
        lambda r: [(k, plus(v, len(k))) for k, v in r["m"]],
    ),
    "transform(a, x -> filter(b, z -> z > x AND z > y))": (
        "a",
        lambda r: [
            r["b"] and [z for z in r["b"] if above(z, x) and above(z, r["y"])] if r["b"] is not None else None
            for x in r["a"]
        ],
    ),
    "transform(array(a, b), l -> aggregate(l, id, (s, x) -> s + x))": (
        "",
        lambda r: [None if part is None else fold(part, r["id"], plus) for part in (r["a"], r["b"])],
    ),
    "transform(a, x -> CASE WHEN x <> 0 THEN 12 DIV x END)": (
        "a",
        lambda r: [12 // x if x else None for x in r["a"]],
    ),
}


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "64"})
    session.register("t", TABLE)
    return session


@pytest.mark.parametrize("call", CASES)
def test_beside_a_loop(session: Session, call: str) -> None:
    needed, reference = CASES[call]
    found = session.execute(f"SELECT id, {call} AS v FROM t WHERE id % 5 <> 2").final_rows(PATIENCE_S)
    rows = {row["id"]: row for row in TABLE.to_pylist()}
    for number, value in zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True):
        row = rows[number]
        missing = any(row[name] is None for name in needed)
        assert value == (None if missing else reference(row)), (call, row)
    assert found.num_rows == sum(number % 5 != 2 for number in range(ROWS))


def test_it_is_placed_in_queries(session: Session) -> None:
    text = "SELECT size(filter(a, x -> x > 4)) AS n, aggregate(collect_list(id), 0L, (s, x) -> s + x) AS s FROM t WHERE exists(a, x -> x > y) GROUP BY 1"
    found = session.execute(text).final_rows(PATIENCE_S)
    groups: dict[int, int] = {}
    for row in TABLE.to_pylist():
        if row["a"] is not None and some([above(x, row["y"]) for x in row["a"]]):
            size = sum(above(x, 4) or False for x in row["a"])
            groups[size] = groups.get(size, 0) + row["id"]
    assert dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)) == groups
