"""Windows as data: which kind, how long, over which time column; the columns they add, and when they emit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role, without_event_time
from penstock.catalog.types import TIMESTAMP


def demand(condition: bool, message: str) -> None:
    """Refuse a node that cannot mean anything: a bug of ours, never of the statement (INT-9001)."""
    if not condition:
        raise PenstockError("INT-9001", f"broken plan: {message}", kind=Kind.INTERNAL, sqlstate="XX000")


class WindowKind(StrEnum):
    """The four window functions."""

    TUMBLE = "tumble"
    HOP = "hop"
    CUMULATE = "cumulate"
    SESSION = "session"


@dataclass(frozen=True)
class Windowing:
    """How event times fall into windows; microseconds. TUMBLE: size. HOP: size, step = slide. CUMULATE: size
    = max size, step. SESSION: size = gap.

    ``partition_keys`` (SESSION) are positions of the columns that have sessions of their own. ``sliced``: the
    time column holds the ends of slices aggregated below, so a row of slice end e counts as time e - 1 us.
    """

    kind: WindowKind
    time_column: int
    size_us: int
    step_us: int = 0
    offset_us: int = 0
    partition_keys: tuple[int, ...] = ()
    sliced: bool = False

    def __post_init__(self) -> None:
        demand(self.size_us > 0, "a window of no size")
        if self.kind in (WindowKind.HOP, WindowKind.CUMULATE):
            demand(
                self.step_us > 0 and self.size_us % self.step_us == 0,
                "a window whose size is no multiple of its step",
            )


@dataclass(frozen=True)
class AttachedWindow:
    """Windows already on the rows as two columns (below: a WindowTable, a window join, an earlier window
    aggregate).
    """

    start_column: int
    end_column: int


def window_fields() -> tuple[Field, Field, Field]:
    """Return the fields window_start, window_end, window_time (= end - 1 ms, an event-time attribute)."""
    return (
        Field("window_start", TIMESTAMP, False, Role.WINDOW_START),
        Field("window_end", TIMESTAMP, False, Role.WINDOW_END),
        Field("window_time", TIMESTAMP, False, Role.WINDOW_TIME),
    )


def without_bound(field: Field) -> Field:
    """Return a column beneath a new window: no bound of a window any more; its time still orders rows."""
    return replace(field, role=None) if field.role in (Role.WINDOW_START, Role.WINDOW_END) else field


def fields_in_windows(fields: Sequence[Field], window: Windowing) -> tuple[Field, ...]:
    """Return columns beneath a new window; rows of sessions come when these are over, later than their
    time, which ends there.
    """
    kept = tuple(map(without_bound, fields))
    return without_event_time(kept) if window.kind is WindowKind.SESSION else kept


@dataclass(frozen=True)
class Emission:
    """When the windows of an aggregate give rows; microseconds.

    ``early``: also while they are open, every change of a result, ``every_us`` apart. ``lateness_us``: they
    take rows until the watermark is that far past their end, each changing the result given at their close.
    Without either a window gives its rows once.
    """

    early: bool = False
    every_us: int = 0
    lateness_us: int = 0

    @property
    def corrects(self) -> bool:
        """Whether rows that were given may be taken back."""
        return self.early or self.lateness_us > 0


ON_CLOSE = Emission()
