"""The reader of each format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.engine.formats.arrow_ipc import ArrowReader
from penstock.engine.formats.csv import CsvReader
from penstock.engine.formats.debezium import debezium_reader
from penstock.engine.formats.decoded_batch import FileReader
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.json_lines import json_lines_reader
from penstock.engine.formats.parquet import ParquetReader

READERS: dict[str, Callable[[FileTask, dict[str, Any] | None], FileReader]] = {
    "csv": CsvReader,
    "json": json_lines_reader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
    "debezium-json": debezium_reader,
}
