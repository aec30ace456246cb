"""The head of a job's objects: what it says comes back, damage is told, and a writer's end is recognised."""

from __future__ import annotations

import os

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.storage.object_head import Head, Holder, PublishedFile
from penstock.engine.storage.sealed_json import seal, unseal

NAMES = {
    "CURRENT": PublishedFile(3, b"\x00\xffa"),
    "chk-1.manifest.json": PublishedFile(9_000, key="chk-1@3-4"),
}


@pytest.mark.parametrize("holder", [None, Holder("here", 5, "77", 2)])
def test_what_it_says_comes_back(holder: Holder | None) -> None:
    head = Head(3, 4, holder, NAMES)
    assert Head.decoded(head.encoded(), "s3://bucket") == head


def test_damage_and_newer_formats_are_told() -> None:
    data = Head(3, 4, None, NAMES).encoded()
    newer = seal({**unseal(data), "version": 2})
    for broken in (data[:-9], data.replace(b'"fence":3', b'"fence":2'), b"", newer, seal({"format": 1})):
        with pytest.raises(PenstockError) as refused:
            Head.decoded(broken, "s3://bucket")
        assert refused.value.code == "DAT-5512" and "s3://bucket/HEAD" in refused.value.message


def test_the_end_of_a_writer() -> None:
    me = Holder.new()
    assert me.process == os.getpid() and not me.is_gone
    assert Holder(me.machine, me.process, "0", 1).is_gone  # a process of this number began later
    assert Holder(me.machine, 2**22 + 5, "1", 1).is_gone  # no process has this number
    assert not Holder("another machine", 1, "1", 1).is_gone  # nobody here can tell
    me.end()
    assert me.is_gone
