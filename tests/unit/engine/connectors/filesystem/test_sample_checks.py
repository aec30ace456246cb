"""What a sample of a text file may have that no reader reads as it is meant. All of it over files, by both
readers: tests/unit/client/test_odd_csv.py.
"""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem.sample_checks import (
    TextSample,
    delimiter_of_header,
    refuse_binary,
    refuse_mixed_ends,
    refuse_no_csv,
    refuse_odd_records,
)
from penstock.engine.formats.file_task import CsvDialect


def sample(data: bytes) -> TextSample:
    return TextSample("x.csv", data, True)


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("id,name,price\n1,tea,4.5\n2,mug\n3,pot,30\n", ","),
        ("id;name;price\n1;tea\n2;mug, blue;1\n3;pot;30\n", ";"),
        # fewer than half of the records have as many values as the header: a text with a comma in it
        ("hello, world\nbye\nso long\n", None),
        ('"a,b"\n1\n2\n', None),
        ("note\nhello, world\n", None),
    ],
)
def test_the_delimiter_of_records_of_several_widths_is_that_of_the_header(
    text: str, delimiter: str | None
) -> None:
    assert delimiter_of_header(sample(text.encode()), CsvDialect()) == delimiter


def test_what_is_read_as_it_is_meant_is_not_refused() -> None:
    for data in (b'id,name\r\n1,"a ""b"""\r\n2,c:\\\r\n', b"{a},b\n1,2\n", b"a\n<html>\n", b"sep=x,b\n1,2\n"):
        refuse_binary(sample(data))
        refuse_no_csv(sample(data))
        refuse_mixed_ends(sample(data))
        refuse_odd_records(sample(data), CsvDialect(), 2)


def test_a_sample_of_other_bytes_is_refused_with_an_option() -> None:
    with pytest.raises(PenstockError) as caught:
        refuse_binary(sample(b"\x28\xb5\x2f\xfd\x00"))
    assert caught.value.hint == "write 'compression' = 'zstd', or compression => 'zstd' in read_csv"
    with pytest.raises(PenstockError, match="JSON, not csv") as caught:
        refuse_no_csv(TextSample("stdin", b'{"a": 1}\n', True))
    assert "read_json('-')" in str(caught.value.hint)
