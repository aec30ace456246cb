"""Write down what Spark answers on VARIANT: ``python -m tests.unit.engine.expressions.record_variants``, after
the cases have changed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather

from penstock.engine.bounded.spark.sessions import SESSIONS
from tests.unit.engine.expressions.against_spark import RECORDED, view
from tests.unit.engine.expressions.variant_cases import rows, texts

RECORDING = RECORDED / "variants-UTC.arrow"


def main() -> None:
    session = SESSIONS.new("UTC")
    with tempfile.TemporaryDirectory() as directory:
        view(session, rows(), Path(directory))
        columns = {text: session.sql(f"SELECT {text} AS c FROM rows").toArrow().column(0) for text in texts()}
        feather.write_feather(pa.table(columns), RECORDING, compression="zstd", compression_level=12)
    SESSIONS.close()


if __name__ == "__main__":
    main()
