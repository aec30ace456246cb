"""The form for one row at a time: state as Python values that are changed in place, timers as datetimes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from tests.harness.operators import done
from tests.harness.state import Folded, opened
from tests.unit.engine.operators.process.test_process_table import operator, rows


@penstock.ptf({"text": "STRING"}, mode="row")
class Changing:
    """Changes state as the value of the row says."""

    value = penstock.value_state("STRING")
    items = penstock.list_state("BIGINT")
    counts = penstock.map_state("STRING", "BIGINT")

    def process(self, ctx: Any, row: dict[str, Any]) -> None:
        assert ctx.key == {"k": row["k"]}
        assert list(ctx.state) == ["value", "items", "counts"]
        match row["v"]:
            case 0:
                ctx.state.value, ctx.state.items, ctx.state.counts = None, None, None
            case 1:
                ctx.state.value = (ctx.state.value or "") + "x"
                ctx.state.items.append(len(ctx.state.items))
                ctx.state.counts["x"] = ctx.state.counts.get("x", 0) + 1
            case 2:
                ctx.state.items[:] = ctx.state.items[1:]
                ctx.state.counts.pop("x", None)
                ctx.state.counts["y"] = None
            case 3:
                ctx.state.items = [9, *ctx.state.items]
                ctx.state.counts = {"z": 1}
        ctx.emit(f"{ctx.state.value} {ctx.state.items} {ctx.state.counts}")


SCRIPT = [("a", v) for v in (1, 1, 3, 1, 2, 2, 0, 3)] + [("b", v) for v in (1, 2, 1, 3, 0)]
EXPECTED = {
    "a": [
        "x [0] {'x': 1}",
        "xx [0, 1] {'x': 2}",
        "xx [9, 0, 1] {'z': 1}",
        "xxx [9, 0, 1, 3] {'z': 1, 'x': 1}",
        "xxx [0, 1, 3] {'z': 1, 'y': None}",
        "xxx [1, 3] {'z': 1, 'y': None}",
        "None [] {}",
        "None [9] {'z': 1}",
    ],
    "b": [
        "x [0] {'x': 1}",
        "x [] {'y': None}",
        "xx [0] {'y': None, 'x': 1}",
        "xx [9, 0] {'z': 1}",
        "None [] {}",
    ],
}


@pytest.mark.parametrize("size", [1, 3, 100])
def test_state_is_changed_in_place_in_any_batches(size: int) -> None:
    made, out = opened(operator(Changing)), Folded()
    for first in range(0, len(SCRIPT), size):
        done(made.on_batch(rows(*((k, v, 0) for k, v in SCRIPT[first : first + size])), 0, out))
    found: dict[str, list[str]] = {"a": [], "b": []}
    for row in (row for batch in out.batches for row in batch.rows.to_pylist()):
        # a map has no order: entries that were stored come before new ones
        found[row["k"]].append(row["text"])
    assert {k: [_sorted(t) for t in texts] for k, texts in found.items()} == {
        k: [_sorted(t) for t in texts] for k, texts in EXPECTED.items()
    }


def _sorted(text: str) -> tuple[str, list[str]]:
    head, _, entries = text.partition("{")
    return head, sorted(entries.rstrip("}").split(", "))


def test_times_are_datetimes_of_utc() -> None:
    seen: list[Any] = []

    @penstock.ptf({"n": "BIGINT"}, mode="row")
    class Timed:
        def process(self, ctx: Any, row: dict[str, Any]) -> None:
            seen.append((ctx.time, ctx.watermark, ctx.input, ctx.now_ms, ctx.ended, ctx.retracts))
            ctx.set_timer(datetime(1970, 1, 1, 0, 0, 1))
            ctx.set_timer(datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), "zoned")
            ctx.set_timer(datetime(1970, 1, 1, 0, 0, 3), "gone")
            ctx.clear_timer("gone")

        def on_timer(self, ctx: Any) -> None:
            seen.append((ctx.time, ctx.timer, ctx.processing_time))

    made = opened(operator(Timed))
    done(made.on_watermark(7, Folded()))
    done(made.on_batch(rows(("a", 1, 5)), 0, Folded()))
    done(made.on_watermark(10_000_000, Folded()))
    first = datetime(1970, 1, 1)
    assert seen == [
        (first.replace(microsecond=5), first.replace(microsecond=7), "input", 0, False, False),
        (first.replace(second=1), None, False),
        (first.replace(second=2), "zoned", False),
    ]


@pytest.mark.parametrize(
    ("mistake", "code"),
    [
        (lambda ctx: ctx.emit(1, 2), "RUN-2013"),
        (lambda ctx: ctx.emit("x"), "RUN-2011"),
        (lambda ctx: ctx.set_timer(None), "RUN-2013"),
        (lambda ctx: ctx.state.nothing, "RUN-2013"),
        (lambda ctx: {}["k"], "RUN-2010"),
        (lambda ctx: ctx.set_timer(5), "RUN-2013"),
    ],
)
def test_mistakes_have_codes(mistake: Any, code: str) -> None:
    @penstock.ptf({"n": "BIGINT"}, mode="row")
    class Mistaken:
        def process(self, ctx: Any, row: dict[str, Any]) -> None:
            mistake(ctx)

    with pytest.raises(PenstockError) as failed:
        done(opened(operator(Mistaken)).on_batch(rows(("a", 1, 0)), 0, Folded()))
    assert failed.value.code == code
    assert "1 rows of input" in str(failed.value.detail)
