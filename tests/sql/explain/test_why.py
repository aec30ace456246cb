"""EXPLAIN WHY ROW and WHY NOT ROW over planted files: the input rows of a result row, and each cause that lets
an expected row go.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.case_files import case_files
from tests.harness.golden import check_golden

ROOT = Path(__file__).parents[3]
WHY = Path(__file__).parent / "why"
FILES = {
    "orders/a.csv": "1,7,10,2024-01-01 00:00:01\n2,7,20,2024-01-01 00:00:05\n3,8,5,2024-01-01 00:00:12\n",
    # the last row of this file comes 2 s after its window has closed
    "orders/b.csv": "4,7,30,2024-01-01 00:00:14\n5,9,50,2024-01-01 00:00:15\n6,8,7,2024-01-01 00:00:02\n",
    "customers/c.csv": "7,Ada\n8,Bo\n",
    # 1 -> 2 -> 3 -> 1 is a cycle
    "edges/e.csv": "1,2\n2,3\n3,1\n2,4\n5,6\n",
}
TABLES = """
CREATE TABLE orders (id INT, customer INT, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '{root}/orders', 'format' = 'csv', 'csv.header' = 'false');
CREATE TABLE customers (id INT, name STRING)
  WITH ('connector' = 'filesystem', 'path' = '{root}/customers', 'format' = 'csv', 'csv.header' = 'false');
CREATE TABLE edges (a INT, b INT)
  WITH ('connector' = 'filesystem', 'path' = '{root}/edges', 'format' = 'csv', 'csv.header' = 'false');
CREATE TABLE endless (id INT) WITH ('connector' = 'datagen');
CREATE FUNCTION Totals AS 'tests.streaming.three_acts.process_functions.Totals' LANGUAGE PYTHON;
CREATE FUNCTION Pairs AS 'tests.streaming.three_acts.process_functions.Pairs' LANGUAGE PYTHON;
CREATE FUNCTION Marked AS 'tests.streaming.three_acts.process_functions.Marked' LANGUAGE PYTHON;
CREATE VIEW large AS SELECT id, amount FROM orders WHERE amount > 10;
CREATE MATERIALIZED VIEW totals AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Path]]:
    root = tmp_path_factory.mktemp("why")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    made = Session({})
    for statement in made.parse(TABLES.format(root=root)):
        made.run(statement)
    yield made, root
    made.close()


@pytest.mark.parametrize("path", case_files(WHY, "*.sql"), ids=lambda path: path.stem)
def test_golden(path: Path, session: tuple[Session, Path]) -> None:
    check_golden(path, lambda text: answer(*session, text))


def answer(session: Session, root: Path, text: str) -> str:
    """What a script says: the rows of its last statement, then its note."""
    session.settings.set("execution.runtime-mode", "automatic")
    try:
        for statement in session.parse(text):
            result = session.run(statement)
            rows = result.final_rows()
    except PenstockError as error:
        return str(error)
    lines = [
        " | ".join("" if value is None else str(value) for value in row.values()) for row in rows.to_pylist()
    ]
    return "\n".join([*lines, *([f"-- {result.note}"] if result.note else [])]).replace(str(root), "")


def test_the_edges_of_paths_are_those_that_lie_on_one() -> None:
    """In a graph with cycles an edge made a pair of nodes if it lies on some way from one to the other."""
    edges = sorted({(i * 7 % 11, i * i % 13) for i in range(24)})
    reached = {node: _reached(edges, node) for node in {node for edge in edges for node in edge}}
    session = Session({})
    session.register("edges", pa.table({"a": [a for a, _ in edges], "b": [b for _, b in edges]}))
    paths = "WITH RECURSIVE r AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges AS e ON r.b = e.a) SELECT a, b FROM r"
    asked = [(a, b) for a in (0, 1, 3) for b in sorted(reached.get(a, ()))][:4]
    assert len(asked) == 4
    for start, end in asked:
        rows = session.execute(f"EXPLAIN WHY ROW (a = {start}, b = {end}) LIMIT 100 FOR {paths}").final_rows()
        found = {tuple(json.loads(list(row.values())[-1]).values()) for row in rows.to_pylist()}
        assert found == {
            (a, b)
            for a, b in edges
            if (a == start or a in reached[start]) and (b == end or end in reached[b])
        }
    session.close()


def _reached(edges: list[tuple[int, int]], start: int) -> set[int]:
    found: set[int] = set()
    ways = [b for a, b in edges if a == start]
    while ways:
        node = ways.pop()
        if node not in found:
            found.add(node)
            ways += [b for a, b in edges if a == node]
    return found


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/WHY.md says what is printed. ACCEPT=1 writes it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    page = ROOT / "docs" / "WHY.md"
    session, text = Session({}), page.read_text(encoding="utf-8")

    def said(block: re.Match[str]) -> str:
        rows = answer(session, tmp_path, block[1])
        return f"```sql\n{block[1]}```\n\n```text\n{rows.replace('path /queries', 'path …/queries')}\n```"

    (tables,) = re.findall(r"^```sql\n(CREATE.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for statement in session.parse(tables):
        session.run(statement)
    shown = re.sub(
        r"^```sql\n(EXPLAIN.*?)```\n\n```text\n.*?```$", said, text, flags=re.DOTALL | re.MULTILINE
    )
    session.close()
    if os.environ.get("ACCEPT") == "1":
        page.write_text(shown, encoding="utf-8")
    assert shown == page.read_text(encoding="utf-8")
