"""EMIT FINAL against a bag of rows: changes in, the rows that are left out, once and at the end; restored and
rescaled in between.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.job_options import JobOptions
from penstock.engine.operators.emit_final import EmitFinalOperator
from penstock.planner.logical.emit import EmitKind
from tests.harness.length import examples
from tests.harness.operator_specs import emit_spec
from tests.harness.operators import done
from tests.harness.operators import opened as opened_in
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    fold,
    owners,
    restored,
    snapshots,
)

SCHEMA = Schema((Field("k", STRING), Field("n", BIGINT)))
KEYS = (0, 1)
SPEC = emit_spec("e", "emit", SCHEMA, EmitKind.FINAL, KEYS)


def final() -> EmitFinalOperator:
    return EmitFinalOperator(SPEC, JobOptions())


@st.composite
def changelogs(draw: st.DrawFn) -> list[Change]:
    """Changes after each of which no row is there less than not at all."""
    alive: list[tuple[str | None, int | None]] = []
    changes: list[Change] = []
    for _ in range(draw(st.integers(0, 25))):
        if alive and draw(st.booleans()):
            changes.append((alive.pop(draw(st.integers(0, len(alive) - 1))), -1))
        else:
            row = draw(st.tuples(st.none() | st.sampled_from("abc"), st.sampled_from([None, 1, 2**62])))
            times = draw(st.sampled_from([1, 1, 3]))
            alive += [row] * times
            changes.append((row, times))
    return changes


@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(changes=changelogs(), cuts=st.lists(st.integers(1, 9)), rescales=st.lists(st.integers(0, 3)))
def test_the_rows_that_are_left_are_emitted_once_and_at_the_end(
    changes: list[Change], cuts: list[int], rescales: list[int]
) -> None:
    operators, out, first = [final()], Collected(), 0
    operators[0].open(context())
    for number in range(len(changes) + 1):
        size = cuts[number] if number < len(cuts) else 4
        batch = batch_of(changes[first : first + size], SCHEMA.to_arrow())
        first += size
        owner = owners(batch.rows, KEYS, len(operators))
        for subtask, operator in enumerate(operators):
            operator.on_batch(batch.take((owner == subtask).nonzero()[0]), 0, out)
        parallelism = rescales[number] if number < len(rescales) else 0
        if parallelism:
            saved = snapshots(operators)  # type: ignore[arg-type]
            operators = [restored(final(), context(i, parallelism), saved) for i in range(parallelism)]  # type: ignore[misc]
        if first >= len(changes):
            break
    assert not out.batches, "nothing before the end"
    for operator in operators:
        done(operator.on_end(out))
        assert operator.keyed_states()["rows"].snapshot().num_rows == 0
    assert out.folded() == fold(changes)
    assert len(out.changes()) == len(out.folded()) and all(weight > 0 for _, weight in out.changes())


def test_a_retraction_before_its_row_waits_for_it() -> None:
    operator, out = final(), Collected()
    at = opened_in(operator)
    for weight in (-1, 1, 1):
        operator.on_batch(batch_of([(("a", 1), weight)], SCHEMA.to_arrow()), 0, out)
    assert at.metrics.state_entries == 1
    done(operator.on_end(out))
    assert out.changes() == [(("a", 1), 1)] and at.metrics.state_entries == 0
