"""The storage of a place, and what lies below one: directories of this machine and prefixes of object stores
alike.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from penstock.engine.api.locations import Location, ObjectUrl
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.object_client import ObjectClient, client_of
from penstock.engine.storage.object_store import ObjectStorage


def storage_at(place: Location, told: Callable[[str], None] | None = None) -> LocalStorage | ObjectStorage:
    """Return the storage of a place. STA-3030 for a directory that cannot be made, DAT-55xx for an object
    store that cannot be used. ``told`` is called with what is waited for or tried again.
    """
    if isinstance(place, ObjectUrl):
        return ObjectStorage(place, client_of(place, told=told))
    return LocalStorage(place)


def exists(place: Location) -> bool:
    """Whether there is a directory, or an object below a prefix. DAT-55xx when the store does not answer."""
    if isinstance(place, ObjectUrl):
        objects, folders = _children(place)
        return bool(objects or folders)
    return place.is_dir()


def has_file(place: Location, name: str) -> bool:
    """Whether a file of that name lies directly in a place."""
    if isinstance(place, ObjectUrl):
        return name in storage_at(place).list()
    return (place / name).is_file()


def folders_in(place: Location) -> list[Location]:
    """Return the directories directly below a place, sorted."""
    if isinstance(place, ObjectUrl):
        return [place / name for name in _children(place)[1]]
    return [*sorted(path for path in place.iterdir() if path.is_dir())]


def remove(place: Location) -> None:
    """Delete a directory with all it holds; what cannot be deleted stays."""
    if isinstance(place, ObjectUrl):
        client = client_of(place)
        for stored in client.below(place.prefix):
            client.delete(stored.key)
    else:
        shutil.rmtree(place, ignore_errors=True)


def set_aside(place: Location, target: Location) -> None:
    """Rename a directory. The objects of a prefix are copied, all of them before the first is deleted."""
    if isinstance(place, ObjectUrl):
        assert isinstance(target, ObjectUrl), "both are places of one store"
        client = client_of(place)
        keys = [stored.key for stored in client.below(place.prefix)]
        for key in keys:
            client.copy(key, f"{target.prefix}/{key[len(place.prefix) + 1 :]}")
        # the head first: without it a state half deleted is not taken for one
        for key in sorted(keys, key=lambda key: key != f"{place.prefix}/HEAD"):
            client.delete(key)
    else:
        assert isinstance(target, Path), "both are places of this machine"
        place.rename(target)


def _children(place: ObjectUrl) -> tuple[list[str], list[str]]:
    client: ObjectClient = client_of(place)
    objects, folders = client.children(place.prefix)
    return [stored.key for stored in objects], folders
