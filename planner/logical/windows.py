"""The kinds of windows, the columns that windows add, and when windows emit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import ClassVar

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role, Schema, without_event_time
from penstock.catalog.types import TIMESTAMP


def demand(condition: bool, message: str) -> None:
    """Raise INT-9001 for an inconsistent node: a bug of ours, never of the statement."""
    if not condition:
        raise PenstockError("INT-9001", f"broken plan: {message}", kind=Kind.INTERNAL, sqlstate="XX000")


@dataclass(frozen=True)
class Windowing:
    """A window assigner over event time, in microseconds; each kind of window is a derived class.

    A kind declares what planner, optimizer and engine need. Its arithmetic over columns is in
    ``engine/windowing/window_arithmetic``, its SQL for backends in ``planner/sql_generator/windows``.

    ``partition_keys`` are the columns whose values have windows of their own; only merging windows have them.
    ``sliced``: the time column holds the ends of slices aggregated below, so slice end e counts as time e - 1
    us.
    """

    name: ClassVar[str]
    """The name of the kind in EXPLAIN and digests, and in capitals in statements."""
    usage: ClassVar[str]
    """A call of the window function, as hints show it."""
    parameters: ClassVar[dict[str, str]]
    """The length arguments of a call, in order, and the fields they set."""
    merging: ClassVar[bool] = False
    """Whether rows define the windows: each row opens one, and windows that touch merge."""
    overlapping: ClassVar[bool] = False
    """Whether a row may fall into several windows."""
    ends_share_start: ClassVar[bool] = False
    """Whether windows with different ends may share a start."""

    time_column: int
    size_us: int
    step_us: int = 0
    offset_us: int = 0
    partition_keys: tuple[int, ...] = ()
    sliced: bool = False

    def __post_init__(self) -> None:
        # the binder refuses such lengths with a position; a rule that makes them has a defect
        demand(self.size_us > 0, "a window of no size")
        demand(
            # slices of one step must fill the window exactly
            not self.overlapping or (self.step_us > 0 and self.size_us % self.step_us == 0),
            "a window whose size is no multiple of its step",
        )

    @property
    def slice_us(self) -> int:
        """The longest interval that no window bound cuts. All windows over it share its aggregate. Merging
        windows have no slices.
        """
        # HOP of 10 minutes every 2: slices of 2 minutes, five to a window
        return self.step_us if self.overlapping else self.size_us

    @property
    def windows_per_slice(self) -> int:
        """The maximum number of windows over one slice."""
        # 1 for TUMBLE and sessions
        return self.size_us // self.slice_us

    def slices(self) -> TumbleWindow:
        """Return the slices as tumbling windows."""
        return TumbleWindow(
            self.time_column,
            self.slice_us,
            offset_us=self.offset_us,
            partition_keys=self.partition_keys,
            sliced=self.sliced,
        )

    def lengths_us(self) -> tuple[int, ...]:
        """Return the lengths in the order of a call's arguments, without the offset."""
        # HOP: slide, size; SESSION: gap
        return tuple(getattr(self, field) for field in self.parameters.values() if field != "offset_us")

    def columns(self) -> frozenset[int]:
        """Return the columns that determine the windows of a row."""
        return frozenset({self.time_column, *self.partition_keys})

    def moved(self, positions: Mapping[int, int]) -> Windowing:
        """Return the windows for new positions of their columns."""
        # offsets and lengths are constants: only columns move
        keys = tuple(positions[key] for key in self.partition_keys)
        return replace(self, time_column=positions[self.time_column], partition_keys=keys)


@dataclass(frozen=True)
class TumbleWindow(Windowing):
    """Consecutive windows of one size."""

    name = "tumble"
    usage = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)"
    parameters: ClassVar = {"SIZE": "size_us", "OFFSET": "offset_us"}


@dataclass(frozen=True)
class HopWindow(Windowing):
    """Windows of one size; one begins every ``step_us``, the slide."""

    name = "hop"
    usage = "HOP(TABLE t, DESCRIPTOR(ts), slide, size)"
    parameters: ClassVar = {"SLIDE": "step_us", "SIZE": "size_us", "OFFSET": "offset_us"}
    overlapping = True


@dataclass(frozen=True)
class CumulateWindow(Windowing):
    """Windows with one start, whose ends are ``step_us`` apart up to ``size_us``; then the next start
    follows.
    """

    name = "cumulate"
    usage = "CUMULATE(TABLE t, DESCRIPTOR(ts), step, size)"
    parameters: ClassVar = {"STEP": "step_us", "SIZE": "size_us", "OFFSET": "offset_us"}
    overlapping = True
    ends_share_start = True


@dataclass(frozen=True)
class SessionWindow(Windowing):
    """Rows of a key that are at most ``size_us``, the gap, apart. The window ends one gap after
    its last row.
    """

    name = "session"
    usage = "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), gap)"
    parameters: ClassVar = {"GAP": "size_us"}
    merging = True


WINDOW_FUNCTIONS: dict[str, type[Windowing]] = {
    kind.name.upper(): kind for kind in (TumbleWindow, HopWindow, CumulateWindow, SessionWindow)
}
"""The kinds of windows, by their table function."""


def window_functions_text(last: str) -> str:
    """Return the names of the window functions, with ``and`` or ``or`` before the last one."""
    *names, end = WINDOW_FUNCTIONS
    return f"{', '.join(names)} {last} {end}"


@dataclass(frozen=True)
class AttachedWindow:
    """A window that the rows carry as two columns, from a WindowTable, a window join or a window aggregate
    below.
    """

    start_column: int
    end_column: int

    def columns(self) -> frozenset[int]:
        """Return the columns that determine the window of a row."""
        return frozenset({self.start_column, self.end_column})

    def moved(self, positions: Mapping[int, int]) -> AttachedWindow:
        """Return the window for new positions of its columns."""
        return AttachedWindow(positions[self.start_column], positions[self.end_column])


def window_fields() -> tuple[Field, Field, Field]:
    """Return the fields window_start, window_end, window_time (= end - 1 ms, an event-time attribute)."""
    return (
        # windows are [start, end); the type becomes that of the time column
        Field("window_start", TIMESTAMP, False, Role.WINDOW_START),
        Field("window_end", TIMESTAMP, False, Role.WINDOW_END),
        Field("window_time", TIMESTAMP, False, Role.WINDOW_TIME),
    )


def without_bound(field: Field) -> Field:
    """Return a field as it is below a new window: it is a window bound no longer, but its time still orders
    rows.
    """
    # WINDOW_TIME stays: windows over windows are cut on it
    return replace(field, role=None) if field.role in (Role.WINDOW_START, Role.WINDOW_END) else field


def fields_in_windows(fields: Sequence[Field], window: Windowing) -> tuple[Field, ...]:
    """Return the fields of rows in new windows. Sessions emit rows later than their time, so its role ends
    there.
    """
    plain = tuple(map(without_bound, fields))
    return without_event_time(plain) if window.merging else plain


@dataclass(frozen=True)
class Emission:
    """When the windows of an aggregate emit, in microseconds.

    ``early``: open windows emit changes of their result too, ``every_us`` apart, or once a subtask has
    ``every_rows`` of them, whichever is first. 0 of both: at once. ``lateness_us``: windows
    accept rows until the watermark is that far past their end, and each such row corrects the result. Without
    either a window emits once.
    """

    early: bool = False
    every_us: int = 0
    lateness_us: int = 0
    # operator ids hash the other fields' text: those of older checkpoints have no such field
    every_rows: int = field(default=0, repr=False)

    @property
    def waits(self) -> bool:
        """Whether changes are put together before they are emitted."""
        return bool(self.every_us or self.every_rows)

    @property
    def corrects(self) -> bool:
        """Whether emitted rows may be retracted."""
        # EMIT CHANGES, or EMIT .. WITH LATENESS
        return self.early or self.lateness_us > 0


ON_CLOSE = Emission()


@dataclass(frozen=True)
class WindowBest:
    """The MAX (``greatest``) or MIN of each window over rows of input ``port``. A row that is worse than the
    best so far of all windows it may join has no match; in the aggregate itself it changes nothing.

    ``value_column`` and ``time_column`` are columns of that input. A row may join the windows that end from
    ``before_us`` before its time to ``after_us`` after it.

    ``attached``: the rows carry their window, and ``time_column`` is its end. Ends are multiples of
    ``size_us`` apart, and window number n is the one that ends where it begins here.
    """

    port: int
    value_column: int
    time_column: int
    size_us: int
    offset_us: int
    before_us: int
    after_us: int
    greatest: bool
    attached: bool = False

    @classmethod
    def of_attached(
        cls, port: int, value_column: int, end_column: int, window: Windowing, greatest: bool
    ) -> WindowBest:
        """Return the best of the windows that the rows carry, each row in its own window only."""
        step = window.slice_us
        # from one step after its end to one step after its end: that window and no other
        return cls(
            port, value_column, end_column, step, window.offset_us, -step, step, greatest, attached=True
        )

    def text(self, schema: Schema) -> str:
        """Return the filter in words, over the schema of its input."""
        best = "max" if self.greatest else "min"
        return f"window filter on {best}({schema[self.value_column].name})"
