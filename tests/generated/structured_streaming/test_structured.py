"""Structured Streaming as an oracle: the shapes Spark takes as streams have our answer, the others are
refused as its table says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS
from tests.generated.queries.generated.relations import run
from tests.generated.queries.generated.trial import Arena, Wrong, compare
from tests.generated.structured_streaming.generated import generated
from tests.generated.structured_streaming.printed import NotPrintedError
from tests.generated.structured_streaming.shapes import SHAPES, Shape
from tests.generated.structured_streaming.streams import Refused, Streams
from tests.harness.length import briefly

IN_BRIEF = ("session", "group by, update", "interval full join")
GENERATED = range(2)
VARIANT = 3
CASES = [
    shape if shape.name in IN_BRIEF else pytest.param(shape, marks=pytest.mark.at_length)
    for shape in SHAPES
    if not shape.refused
]


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streams]:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    spark = SESSIONS.new("UTC", {"spark.sql.shuffle.partitions": "1"})
    arena = Arena.of(VARIANT)
    yield Streams(spark, arena, tmp_path_factory.mktemp("streams"))
    arena.close()


def check(streams: Streams, shape: Shape) -> None:
    """Compare Spark's answer with ours, none of whose rows was late."""
    assert streams.check(shape)


@pytest.mark.spark
@pytest.mark.parametrize("shape", CASES, ids=lambda shape: shape.name)
def test_spark_gives_our_answer(streams: Streams, shape: Shape) -> None:
    check(streams, shape)


@pytest.mark.spark
@pytest.mark.parametrize("seed", briefly(GENERATED, [0]))
def test_spark_gives_our_answer_to_generated_queries(streams: Streams, seed: int) -> None:
    streams.check(generated(seed))


@pytest.mark.spark
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.refused], ids=lambda shape: shape.name)
def test_spark_refuses(streams: Streams, shape: Shape) -> None:
    with pytest.raises(Refused, match=shape.refused):
        streams.answer(shape)


@pytest.mark.spark
def test_a_wrong_answer_is_seen(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = next(shape for shape in SHAPES if shape.name == "union all")
    right = run(streams.arena.tables, shape.query).rows
    one = next(iter(right))
    with pytest.raises(Wrong):
        compare(streams.answer(shape), right - Counter([one]), "one row less")


def test_what_has_no_words_is_said() -> None:
    shape = Shape("cumulate", "SELECT COUNT(*) AS n FROM CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '15' SECONDS) "
                  "GROUP BY window_start, window_end")  # fmt: skip
    arena = Arena.of(VARIANT)
    with pytest.raises(NotPrintedError):
        Streams.text(arena, shape)
    arena.close()
