"""Ctrl-C raises KeyboardInterrupt where it leaves no lock behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest

from penstock.repl.launch.interrupts import raised_between_locks


class InterruptedLock:
    """A lock that is interrupted right behind its acquisition, as a main thread is that has waited for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __enter__(self) -> bool:
        self.lock.acquire()
        signal.raise_signal(signal.SIGINT)
        return True

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def condition_over(lock: InterruptedLock) -> threading.Condition:
    condition = threading.Condition()
    condition._lock = lock  # type: ignore[attr-defined]  # what its __enter__ and __exit__ call
    return condition


def interrupted(enter: Callable[[], object]) -> None:
    """Run until the interrupt comes, which is at once or a moment later."""
    with pytest.raises(KeyboardInterrupt):
        enter()
        while True:
            time.sleep(0.001)


def enters(condition: threading.Condition) -> None:
    with condition:
        pass


def test_a_condition_is_left_free() -> None:
    lock = InterruptedLock()
    with raised_between_locks():
        interrupted(lambda: enters(condition_over(lock)))
    assert lock.lock.acquire(blocking=False)


def test_control_python_alone_leaves_it_acquired() -> None:
    lock = InterruptedLock()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupted(lambda: enters(condition_over(lock)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not lock.lock.acquire(blocking=False)


def test_an_import_is_completed_first(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "interrupted_module.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nVALUE = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    values = []

    def load() -> None:
        import interrupted_module

        values.append(interrupted_module.VALUE)

    with raised_between_locks():
        interrupted(load)
    assert values == [1]


def test_elsewhere_it_comes_at_once_and_the_former_handler_comes_back() -> None:
    calls: list[int] = []

    def former(signum: int, frame: FrameType | None) -> None:
        calls.append(signum)

    before = signal.signal(signal.SIGINT, former)
    try:
        with raised_between_locks(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [signal.SIGINT]
