"""Storage in an object store: files of a checkpoint are objects, and publishing is a compare-and-swap.

Each name is one object below the place. A large file is several: its parts ``<name>/<number>``, and then
``<name>.parts``, which lists them and makes the file exist. Names that end in ``.tmp`` are kept in memory
until they are published. Published names are in the head (``engine/storage/object_head``): small files within
it, others by the key of an object of their own. So a stale writer publishes nothing: its swap fails.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage.object_client import PART_BYTES, ConditionFailedError, ObjectClient, Version
from penstock.engine.storage.object_head import HEAD, Head, Holder, PublishedFile
from penstock.engine.storage.object_probe import check_conditions
from penstock.engine.storage.storage import STAGED_SUFFIX, check_name, locked

_Result = TypeVar("_Result")
LEASE_S = 30.0
"""A holder that has not renewed for so long, by the clock of the process that waits, may be superseded."""
_RENEW_S = LEASE_S / 3
_LOOK_AGAIN_S = 1.0
_SWAPS = 20
# a published file of at most so many bytes is stored in the head: one request less
_INLINE_BYTES = 4096
_PARTS = ".parts"
# reads of a file follow one another: so much is fetched at once
_AHEAD_BYTES = 8 << 20


@dataclass
class _OpenFile:
    """A file that is written: what is not sent yet, and the lengths of the parts that are."""

    data: bytearray = field(default_factory=bytearray)
    sent: list[int] = field(default_factory=list)
    whole: bool = False


class ObjectStorage:
    """The objects below one URL. DAT-55xx where the store cannot be used; verbs raise OSError, whose text has
    the code. One process writes at a time; any may read, and write files that it does not publish.
    """

    fences = True

    def __init__(
        self,
        url: ObjectUrl,
        client: ObjectClient,
        *,
        clock: Clock | None = None,
        pause: Callable[[float], None] = time.sleep,
        holder: Holder | None = None,
    ) -> None:
        self.url = url
        self.client = client
        self._clock = clock or SystemClock()
        self._pause = pause
        self._me = holder
        self._root = f"{url.prefix}/" if url.prefix else ""
        self._open: dict[str, _OpenFile] = {}
        # by name of a file in parts: their lengths, as far as a listing or a write has shown it
        self._parts: dict[str, list[int]] = {}
        # lengths of other files; a name is never written twice, so they stay right
        self._sizes: dict[str, int] = {}
        self._ahead: tuple[str, int, bytes] = ("", 0, b"")
        # the head while this process holds it; the job's thread renews while another publishes
        self._held: tuple[Head, Version] | None = None
        self._mutex = threading.RLock()
        self._renewed_ms = 0.0

    def __str__(self) -> str:
        return str(self.url)

    def create(self, name: str) -> None:
        check_name(name)
        if name == HEAD or name.endswith(_PARTS) or name in self._open:
            raise FileExistsError(name)
        self._open[name] = _OpenFile()

    def append(self, name: str, data: bytes) -> None:
        file = self._open[name]
        view = memoryview(data).cast("B")
        # a file that is to be published stays in memory whole: it is a manifest
        if name.endswith(STAGED_SUFFIX):
            file.data += view
            return
        while view:
            space = PART_BYTES - len(file.data)
            file.data += view[:space]
            view = view[space:]
            if len(file.data) == PART_BYTES:
                self._send_part(name, file)

    def sync(self, name: str) -> None:
        """Write the object. FileExistsError when another process has written that name."""
        file = self._open[name]
        if name.endswith(STAGED_SUFFIX):
            file.whole = True
            return
        if file.sent:
            if file.data:
                self._send_part(name, file)
            data = json.dumps(file.sent).encode()
            self._do(lambda: self.client.put_new(self._key(name + _PARTS), data))
            self._parts[name] = file.sent
        else:
            # nothing is kept of a failed attempt: the file is written anew, under another name
            self._do(lambda: self.client.put_new(self._key(name), bytes(file.data)))
        del self._open[name]

    def sync_directory(self) -> None:
        """Nothing: a name is durable once its object is written."""

    def publish(self, name: str, target: str) -> None:
        """Publish a synced ``.tmp`` file. FileNotFoundError when another process has taken over: then nothing
        is published.
        """
        check_name(target)
        file = self._open.get(name)
        if file is None or not file.whole:
            raise FileNotFoundError(name)
        data = bytes(file.data)
        with self._mutex:
            head, _ = self._current_head()
            if len(data) <= _INLINE_BYTES:
                entry = PublishedFile(len(data), data)
            else:
                # a key that no name has, and that no other writer and no other publish can have
                entry = PublishedFile(len(data), key=f"{target}@{head.fence}-{head.beat + 1}")
                self._do(lambda: self.client.put(self._key(entry.key), data))
            former = head.names.get(target)
            self._swap(replace(head, names={**head.names, target: entry}))
            del self._open[name]
            failpoint("C9")
            if former is not None and former.key:
                self._delete_quietly(former.key)

    def list(self) -> builtins.list[str]:
        objects, _ = self._do(lambda: self.client.children(self.url.prefix))
        sizes = {stored.key[len(self._root) :]: stored.size for stored in objects}
        parted = {name.removesuffix(_PARTS) for name in sizes if name.endswith(_PARTS)}
        # a key with @ is that of a published name, and .parts is no name of its own
        self._sizes = {
            name: size
            for name, size in sizes.items()
            if name != HEAD and "@" not in name and not name.endswith(_PARTS)
        }
        self._parts = {name: self._parts.get(name, []) for name in parted}
        published = set(self._names()) if HEAD in sizes else set()
        return sorted(self._sizes.keys() | parted | published)

    def delete(self, name: str) -> None:
        check_name(name)
        file = self._open.pop(name, None)
        if file is not None:
            for number in range(len(file.sent)):
                self._delete(self._part_key(name, number))
            return
        if name.endswith(STAGED_SUFFIX):  # only its writer has it
            return
        if name in self._names():
            with self._mutex:
                head, _ = self._current_head()
                entry = head.names.get(name)
                self._swap(replace(head, names={n: e for n, e in head.names.items() if n != name}))
            if entry is not None and entry.key:
                self._delete(entry.key)
            return
        if name not in self._parts:
            self._delete(name)
            return
        parts = self._lengths(name)
        # first what makes it exist: a file is never there with a part of it gone
        self._delete(name + _PARTS)
        for number in range(len(parts)):
            self._delete(self._part_key(name, number))
        del self._parts[name]

    def size(self, name: str) -> int:
        check_name(name)
        if self._held is not None and (entry := self._held[0].names.get(name)) is not None:
            return entry.length
        try:
            return self._do(lambda: self.client.size(self._key(name)))
        except FileNotFoundError:
            return self._length_of_another_kind(name)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        check_name(name)
        if self._held is not None and (entry := self._held[0].names.get(name)) is not None:
            return _slice(self._published(entry), offset, length)
        held, begin, ahead = self._ahead
        if length is None or held != name or not begin <= offset <= offset + length <= begin + len(ahead):
            try:
                ahead = self._fetch(name, offset, None if length is None else max(length, _AHEAD_BYTES))
            except FileNotFoundError:
                # readers ask for the head each time: what is published changes
                if (entry := self._names().get(name)) is None:
                    raise
                return _slice(self._published(entry), offset, length)
            # any other name is never written twice, so what was fetched stays right
            self._ahead, begin = (name, offset, ahead), offset
        return _slice(ahead, offset - begin, length)

    def lock(self, *, take_over: bool = False) -> None:
        """Become the one writer. While another holds the head, wait until it has not renewed for 30 s by this
        process's clock: clocks of two machines are never compared. STA-3001 at once when it renews meanwhile.

        The store is probed first: DAT-5511 when it ignores conditions.
        """
        self._do(lambda: check_conditions(self.client, self._root), coded=True)
        self._me = self._me or Holder.new()
        # a holder that is alive swaps the head as well: whoever takes over may lose that race some times
        for _ in range(_SWAPS if take_over else 1):
            try:
                self._become_holder(self._stored_head(), take_over, self._me)
            except (FileExistsError, ConditionFailedError):  # the holder lives, or another process was first
                continue
            return
        raise locked(str(self.url))

    def _become_holder(self, found: tuple[Head, Version] | None, take_over: bool, me: Holder) -> None:
        """Write the head with this process as its holder; another change of it meanwhile is an error."""
        if found is None:
            first = Head(1, 1, me, {})
            data = first.encoded()
            self._hold(first, self._do(lambda: self.client.put_new(self._key(HEAD), data), coded=True))
            return
        head, version = found
        if head.holder not in (None, me) and not (take_over or head.holder.is_gone):
            self._await_silence(version)
        taken = replace(head, fence=head.fence + 1, beat=head.beat + 1, holder=me)
        data = taken.encoded()
        self._hold(taken, self._do(lambda: self.client.replace(self._key(HEAD), data, version), coded=True))
        self._remove_leftovers(taken)

    def shut(self) -> None:
        """Nothing: the bucket's policy says who may read it."""

    def location(self) -> str:
        return str(self.url)

    def in_use(self) -> bool:
        """Whether a process seems to write here. A writer on another machine counts while its last renewal is
        at most three leases old, by the two clocks. ``lock`` alone decides, and compares no clocks.
        """
        found = self._stored_head()
        if found is None or found[0].holder is None or found[0].holder.is_gone:
            return False
        renewed_us = self._do(lambda: self.client.info(self._key(HEAD))).modified_us
        return self._clock.wall_ms() - renewed_us / 1e3 < 3 * LEASE_S * 1e3

    def renew(self, *, now: bool = False) -> bool:
        # a publish goes on: it renews
        if not self._mutex.acquire(blocking=now):
            return True
        try:
            if self._held is None:
                return False
            if not now and self._clock.monotonic_ms() - self._renewed_ms < _RENEW_S * 1e3:
                return True
            try:
                self._swap(self._held[0])
            except FileNotFoundError:
                return False
            except OSError:  # the store does not answer; whether another has taken over shows at a publish
                if now:
                    raise
                return True
            return True
        finally:
            self._mutex.release()

    def close(self) -> None:
        for name, file in list(self._open.items()):
            for number in range(len(file.sent)):
                self._delete_quietly(self._part_key(name, number))
        self._open = {}
        with self._mutex:
            if self._held is not None:
                # else it was taken over, or is taken over when it has been silent for long enough
                with contextlib.suppress(OSError):
                    self._swap(replace(self._held[0], holder=None))
                self._held = None
            if self._me is not None:
                self._me.end()

    def _await_silence(self, version: Version) -> None:
        """Return once the head has not changed for the length of a lease; STA-3001 when it changes."""
        begun_ms = self._clock.monotonic_ms()
        self.client.report(
            f"the state in {self.url} was not closed: it is taken over once its writer has been silent for "
            f"{LEASE_S:.0f} s"
        )
        while self._clock.monotonic_ms() - begun_ms < LEASE_S * 1e3:
            self._pause(_LOOK_AGAIN_S)
            found = self._stored_head()
            if found is None or found[1] != version:
                raise locked(str(self.url))

    def _remove_leftovers(self, head: Head) -> None:
        """Delete what a process that died has left. These are parts of files that were not completed, and
        objects that were written to be published and were not.
        """
        stored = self._do(lambda: self.client.below(self.url.prefix))
        keys = [found.key[len(self._root) :] for found in stored]
        there = set(keys)
        referenced = {entry.key for entry in head.names.values()}
        for key in keys:
            name, part, number = key.partition("/")
            orphan = part and number.isdigit() and len(number) == _DIGITS and name + _PARTS not in there
            if orphan or ("@" in key and not part and key not in referenced):
                self._delete(key)

    def _hold(self, head: Head, version: Version) -> None:
        with self._mutex:
            self._held = (head, version)
            self._renewed_ms = self._clock.monotonic_ms()

    def _swap(self, head: Head) -> None:
        """Replace the head that this process holds. FileNotFoundError when another process has taken over."""
        former, version = self._current_head()
        head = replace(head, beat=former.beat + 1)
        try:
            version = self._do(lambda: self.client.replace(self._key(HEAD), head.encoded(), version))
        except ConditionFailedError as error:
            raise FileNotFoundError(
                errno.ENOENT, f"{self.url}/{HEAD} was taken over by another process"
            ) from error
        if self._held is not None:
            self._hold(head, version)

    def _current_head(self) -> tuple[Head, Version]:
        if self._held is not None:
            return self._held
        found = self._stored_head()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, f"{self.url}/{HEAD} is gone")
        return found

    def _stored_head(self) -> tuple[Head, Version] | None:
        try:
            data, version = self._do(lambda: self.client.get(self._key(HEAD)), coded=True)
        except FileNotFoundError:
            return None
        return Head.decoded(data, str(self.url)), version

    def _names(self) -> dict[str, PublishedFile]:
        """Return the published names."""
        held = self._held or self._stored_head()
        return {} if held is None else held[0].names

    def _published(self, entry: PublishedFile) -> bytes:
        if entry.data is not None:
            return entry.data
        return self._do(lambda: self.client.get(self._key(entry.key)))[0]

    def _length_of_another_kind(self, name: str) -> int:
        """Return the length of a file in parts, or of a published one."""
        try:
            return sum(self._lengths(name))
        except FileNotFoundError:
            if (entry := self._names().get(name)) is None:
                raise
            return entry.length

    def _send_part(self, name: str, file: _OpenFile) -> None:
        data, number = bytes(file.data), len(file.sent)
        # over what a writer that died has left there: a name that exists has its list, and is not created
        self._do(lambda: self.client.put(self._key(self._part_key(name, number)), data))
        file.sent.append(len(data))
        file.data = bytearray()

    def _lengths(self, name: str) -> builtins.list[int]:
        """Return the lengths of a file's parts. FileNotFoundError when there is no such file."""
        known = self._parts.get(name)
        if not known:
            try:
                data, _ = self._do(lambda: self.client.get(self._key(name + _PARTS)))
            except FileNotFoundError:
                raise FileNotFoundError(errno.ENOENT, f"{self.url}/{name} is not there") from None
            known = self._parts[name] = [int(length) for length in json.loads(data)]
        return known

    def _fetch(self, name: str, offset: int, length: int | None) -> bytes:
        """Return bytes of a file, fewer at its end."""
        if name not in self._parts:
            try:
                if name not in self._sizes:
                    self._sizes[name] = self._do(lambda: self.client.size(self._key(name)))
            except FileNotFoundError:
                self._lengths(name)  # raises when it is not in parts either
            else:
                end = self._sizes[name] if length is None else min(offset + length, self._sizes[name])
                return self._range(name, offset, end)
        pieces, begin = [], 0
        for number, size in enumerate(self._lengths(name)):
            start = max(offset, begin)
            end = begin + size if length is None else min(offset + length, begin + size)
            if start < end:
                pieces.append(self._range(self._part_key(name, number), start - begin, end - begin))
            begin += size
        return b"".join(pieces)

    def _range(self, key: str, start: int, end: int) -> bytes:
        return self._do(lambda: self.client.get_range(self._key(key), start, max(0, end - start)))

    def _delete(self, key: str) -> None:
        self._do(lambda: self.client.delete(self._key(key)))

    def _delete_quietly(self, key: str) -> None:
        try:
            self._delete(key)
        except OSError:  # no name has it: the next process that opens the job deletes it
            return

    def _key(self, name: str) -> str:
        return self._root + name

    @staticmethod
    def _part_key(name: str, number: int) -> str:
        return f"{name}/{number:0{_DIGITS}d}"

    def _do(self, request: Callable[[], _Result], *, coded: bool = False) -> _Result:
        """Do a request; its coded error becomes an OSError, as a disk's would be, unless ``coded``."""
        try:
            return request()
        except PenstockError as error:
            if coded:
                raise
            number = errno.EACCES if error.code in _DENIED else errno.EIO
            raise OSError(number, f"{error.code}: {error.message}") from error


def _slice(data: bytes, offset: int, length: int | None) -> bytes:
    return data[offset:] if length is None else data[offset : offset + length]


_DIGITS = 6
_DENIED = ("DAT-5505", "DAT-5506", "DAT-5507")
