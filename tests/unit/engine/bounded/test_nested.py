"""Arrays, maps and rows on DuckDB: what it has words for is what our own runtime gives; what it has none
for runs there.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.nested_cases import bound, rows, texts

UNSAID = ("sort_array(a)", "array_union(a, c)", "sequence(n, 4)")


@pytest.fixture
def session() -> Session:
    made = Session({"bounded.backend": "duckdb"})
    made.register("given", pa.Table.from_batches([rows()]))
    yield made
    made.close()


def _said(text: str, session: Session) -> bool:
    from penstock.planner.sql_generator.support import speaks

    return speaks(session.pipeline.bind(session.parse(f"SELECT {text} FROM given")[0].node), "duckdb")


def test_what_duckdb_says_is_what_we_compute(session: Session) -> None:
    said = [text for text in texts() if _said(text, session)]
    assert len(said) > 60
    wrong = []
    for start in range(0, len(said), 40):
        some = said[start : start + 40]
        table = session.execute(
            "SELECT " + ", ".join(f"{text} AS c{i}" for i, text in enumerate(some)) + " FROM given"
        ).final_rows(PATIENCE_S)
        for i, text in enumerate(some):
            pairs = zip(table.column(i).to_pylist(), run(bound(text), rows()).to_pylist(), strict=True)
            wrong += [f"{text}: DuckDB {a!r}, ours {b!r}" for a, b in pairs if repr(a) != repr(b)][:1]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", UNSAID)
def test_what_duckdb_has_no_words_for_runs_here(session: Session, text: str) -> None:
    table = session.execute(f"SELECT {text} AS v FROM given").final_rows(PATIENCE_S)
    assert table.column(0).to_pylist() == run(bound(text), rows()).to_pylist()
