"""The records of an answer: as json reads an array, as lines are split."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.connectors.http.records import records_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)  # the first example compiles the kernel
@given(st.lists(JSON, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_the_elements_of_an_array_are_those_that_json_reads(
    elements: list[object], indent: int | None, ascii_only: bool
) -> None:
    body = json.dumps(elements, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    found = records_of(body, "auto", "application/json").to_pylist()
    assert [json.loads(record) for record in found] == elements
    assert all(record == record.strip() for record in found)


@pytest.mark.parametrize(
    "body", ["", "{}", "[", "[1", "[1,]", "[,1]", "[1]]", "[1] 2", "[1,,2]", "[}", '["a]']
)
def test_what_is_no_array_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        records_of(body.encode(), "array", "")


@given(
    st.lists(st.binary(max_size=5).filter(lambda line: not set(line) & set(b"\r\n")), max_size=6),
    st.booleans(),
)
def test_lines(lines: list[bytes], ended: bool) -> None:
    wanted = [line for line in lines if line]
    for end in (b"\n", b"\r\n"):
        body = end.join(lines) + (end if ended else b"")
        assert records_of(body, "lines", "").to_pylist() == wanted


@pytest.mark.parametrize(
    ("body", "content_type", "records"),
    [
        (b' {"a":\n 1} ', "application/json", [b'{"a":\n 1}']),
        (b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson; charset=utf-8", [b'{"a": 1}', b'{"a": 2}']),
        (b" [1]", "text/plain", [b"1"]),
        (b"a,b\n", "text/csv", [b"a,b"]),
        (b"  ", "application/json", []),
    ],
)
def test_the_form_is_told_by_type_and_first_letter(
    body: bytes, content_type: str, records: list[bytes]
) -> None:
    assert records_of(body, "auto", content_type).to_pylist() == records
