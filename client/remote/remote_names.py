"""The names of a server's session, as the Table API and the shell read them."""

from __future__ import annotations

from penstock.catalog.catalog import Catalog, Relation
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.client.remote.flight_channel import FlightChannel
from penstock.client.remote.protocol import encode_words
from penstock.engine.deploy.protocol.codec import decode
from penstock.planner.binder.binder import Binder


class FetchedCatalog(Catalog):
    """A copy of a session's names, whose relations are asked for one by one: a program may have changed them
    since.
    """

    def __init__(self, channel: FlightChannel) -> None:
        super().__init__()
        self._channel = channel

    def find(self, name: str) -> Relation | None:
        """Return the table or view of that name as it is now, or ``None``."""
        return decode(self._channel.action_bytes("penstock.relation", encode_words({"name": name})))


def fetch_names(channel: FlightChannel) -> tuple[Catalog, dict[str, str]]:
    """Return a copy of the session's catalog, and the settings that were set, without tables of other
    systems.
    """
    return _filled(Catalog(), channel)


def fetch_binder(channel: FlightChannel) -> Binder:
    """Return a binder over the names of the session, as they are when it binds."""
    catalog, values = _filled(FetchedCatalog(channel), channel)
    return Binder(catalog, Settings(values))


def _filled(catalog: Catalog, channel: FlightChannel) -> tuple[Catalog, dict[str, str]]:
    current, databases, relations, settings = decode(channel.action_bytes("penstock.names", b""))
    catalog.databases.by_catalog = {key: list(names) for key, names in databases.items()}
    catalog.databases.options = {key: {"type": "memory"} for key in databases}
    for relation in relations:
        if isinstance(relation, CatalogTable):
            catalog.create_table(relation, if_not_exists=True)
        else:
            catalog.create_view(relation, if_not_exists=True)
    catalog.current = current
    return catalog, dict(settings)
