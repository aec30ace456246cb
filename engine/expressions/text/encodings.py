"""Text encodings: BASE64, character sets, URLs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.expressions.datum import Datum, Kernel, columnwise, on_first
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import Fault, bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value, compiled_later, plain
from penstock.engine.expressions.text.compiled_texts import url_decoder, url_encoded, url_parts
from penstock.engine.expressions.text.scanned_texts import base64

_CHARSETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16",
}
# protocol://user@host:port/path?query#ref, every part optional
_URL = re.compile(
    r"(?:(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*):)?"
    r"(?://(?P<authority>(?:(?P<userinfo>[^/?#@]*)@)?(?P<host>\[[^\]/?#]*\]|[^/?#:@]*)(?::[0-9]*)?))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<ref>.*))?",
    re.DOTALL,
)


def _charset(name: str) -> str:
    encoding = _CHARSETS.get(name.upper())
    if encoding is None:
        raise bad_argument(f"there is no character set {name}", f"sets are {', '.join(_CHARSETS)}")
    return encoding


def _encode(text: str, charset: str) -> bytes:
    name = _charset(charset)
    try:
        # Java's UTF-16 is big-endian with a byte order mark; Python's has the machine's order.
        return b"\xfe\xff" + text.encode("utf-16-be") if name == "utf-16" and text else text.encode(name)
    except UnicodeEncodeError:
        raise bad_argument(f"{text!r} has characters that {charset} has not") from None


def _decode(data: bytes, charset: str) -> str:
    try:
        return data.decode(_charset(charset))
    except UnicodeDecodeError:
        raise bad_argument(f"bytes are no text in {charset}") from None


def _url_decode(text: str) -> str:
    # unquote_plus would leave it as it is
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise bad_argument(f"{text!r} is no encoded part of a URL", "a % precedes two hexadecimal digits")
    return unquote_plus(text)


def _parse_url(url: str, part: str, key: str | None = None) -> str | None:
    """Return a URL's part by its name in capitals, or one key's value of QUERY. Raise Fault RUN-2004 for
    characters that a URL cannot contain.
    """
    parts = _URL.fullmatch(url)
    if parts is None or re.search(r"[\s<>\"{}|\\^`]", url):
        raise bad_argument(f"{url!r} is no URL")
    # An opaque URL such as mailto:a@b.c has only a protocol.
    if parts["protocol"] and parts["authority"] is None and not parts["path"].startswith("/"):
        return parts["protocol"] if part == "PROTOCOL" else None
    if part == "FILE":
        query = parts["query"]
        return parts["path"] if query is None else f"{parts['path']}?{query}"
    if part not in ("PROTOCOL", "AUTHORITY", "USERINFO", "HOST", "PATH", "QUERY", "REF"):
        return None
    value = parts[part.lower()]
    if part == "QUERY" and key is not None:
        match = re.search(rf"(?:&|^){re.escape(key)}=([^&]*)", value or "")
        return None if match is None else match[1]
    return None if part == "HOST" and not value else value


def _between_texts_and_bytes(compute: Callable[[Any, str], str | bytes | None], kind: pa.DataType) -> Factory:
    """Return the factory of ``encode`` or ``decode``. Arrow stores texts in UTF-8: only the type changes."""

    def factory(bound: BoundCall) -> Kernel:
        each = by_value(compute, kind)(bound)
        charset = bound.constant(1)
        if not isinstance(charset, str) or charset.upper() != "UTF-8":
            return each

        def kernel(*data: Datum) -> Datum:
            try:
                return pc.cast(data[0], kind)
            # bytes that are no text: the error names them
            except pa.ArrowInvalid:
                return each(*data)

        return kernel

    return factory


def _base64(bound: BoundCall) -> Kernel:
    encoded = duckdb_kernel("base64({0})", pa.string())
    return compiled_later(columnwise(lambda values: encoded(pc.cast(values, pa.binary()))), on_first(base64))


def _luhn_check(digits: str) -> bool:
    """Return whether a text of digits passes Luhn's checksum: from the right each second digit is doubled."""
    if not digits.isascii() or not digits.isdigit():
        return False
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(int(digit) for digit in digits[::-2])) % 10 == 0


def _tried(function: Callable[..., str | None]) -> Callable[..., str | None]:
    """Return a function with NULL instead of a fault."""

    def tried(*args: str) -> str | None:
        try:
            return function(*args)
        except Fault:
            return None

    return tried


ENCODINGS: dict[str, Factory] = {
    "base64": _base64,
    "encode": _between_texts_and_bytes(_encode, pa.binary()),
    "decode": _between_texts_and_bytes(_decode, pa.string()),
    "url_encode": plain(url_encoded),
    "url_decode": url_decoder(_url_decode),
    "parse_url": url_parts(_parse_url),
    "try_url_decode": url_decoder(_tried(_url_decode)),
    "try_parse_url": url_parts(_tried(_parse_url)),
    "luhn_check": by_value(_luhn_check, pa.bool_()),
}
