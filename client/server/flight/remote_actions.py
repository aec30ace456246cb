"""Actions of our own client: what Flight SQL has no word for. Their bodies are JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

from penstock.catalog.catalog import Relation
from penstock.catalog.connectors.registry import redacted
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable, ObjectPath
from penstock.client.remote.protocol import decode_words, encode_words
from penstock.client.remote.wire_errors import encode_error
from penstock.client.server.flight.call_identity import CallIdentity
from penstock.client.server.flight.client_sessions import ClientSession, ClientSessions
from penstock.client.server.flight.messages import unreadable
from penstock.client.statements.jobs import find_job
from penstock.engine.deploy.protocol.codec import encode
from penstock.engine.job.job import Job

IsOver = Callable[[], bool]
OPEN_SESSION = "penstock.open-session"
_WAIT_S = 0.1  # how often the wait for a job looks whether its client is there
_WAIT_MOST_S = 30.0  # of one call; the client asks again


def open_session(clients: ClientSessions, identity: CallIdentity, peer: str, body: bytes) -> bytes:
    """Open a session with settings; the answer names it."""
    words = _words(body)
    settings = {str(key): str(value) for key, value in dict(words.get("settings") or {}).items()}
    session = clients.open(identity.principal, peer, settings)
    return encode_words({"session": session.secret, "principal": identity.principal.name})


def _cancel(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Cancel a statement by the client's id for it."""
    return encode_words({"found": session.statements.cancel(str(_words(body).get("id")))})


def _jobs(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Return the jobs, oldest first."""
    return encode_words({"jobs": [job_facts(job) for job in session.engine.jobs()]})


def _job(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Return one job. ``wait``: wait so many seconds for its end; ``act``: stop, drain or cancel it first."""
    words = _words(body)
    job = find_job(session.engine.state, str(words.get("id")))
    if "act" in words:
        _check_role(session, job, "CANCEL" if words["act"] == "cancel" else "STOP")
    match words.get("act"):
        case "stop":
            job.stop()
        case "drain":
            job.stop(drain=True)
        case "cancel":
            job.cancel()
    left_s = min(float(words.get("wait") or 0), _WAIT_MOST_S)
    while left_s > 0 and not is_over() and not job.wait(min(left_s, _WAIT_S)):
        left_s -= _WAIT_S
    return encode_words(job_facts(job))


def _check_role(session: ClientSession, job: Job, verb: str) -> None:
    """Raise CLI-6211 where the client may not run the statement that does the same. It is audited too."""
    name = job.job_id.replace("'", "''")
    (statement,) = session.engine.parse(f"{verb} JOB '{name}'")
    session.engine.state.access.check_statement(statement.node, statement.text)


def _metrics(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Return what jobs have counted."""
    words = _words(body)
    found = session.engine.metrics(words.get("job"), words.get("like"))
    return encode_words(
        {"metrics": [{f.name: getattr(each, f.name) for f in fields(each)} for each in found]}
    )


def _job_metrics(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Return all numbers of a job, in the job codec."""
    numbers = find_job(session.engine.state, str(_words(body).get("id"))).metrics()
    parts = {each.name: getattr(numbers, each.name) for each in fields(numbers)}
    # classes that the codec does not know, by their fields
    lists = [tuple(vars_of(each) for each in parts.pop(name)) for name in ("checkpoints", "events")]
    return encode((parts, *lists))


def vars_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name."""
    values = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: str(each) if isinstance(each, StrEnum) else each for name, each in values.items()}


def _unregister(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Remove a table that was uploaded."""
    session.engine.unregister(str(_words(body).get("name")))
    return b""


def _names(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Return the namespace, databases, relations and changed settings, for the Table API and the shell, in
    the job codec.
    """
    engine = session.engine
    with engine.state.lock:
        catalog = engine.catalog
        databases = {name: tuple(catalog.databases.of(name)) for name in catalog.databases.options}
        paths = [ObjectPath(name, database) for name, names in databases.items() for database in names]
        relations = tuple(_without_secrets(each) for path in paths for each in catalog.relations_of(path))
        changed = [key for key, _ in engine.settings.items() if engine.settings.is_set(key)]
        settings = {key: engine.settings.shown(key) for key in changed}
        current = catalog.current
    return encode((current, databases, relations, settings))


def _relation(session: ClientSession, body: bytes, is_over: IsOver) -> bytes:
    """Return one relation by its name, also of a catalog of another system; None where there is none."""
    with session.engine.state.lock:
        found = session.engine.catalog.find(str(_words(body).get("name")))
    return encode(None if found is None else _without_secrets(found))


def _without_secrets(relation: Relation) -> Relation:
    """Return a relation as a client may see it."""
    if isinstance(relation, CatalogTable):
        return replace(relation, options=redacted(relation.options))
    return relation


def job_facts(job: Job) -> dict[str, Any]:
    """Return a job as JSON; its error in the form that errors are sent in."""
    return {
        "id": job.job_id,
        "name": job.name,
        "state": str(job.state),
        "terminal": job.state.terminal,
        "stopped": job.stopped,
        "finished_before": job.finished_before,
        "parallelism": job.parallelism,
        "error": _error(job.error),
        "last_failure": _error(job.last_failure),
    }


def _error(error: PenstockError | None) -> str | None:
    return None if error is None else encode_error(error).decode()


def _words(body: bytes) -> dict[str, Any]:
    try:
        return decode_words(body)
    except ValueError as error:
        raise unreadable("request") from error


ACTIONS: dict[str, Callable[[ClientSession, bytes, IsOver], bytes]] = {
    "penstock.cancel": _cancel,
    "penstock.jobs": _jobs,
    "penstock.job": _job,
    "penstock.job-metrics": _job_metrics,
    "penstock.metrics": _metrics,
    "penstock.unregister": _unregister,
    "penstock.names": _names,
    "penstock.relation": _relation,
}
"""By the name of the action: each gets the session, the body, and whether the client is gone."""
