from penstock.catalog.errors import Kind, PenstockError, SourceText, Span
from penstock.client.remote.wire_errors import SENTENCE_MOST, decode_error, encode_error, sentence_of


def test_an_error_comes_back_with_all_it_knows() -> None:
    text = "SELECT 1;\nSELECT a"
    error = PenstockError("SQL-1042", "no a", detail="d", hint="h", span=Span(17, 18), source=SourceText(text, None, 2),
                          kind=Kind.USER, sqlstate="42703", operator="project", retriable=True)  # fmt: skip
    found = decode_error(encode_error(error))
    assert found is not None
    assert found.raised(text).as_dict() == error.as_dict()
    assert str(found.raised(text)) == str(error)
    assert found.raised().line is None


def test_long_texts_fit_into_headers() -> None:
    error = PenstockError("RUN-1", "m " * 5_000, detail="d\n" * 5_000, hint="h " * 5_000)
    assert len(encode_error(error)) < 6_000
    assert len(sentence_of(error)) == SENTENCE_MOST


def test_bytes_of_anybody_else_are_no_error() -> None:
    for data in (b"", b"x", b"{}", b"[]", b'{"code": 1}', b"\xff"):
        assert decode_error(data) is None
