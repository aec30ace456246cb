"""Opening Delta tables: versions, features of readers, and errors in words of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.delta import delta_table
from penstock.engine.connectors.delta.delta_table import check_readable, opened, words_of
from tests.unit.engine.connectors.delta.delta_files import declared, deltalake


@dataclass
class Protocol:
    reader_features: list[str] | None


@dataclass
class Found:
    """A table of the library as far as ``check_readable`` asks."""

    features: list[str] | None
    configuration: dict[str, str] = field(default_factory=dict)

    def protocol(self) -> Protocol:
        return Protocol(self.features)

    def metadata(self) -> Any:
        return self


def test_features_that_our_reader_lacks(tmp_path: Path) -> None:
    table = declared(tmp_path)
    check_readable(table, Found(None))
    check_readable(table, Found(["timestampNtz", "deletionVectors", "columnMapping"]))
    for found in (Found(["typeWidening"]), Found(["variantType"])):
        with pytest.raises(PenstockError, match="DAT-5305"):
            check_readable(table, found)


def test_versions_that_are_there(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"k": [1]}))
    assert opened(declared(tmp_path), 0).version() == 0
    with pytest.raises(PenstockError, match="DAT-5302"):
        opened(declared(tmp_path), 1)
    with pytest.raises(PenstockError, match="DAT-5301"):
        opened(declared(tmp_path / "other"))


def test_without_the_library_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(delta_table.__dict__["__builtins__"], "__import__", _no_deltalake)
    with pytest.raises(PenstockError, match="DAT-5300") as raised:
        delta_table.library()
    assert raised.value.hint == "pip install 'penstock[delta]'"


def _no_deltalake(name: str, *args: Any, **more: Any) -> Any:
    raise ImportError(name)


def test_words_of_the_library_are_one_line() -> None:
    assert words_of(OSError("Kernel error\n   \x1b[31m↳\x1b[0m refused\n")) == "Kernel error refused"
