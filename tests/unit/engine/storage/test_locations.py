"""Directories and prefixes of object stores are asked the same questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.locations import Location, ObjectUrl, parse_location
from penstock.engine.storage.locations import exists, folders_in, has_file, remove, set_aside, storage_at
from tests.harness.object_stores import environment_of, moto_server


def test_texts_and_places() -> None:
    assert parse_location("state/dir") == Path("state/dir") and parse_location("file:///a/b") == Path("/a/b")
    place = parse_location("S3A://bucket//jobs/")
    assert place == ObjectUrl("s3", "bucket", "jobs") and str(place / "a") == "s3://bucket/jobs/a"
    assert isinstance(place, ObjectUrl) and (place / "a").with_name("b") == place / "b"
    assert (place / "a").name == "a" and parse_location("gs://bucket") == ObjectUrl("gs", "bucket")
    for wrong in ("ftp://host/jobs", "s3://", "s3:///jobs", "s3://key:password@bucket/jobs"):
        with pytest.raises(PenstockError) as refused:
            parse_location(wrong)
        assert refused.value.code == "DAT-5501" and "password" not in str(refused.value)


@pytest.mark.xdist_group("moto")
@pytest.mark.parametrize("kind", ["disk", "moto"])
def test_what_lies_in_a_place(kind: str, tmp_path: Path) -> None:
    server = moto_server()
    root: Location = tmp_path / "state"
    if kind == "moto":
        root = ObjectUrl("s3", server.bucket("places"), tmp_path.name)
    with environment_of(server.environment):
        assert not exists(root)
        for job in ("b", "a"):
            storage = storage_at(root / job)
            storage.create("JOB")
            storage.append("JOB", job.encode())
            storage.sync("JOB")
        assert exists(root) and folders_in(root) == [root / "a", root / "b"]
        assert has_file(root / "a", "JOB") and not has_file(root / "a", "CURRENT")
        set_aside(root / "a", root / "a.dropped-1")
        assert not exists(root / "a") and storage_at(root / "a.dropped-1").read("JOB") == b"a"
        remove(root / "b")
        assert folders_in(root) == [root / "a.dropped-1"]
