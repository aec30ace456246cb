"""Stream elements: what a batch answers for itself."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa

from penstock.engine.api.stream_elements import Batch


class _SlowRows:
    """Rows whose size is known only when they are told so."""

    num_rows = 1

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()

    def get_total_buffer_size(self) -> int:
        self.asked.set()
        self.answer.wait(60)
        return 8


def test_a_batch_is_measured_while_another_thread_measures_one() -> None:
    slow: Any = _SlowRows()
    measuring = threading.Thread(target=lambda: Batch(slow).size_bytes, daemon=True)
    measuring.start()
    assert slow.asked.wait(60)
    sizes: list[int] = []
    other = Batch(pa.record_batch({"x": pa.array([1, 2], pa.int64())}))
    beside = threading.Thread(target=lambda: sizes.append(other.size_bytes), daemon=True)
    beside.start()
    beside.join(20)
    measured = list(sizes)
    slow.answer.set()
    measuring.join(60)
    assert measured == [16]


def test_a_batch_is_measured_once() -> None:
    slow: Any = _SlowRows()
    slow.answer.set()
    batch = Batch(slow)
    assert batch.size_bytes == 8 and slow.asked.is_set()
    slow.asked.clear()
    assert batch.size_bytes == 8 and not slow.asked.is_set()
