"""A few Nexmark queries answered by Spark over the same events (the soak asks all): a join, windows, a
changelog's end, regular expressions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.length import of_length
from tests.streaming.nexmark.site import database, duckdb_text
from tests.streaming.nexmark.soak import differences, keep
from tests.streaming.nexmark.spark_answers import SparkAnswers

COUNT, RATE = 20_000, 1_000


@pytest.mark.spark
@pytest.mark.longer
def test_spark_gives_the_same_answers(tmp_path: Path) -> None:
    connection = database(COUNT, RATE)
    spark = SparkAnswers(connection, tmp_path)
    for query in of_length(("q5", "q8", "q21"), ("q4", "q5", "q8", "q17", "q21")):
        keep(connection, "theirs", connection.sql(duckdb_text(query)).to_arrow_table())
        keep(connection, "sparks", spark.answer(query))
        assert differences(connection, "sparks", "theirs") == 0, query
