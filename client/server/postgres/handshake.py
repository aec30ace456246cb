"""The start of a connection: encryption, authentication, the parameters of the session. It does no I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from penstock.catalog.errors import PenstockError
from penstock.client.server.listener import Authenticator
from penstock.client.server.postgres import backend_messages as backend
from penstock.client.server.postgres.frontend_messages import (
    CancelRequest,
    Credentials,
    EncryptionRequest,
    Message,
    Startup,
    Terminate,
    violation,
)
from penstock.client.server.postgres.scram import MECHANISM, ScramExchange
from penstock.client.server.principal import LOCAL, Principal

_OK, _PASSWORD, _SASL, _SASL_CONTINUE, _SASL_FINAL = 0, 3, 10, 11, 12
"""Kinds of authentication requests."""


class Step(StrEnum):
    """What the owner of the connection does next."""

    CONTINUE = "continue"
    START_TLS = "start tls"
    CANCEL = "cancel"
    OPEN = "open"
    CLOSE = "close"


@dataclass(frozen=True)
class HandshakeReply:
    """What a message leads to: bytes to send, then a step. ``cancels``: whose statement is cancelled."""

    step: Step
    data: bytes = b""
    cancels: CancelRequest | None = None


class Handshake:
    """Takes the messages before a session is open. With ``by_password`` a password is sent as it is, which is
    asked for over TLS only; else SCRAM proves it without sending it.

    ``principal`` and ``startup`` are set once the step is OPEN.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        nonce: Callable[[], str],
        *,
        has_tls: bool,
        requires_tls: bool = False,
        by_password: bool = False,
    ) -> None:
        self._authenticator = authenticator
        self._nonce = nonce
        self._has_tls = has_tls
        self._requires_tls = requires_tls
        self._by_password = by_password
        self._scram: ScramExchange | None = None
        self.is_encrypted = False
        self.startup: Startup | None = None
        self.principal: Principal | None = None

    def receive(self, message: Message) -> HandshakeReply:
        """Return the reply to a message. Raises CLI-6210, CLI-6220, CLI-6221 and CLI-6222, after which the
        connection ends.
        """
        match message:
            case EncryptionRequest(tls=tls):
                return self._encryption(tls)
            case CancelRequest():
                return HandshakeReply(Step.CANCEL, cancels=message)
            case Startup():
                return self._start(message)
            case Credentials(payload=payload) if self.startup is not None and self.principal is None:
                return self._check(payload, self.startup.parameters["user"])
            case Terminate():
                return HandshakeReply(Step.CLOSE)
        raise violation(f"{type(message).__name__} comes before the client is authenticated")

    def _encryption(self, tls: bool) -> HandshakeReply:
        if self.is_encrypted or self.startup is not None:
            raise violation("encryption is asked for twice")
        # GSS is refused, and TLS where there is no certificate: the client decides whether it goes on
        if not tls or not self._has_tls:
            return HandshakeReply(Step.CONTINUE, backend.ENCRYPTION_REFUSED)
        return HandshakeReply(Step.START_TLS, backend.TLS_ACCEPTED)

    def _start(self, startup: Startup) -> HandshakeReply:
        if not startup.parameters.get("user"):
            raise violation("the start-up names no user")
        self.startup = startup
        if self._requires_tls and not self.is_encrypted:
            raise PenstockError(
                "CLI-6221",
                "this server is reached over TLS only",
                hint="connect with sslmode=require, or sslmode=verify-full and the server's certificate",
                sqlstate="28000",
            )
        if not self._authenticator.required:
            return self._opened(LOCAL)
        if self._by_password and self.is_encrypted:
            return HandshakeReply(Step.CONTINUE, backend.authentication(_PASSWORD))
        mechanisms = backend.text(MECHANISM) + b"\0"
        return HandshakeReply(Step.CONTINUE, backend.authentication(_SASL, mechanisms))

    def _check(self, payload: bytes, user: str) -> HandshakeReply:
        if self._by_password and self.is_encrypted:
            password = payload.removesuffix(b"\0").decode("utf-8", "replace")
            return self._opened(self._authenticator.by_password(user, password))
        # the proof is the second message
        if self._scram is not None:
            final = backend.authentication(_SASL_FINAL, self._scram.final(payload))
            return self._opened(self._authenticator.by_scram(user), final)
        mechanism, _, rest = payload.partition(b"\0")
        if mechanism != MECHANISM.encode() or len(rest) < 4:
            raise violation(f"the client asks for {mechanism[:40]!r}, and {MECHANISM} is offered")
        (length,) = struct.unpack(">i", rest[:4])
        if length != len(rest) - 4:
            raise violation("the first message of SCRAM has another length")
        # an unknown user gets a verifier that no password fits: both cost the same
        verifier = self._authenticator.scram_verifier(user)
        self._scram = ScramExchange(verifier, self._nonce(), partial(self._authenticator.refuse, user))
        first = self._scram.first(rest[4:])
        return HandshakeReply(Step.CONTINUE, backend.authentication(_SASL_CONTINUE, first))

    def _opened(self, principal: Principal, before: bytes = b"") -> HandshakeReply:
        self.principal = principal
        return HandshakeReply(Step.OPEN, before + backend.authentication(_OK))
