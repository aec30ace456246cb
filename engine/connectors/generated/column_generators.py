"""Generated columns: each value is a pure function of seed, column name and row number, so any row can be
regenerated.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    Binary,
    DataType,
    Decimal,
    Timestamp,
    TimestampLtz,
    is_integer,
    is_timestamp,
    to_arrow,
)
from penstock.engine.api.arrow_numpy import array_of, texts
from penstock.engine.formats.text_conversion import from_text

Column = Callable[[np.ndarray, int], pa.Array]
# splitmix64's increment: 2^64 over the golden ratio
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# 32 letters, so that five bits choose one
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", np.uint8)
_DEFAULT_START = "2020-01-01 00:00:00"
_DEFAULT_RANGE: dict[DataType, tuple[str, str]] = {
    DATE: ("2020-01-01", "2029-12-31"),
    DOUBLE: ("0", "1"),
    FLOAT: ("0", "1"),
}


def mix(words: np.ndarray) -> np.ndarray:
    """Return splitmix64 of each uint64, a hash without correlation between neighbours."""
    with np.errstate(over="ignore"):
        z = words + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class FieldPlan:
    """The generator of one column. ``make(rows, now_us)`` returns the values for row numbers (uint64).
    ``rows``: the length of a sequence, or ``None``. ``width``: the bytes of a random string.
    """

    make: Column
    rows: int | None = None
    width: int = 0


def plan_field(table: CatalogTable, field: Field) -> FieldPlan:
    """Return the generator of a datagen column. SQL-1509 for an unsupported type, SQL-1505 for a bad
    bound.
    """
    kind = option(table, f"fields.{field.name.lower()}.kind")
    values = option(table, f"fields.{field.name.lower()}.values")
    timed = is_timestamp(field.type)
    if kind is None:
        # the kind follows from the options that are set
        spaced = any(
            option(table, f"fields.{field.name.lower()}.{key}") is not None
            for key in ("step", "start", "end")
        )
        ranged = any(
            option(table, f"fields.{field.name.lower()}.{key}") is not None for key in ("min", "max")
        )
        kind = "sequence" if spaced else "now" if timed and not ranged else "random"
    if isinstance(values, str):
        return FieldPlan(
            _choice(
                _seed(table, field),
                _texts(table, field, "values", [part.strip() for part in values.split(",")]),
            )
        )
    if kind == "sequence":
        return _sequence(table, field)
    if kind == "now":
        return _now(field)
    width = int(option(table, f"fields.{field.name.lower()}.length") or 0)
    return FieldPlan(
        _random(table, field), width=width if field.type == STRING or isinstance(field.type, Binary) else 0
    )


def _seed(table: CatalogTable, field: Field) -> np.uint64:
    seed = option(table, "seed")
    # another column name, other values; crc32 is the same in every process, hash() is not
    word = (int(seed or 0) << 32) ^ zlib.crc32(field.name.lower().encode())
    return mix(np.array([word & 0xFFFFFFFFFFFFFFFF], np.uint64))[0]


def _words(seed: np.uint64, rows: np.ndarray) -> np.ndarray:
    # mixed twice: neighbouring rows and columns must not be correlated
    return mix(mix(rows) ^ seed)


def _texts(table: CatalogTable, field: Field, key: str, values: list[str]) -> pa.Array:
    try:
        return from_text(texts(values), field.type) if field.type != STRING else texts(values)
    except pa.ArrowInvalid as error:
        name = f"fields.{field.name.lower()}.{key}"
        raise PenstockError(
            "SQL-1505", f"option '{name}' of {table.name} is not a {field.type}", detail=str(error)[:200]
        ) from error


def _bound(table: CatalogTable, field: Field, key: str, default: str) -> int:
    """Return a bound as the integer Arrow stores for it (days, microseconds, unscaled decimal)."""
    text = option(table, f"fields.{field.name.lower()}.{key}")
    value = _texts(table, field, key, [default if text is None else str(text)])
    if isinstance(field.type, Decimal):
        return int(value[0].as_py().scaleb(field.type.scale))
    storage = pa.int32() if value.type == pa.date32() else pa.int64()
    return int(value.cast(storage)[0].as_py())


def _sequence(table: CatalogTable, field: Field) -> FieldPlan:
    timed = is_timestamp(field.type)
    if not timed and not is_integer(field.type) and field.type != STRING:
        raise PenstockError(
            "SQL-1509",
            f"datagen makes no sequence of {field.type} for column {field.name}",
            hint="use kind 'random'",
        )
    end = option(table, f"fields.{field.name.lower()}.end")
    # a sequence of STRING counts in BIGINT and is written as text
    counted = Field(field.name, BIGINT if field.type == STRING else field.type)
    start = _bound(table, counted, "start", _DEFAULT_START if timed else "0")
    step_ms = option(table, f"fields.{field.name.lower()}.step")
    # times advance by a second unless 'step' is set; in microseconds
    step = (int(step_ms) if step_ms is not None else 1000) * 1000 if timed else 1
    last = None if end is None else _bound(table, counted, "end", "0")
    rows = None if last is None else max(0, (last - start) // max(step, 1) + 1)
    arrow = to_arrow(counted.type)

    def make(numbers: np.ndarray, now_us: int) -> pa.Array:
        values = array_of(numbers.astype(np.int64) * step + start).cast(arrow)
        return values.cast(pa.string()) if field.type == STRING else values

    return FieldPlan(make, rows)


def _now(field: Field) -> FieldPlan:
    if not is_timestamp(field.type):
        raise PenstockError(
            "SQL-1509",
            f"column {field.name} of type {field.type} cannot be the time of generation",
            hint="declare it TIMESTAMP_LTZ(3)",
        )
    arrow = to_arrow(field.type)
    return FieldPlan(lambda numbers, now_us: array_of(np.full(len(numbers), now_us, np.int64)).cast(arrow))


def _choice(seed: np.uint64, values: pa.Array) -> Column:
    count = np.uint64(len(values))
    return lambda numbers, now_us: values.take(array_of((_words(seed, numbers) % count).astype(np.int64)))


def _random(table: CatalogTable, field: Field) -> Column:
    seed, kind = _seed(table, field), field.type
    arrow = to_arrow(kind)
    if kind == BOOLEAN:
        return lambda numbers, now_us: array_of(_words(seed, numbers) >> np.uint64(63) == 1)
    if kind == STRING or isinstance(kind, Binary):
        length = option(table, f"fields.{field.name.lower()}.length")
        return _strings(seed, int(length or 0), arrow)
    if kind in (DOUBLE, FLOAT):
        low, high = (
            float(_real(table, field, key, default))
            for key, default in zip(("min", "max"), _DEFAULT_RANGE[kind], strict=True)
        )
        # a double has 53 bits: the upper ones of a word, as a number in [0, 1)
        unit = 2.0**-53
        return lambda numbers, now_us: array_of(
            (_words(seed, numbers) >> np.uint64(11)) * unit * (high - low) + low
        ).cast(arrow)
    if not (is_integer(kind) or isinstance(kind, Decimal | Timestamp | TimestampLtz) or kind == DATE):
        raise PenstockError(
            "SQL-1509",
            f"datagen cannot make values of {kind} for column {field.name}",
            hint="leave the column out",
        )
    low, high = _integer_range(table, field)
    # the remainder favours small values by less than span / 2^64
    span = np.uint64(high - low + 1)

    def make(numbers: np.ndarray, now_us: int) -> pa.Array:
        values = (_words(seed, numbers) % span).astype(np.int64) + low
        return _decimals(values, arrow) if isinstance(kind, Decimal) else _storage(values, arrow)

    return make


def _integer_range(table: CatalogTable, field: Field) -> tuple[int, int]:
    kind = field.type
    if isinstance(kind, Decimal):
        # at most 18 digits fit into an int64
        digits = min(kind.precision, 18) - kind.scale
        default = ("0", "9" * digits if digits > 0 else "0")
    elif is_timestamp(kind):
        default = ("2020-01-01 00:00:00", "2029-12-31 23:59:59")
    elif is_integer(kind):
        # also of a BIGINT: at most 2^31 - 1, which a person can read
        default = ("0", str(min(2 ** (to_arrow(kind).bit_width - 1), 2**31) - 1))
    else:
        default = _DEFAULT_RANGE[kind]
    low, high = (_bound(table, field, key, text) for key, text in zip(("min", "max"), default, strict=True))
    if high < low or high - low >= 2**63:
        raise PenstockError(
            "SQL-1505",
            f"column {field.name} of {table.name} has no values between its min and max",
            hint="min <= max, less than 2^63 apart",
        )
    return low, high


def _real(table: CatalogTable, field: Field, key: str, default: str) -> float:
    text = option(table, f"fields.{field.name.lower()}.{key}")
    return _texts(table, field, key, [default if text is None else str(text)])[0].as_py()


def _storage(values: np.ndarray, arrow: pa.DataType) -> pa.Array:
    numbers = array_of(values)
    return numbers.cast(pa.int32()).cast(arrow) if arrow == pa.date32() else numbers.cast(arrow)


def _decimals(values: np.ndarray, arrow: pa.DataType) -> pa.Array:
    words = np.empty((len(values), 2), np.int64)
    # 128 bits of a decimal: the number, and its sign extended
    words[:, 0], words[:, 1] = values, values >> 63
    return pa.Array.from_buffers(arrow, len(values), [None, pa.py_buffer(words)])


def _strings(seed: np.uint64, length: int, arrow: pa.DataType) -> Column:
    """Return a column of strings of one length: five random bits per character, twelve characters per
    word.
    """
    # 60 of a word's 64 bits make twelve characters
    per_row = max(1, -(-length // 12))
    shifts = (np.arange(12) * 5).astype(np.uint64)

    def make(numbers: np.ndarray, now_us: int) -> pa.Array:
        # per_row words of randomness for each row, numbered without gaps
        words = _words(
            seed, (numbers[:, None] * np.uint64(per_row) + np.arange(per_row, dtype=np.uint64)).ravel()
        )
        # (rows * per_row, 12) letters; cut to the length below
        letters = _LETTERS[((words[:, None] >> shifts) & np.uint64(31)).astype(np.uint8)]
        data = letters.reshape(len(numbers), -1)[:, :length].tobytes()
        offsets = (np.arange(len(numbers) + 1) * length).astype(np.int32)
        return pa.Array.from_buffers(arrow, len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)])

    return make
