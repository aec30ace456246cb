"""Constant texts where other types are wanted: refused only where no cast of them can succeed, and only
where they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.catalog.coercion import may_read
from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.planner.parser.type_parser import parse_type

KINDS = (
    "TINYINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10, 2)",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP(3)",
    "TIMESTAMP_LTZ(3)",
    "TIME",
    "BYTES",
)
TEXTS = (
    *(
        "1",
        " 1 ",
        "+1",
        "-1",
        "1.",
        ".5",
        "1.5",
        "1e3",
        "1E-3",
        "1d",
        "2.5F",
        "NaN",
        "nan",
        "Infinity",
        "-inf",
        "+INF",
        "0x1F",
        "1_000",
        "1,5",
        "x",
        "",
        " ",
    ),
    *("true", "T", " yes ", "NO", "on", "off", "0", "maybe"),
    *(
        "2024",
        "2024-02",
        "2024-2-9",
        " 2024-02-29 ",
        "2024-02-30",
        "2024-13-01",
        "2024-00-01",
        "2024-01-32",
        "20240101",
        "12024-01-01",
        "-2024-01-01",
    ),
    *(
        "2024-01-01 10:00",
        "2024-01-01T10:00:00.123Z",
        "2024-01-01 10:00:00 Europe/Berlin",
        "10:00",
        "T10:00",
        "10:00:00.5",
        "24:00",
        "noon",
        "now",
    ),
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb"})
    yield session
    session.close()


def rows(session: Session, text: str) -> list[dict[str, object]]:
    return session.execute(text).final_rows(1000).to_pylist()


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_can_be_cast_is_not_refused(session: Session, kind: str, mode: str) -> None:
    session.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    values = ", ".join(f"('{text}')" for text in TEXTS)
    found = rows(
        session, f"SELECT s, TRY_CAST(s AS {kind}) IS NOT NULL AS readable FROM (VALUES {values}) AS t (s)"
    )
    readable = {str(row["s"]) for row in found if row["readable"]}
    assert readable and {text for text in readable if not may_read(text, parse_type(kind))} == set()


@pytest.mark.parametrize(
    "text",
    [
        "COALESCE(a, 'x')",
        "IF(a = 1, a, 'x')",
        "NVL2(a, a, 'x')",
        "CASE WHEN a = 1 THEN a ELSE 'x' END",
        "TRY_CAST('x' AS INT)",
    ],
)
def test_a_text_nobody_looks_at_does_no_harm(session: Session, text: str) -> None:
    assert rows(session, f"SELECT {text} AS b FROM (VALUES (1)) AS t (a)") in ([{"b": 1}], [{"b": None}])


def test_a_parameter_is_a_constant_too(session: Session) -> None:
    assert session.execute("SELECT a FROM (VALUES (1)) AS t (a) WHERE a = ?", ["1"]).final_rows(
        9
    ).to_pylist() == [{"a": 1}]
    with pytest.raises(PenstockError) as refused:
        session.execute("SELECT a FROM (VALUES (1)) AS t (a) WHERE a = ?", ["x"])
    assert (refused.value.code, refused.value.line, refused.value.column) == ("SQL-1106", 1, 47)


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_column_of_texts_is_named_where_it_is_read(session: Session, mode: str) -> None:
    session.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    for call in (
        "SUM(s)",
        "AVG(s)",
        "stddev_pop(s)",
        "corr(s, 1)",
        "percentile(s, 0.5)",
        "SUM(DISTINCT s)",
        "SUM(1) FILTER (WHERE s > 1)",
    ):
        text = f"SELECT {call} AS b FROM (VALUES ('ann')) AS t (s)"
        with pytest.raises(PenstockError) as failed:
            result = session.execute(text)
            try:
                result.final_rows(9)
            except PenstockError as error:
                raise result.locate(error) from error
        assert (
            failed.value.code == "RUN-2003" and failed.value.column == text.index("s", text.index("(")) + 1
        ), str(failed.value)
