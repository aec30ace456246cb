"""Sessions that correct themselves: changes in, early results or allowed lateness; what was emitted adds up to the
sessions of the rows at every moment (sessions that are emitted once: ``test_window_aggregate``).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.window.session_aggregate import (
    EarlyFireSessionOperator,
    RetractSessionOperator,
    SessionAggregateOperator,
)
from penstock.planner.logical.windows import Emission, SessionWindow
from tests.harness.direct.lateness import Entry, sessions_in_turn
from tests.harness.length import examples
from tests.harness.operator_specs import with_facts, with_node
from tests.harness.operators import done
from tests.harness.state import OPTIONS, Folded, batch_of, opened, rescaled
from tests.unit.engine.operators.window.test_window_aggregate import INPUT, send, spec, window_rows

GAP = 4
SESSION = spec(SessionWindow(0, GAP, partition_keys=(1,)))
EARLY = with_node(SESSION, emission=Emission(early=True))
RETRACTING = with_facts(EARLY, insert_only_inputs=(False,))
ROW = st.tuples(st.integers(0, 30), st.sampled_from([None, "a", "b"]), st.sampled_from([None, -1, 2]))


def sessions(rows: list[Any]) -> Counter[Any]:
    """The sessions of rows of which none is late."""
    found, late = sessions_in_turn([Entry(key, time, -(2**63), (value, 1)) for time, key, value in rows], GAP)
    assert not late
    return sum((window_rows({(one.start, one.end, one.key): one.rows}) for one in found), Counter())


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        (SESSION, SessionAggregateOperator),
        (EARLY, EarlyFireSessionOperator),
        (RETRACTING, RetractSessionOperator),
    ],
)
def test_the_kind_of_input_and_emission_chooses_the_operator(kind: Any, made: type) -> None:
    assert type(build_operator(kind, OPTIONS)) is made


@pytest.mark.parametrize("kind", [EARLY, RETRACTING])
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(
    rows=st.lists(ROW, max_size=14),
    cuts=st.lists(st.integers(1, 4)),
    scales=st.lists(st.sampled_from([0, 1, 3])),
)
def test_early_results_are_the_sessions_so_far(
    kind: Any, rows: list[Any], cuts: list[int], scales: list[int]
) -> None:
    """After every batch, rescaled between them; a row may merge sessions."""
    operators, out, first = [opened(build_operator(kind, OPTIONS))], Folded(), 0
    while first < len(rows):
        size = cuts.pop() if cuts else 2
        send(operators, batch_of(INPUT.to_arrow(), rows[first : first + size]), out)
        first += size
        assert out.rows == sessions(rows[:first])
        if scales and (parallelism := scales.pop()):
            operators = rescaled(operators, lambda: build_operator(kind, OPTIONS), parallelism)
    for operator in operators:
        done(operator.on_watermark(MAX_WATERMARK_US, out))
        assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())
    assert out.rows == sessions(rows)


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(rows=st.lists(ROW, min_size=1, max_size=12), data=st.data())
def test_a_retraction_splits_a_session_again(rows: list[Any], data: st.DataObject) -> None:
    operator, out = opened(build_operator(RETRACTING, OPTIONS)), Folded()
    done(operator.on_batch(batch_of(INPUT.to_arrow(), rows), 0, out))
    left = list(rows)
    for row in data.draw(st.lists(st.sampled_from(rows), max_size=6)):
        if row in left:
            left.remove(row)
            done(operator.on_batch(batch_of(INPUT.to_arrow(), [row], [-1]), 0, out))
            assert out.rows == sessions(left)


@pytest.mark.parametrize("insert_only", [True, False])
def test_with_lateness_a_session_is_corrected_until_it_is_dropped(insert_only: bool) -> None:
    kind = with_facts(
        with_node(SESSION, emission=Emission(lateness_us=10)), insert_only_inputs=(insert_only,)
    )
    operator, out = opened(build_operator(kind, OPTIONS)), Folded()
    rows = [(0, "a", 1), (2, "a", 2)]
    done(operator.on_batch(batch_of(INPUT.to_arrow(), rows), 0, out))
    assert not out.rows, "no early results"
    done(operator.on_watermark(6, out))
    assert not out.rows, "a row at its end may still come"
    done(operator.on_watermark(7, out))
    assert out.rows == sessions(rows)
    rows.append((3, "a", 5))
    done(operator.on_batch(batch_of(INPUT.to_arrow(), rows[2:]), 0, out))
    done(operator.on_watermark(8, out))
    assert out.rows == sessions(rows) and operator.metrics.late_rows == 0
    done(operator.on_watermark(30, out))
    done(operator.on_batch(batch_of(INPUT.to_arrow(), [(4, "a", 9)]), 0, out))
    done(operator.on_watermark(31, out))
    assert out.rows == sessions(rows) and operator.metrics.late_rows == 1


def test_time_passes_one_microsecond_behind_the_sessions() -> None:
    operator = opened(build_operator(SESSION, OPTIONS))
    assert operator.passes_on(7) == 6
    assert operator.passes_on(MAX_WATERMARK_US) == MAX_WATERMARK_US
