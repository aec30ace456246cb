"""The lease of a server on a directory and on a bucket: one holder, and a stale one writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.state_lease import HOLDER, LeaseHolder, StateLease
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.locations import Location, parse_location
from penstock.engine.storage.locations import storage_at
from tests.harness.object_stores import environment_of, moto_server
from tests.unit.client.server.running_server import RunningServer

pytestmark = pytest.mark.xdist_group("moto")


@pytest.fixture(params=["disk", "moto"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    if request.param == "disk":
        yield tmp_path / "state"
        return
    server = moto_server()
    with environment_of(server.environment):
        yield parse_location(
            f"s3://{server.bucket('lease-' + tmp_path.name.replace('_', '-').lower()[-30:])}/x"
        )


def lease_on(place: Location) -> StateLease:
    return StateLease(storage_at(place), ManualClock(5_000))


def never(holder: LeaseHolder | None) -> None:
    raise AssertionError(f"nobody is waited for, not {holder}")


def test_the_second_waits_and_a_stale_holder_writes_nothing(place: Location) -> None:
    first = lease_on(place)
    assert first.acquire(Event(), never)
    first.publish_addresses({"flight": "127.0.0.1:1"})
    first.write("catalog.json", b"first")
    second, waited, cancelled = lease_on(place), [], Event()

    def stop(holder: LeaseHolder | None) -> None:
        waited.append(holder)
        cancelled.set()

    if isinstance(place, Path):
        assert not second.acquire(cancelled, stop)
        assert waited == [first.holder]
    first.close()
    assert second.acquire(Event(), never)
    assert second.holder.epoch == first.holder.epoch + 1
    assert second.read("catalog.json") == b"first"
    # taken over from: what the first still writes is refused
    third = StateLease(storage_at(place), ManualClock(6_000))
    third._storage.lock(take_over=True)
    with pytest.raises(PenstockError) as raised:
        second.write("catalog.json", b"second")
    assert (raised.value.code, raised.value.sqlstate) == ("CLI-6204", "57P01")
    assert third.read("catalog.json") == b"first"
    third.close()


def test_a_file_that_names_no_holder_is_nobody(place: Location) -> None:
    lease = lease_on(place)
    assert lease.acquire(Event(), never)
    lease.write(HOLDER, b"{}")
    assert lease.current() is None
    lease.close()


def test_a_server_keeps_everything_in_a_bucket(tmp_path: Path) -> None:
    store = moto_server()
    ticks = "CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')"
    out = (
        "CREATE TABLE out (n BIGINT) WITH "
        f"('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path / 'out'}')"
    )
    with environment_of(store.environment):
        state = parse_location(f"s3://{store.bucket('server-state')}/penstock")
        with RunningServer(state) as first:  # type: ignore[arg-type]  # a bucket, too
            client = first.connect()
            for statement in (ticks, out, "INSERT INTO out SELECT n FROM ticks"):
                client.execute(statement)
            client.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c FROM ticks")
        with RunningServer(state) as second:  # type: ignore[arg-type]
            assert [fields["job"] for fields in second.fields_of("job resumed")] == ["insert-into-out-1"]
            assert [fields["view"] for fields in second.fields_of("view resumed")] == ["v"]
            assert not second.fields_of("not restored")
