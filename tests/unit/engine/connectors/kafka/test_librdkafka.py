"""The library inside the wheel of confluent-kafka, and what a machine without it is told."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.kafka import librdkafka
from penstock.engine.connectors.kafka.librdkafka import CONSUMER, load


def test_the_wheels_library_is_found_and_makes_clients() -> None:
    pytest.importorskip("confluent_kafka")
    library = load()
    assert library is not None
    assert int(library.rd_kafka_version_str().decode().split(".")[0]) >= 2
    client = library.client(CONSUMER, {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"})
    library.rd_kafka_destroy(client)
    assert library.address("rd_kafka_message_destroy") > 0


def test_a_refused_property_is_named_and_its_client_freed() -> None:
    pytest.importorskip("confluent_kafka")
    library = load()
    assert library is not None
    with pytest.raises(PenstockError) as refused:
        library.client(CONSUMER, {"isolation.level": "sometimes"})
    assert refused.value.code == "DAT-5101"
    assert "isolation.level" in str(refused.value.detail)


def test_without_the_package_the_command_to_install_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(PenstockError) as refused:
        load.__wrapped__()
    assert (refused.value.code, refused.value.hint) == ("DAT-5100", "pip install 'penstock[kafka]'")


def test_a_package_built_without_its_own_library_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Spec:
        origin = str(tmp_path / "confluent_kafka" / "__init__.py")

    def found(_name: str) -> Any:
        return Spec()

    monkeypatch.setattr(librdkafka.importlib.util, "find_spec", found)
    assert load.__wrapped__() is None
