"""The reader of each format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.formats.arrow_ipc import ArrowReader
from engine.formats.csv import CsvReader
from engine.formats.debezium import debezium_reader
from engine.formats.decoded import FileReader
from engine.formats.file_task import FileTask
from engine.formats.json_lines import json_lines_reader
from engine.formats.parquet import ParquetReader

READERS: dict[str, Callable[[FileTask, dict[str, Any] | None], FileReader]] = {
    "csv": CsvReader,
    "json": json_lines_reader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
    "debezium-json": debezium_reader,
}
