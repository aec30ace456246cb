"""Hints for words of other dialects: what a hint says to write is accepted when it is written."""

from __future__ import annotations

from contextlib import closing

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session

CASES = [
    ("SELECT MULTISET[1, 2]", "write ARRAY[1, 2, 3]", "SELECT ARRAY[1, 2]"),
    ("SELECT STREAM x FROM (VALUES (1)) AS t (x)", "leave STREAM out", "SELECT x FROM (VALUES (1)) AS t (x)"),
    ("SELECT date_trunc(TIMESTAMP '2026-01-01 00:00:00', MONTH)", "date_trunc('MONTH', ts)",
     "SELECT date_trunc('MONTH', TIMESTAMP '2026-01-01 00:00:00')"),
    ('SELECT "one"', "'one'", "SELECT 'one'"),
    ("DROP TABLE IF EXISTS rt CASCADE", "leave CASCADE out", "DROP TABLE IF EXISTS rt"),
    ("SELECT JSON_QUERY('{}', '$.a' WITH CONDITIONAL ARRAY WRAPPER)", "leave WITH CONDITIONAL ARRAY WRAPPER out",
     "SELECT JSON_QUERY('{}', '$.a')"),
    ("SELECT _UTF16'a'", "leave _UTF16 out", "SELECT 'a'"),
    ("SELECT CONVERT('12', INTEGER)", "CAST(x AS INT)", "SELECT CAST('12' AS INT)"),
    ("SELECT CAST(3 AS INTERVAL DAY TO SECOND)", "x * INTERVAL '1' SECOND", "SELECT 3 * INTERVAL '1' SECOND"),
    ("SELECT CAST(3 AS INTERVAL DAY TO HOUR)", "CAST(x AS INTERVAL SECOND)", "SELECT CAST(3 AS INTERVAL SECOND)"),
    ("SELECT CAST(INTERVAL '3 04' DAY TO HOUR AS BIGINT)", "EXTRACT(EPOCH FROM x)",
     "SELECT EXTRACT(EPOCH FROM INTERVAL '3 04' DAY TO HOUR)"),
    ("SELECT CAST(1 AS INTERVAL YEAR TO MONTH)", "CAST(x AS INTERVAL MONTH)", "SELECT CAST(1 AS INTERVAL MONTH)"),
    ("SELECT CAST(INTERVAL '3-1' YEAR TO MONTH AS INT)", "EXTRACT(YEAR FROM x) * 12",
     "SELECT EXTRACT(YEAR FROM INTERVAL '3-1' YEAR TO MONTH) * 12"),
    ("SELECT v FROM (SELECT ARRAY[1] AS a) AS t, LATERAL FLATTEN(a) AS f (v)", "CROSS JOIN UNNEST",
     "SELECT v FROM (SELECT ARRAY[1] AS a) AS t CROSS JOIN UNNEST(a) AS f (v)"),
    ("SELECT sentences('a. b')", "split(text, '[.!?] *')", "SELECT split('a. b', '[.!?] *')"),
    ("SELECT json_type('1')", "schema_of_variant(parse_json(text))", "SELECT schema_of_variant(parse_json('1'))"),
    ("SELECT json_keys('{}')", "json_object_keys(text)", "SELECT json_object_keys('{}'), json_array_length('[]')"),
    ("SELECT from_csv('1,2', 'a INT, b INT')", "split(text, ',')", "SELECT CAST(split('1,2', ',')[1] AS INT)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "hint", "mended"), CASES, ids=[case[1] for case in CASES])
def test_a_hint_leads_to_what_runs(text: str, hint: str, mended: str) -> None:
    with closing(Session({"bounded.backend": "duckdb"})) as session:
        with pytest.raises(PenstockError) as refused:
            session.execute(text)
        assert hint in str(refused.value.hint)
        session.execute(mended)
