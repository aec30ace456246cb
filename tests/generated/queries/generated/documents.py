"""Columns that go through JSON: VARIANT and its paths, JSON_VALUE with a type. Other engines keep the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries


class Documents:
    """Relations of the common layout whose values were text on their way."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def relation(self) -> Piece:
        a = self.dice.alias()
        row = "to_json(named_struct('k', k, 'p', named_struct('s', s, 'v', array(v, 1)), 'x', x))"
        source, variant = (
            f"(SELECT {made_of} AS d, ts FROM {{r}} AS {a}i) AS {a}"
            for made_of in (row, f"parse_json({row})")
        )
        plain, groups = (
            f"(SELECT k, s, v, x, ts FROM {{r}} AS {a})",
            "count(*) AS v, max(x) AS x, max(ts) AS ts",
        )
        grouped = f"(SELECT min(k) AS k, s, {groups} FROM {{r}} AS {a} GROUP BY s)"
        ways = {
            "variant paths": (
                "d:k::INT AS k, d:p.s::STRING AS s, d:p.v[0]::BIGINT AS v, d:x::DECIMAL(8, 2) AS x",
                variant,
            ),
            "variant fields": (
                "CAST(d['k'] AS INT) AS k, CAST(d['p']['s'] AS STRING) AS s, CAST(d['p']['v'][1] AS BIGINT) AS v,"
                " CAST(d['x'] AS DECIMAL(8, 2)) AS x",
                variant,
            ),
            "variant_get": (
                "variant_get(d, '$.k', 'INT') AS k, variant_get(d, '$.p.s', 'STRING') AS s,"
                " variant_get(d, '$.p.v[0]', 'BIGINT') AS v, try_variant_get(d, '$.x', 'DECIMAL(8, 2)') AS x",
                variant,
            ),
            "json_value returning": (
                "JSON_VALUE(d, '$.k' RETURNING INT) AS k, JSON_VALUE(d, '$.p.s') AS s, JSON_VALUE(d, '$.p.v[0]'"
                " RETURNING BIGINT NULL ON EMPTY NULL ON ERROR) AS v, JSON_VALUE(d, '$.x' RETURNING DECIMAL(8, 2)) AS x",
                source,
            ),
            "get_json_object": (
                "CAST(get_json_object(d, '$.k') AS INT) AS k, get_json_object(d, '$.p.s') AS s,"
                " CAST(get_json_object(d, '$.p.v[0]') AS BIGINT) AS v, CAST(get_json_object(d, '$.x') AS DECIMAL(8, 2)) AS x",
                source,
            ),
            "from_json": (
                "d.k AS k, d.p.s AS s, d.p.v[1] AS v, d.x AS x",
                source.replace(
                    row, f"from_json({row}, 'k INT, p STRUCT<s: STRING, v: ARRAY<BIGINT>>, x DECIMAL(8, 2)')"
                ),
            ),
        }
        texts = {way: (f"(SELECT {items}, ts FROM {rows})", plain) for way, (items, rows) in ways.items()}
        texts["groups of variants"] = (
            f"(SELECT min(k) AS k, d::STRING AS s, {groups} FROM (SELECT *, CAST(s AS VARIANT) AS d FROM {{r}} AS {a}i) AS {a}"
            " GROUP BY d)",
            grouped,
        )
        texts["groups of objects"] = (
            f"(SELECT min(k) AS k, d:s::STRING AS s, {groups} FROM (SELECT *, to_variant_object(named_struct('s', s)) AS d"
            f" FROM {{r}} AS {a}i) AS {a} GROUP BY d)",
            grouped,
        )
        ours, theirs = self.dice.feature(
            "document", {way: lambda pair=pair: pair for way, pair in texts.items()}
        )
        return made("relation", ours, theirs=theirs, r=self.queries.relation(1))
