"""What tables of clients may reach; every declared option is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.connectors.option import OptionKind
from penstock.catalog.connectors.registry import CONNECTORS
from penstock.catalog.errors import PenstockError
from penstock.client.server.security.access_policy import UNBOUND_CONNECTORS, AccessPolicy, reach_of

# Options of text that reach neither a file nor a host. A new option is put here, or ends with a word that
# reach_of knows.
HARMLESS_WORDS = frozenset(
    [
        "min",
        "max",
        "start",
        "end",
        "values",
        "time",
        "name",
        "username",
        "password",
        "type",
        "case",
        "id",
        "prefix",
        "fields",
        "offsets",
        "rack",
        "principal",
        "secret",
        "scope",
        "extensions",
        "pem",
        "list",
        "suites",
        "literal",
        "encoding",
        "region",
        "key",
        "token",
        "topic",
        "pattern",
        "schema",
        "subject",
        "message",
        "include",
        "timestamp",
        "field",
        "stream",
        "identifier",
        "info",
        "user",
        "group",
    ]
)
HARMLESS = frozenset({"headers.*", "option.*"})


def is_allowed(policy: AccessPolicy, connector: str, **options: str) -> bool:
    try:
        policy.check_table(connector, {key.replace("_", "."): value for key, value in options.items()})
    except PenstockError as error:
        assert error.code == "CLI-6216"
        return False
    return True


def test_every_declared_option_is_known_to_reach_something_or_nothing() -> None:
    unknown = {
        f"{connector.name}: {option.key}"
        for connector in CONNECTORS.values()
        if not connector.internal and connector.name not in UNBOUND_CONNECTORS
        for option in connector.all_options
        if option.kind is OptionKind.STRING and option.key not in HARMLESS
        # storage.* and catalog.* have keys of their own, whose last word decides
        if not option.key.endswith(".*") and reach_of(option.key) is None
        if option.key.replace("-", ".").split(".")[-1] not in HARMLESS_WORDS
    }
    assert not unknown


def test_nothing_is_allowed_by_default(tmp_path: Path) -> None:
    nothing = AccessPolicy()
    assert not is_allowed(nothing, "filesystem", path=str(tmp_path))
    assert not is_allowed(nothing, "kafka", properties_bootstrap_servers="localhost:9092")
    assert not is_allowed(nothing, "spark", table="t")
    assert is_allowed(nothing, "datagen", rows="10")


def test_paths_are_compared_after_their_links_are_resolved(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "in-secret"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    policy = AccessPolicy(paths=(str(inside),))
    for path in (
        inside,
        inside / "a.csv",
        inside / "*.csv",
        f"file://{inside}/a.csv",
        inside / "b" / ".." / "c",
    ):
        assert is_allowed(policy, "filesystem", path=str(path)), path
    for path in (
        outside,
        inside / "..",
        inside / "link" / "a.csv",
        f"{inside}/../in-secret/*.csv",
        "/etc/passwd",
        "-",
    ):
        assert not is_allowed(policy, "filesystem", path=str(path)), path
    assert not is_allowed(policy, "filesystem", path=f"file://{inside}/%2e%2e/in-secret/a")


def test_object_stores_are_allowed_by_the_beginning_of_their_urls() -> None:
    policy = AccessPolicy(paths=("s3://shop/data",))
    assert is_allowed(policy, "filesystem", path="s3://shop/data/a.parquet")
    assert is_allowed(policy, "delta", **{"table-path": "s3://shop/data"})
    for path in (
        "s3://shop/database",
        "s3://shop",
        "s3://shop/data/../secret",
        "s3://shop/data/%2e%2e/x",
        "gs://shop/data/a",
    ):
        assert not is_allowed(policy, "filesystem", path=path), path


@pytest.mark.parametrize(
    ("connector", "key", "value", "allowed"),
    [
        ("kafka", "properties.bootstrap.servers", "k1.example.com:9092,k2.example.com:9092", True),
        ("kafka", "properties.bootstrap.servers", "k1.example.com:9092,evil.com:9092", False),
        ("http", "url", "https://k1.example.com/a", True),
        ("http", "url", "https://k1.example.com@evil.com/a", False),
        ("http", "url", "https://K1.EXAMPLE.COM:8443/a", True),
        ("postgres", "url", "postgresql://u:p@db.internal:5432/shop", True),
        ("postgres", "url", "postgresql://u:p@db.internal:5433/shop", False),
        ("postgres", "url", "postgresql://u@db.internal:5432/shop?host=evil.com", False),
        ("postgres", "url", "postgresql:///shop", False),
        ("socket", "hostname", "[::1]:9", False),
        ("iceberg", "uri", "sqlite:////etc/catalog.db", False),
    ],
)
def test_hosts(connector: str, key: str, value: str, allowed: bool) -> None:
    policy = AccessPolicy(hosts=("*.example.com", "db.internal:5432"))
    assert is_allowed(policy, connector, **{key: value}) is allowed
