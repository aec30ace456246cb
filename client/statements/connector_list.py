"""SHOW CONNECTORS: the connectors of penstock and of installed packages, and their options."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.catalog.connectors.connector import Connector
from penstock.catalog.connectors.option import Option
from penstock.catalog.connectors.registry import CONNECTORS
from penstock.catalog.connectors.third_party import installed_connectors
from penstock.catalog.errors import PenstockError
from penstock.client.results.result import Result, text_rows
from penstock.client.statements.settings import matches

Row = tuple[str | None, ...]


def connector_list() -> Result:
    """Return one row per connector."""
    rows: list[Row] = [row[:2] + row[4:] for row in _all(None) if row[2] is None]
    return text_rows(["connector", "use", "help"], rows)


def connector_options(like: str | None) -> Result:
    """Return one row per connector, then one per option of it."""
    return text_rows(["connector", "use", "option", "default", "help"], list(_all(like)))


def _all(like: str | None) -> Iterator[Row]:
    for connector in CONNECTORS.values():
        # internal ones are not for CREATE TABLE
        if not connector.internal and matches(connector.name, like):
            yield from _rows(connector, connector.help)
    for name, installed in installed_connectors().items():
        if name in CONNECTORS or not matches(name, like):
            continue
        # a broken package is listed, too: nothing else says why its name is not known
        try:
            connector = installed.plugin().declaration
        except PenstockError as error:
            yield name, "broken", None, None, error.message
        else:
            yield from _rows(connector, f"{connector.help} (package {installed.distribution})")


def _rows(connector: Connector, text: str) -> Iterator[Row]:
    use = _use(connector)
    yield connector.name, use, None, None, text
    for option in connector.options:
        yield connector.name, use, option.key, _default(option), option.help


def _use(connector: Connector) -> str:
    return " and ".join(
        word for word, is_so in (("source", connector.source), ("sink", connector.sink)) if is_so
    )


def _default(option: Option) -> str | None:
    if option.required:
        return "(required)"
    if option.default is None:
        return None
    return str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
