"""Functions of addresses: what is an IPv6 address is what Python says, over streams and on DuckDB."""

from __future__ import annotations

import ipaddress
import random
from contextlib import closing

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

_CHOSEN = (
    "::", "::1", "1::", "fe80::1", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9", "1::2::3", ":::", ":1", "1:", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "::1.2.3",
    "::256.1.1.1", "1:2:3:4:5:6:7:1.2.3.4", "12345::", "g::", "", " ::1", "::1 ", "10.0.0.1", "1.2.3.4::",
    "::1.2.3.4:5", "1:2:3:4:5::1.2.3.4", "1:2:3:4:5:6::1.2.3.4", "::ffff:01.2.3.4",
)  # fmt: skip


def _texts() -> list[str | None]:
    dice = random.Random(7)
    parts = ("", "1", "ab", "FFFF", "10000", "1.2.3.4", "::", ":", "0")
    made = [":".join(dice.choices(parts, k=dice.randint(1, 9))) for _ in range(1500)]
    return [*_CHOSEN, *made, None]


def _is_address(text: str | None) -> bool | None:
    if text is None:
        return None
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("mode", ["streaming", "automatic"])
def test_an_address_is_one_of_ipv6_where_python_says_so(mode: str) -> None:
    texts = _texts()
    expected = [_is_address(text) for text in texts]
    assert expected.count(True) > 50
    with closing(Session({"bounded.backend": "duckdb", "execution.runtime-mode": mode})) as session:
        session.register("t", pa.table({"i": range(len(texts)), "s": pa.array(texts, pa.string())}))
        rows = session.execute("SELECT i, is_ipv6(s) AS a, isIPv6String(s) AS b FROM t").final_rows(
            PATIENCE_S
        )
    found = {row["i"]: (row["a"], row["b"]) for row in rows.to_pylist()}
    assert [text for i, text in enumerate(texts) if found[i] != (expected[i],) * 2] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("isIPv4String('10.0.0.1')", True),
        ("IPv4NumToString(167772161)", "10.0.0.1"),
        ("IPv4StringToNumOrNull('10.0.0.1')", 167_772_161),
        ("IPv4StringToNumOrNull('10.0.0')", None),
        ("regexp_matches('Order', '^o')", False),
        ("regexp_matches('Order', '^o', 'i')", True),
        (r"regexp_matches(concat('a', chr(10), 'b'), 'a.b', 'si')", True),
        (r"regexp_matches(concat('a', chr(10), 'b'), 'a.b', 'c')", False),
        ("regexp_matches('a', CAST(NULL AS STRING), 'i')", None),
    ],
)
def test_other_engines_names_have_their_values(text: str, value: object) -> None:
    with closing(Session({"bounded.backend": "duckdb"})) as session:
        assert session.execute(f"SELECT {text} AS x").final_rows(PATIENCE_S).to_pylist() == [{"x": value}]


def test_unknown_options_of_a_match_are_refused() -> None:
    with closing(Session({"bounded.backend": "duckdb"})) as session, pytest.raises(PenstockError) as refused:
        session.execute("SELECT regexp_matches('a', 'b', 'q')")
    assert refused.value.hint == "write 'i' for a match without case"
