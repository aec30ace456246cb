"""Hints change how a query is run, never its answer: a join with a side in every subtask, stopped and gone
on with at another parallelism.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.planner.logical.distribution import Broadcast
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end

ROWS = 20_000
TABLES = f"""
CREATE TABLE bids (auction BIGINT, price BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'seed' = '1',
  'rows-per-second' = '40000', 'fields.auction.min' = '0', 'fields.auction.max' = '400', 'fields.price.min' = '0', 'fields.price.max' = '50');
"""


def _script(hint: str) -> Script:
    text = f"""{TABLES}
SELECT {hint} f.auction, COUNT(*) AS n, SUM(f.price + g.price) AS total
FROM bids AS f JOIN (SELECT auction, MAX(price) AS price FROM bids GROUP BY auction) AS g ON f.auction = g.auction GROUP BY f.auction;
"""
    return Script("hints", {"execution.batch.max-rows": "200"}, text)


@pytest.mark.parametrize("hint", ["BROADCAST(g)", "STATE_TTL('f' = '1 h', 'g' = '1 d')"])
def test_the_same_answer_over_a_stop_and_at_another_parallelism(tmp_path: Path, hint: str) -> None:
    plain = _script("")
    script = _script(f"/*+ {hint} */")
    try:
        wanted = Folded()
        run_to_end(*plain.submit(1, None, 0), wanted)
        graph, _ = script.graph(2)
        assert any(isinstance(edge.edge, Broadcast) for edge in graph.edges) == ("BROADCAST" in hint)
        folded = Folded()
        job, channel = script.submit(2, tmp_path, 50)
        run_and_stop(job, channel, folded, ROWS // 3)
        assert rows_read(job) < ROWS, "the job was to stop in the middle"
        run_to_end(*script.submit(3, tmp_path, 50), folded)
        assert folded.rows == wanted.rows
    finally:
        plain.close()
        script.close()
