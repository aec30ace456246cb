"""EMIT CHANGES: changes wait for their time, are consolidated, and never wait over a barrier or the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.operators import emit_changes
from penstock.engine.operators.emit_changes import EmitChangesOperator
from penstock.planner.logical.emit import EmitKind
from penstock.planner.logical.windows import Emission
from tests.harness.length import examples
from tests.harness.operator_specs import emit_spec, with_node
from tests.harness.operators import done, opened
from tests.unit.engine.operators.changelogs import Change, Collected, batch_of, fold

SCHEMA = Schema((Field("k", STRING), Field("n", BIGINT)))
EVERY_MS = 100
ROW = st.tuples(st.none() | st.sampled_from("ab"), st.sampled_from([None, 1, 2**62]))


def emitting(every_ms: int = EVERY_MS) -> tuple[EmitChangesOperator, ManualClock]:
    spec = emit_spec("e", "emit", SCHEMA, EmitKind.CHANGES, every_us=1000 * every_ms)
    operator, clock = EmitChangesOperator(spec, JobOptions()), ManualClock(1_000)
    opened(operator, clock)
    return operator, clock


def send(operator: EmitChangesOperator, changes: list[Change], out: Collected) -> None:
    done(operator.on_batch(batch_of(changes, SCHEMA.to_arrow()), 0, out))


def tick(operator: EmitChangesOperator, clock: ManualClock, out: Collected) -> None:
    done(operator.on_processing_time(int(clock.now_ms), out))


def test_so_many_changes_are_emitted_or_those_of_an_interval() -> None:
    spec = emit_spec("e", "emit", SCHEMA, EmitKind.CHANGES)
    for every_us, later in ((0, 0), (1000 * EVERY_MS, 1)):
        emission = Emission(every_us=every_us, every_rows=4)
        operator, clock = (
            EmitChangesOperator(with_node(spec, emission=emission), JobOptions()),
            ManualClock(1_000),
        )
        opened(operator, clock)
        out = Collected()
        send(operator, [(("a", 1), 1), (("b", 1), 1), (("c", 1), 1)], out)
        assert not out.batches
        send(operator, [(("a", 1), -1)], out)
        assert out.folded() == fold([(("b", 1), 1), (("c", 1), 1)])
        send(operator, [(("d", 1), 1)], out)
        clock.now_ms += EVERY_MS
        tick(operator, clock, out)
        assert len(out.changes()) == 2 + later, "the interval counts only where it is written"
        operator.before_barrier(1, out)
        assert len(out.changes()) == 3


def test_changes_wait_until_their_time_and_those_that_cancel_out_are_not_emitted() -> None:
    operator, clock = emitting()
    out = Collected()
    send(operator, [(("a", 1), 1), (("b", 1), 1)], out)
    clock.now_ms += EVERY_MS - 1
    send(operator, [(("a", 1), -1), (("a", 2), 1)], out)
    tick(operator, clock, out)
    assert not out.batches
    clock.now_ms += 1
    tick(operator, clock, out)
    assert out.folded() == fold([(("b", 1), 1), (("a", 2), 1)]) and len(out.changes()) == 2
    send(operator, [(("a", 2), -1)], out)
    clock.now_ms += EVERY_MS - 1
    tick(operator, clock, out)
    assert len(out.changes()) == 2, "the next ones wait as long, from the last that were emitted"
    clock.now_ms += 1
    tick(operator, clock, out)
    assert len(out.changes()) == 3


def test_without_an_interval_changes_are_emitted_at_once_and_as_they_are() -> None:
    operator, _ = emitting(0)
    out = Collected()
    changes: list[Change] = [(("a", 1), 1), (("a", 1), -1), ((None, None), 2)]
    send(operator, changes, out)
    assert out.changes() == changes
    send(operator, [], out)
    done(operator.on_end(out))
    assert out.changes() == changes


@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_waits_over_a_barrier_or_the_end(at_end: bool) -> None:
    operator, _ = emitting()
    out = Collected()
    send(operator, [(("a", 1), 3)], out)
    assert not operator.keyed_states() and not operator.list_states(), "so nothing of it is in a checkpoint"
    if at_end:
        done(operator.on_end(out))
    else:
        operator.before_barrier(1, out)
    assert out.changes() == [(("a", 1), 3)]
    operator.before_barrier(2, out)
    assert len(out.changes()) == 1


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    batches=st.lists(st.lists(st.tuples(ROW, st.sampled_from([1, -1, 2])), max_size=6), max_size=6),
    waits=st.lists(st.integers(0, 150), min_size=6, max_size=6),
)
def test_what_is_emitted_adds_up_to_what_came(batches: list[list[Change]], waits: list[int]) -> None:
    """Also where the buffer is consolidated while it waits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emit_changes, "_ROWS_MAX", 5)
        operator, clock = emitting()
        out = Collected()
        for batch, wait in zip(batches, waits, strict=False):
            send(operator, batch, out)
            clock.now_ms += wait
            tick(operator, clock, out)
        done(operator.on_end(out))
    assert out.folded() == fold([change for batch in batches for change in batch])


def test_a_buffer_that_grows_is_consolidated_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come and go take no memory, however long the interval."""
    monkeypatch.setattr(emit_changes, "_ROWS_MAX", 4)
    operator, _ = emitting()
    out = Collected()
    for _ in range(50):
        send(operator, [(("a", 1), 1), (("a", 1), -1)], out)
        assert sum(batch.num_rows for batch in operator._changes._buffered) < 4
    done(operator.on_end(out))
    assert not out.batches
