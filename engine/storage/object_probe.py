"""The probe of an object store: whether it keeps the conditions of writes. If not, two coordinators could
write one state, and nobody would see it.
"""

from __future__ import annotations

import itertools
import os

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.storage.object_client import ConditionFailedError, ObjectClient, Version

_NAME = ".penstock.probe"
_PROBES = itertools.count(1)


def check_conditions(client: ObjectClient, root: str) -> None:
    """Write, and write again, under conditions that do not hold. DAT-5511 when the store takes such a write.

    The object of the probe is deleted afterwards.
    """
    if client.probed:
        return
    # one name a writer: two that probe at one moment would see each other's writes
    key = f"{root}{_NAME}-{os.getpid()}-{next(_PROBES)}"
    client.put(key, b"1")
    try:
        _check(client, key)
    finally:
        client.delete(key)
    client.probed = True


def _check(client: ObjectClient, key: str) -> None:
    try:
        client.put_new(key, b"2")
    except FileExistsError:
        pass
    else:
        raise _ignores(client, "an object is written over that must not exist yet (If-None-Match)")
    _, first = client.get(key)
    second = client.replace(key, b"3", first)
    stale = _stale(client, key, first)
    if stale or second == first:
        raise _ignores(client, "an object is written over that has changed since it was read (If-Match)")


def _stale(client: ObjectClient, key: str, first: Version) -> bool:
    """Whether the store takes a write that is conditioned on a version that is no more."""
    try:
        client.replace(key, b"4", first)
    except ConditionFailedError:
        return False
    return True


def _ignores(client: ObjectClient, what: str) -> PenstockError:
    return PenstockError(
        "DAT-5511",
        f"{client.where} ignores conditions of writes: {what}; two writers could not be kept apart there",
        hint="write to a directory or to a store with conditional writes, such as S3, GCS or Azure; tables "
        "can be read from this store",
        kind=Kind.EXTERNAL,
        sqlstate="0A000",
    )
