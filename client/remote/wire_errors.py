"""Errors between a server and its clients: JSON beside a sentence for clients that read no JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from penstock.catalog.errors import Kind, PenstockError, SourceText, Span

SENTENCE_MOST = 1_000
"""Characters of the sentence. It travels in headers of HTTP/2, three times, and clients take 8 KiB of them.
"""
_FACTS_MOST = 1_500
"""Characters of detail and of hint in the JSON, for the same reason."""


@dataclass(frozen=True)
class WireError:
    """The fields of a PenstockError as they are sent. ``statement``: the number of the statement in the text
    that the client sent; ``span`` is in that text, which the client has.
    """

    code: str
    message: str
    detail: str | None
    hint: str | None
    span: tuple[int, int] | None
    statement: int | None
    kind: str
    retriable: bool
    sqlstate: str
    operator: str | None

    def raised(self, text: str | None = None) -> PenstockError:
        """Return the error to raise at the client, with its position in ``text`` where that is whole."""
        error = PenstockError(
            self.code,
            self.message,
            detail=self.detail,
            hint=self.hint,
            span=None if self.span is None else Span(*self.span),
            kind=Kind(self.kind),
            retriable=self.retriable,
            sqlstate=self.sqlstate,
            operator=self.operator,
        )
        return error if text is None else error.with_source(SourceText(text, statement=self.statement))


def encode_error(error: PenstockError) -> bytes:
    """Return an error as JSON: the fields of ``as_dict``, long texts shortened."""
    facts = error.as_dict()
    for name in ("message", "detail", "hint"):
        facts[name] = _shortened(facts[name], _FACTS_MOST)
    return json.dumps(facts, separators=(",", ":")).encode()


def decode_error(data: bytes) -> WireError | None:
    """Return what ``encode_error`` wrote; None for bytes of anybody else."""
    try:
        facts: dict[str, Any] = json.loads(data)
        span = facts["span"]
        return WireError(
            str(facts["code"]),
            str(facts["message"]),
            facts["detail"],
            facts["hint"],
            None if span is None else (int(span[0]), int(span[1])),
            facts["statement"],
            str(Kind(facts["kind"])),
            bool(facts["retriable"]),
            str(facts["sqlstate"]),
            facts["operator"],
        )
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def sentence_of(error: PenstockError) -> str:
    """Return what a client without our JSON shows: the sentence, the line with its caret, the hint."""
    return _shortened(error.render(), SENTENCE_MOST) or error.code


def _shortened(text: Any, most: int) -> str | None:
    if not isinstance(text, str):
        return None
    return text if len(text) <= most else f"{text[: most - 1]}…"
