"""A store that ignores conditions of writes is refused for state, with a sentence that says which."""

from __future__ import annotations

from typing import Any

import pytest
from obstore.store import MemoryStore

from penstock.catalog.errors import PenstockError
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage.object_client import ObjectClient, Version
from penstock.engine.storage.object_probe import check_conditions
from penstock.engine.storage.object_store import ObjectStorage
from tests.harness.object_stores import localbucket_server, moto_server


class Deaf(ObjectClient):
    """A store that writes over whatever is there."""

    def put_new(self, key: str, data: Any) -> Version:
        return self.put(key, data)


def test_a_store_in_memory_passes_once() -> None:
    client = ObjectClient(MemoryStore(), "here")
    check_conditions(client, "jobs/")
    requests = client.counts.total()
    check_conditions(client, "jobs/")
    assert client.counts.total() == requests and client.below("") == []


def test_a_store_that_creates_over_what_is_there_is_refused() -> None:
    client = Deaf(MemoryStore(), "here")
    with pytest.raises(PenstockError, match="must not exist yet") as refused:
        check_conditions(client, "")
    assert refused.value.code == "DAT-5511" and client.below("") == []


@pytest.mark.xdist_group("moto")
def test_motos_server_keeps_conditions() -> None:
    server = moto_server()
    client = server.client(server.bucket("probed"))
    check_conditions(client, "jobs/")
    assert client.below("") == []


@pytest.mark.xdist_group("moto")
def test_localbucket_is_refused_for_the_state_of_jobs() -> None:
    server = localbucket_server()
    client = server.client(server.bucket("probed"))
    with pytest.raises(PenstockError) as refused:
        ObjectStorage(ObjectUrl("s3", "probed", "jobs/a"), client).lock()
    assert refused.value.code == "DAT-5511"
    assert "has changed since it was read (If-Match)" in refused.value.message
    assert client.below("") == []
