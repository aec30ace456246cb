"""The log of a server: JSON lines without secrets, in files that are rotated."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.server.server_log import ServerLog
from tests.harness.patience import await_that


@pytest.fixture(autouse=True)
def _the_logger_as_it_was() -> Iterator[None]:
    engine = logging.getLogger("penstock")
    before = engine.handlers[:], engine.level, engine.propagate
    yield
    for handler in engine.handlers:
        if handler not in before[0]:
            handler.close()
    engine.handlers[:], engine.level, engine.propagate = before


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_one_object_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    log = ServerLog(path)
    log(
        "job resumed",
        {"job": "a", "url": "postgresql://u:hunter22@host/d", "in": {"dsn": "x://u:hunter22@h"}},
    )
    log("failed", {"message": "two\nlines"}, level="error")
    logging.getLogger("penstock.kafka").warning("a broker is gone")
    first, second, third = lines(path)
    assert (first["event"], first["level"], first["job"]) == ("job resumed", "info", "a")
    assert "hunter22" not in path.read_text()
    assert (second["level"], second["message"]) == ("error", "two\nlines")
    assert (third["event"], third["message"]) == ("engine", "a broker is gone")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_is_rotated_by_its_size_and_on_request(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    log = ServerLog(path, max_bytes=500)
    for number in range(20):
        log("event", {"number": number})
    assert 1 < len(list(tmp_path.iterdir())) <= 6
    assert lines(path)[-1]["number"] == 19
    log.rotate()
    await_that(lambda: path.exists() and [line["event"] for line in lines(path)] == ["log rotated"])


def test_a_file_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ServerLog(tmp_path / "missing" / "server.log")
