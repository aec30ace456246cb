"""Texts of times that come often are those of each time alone."""

import random
import re
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.expressions.datetime.datetime_patterns import compile_format, compile_reader

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd", "HH:mm", "a h EEE", "mm:ss", "ss.SSS", "MMM D Q", "'day'", ""]
)
@pytest.mark.parametrize(
    ("middle", "width"),
    [(0, 2 * HOUR), (-62 * 365 * 24 * HOUR, 40 * HOUR), (1_577_836_800_000_000, 30_000_000)],
)
def test_often(pattern, middle, width):
    times = middle + np.random.default_rng(7).integers(-width, width, 2000)
    column = pa.array(times).view(pa.timestamp("us"))
    texts = compile_format(pattern)(column)
    assert texts.to_pylist() == [compile_format(pattern)(column.slice(i, 1))[0].as_py() for i in range(2000)]
    assert compile_format(pattern)(column.slice(700, 900)).equals(texts.slice(700, 900))
    with_null = pa.concat_arrays([column, pa.nulls(1, column.type)])
    assert compile_format(pattern)(with_null).to_pylist() == [*texts.to_pylist(), None]


# Of Spark's own tests, and what Java's resolver says of others: parts of one text that differ are no time.
@pytest.mark.parametrize(
    ("text", "pattern", "day"),
    [
        ("2020-12-31-366", "yyyy-MM-dd-DDD", "2020-12-31T00"),
        ("2020-11-31-366", "yyyy-MM-dd-DDD", None),
        ("2020-11-30-366", "yyyy-MM-dd-DDD", None),
        ("9999-31-365", "yyyy-dd-DDD", "9999-12-31T00"),
        ("2020-01-365", "yyyy-dd-DDD", None),
        ("2020-30-365", "yyyy-dd-DDD", "2020-12-30T00"),
        ("2020-10-350", "yyyy-MM-DDD", None),
        ("2020-12-350", "yyyy-MM-DDD", "2020-12-15T00"),
        ("12-31-365", "MM-dd-DDD", "1970-12-31T00"),
        ("12-30-365", "MM-dd-DDD", None),
        ("30-365", "dd-DDD", None),
        ("31-365", "dd-DDD", "1970-12-31T00"),
        ("11-365", "MM-DDD", None),
        ("Dec 350 2020", "MMM DDD yyyy", "2020-12-15T00"),
        ("Nov 350 2020", "MMM DDD yyyy", None),
        ("365", "DDD", "1970-12-31T00"),
        ("366", "DDD", None),
        ("2019-366", "yyyy-DDD", None),
        ("2020-366", "yyyy-DDD", "2020-12-31T00"),
        ("2020-000", "yyyy-DDD", None),
        ("13 PM", "HH a", "1970-01-01T13"),
        ("13 AM", "HH a", None),
        ("13 01 PM", "HH hh a", "1970-01-01T13"),
        ("13 02 PM", "HH hh a", None),
        ("PM", "a", "1970-01-01T12"),
        ("0 AM", "h a", None),
    ],
)
def test_parts_that_differ_are_no_time(text: str, pattern: str, day: str | None) -> None:
    found = compile_reader(pattern)(pa.array([text, None]))
    assert found.to_pylist() == [None if day is None else np.datetime64(day, "us").item(), None]


TEMPLATES = {
    "yyyy-MM-dd HH:mm:ss.SSS": "{:%Y-%m-%d %H:%M:%S.%f}",
    "dd.MM.yy'h'HH": "{:%d.%m.%yh%H}",
    "yyyyMMddHHmmssSSSSSS": "{:%Y%m%d%H%M%S%f}",
    "'é'HH:mm": "é{:%H:%M}",
}


@pytest.mark.parametrize("pattern", TEMPLATES)
def test_a_pattern_of_one_width_is_pythons(pattern):
    """Random times written, read again, and read with a letter exchanged or lost: only real times are read."""
    draw = random.Random(3)
    start = datetime(1, 1, 1)
    times = [None if n % 9 == 4 else start + draw.random() * timedelta(days=3_652_058) for n in range(3_000)]
    column = pa.array([start, *times], pa.timestamp("us")).slice(1)
    cut = -3 if pattern.endswith(".SSS") else None
    wanted = [
        None if time is None else TEMPLATES[pattern].replace("%Y", f"{time.year:04d}").format(time)[:cut]
        for time in times
    ]
    texts = compile_format(pattern)(column)
    assert texts.to_pylist() == wanted
    # the year after 9999 has one digit more
    later = compile_format(pattern)(pa.array([253_402_300_800_000_000], pa.timestamp("us")))[0].as_py()
    assert later.startswith("10000") == pattern.startswith("yyyy")
    changed = []
    for text in wanted:
        at = draw.randrange(len(text)) if text else 0
        changed.append(text and text[:at] + draw.choice(["", "x", *"0123456789"]) + text[at + 1 :])
    for given in (wanted, changed):
        read = compile_reader(pattern)(pa.array(["", *given]).slice(1)).to_pylist()
        assert read == [_read_by_python(text, pattern) for text in given]


def _read_by_python(text, pattern):
    form = re.fullmatch(
        re.sub(
            r"([yMdHmsS])\1*",
            lambda run: f"(?P<{run[1]}>[0-9]{{{len(run[0])}}})",
            re.escape(pattern.replace("'h'", "#")).replace("'", ""),
        ).replace(r"\#", "h"),
        text or "",
    )
    if form is None:
        return None
    parts = form.groupdict()
    year = int(parts.get("y", 1970)) + (2000 if len(parts.get("y", "1970")) == 2 else 0)
    numbers = [
        int(parts.get(letter, default)) for letter, default in zip("MdHms", (1, 1, 0, 0, 0), strict=True)
    ]
    try:
        return datetime(year, *numbers, int(parts.get("S", "0").ljust(6, "0")))
    except ValueError:
        return None
