"""The client of a Confluent Schema Registry: schemas by id, registration of schemas, over HTTP."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import redact_url
from penstock.engine.api.clock import pause_ms
from penstock.engine.formats.avro.schema import AvroType, parse_schema
from penstock.engine.metrics.operator_metrics import OperatorMetrics

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_FIRST_PAUSE_MS = 100
_MOST_REFERENCES = 1_000
_MOST_REPLY_BYTES = 16 << 20
# Confluent's error code of a schema id that is not there, as Karapace and Apicurio have it too
_NO_SCHEMA = 40_403
# replies that a registry gives while it has no leader or too much to do
_PASSING = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class RegistryOptions:
    """Where a registry is, and who asks: the options of one format of a table."""

    url: str
    user_info: str | None = None
    token: str | None = None
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    timeout_ms: int = 10_000
    retries: int = 3


def registry_options(form: MessageFormat) -> RegistryOptions:
    """Return the options that a format such as ``avro-confluent`` has of its registry."""
    prefix = form.name
    return RegistryOptions(
        str(form.option(f"{prefix}.url")).rstrip("/"),
        form.text(f"{prefix}.basic-auth.user-info"),
        form.text(f"{prefix}.bearer-auth.token"),
        form.text(f"{prefix}.ssl.ca-location"),
        form.text(f"{prefix}.ssl.certificate-location"),
        form.text(f"{prefix}.ssl.key-location"),
        int(str(form.option(f"{prefix}.timeout"))),
        int(str(form.option(f"{prefix}.retries"))),
    )


class SchemaRegistryClient:
    """Asks one registry. Each call blocks until there is an answer; a schema of an id is asked for once.

    ``metrics`` counts requests and retries. DAT-5220 when the registry cannot be reached, DAT-5221 when it
    refuses the user.
    """

    def __init__(
        self,
        options: RegistryOptions,
        metrics: OperatorMetrics | None = None,
        pause: Callable[[float], None] = pause_ms,
    ) -> None:
        self._options = options
        self._metrics = metrics or OperatorMetrics()
        self._pause = pause
        handlers = (
            [urllib.request.HTTPSHandler(context=_tls(options))] if options.url.startswith("https:") else []
        )
        self._opener = urllib.request.build_opener(*handlers)
        self._schemas: dict[int, AvroType] = {}

    @property
    def name(self) -> str:
        """The registry's address as it may be shown."""
        return redact_url(self._options.url)

    def schema(self, schema_id: int) -> AvroType | None:
        """Return the schema of an id; ``None`` when the registry has none. DAT-5210..5211 for a bad schema,
        DAT-5222 for one that is not Avro.
        """
        found = self._schemas.get(schema_id)
        if found is None:
            answer = self._definition(schema_id, "AVRO", "no Avro")
            if answer is None:
                return None
            known: dict[str, AvroType] = {}
            self._references(answer, known, set())
            found = self._schemas[schema_id] = parse_schema(
                str(answer.get("schema")), self._where(schema_id), known
            )
        return found

    def protobuf_file(self, schema_id: int) -> str | None:
        """Return the file of an id, in base64 where the registry can write it so; else as its text. ``None``
        when the registry has none, DAT-5222 for one that is not protobuf.
        """
        answer = self._definition(schema_id, "PROTOBUF", "no protobuf", "?format=serialized")
        return None if answer is None else str(answer.get("schema"))

    def _where(self, schema_id: int) -> str:
        return f"schema {schema_id} of the registry {self.name}"

    def _definition(self, schema_id: int, kind: str, no_kind: str, query: str = "") -> dict[str, Any] | None:
        status, answer = self._ask("GET", f"/schemas/ids/{schema_id}{query}", None)
        # another server's 404 would make bad records of all messages
        if status == 404 and isinstance(answer, dict) and answer.get("error_code") == _NO_SCHEMA:
            return None
        made = self._expected(status, answer, self._where(schema_id))
        if (there := made.get("schemaType", "AVRO")) != kind:
            raise PenstockError(
                "DAT-5222",
                f"{self._where(schema_id)} is {there}, {no_kind}",
                hint="read the topic with the format that its messages are in",
                kind=Kind.EXTERNAL,
            )
        return made

    def register(self, subject: str, schema: str, new: bool, kind: str = "AVRO") -> int:
        """Return the id of a schema under a subject, registered when ``new`` ones may be. DAT-5223 when the
        registry refuses it, or does not have it.
        """
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}" + ("/versions" if new else "")
        # without a kind it is Avro, also for registries that know no other
        typed = {} if kind == "AVRO" else {"schemaType": kind}
        status, answer = self._ask("POST", path, {"schema": schema} | typed)
        if status in (404, 409, 422):
            said = answer.get("message") if isinstance(answer, dict) else None
            reason = "does not have" if status == 404 else "refuses"
            hint = (
                "make the change compatible, or write to another subject"
                if status != 404
                else "register the schema first, or leave 'auto-register' out"
            )
            raise PenstockError(
                "DAT-5223",
                f"the registry {self.name} {reason} the schema of subject {subject}",
                detail=str(said)[:500] if said else None,
                hint=hint,
                kind=Kind.EXTERNAL,
            )
        found = self._expected(status, answer, f"the registry {self.name}").get("id")
        if not isinstance(found, int):
            raise self._strange(status)
        return found

    def _references(self, answer: dict[str, Any], known: dict[str, AvroType], seen: set[Any]) -> None:
        """Parse the schemas that a schema refers to, the innermost first."""
        for reference in answer.get("references") or ():
            place = (reference.get("subject"), reference.get("version"))
            if place in seen:
                continue
            seen.add(place)
            where = f"subject {place[0]} version {place[1]} of the registry {self.name}"
            if len(seen) > _MOST_REFERENCES:
                raise PenstockError(
                    "DAT-5222",
                    f"{where} refers to more than {_MOST_REFERENCES} schemas",
                    hint="put them into fewer schemas",
                    kind=Kind.EXTERNAL,
                )
            path = f"/subjects/{urllib.parse.quote(str(place[0]), safe='')}/versions/{place[1]}"
            status, inner = self._ask("GET", path, None)
            inner = self._expected(status, inner, where)
            self._references(inner, known, seen)
            parse_schema(str(inner.get("schema")), where, known)

    def _expected(self, status: int, answer: Any, where: str) -> dict[str, Any]:
        if status != 200 or not isinstance(answer, dict):
            said = answer.get("message") if isinstance(answer, dict) else None
            error = self._strange(status)
            error.detail = f"{where}: {said}"[:500] if said else where
            raise error
        return answer

    def _strange(self, status: int) -> PenstockError:
        return PenstockError(
            "DAT-5224",
            f"the answer {status} of {self.name} is not that of a schema registry",
            hint="is the URL that of a schema registry, with its path?",
            kind=Kind.EXTERNAL,
        )

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        """Return the status and the JSON of an answer, after retries of what may pass."""
        pause = float(_FIRST_PAUSE_MS)
        reason = ""
        for attempt in range(self._options.retries + 1):
            if attempt:
                self._metrics.count("schema_registry_retries")
                self._pause(pause)
                pause *= 2
            try:
                status, data = self._once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                # a certificate that is not trusted does not become so
                if isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError):
                    raise self._unreachable(str(error), attempt + 1, False) from None
                reason = str(getattr(error, "reason", error)) or type(error).__name__
                continue
            if status in (401, 403):
                raise PenstockError(
                    "DAT-5221",
                    f"the schema registry {self.name} refuses access ({status})",
                    hint="set 'basic-auth.user-info' or 'bearer-auth.token' of the format",
                    kind=Kind.EXTERNAL,
                )
            if status in _PASSING:
                reason = f"it answers {status}"
                continue
            try:
                return status, json.loads(data)
            except ValueError:
                return status, None
        raise self._unreachable(reason, self._options.retries + 1, True)

    def _once(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        options = self._options
        address = urllib.parse.urlsplit(options.url)
        bare = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
        request = urllib.request.Request(bare + path, method=method)
        request.add_header("Accept", f"{_MEDIA_TYPE}, application/json")
        user = options.user_info or urllib.parse.unquote(address.netloc.rpartition("@")[0])
        if options.token is not None:
            request.add_header("Authorization", f"Bearer {options.token}")
        elif user:
            request.add_header("Authorization", "Basic " + base64.b64encode(user.encode()).decode())
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", _MEDIA_TYPE)
        self._metrics.count("schema_registry_requests")
        try:
            with self._opener.open(request, timeout=options.timeout_ms / 1000) as answer:
                return answer.status, answer.read(_MOST_REPLY_BYTES)
        except urllib.error.HTTPError as error:
            # an answer, too: 404 and 409 have a meaning
            with error:
                return error.code, error.read(_MOST_REPLY_BYTES)

    def _unreachable(self, reason: str, attempts: int, retriable: bool) -> PenstockError:
        return PenstockError(
            "DAT-5220",
            f"the schema registry {self.name} cannot be reached",
            detail=f"{reason[:200]}; asked {attempts} time{'s' * (attempts > 1)}",
            hint="is it running, and is the URL right?",
            kind=Kind.EXTERNAL,
            retriable=retriable,
        )


def _tls(options: RegistryOptions) -> ssl.SSLContext:
    """Return the TLS of a registry. DAT-5225 for files that cannot be read."""
    try:
        context = ssl.create_default_context(cafile=options.ca_location)
        if options.certificate_location is not None:
            context.load_cert_chain(options.certificate_location, options.key_location)
    except (OSError, ssl.SSLError) as error:
        raise PenstockError(
            "DAT-5225",
            "the certificates for the schema registry cannot be read",
            detail=str(error)[:200],
            hint="ssl.ca-location, ssl.certificate-location and ssl.key-location are files in PEM",
        ) from None
    return context
