"""Numbers, words, bits and days: every function gives what Spark gave when it was asked
(``recorded/words-UTC.arrow``); and what only we have.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from penstock.catalog.errors import PenstockError
from tests.unit.engine.expressions.against_spark import differences
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.nested_cases import bound
from tests.unit.engine.expressions.record_words import RECORDING
from tests.unit.engine.expressions.word_cases import COLUMNS, rows, texts


def test_same_values_and_types_as_spark() -> None:
    table, batch = feather.read_table(RECORDING), rows()
    assert table.column_names == texts(), (
        "the cases have changed: python -m tests.unit.engine.expressions.record_words"
    )
    found = [
        line
        for text in texts()
        for line in differences(text, bound(text, COLUMNS), table.column(text), batch, "UTC")
    ]
    assert not found, "\n".join(found)


JSON = ['{"a": {"b": [1, "x"]}, "c": null}', "[1]", "no", None]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("json_value(j, '$.a.b[1]')", ["x", None, None, None]),
        ("json_value(j, '$.a')", [None, None, None, None]),
        ("json_query(j, 'lax $.a.b')", ['[1,"x"]', None, None, None]),
        ("json_exists(j, '$.a.b')", [True, False, False, None]),
        ("is_json(j)", [True, True, False, None]),
        ("split_index(j, '\"', 1)", ["a", None, None, None]),
        ("from_utc_timestamp(TIMESTAMP '2024-07-01 12:00:00', 'Europe/Berlin')", None),
    ],
)
def test_what_spark_has_no_word_for(text: str, values: list[object] | None) -> None:
    batch = pa.record_batch([pa.array(JSON)], names=["j"])
    found = run(bound(text, {"j": (COLUMNS["j"][0], [])}), batch).to_pylist()
    assert (
        [str(value) for value in found] == ["2024-07-01 14:00:00"] * 4 if values is None else found == values
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("unhex(s)", "no hexadecimal text"),
        ("unbase64(s)", "not in base 64"),
        ("next_day(d, s)", "no day of the week"),
        ("getbit(i, 40)", "bit of an integer"),
        ("get_json_object(j, '$.a[*]')", "not offered"),
        ("encode('ñ', 'US-ASCII')", "characters that"),
        ("from_utc_timestamp(t, 'Mars/Olympus')", "no time zone"),
        ("format_string('%d', s)", "does not take"),
    ],
)
def test_what_cannot_be_is_told(text: str, words: str) -> None:
    with pytest.raises(PenstockError, match=words):
        run(bound(text, COLUMNS), rows())
