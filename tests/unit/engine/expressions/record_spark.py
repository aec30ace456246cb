"""Write down what Spark answers: ``python -m tests.unit.engine.expressions.record_spark``, after the cases have
changed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.feather as feather

from penstock.engine.bounded.spark.sessions import SESSIONS
from tests.unit.engine.expressions.against_spark import RECORDED, RUNS, on_spark, recording, view
from tests.unit.engine.expressions.spark_cases import rows


def main() -> None:
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        for family, zone in RUNS:
            session = SESSIONS.new(zone)
            view(session, rows(), Path(directory))
            feather.write_feather(
                on_spark(session, family), recording(family, zone), compression="zstd", compression_level=12
            )
    SESSIONS.close()


if __name__ == "__main__":
    main()
