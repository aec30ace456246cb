"""A job of an earlier version of penstock is resumed: rows it staged in PostgreSQL are committed once, and it
writes by epochs from then on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.api.operator import Services
from penstock.engine.api.sink import Origin, SinkRequest
from penstock.engine.connectors.database.postgres_sink import PostgresSink
from tests.streaming.databases.places import Place
from tests.streaming.databases.two_phase import COLUMNS_2, batch, sink, table

pytestmark = pytest.mark.xdist_group("postgres-target")


@pytest.mark.parametrize("moved", [False, True])
def test_what_an_earlier_version_staged_is_committed_once(tmp_path: Path, moved: bool) -> None:
    place = Place("postgres", tmp_path)
    place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    earlier = sink(place)
    earlier.recover([])
    earlier.write(batch(1, 2))
    items = earlier.prepare(1)
    # staged after that checkpoint: it is forgotten
    earlier.write(batch(7))
    earlier.prepare(2)
    if moved:
        earlier.commit(items)
    request = SinkRequest(
        table(place),
        COLUMNS_2,
        None,
        "abcdef0123",
        "job1",
        0,
        1,
        Services(),
        owner="owner1",
        origin=Origin("owner1", "abcdef0123", 1),
    )
    writer = PostgresSink(request)
    writer.recover(items)
    writer.commit(items)
    writer.on_restored()
    writer.write(batch(3))
    writer.commit(writer.prepare(2))
    assert sorted(place.ask("SELECT k FROM out")) == [(1,), (2,), (3,)] and place.staged() == 0
    with pytest.raises(Exception, match="STA-3504"):
        earlier.write(batch(8))
        earlier.prepare(3)
    writer.close()
    earlier.close()
