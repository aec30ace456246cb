"""Maps as keys of groups, of DISTINCT and of set operations: whatever the order of their entries, alone
and within rows and arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.kernels.nested_text import canonical_text
from penstock.engine.kernels.stable_hash import stable_hash
from tests.harness.direct.feeds import Feed, Feeds
from tests.harness.direct.job import DirectJob, planned

MAPS = [
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
    {"a": 1},
    None,
    {},
    {"a": 2, "b": 1},
    {"c": None, "a": 1, "b": 2},
    {"b": 2, "c": None, "a": 1},
]
KIND = pa.map_(pa.string(), pa.int32())
OTHER = "map('b', 2, 'a', 1)"


@pytest.fixture(params=["automatic", "streaming"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    made = Session({"execution.runtime-mode": request.param, "bounded.backend": "duckdb"})
    (tmp_path / "maps.json").write_text(
        "".join(json.dumps({"k": k, "m": m}) + "\n" for k, m in enumerate(MAPS)), encoding="utf-8"
    )
    made.execute(
        f"CREATE TABLE f (k INT, m MAP<STRING, INT>) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')"
    )
    yield made
    made.close()


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("SELECT count(*) FROM f GROUP BY m", [1, 1, 1, 1, 2, 2]),
        ("SELECT count(*) FROM f GROUP BY struct(m, 1), array(m)", [1, 1, 1, 1, 2, 2]),
        ("SELECT count(*) FROM (SELECT DISTINCT m FROM f)", [6]),
        ("SELECT count(DISTINCT m) FROM f", [5]),
        ("SELECT count(DISTINCT array(m)) FROM f", [6]),
        ("SELECT sum(DISTINCT k) FROM f GROUP BY ROLLUP(map('x', m))", [1, 2, 3, 4, 5, 13, 28]),
        ("SELECT count(*) FROM (SELECT m FROM f UNION SELECT map('z', 0))", [7]),
        (f"SELECT count(*) FROM (SELECT m FROM f INTERSECT SELECT {OTHER})", [1]),
        (f"SELECT count(*) FROM (SELECT m FROM f EXCEPT SELECT {OTHER})", [5]),
        (f"SELECT count(*) FROM (SELECT m FROM f EXCEPT ALL SELECT {OTHER})", [7]),
    ],
)
def test_entries_have_no_order(session: Session, query: str, counts: list[int]) -> None:
    assert sorted(session.execute(query).final_rows().column(0).to_pylist()) == counts


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM f WHERE m = m",
        "SELECT a.k FROM f AS a JOIN f AS b USING (m)",
        "SELECT count(*) OVER (PARTITION BY m) FROM f",
    ],
)
def test_maps_are_not_compared(session: Session, query: str) -> None:
    with pytest.raises(PenstockError, match="compare"):
        session.execute(query)


def test_a_row_is_taken_back_whose_map_is_told_in_another_order() -> None:
    """What is shown of equal maps is the one that came first."""
    schema = pa.schema([("id", pa.int64()), ("m", KIND)])
    maps = [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("c", 3)]]
    changes = [
        ((1, maps[0]), 1),
        ((2, maps[1]), 1),
        ((3, maps[2]), 1),
        ((2, maps[0]), -1),
        ((3, maps[2]), -1),
    ]
    feeds = Feeds({"t": Feed(schema, (tuple(changes), ()), key=("id",))})
    session = Session({"execution.runtime-mode": "streaming"})
    feeds.register(session)
    for query, wanted in (
        ("SELECT to_json(m), n FROM (SELECT m, count(*) AS n FROM t GROUP BY m)", ('{"a":1,"b":2}', 1)),
        ("SELECT id, to_json(m) FROM (SELECT id, m FROM t LIMIT 5)", (1, '{"a":1,"b":2}')),
    ):
        assert list(DirectJob(planned(session, query).graph, feeds).finish().elements()) == [wanted]
    session.close()


def test_the_canonical_text_of_a_map() -> None:
    column = pa.array([list(m.items()) if m is not None else None for m in MAPS], KIND)
    texts = canonical_text(column)
    assert texts[0] == texts[1] and texts[6] == texts[7] and len(set(texts.to_pylist())) == 6
    assert canonical_text(column.slice(1, 4)).equals(texts.slice(1, 4))
    hashes = stable_hash([column])
    assert hashes[0] == hashes[1] and hashes[0] != hashes[5]
