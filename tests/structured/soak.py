"""``python -m tests.structured.soak [variants]``: every shape Spark accepts, over the inputs of so many variants (3)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from engine.bounded.spark_session import SESSIONS
from tests.queries.generated.relations import run
from tests.queries.generated.trial import Arena, Wrong, compare
from tests.structured.shapes import SHAPES
from tests.structured.streams import Streams


def main(variants: int) -> int:
    """Print a line per shape and variant; return how many answers differ."""
    spark, wrong = SESSIONS.new("UTC", {"spark.sql.shuffle.partitions": "1"}), 0
    for variant in range(1, variants + 1):
        arena = Arena.of(variant)
        with tempfile.TemporaryDirectory() as folder:
            streams = Streams(spark, arena, Path(folder))
            for shape in (shape for shape in SHAPES if not shape.refused):
                ours = run(arena.tables, shape.query).rows
                said = f"equal: {ours.total()} rows"
                try:
                    compare(streams.answer(shape), ours, shape.name)
                except Wrong as error:
                    wrong, said = wrong + 1, f"DIFFERS: {error}"
                print(f"{variant:3} {shape.name:24} {shape.mode:9} {said}", flush=True)
        arena.close()
    print(f"{wrong} differ")
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3) > 0)
