"""Connectors of other packages: each is registered by an entry point of the group ``penstock.connectors``,
and imported with the first table that names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from penstock.catalog.connectors.connector import Connector
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "penstock.connectors"
_INTERFACE = "its author finds the interface in docs/CONNECTOR_INTERFACE.md"


@dataclass(frozen=True)
class ConnectorPlugin:
    """What an entry point names: the declaration of a connector and its factories.

    ``source`` returns a ``SourceConnector`` for a ``ScanRequest``, ``sink`` a ``SinkWriter`` for a
    ``SinkRequest``, ``target`` an ``EpochTarget`` for it, which penstock writes exactly once. A connector
    that is declared a sink has ``sink`` or ``target``.
    """

    declaration: Connector
    source: Callable[[Any], Any] | None = None
    sink: Callable[[Any], Any] | None = None
    target: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class InstalledConnector:
    """A connector that an installed distribution registers; ``plugin`` imports it."""

    name: str
    distribution: str
    entry: EntryPoint

    def plugin(self) -> ConnectorPlugin:
        """Import the connector. DAT-5610 when its package fails, DAT-5611 when it registers another thing."""
        try:
            found = self.entry.load()
        except Exception as error:  # another package's code may raise anything
            why = f"cannot be imported: {type(error).__name__}: {error}"
            raise self._error("DAT-5610", why, "update the package, or uninstall it") from error
        if not isinstance(found, ConnectorPlugin):
            raise self._error("DAT-5611", f"registers {self.entry.value}, no ConnectorPlugin", _INTERFACE)
        declared = found.declaration
        lacks = (
            f"declares the name '{declared.name}'"
            if declared.name != self.name
            else "declares a source and has no factory of it"
            if declared.source and found.source is None
            else "declares a source and not whether its rows end"
            if declared.source and declared.boundedness is Connector.boundedness
            else "declares a sink and has no factory of it"
            if declared.sink and found.sink is None and found.target is None
            else None
        )
        if lacks is not None:
            raise self._error(
                "DAT-5611", lacks, "its author finds the interface in docs/CONNECTOR_INTERFACE.md"
            )
        return found

    def _error(self, code: str, why: str, hint: str) -> PenstockError:
        return PenstockError(
            code,
            f"connector '{self.name}' of package {self.distribution} {why}",
            hint=hint,
            kind=Kind.EXTERNAL,
        )


def installed_connectors() -> dict[str, InstalledConnector]:
    """Return the connectors of installed packages by lower-case name; none of them is imported."""
    return _installed(tuple(sys.path))


def installed_plugin(name: str) -> ConnectorPlugin | None:
    """Return the connector of that name (lower case) of an installed package, ``None`` when there is none.
    Raises as ``InstalledConnector.plugin``.
    """
    found = installed_connectors().get(name)
    return None if found is None else found.plugin()


# by the path: a package that is put there later is found
@lru_cache(maxsize=4)
def _installed(path: tuple[str, ...]) -> dict[str, InstalledConnector]:
    # 15 ms: not before a name is asked for that penstock does not know
    from importlib.metadata import entry_points

    found: dict[str, InstalledConnector] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        distribution = "?" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
        name = entry.name.lower()
        # the first of two packages; the same one on every start
        found.setdefault(name, InstalledConnector(name, distribution, entry))
    return found
