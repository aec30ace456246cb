"""A REST catalog of Iceberg tables in this process, by the paths and answers of Iceberg's OpenAPI description. Its
tables are in a catalog of SQLite below a directory, so another server may go on with them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from pyiceberg import exceptions
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import CreateTableRequest, TableResponse
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from tests.harness.http_server import Answered, Asked, Server, http_server

_STATUS = {
    exceptions.NoSuchTableError: 404,
    exceptions.NoSuchNamespaceError: 404,
    exceptions.TableAlreadyExistsError: 409,
    exceptions.NamespaceAlreadyExistsError: 409,
    exceptions.CommitFailedException: 409,
}


@dataclass
class RestCatalog:
    """A server that runs. ``before``: called with each request before it is done, and may keep it waiting.
    ``after``: called with each request and its answer, and may put another in its place, as a network does that
    loses it. ``token``: what a request must bear; ``secret`` is exchanged for it.
    """

    server: Server
    path: Path
    token: str = "token-of-the-catalog"
    secret: str = "client:secret-of-the-catalog"
    before: Callable[[Asked], None] = field(default=lambda asked: None)
    after: Callable[[Asked, Answered], Answered] = field(default=lambda asked, answer: answer)

    @property
    def options(self) -> dict[str, str]:
        """Options of a table in it."""
        return {"catalog-type": "rest", "uri": self.uri, "catalog.token": self.token}

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"


@contextmanager
def rest_catalog(path: Path, port: int = 0) -> Iterator[RestCatalog]:
    """Run a server until the block ends."""
    path.mkdir(exist_ok=True)
    # the name that penstock gives a catalog: tables of SQLite's go by it
    tables = load_catalog(
        "penstock", type="sql", uri=f"sqlite:///{path}/catalog.db", warehouse=f"file://{path}/warehouse"
    )
    # SQLite's library is not used by two threads at once; that two commits race is decided by what they require
    guard = threading.Lock()
    with http_server(port) as server:
        running = RestCatalog(server, path)

        def answer(asked: Asked) -> Answered:
            running.before(asked)
            with guard:
                try:
                    given = _answered(running, tables, asked)
                except Exception as error:  # noqa: BLE001  each has a status
                    given = _error(_STATUS.get(type(error), 400), type(error).__name__, str(error))
            return running.after(asked, given)

        server.answer = answer
        try:
            yield running
        finally:
            tables.close()


def is_commit(asked: Asked) -> bool:
    """Whether a request commits to a table."""
    return asked.method == "POST" and b'"updates"' in asked.body


def _error(status: int, kind: str, message: str) -> Answered:
    return _json({"error": {"message": message, "type": kind, "code": status}}, status)


def _json(body: Any, status: int = 200) -> Answered:
    return Answered(json.dumps(body).encode(), status, {"Content-Type": "application/json"})


def _answered(running: RestCatalog, tables: Any, asked: Asked) -> Answered:
    if asked.path.endswith("/v1/oauth/tokens"):
        return _exchanged(running, asked)
    if asked.headers.get("authorization") != f"Bearer {running.token}":
        return _error(401, "NotAuthorizedException", "no such token")
    match [unquote(part) for part in asked.path.partition("?")[0].strip("/").split("/")]:
        case ["v1", "config"]:
            return _json({"defaults": {}, "overrides": {}})
        case ["v1", "namespaces"]:
            return _namespaces(tables, asked)
        case ["v1", "namespaces", namespace]:
            return _json(
                {"namespace": [namespace], "properties": tables.load_namespace_properties(namespace)}
            )
        case ["v1", "namespaces", namespace, "tables"]:
            return _tables(tables, namespace, asked)
        case ["v1", "namespaces", namespace, "tables", name]:
            return _table(tables, (namespace, name), asked)
    return _error(404, "NotFoundException", asked.path)


def _exchanged(running: RestCatalog, asked: Asked) -> Answered:
    """OAuth: a client's secret for a token."""
    fields = {key: values[0] for key, values in parse_qs(asked.body.decode()).items()}
    if f"{fields.get('client_id')}:{fields.get('client_secret')}" != running.secret:
        return _json({"error": "invalid_client", "error_description": "no such client"}, 401)
    return _json({"access_token": running.token, "token_type": "bearer", "expires_in": 3600})


def _namespaces(tables: Any, asked: Asked) -> Answered:
    if asked.method == "GET":
        return _json({"namespaces": [list(name) for name in tables.list_namespaces()]})
    wanted = json.loads(asked.body)
    tables.create_namespace(tuple(wanted["namespace"]), wanted.get("properties") or {})
    return _json(wanted)


def _tables(tables: Any, namespace: str, asked: Asked) -> Answered:
    if asked.method == "GET":
        names = tables.list_tables(namespace)
        return _json({"identifiers": [{"namespace": [namespace], "name": name[-1]} for name in names]})
    # a request leaves out what its client does not say
    wanted = CreateTableRequest.model_validate({"location": None, **json.loads(asked.body)})
    # as servers that there are refuse it
    if wanted.stage_create:
        return _error(406, "UnsupportedOperationException", "a table is not created in stages")
    more = {} if wanted.partition_spec is None else {"partition_spec": wanted.partition_spec}
    made = tables.create_table(
        (namespace, wanted.name),
        wanted.table_schema,
        wanted.location,
        sort_order=wanted.write_order or UNSORTED_SORT_ORDER,
        properties=wanted.properties,
        **more,
    )
    return _described(made)


def _table(tables: Any, name: tuple[str, str], asked: Asked) -> Answered:
    if asked.method == "GET":
        return _described(tables.load_table(name))
    if asked.method == "DELETE":
        tables.drop_table(name)
        return Answered(status=204)
    wanted = CommitTableRequest.model_validate_json(asked.body)
    committed = tables.commit_table(_Named(name), wanted.requirements, wanted.updates)
    return Answered(
        committed.model_dump_json(by_alias=True).encode(), 200, {"Content-Type": "application/json"}
    )


class _Named:
    """A table as far as a commit asks."""

    def __init__(self, name: tuple[str, str]) -> None:
        self._name = name

    def name(self) -> tuple[str, str]:
        return self._name


def _described(table: Any) -> Answered:
    response = TableResponse(metadata=table.metadata, **{"metadata-location": table.metadata_location})
    return Answered(
        response.model_dump_json(by_alias=True).encode(), 200, {"Content-Type": "application/json"}
    )
