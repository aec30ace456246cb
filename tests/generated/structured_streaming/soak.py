"""``python -m tests.generated.structured_streaming.soak [variants] [queries]``: every shape Spark accepts, and generated
queries (20), over some inputs (3).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from penstock.engine.bounded.spark.sessions import SESSIONS
from tests.generated.queries.generated.trial import Arena, Wrong
from tests.generated.structured_streaming.generated import generated
from tests.generated.structured_streaming.shapes import SHAPES, Shape
from tests.generated.structured_streaming.streams import Refused, Streams


def main(variants: int, queries: int) -> int:
    """Print a line per query and variant; return how many answers differ."""
    spark, counts = SESSIONS.new("UTC", {"spark.sql.shuffle.partitions": "1"}), Counter[str]()
    for variant in range(1, variants + 1):
        arena = Arena.of(variant)
        shapes = [shape for shape in SHAPES if not shape.refused] + [
            generated(variant * 1000 + seed) for seed in range(queries)
        ]
        with tempfile.TemporaryDirectory() as folder:
            streams = Streams(spark, arena, Path(folder))
            for shape in shapes:
                kind, said = _asked(streams, shape)
                counts[kind] += 1
                print(f"{variant:3} {shape.name:24} {shape.mode:9} {kind}: {said}", flush=True)
        arena.close()
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return counts["DIFFERS"]


def _asked(streams: Streams, shape: Shape) -> tuple[str, str]:
    try:
        return "equal", f"{streams.check(shape)} rows"
    except Wrong as error:
        return "DIFFERS", f"{error}\n    {shape.query}"
    except Refused as error:
        return "refused", str(error)[:200]


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(given + [3, 20][len(given) :])) > 0)
