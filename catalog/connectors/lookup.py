"""How a table is looked up by a processing time: as its options say, or whole, where it is read again on
an interval.
"""

from __future__ import annotations

from penstock.catalog.connectors.database import LOOKUP_OPTIONS
from penstock.catalog.connectors.filesystem import RELOAD
from penstock.catalog.connectors.option import OptionValue
from penstock.catalog.connectors.registry import connector_of, is_in_database
from penstock.catalog.tables import CatalogTable

_DEFAULTS = {declared.key: declared.default for declared in LOOKUP_OPTIONS}


def reload_ms(table: CatalogTable) -> int | None:
    """Return how often a table is read again while a job joins with it, milliseconds; ``None``: it is read
    once.
    """
    declared = connector_of(table).option(RELOAD)
    if declared is None or RELOAD not in table.options:
        return None
    value = declared.parse(RELOAD, table.options[RELOAD])
    return int(value) if value is not None else None


def is_looked_up(table: CatalogTable) -> bool:
    """Return whether a join as of a processing time asks for the table's rows while it runs; any other
    bounded table is loaded first.
    """
    return is_in_database(table) or reload_ms(table) is not None


def lookup_option(table: CatalogTable, key: str) -> OptionValue:
    """Return the value of a lookup option: what the table says, else the default; a table that is read
    again is remembered whole.
    """
    every_ms = reload_ms(table)
    if every_ms is not None:
        whole: dict[str, OptionValue] = {
            "lookup.cache": "full",
            "lookup.full-cache.reload-interval": every_ms,
        }
        if key in whole:
            return whole[key]
    declared = connector_of(table).option(key)
    if declared is None or key not in table.options:
        return _DEFAULTS[key]
    return declared.parse(key, table.options[key])
