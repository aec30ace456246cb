"""Options of tables: what cannot work is refused with a hint, and secrets are never shown."""

from __future__ import annotations

import pytest

from penstock.catalog.connectors.registry import check_options, is_secret, redacted
from penstock.catalog.errors import PenstockError, Span

SPAN = Span(3, 9)


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        ({}, "SQL-1501", "filesystem"),
        ({"connector": "filesystm"}, "SQL-1502", 'did you mean "filesystem"?'),
        ({"connector": "collect"}, "SQL-1502", "datagen"),
        ({"connector": "filesystem", "pth": "x"}, "SQL-1503", 'did you mean "path"?'),
        ({"connector": "blackhole", "x": "1"}, "SQL-1503", "sink.parallelism"),
        ({"connector": "datagen", "fields.id.lenght": "1"}, "SQL-1503", 'did you mean "fields.id.length"?'),
        ({"connector": "filesystem", "format": "csv"}, "SQL-1504", "path"),
        ({"connector": "filesystem", "path": "data"}, "SQL-1504", "format"),
        (
            {"connector": "filesystem", "path": "a.csv", "on-error": "skipp"},
            "SQL-1505",
            'did you mean "skip"?',
        ),
        ({"connector": "datagen", "rows-per-second": "-1"}, "SQL-1505", "the least is 0"),
        ({"connector": "filesystem", "path": "a.csv", "csv.header": "yes"}, "SQL-1505", "'true' or 'false'"),
        ({"connector": "filesystem", "path": "a.csv", "csv.quote": "''"}, "SQL-1505", "one character"),
        (
            {"connector": "filesystem", "path": "a.csv", "source.monitor-interval": "5 secnds"},
            "SQL-1506",
            "seconds",
        ),
        ({"connector": "filesystem", "path": "a.csv", "source.monitor-interval": "5"}, "SQL-1506", "'5 s'"),
        ({"connector": "filesystem", "path": "a.csv", "sink.rolling.bytes": "1 gbb"}, "SQL-1506", "gb"),
        ({"connector": "filesystem", "path": "a.parquet", "csv.header": "true"}, "SQL-1507", "leave it out"),
        ({"connector": "filesystem", "path": "a.csv", "csv.quote": ","}, "SQL-1507", None),
        (
            {
                "connector": "filesystem",
                "path": "a.csv",
                "source.monitor-interval": "1 s",
                "source.replay": "true",
            },
            "SQL-1507",
            "keep one",
        ),
    ],
)
def test_options_that_cannot_work(options: dict[str, str], code: str, hint: str | None) -> None:
    with pytest.raises(PenstockError, match=code) as caught:
        check_options(options, dict.fromkeys(options, SPAN))
    assert caught.value.span == SPAN or not options
    assert hint is None or hint in str(caught.value.hint)


def test_options_that_work() -> None:
    check_options(
        {
            "connector": "Filesystem".lower(),
            "path": "a.csv.gz",
            "csv.delimiter": "\\t",
            "csv.null-literal": "NA",
        },
        {},
    )
    check_options({"connector": "datagen", "fields.a.b.kind": "random", "fields.id.step": "1 s"}, {})


def test_secrets_are_never_shown() -> None:
    shown = redacted(
        {
            "connector": "filesystem",
            "path": "s3://user:hunter2@host/x?secret_key=abc&a=1",
            "auth.password": "p",
            "csv.header": "true",
        }
    )
    assert shown == {
        "connector": "filesystem",
        "path": "s3://******@host/x?secret_key=******&a=1",
        "auth.password": "******",
        "csv.header": "true",
    }
    assert is_secret("kafka", "sasl.jaas.config") and not is_secret("filesystem", "path")
