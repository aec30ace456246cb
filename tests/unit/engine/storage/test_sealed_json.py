"""Sealed JSON: the bytes of what is on disks already, and damage of any kind."""

from __future__ import annotations

import pytest

from penstock.engine.storage.sealed_json import BrokenSealError, crc32_line, seal, sha256_line, unseal

FIELDS = {"b": 1, "a": [None, "\u00e4"]}
WRITTEN = {
    sha256_line: b'{"a":[null,"\\u00e4"],"b":1}\n#sha256=306861fba0e00ea001e0c1cfb1153d11c822879b4b6f2d497e6dfdf7b341f1b9\n',
    crc32_line: b'{"a":[null,"\\u00e4"],"b":1}\n#crc32=e4c520e1\n',
}


@pytest.mark.parametrize("checksum", WRITTEN)
def test_bytes_on_disk_stay_as_they_are(checksum) -> None:
    assert seal(FIELDS, checksum) == WRITTEN[checksum]
    assert unseal(WRITTEN[checksum], checksum) == FIELDS


@pytest.mark.parametrize("checksum", WRITTEN)
def test_every_changed_or_missing_byte_is_seen(checksum) -> None:
    whole = WRITTEN[checksum]
    changed = [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    longer = [whole + b"\n", whole + b"\n\n", whole + whole, b"\n" + whole]
    for data in (*(whole[:i] for i in range(len(whole))), *changed, *longer):
        with pytest.raises(BrokenSealError):
            unseal(data, checksum)


def test_what_is_sealed_must_be_fields() -> None:
    text = b"[1]\n"
    with pytest.raises(BrokenSealError, match="no fields"):
        unseal(text + sha256_line(text).encode() + b"\n")
