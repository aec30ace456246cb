"""Settings: typed values from text, defaults, refusals with the nearest key."""

from __future__ import annotations

import pytest

from penstock.catalog.declared_settings import SETTINGS
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.settings import Settings, parse_duration_ms, parse_memory_bytes


def test_every_default_is_a_value_of_its_kind() -> None:
    settings = Settings()
    assert [key for key, _ in settings.items()] == list(SETTINGS)
    for key in SETTINGS:
        assert settings.get(key) is not None


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("parallelism.default", "4", 4),
        ("execution.checkpointing.interval", "50 ms", 50),
        ("execution.checkpointing.interval", "1 min", 60_000),
        ("execution.checkpointing.interval", "1.5s", 1_500),
        ("execution.checkpointing.interval", "0", 0),
        ("execution.runtime-mode", "STREAMING", "streaming"),
        ("optimizer.split-aggregates", "ON", True),
        ("OPTIMIZER.SPLIT-AGGREGATES", "no", False),
        ("table.dml-sync", "TRUE", "true"),
        ("table.local-time-zone", "Europe/Berlin", "Europe/Berlin"),
        ("pipeline.name", " my job ", " my job "),
    ],
)
def test_values(key: str, text: str, value: object) -> None:
    settings = Settings({key: text})
    assert settings.get(key) == value
    assert settings.is_set(key)
    assert settings.text(key) == text
    settings.reset(key)
    assert not settings.is_set(key)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("parallelism.default", "0"),
        ("parallelism.default", "9" * 30),
        ("parallelism.default", "1.5"),
        ("execution.checkpointing.interval", "-1 s"),
        ("execution.checkpointing.interval", "five seconds"),
        ("execution.runtime-mode", "fast"),
        ("table.dml-sync", "2"),
        ("table.local-time-zone", "../etc/passwd"),
        ("table.local-time-zone", ""),
    ],
)
def test_refusals(key: str, text: str) -> None:
    settings = Settings()
    with pytest.raises(PenstockError) as caught:
        settings.set(key, text, Span(3, 5))
    assert caught.value.code == "SQL-1402"
    assert caught.value.span == Span(3, 5)
    assert settings.text(key) == SETTINGS[key].default


def test_an_unknown_key_has_a_nearest_one() -> None:
    with pytest.raises(PenstockError) as caught:
        Settings().get("execution.runtime-mod")
    assert (caught.value.code, caught.value.hint) == ("SQL-1401", 'did you mean "execution.runtime-mode"?')


def test_a_copy_is_independent() -> None:
    settings = Settings({"parallelism.default": "2"})
    copy = settings.copy()
    settings.reset()
    assert (settings.get("parallelism.default"), copy.get("parallelism.default")) == (1, 2)


def test_durations_and_sizes() -> None:
    assert [parse_duration_ms(text) for text in ("1 d", "2h", "3 minutes", "4 seconds", "x", "1 fortnight")] == [
        86_400_000, 7_200_000, 180_000, 4_000, None, None,
    ]  # fmt: skip
    assert [parse_memory_bytes(text) for text in ("64 mb", "1g", "512", "1 zb")] == [
        64 << 20,
        1 << 30,
        512,
        None,
    ]
