"""Server-sent events: those of the standard's examples, however the answer is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.connectors.http.event_stream import ServerEvent, server_events

TEXT = (
    b"\xef\xbb\xbf: this is a comment\n\ndata: first event\nid: 1\n\n"
    b"data:second event\rid\r\r"
    b"event: add\r\ndata:  third\r\ndata\r\ndata: line\r\nretry: 250\r\n\r\n"
    b"data: it does not end\n"
)
EVENTS = [
    ServerEvent(None, "message", "0", None),
    ServerEvent(b"first event", "message", "1", None),
    ServerEvent(b"second event", "message", "", None),
    ServerEvent(b" third\n\nline", "add", "", 250),
]


@given(st.lists(st.integers(1, 20), max_size=80))
def test_events_are_the_same_however_they_are_cut(cuts: list[int]) -> None:
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(TEXT[at : at + cut])
        at += cut
    assert list(server_events([*pieces, TEXT[at:]], "0", 1 << 20)) == EVENTS


def test_one_byte_at_a_time() -> None:
    assert list(server_events([bytes([byte]) for byte in TEXT], "0", 1 << 20)) == EVENTS
