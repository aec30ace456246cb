"""``penstock serve``: a server in the foreground, until a signal ends it."""

from __future__ import annotations

import argparse
import gc
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.execution.access_control import AccessControl
from penstock.client.server.listener import Authenticator
from penstock.client.server.listeners import LISTENERS, TlsFiles
from penstock.client.server.principal import Principal
from penstock.client.server.security.access_policy import AccessPolicy
from penstock.client.server.security.audit_log import AuditLog
from penstock.client.server.security.authenticators import (
    AuditedAuthenticator,
    FileAuthenticator,
    OpenAuthenticator,
)
from penstock.client.server.security.principal_access import PrincipalAccess
from penstock.client.server.server import Server, ServerOptions
from penstock.client.server.server_log import JsonLines, ServerLog
from penstock.client.server.server_sessions import ClientAddress
from penstock.client.server.session_limits import SessionLimits
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.locations import parse_location
from penstock.engine.api.threads import EngineThread
from penstock.repl.launch.arguments import key_values
from penstock.repl.launch.parser import EXIT_INTERRUPTED, EXIT_OK, EXIT_QUERY, Parser
from penstock.repl.launch.session_factory import messages_for, refusal_code

# What the thread that reads signals reads last: no signal has this number.
_NO_SIGNAL = b"\0"
_PORT_FLAGS = {"flight": "flight_port", "postgres": "postgres_port", "web": "http_port"}


def serve(arguments: argparse.Namespace, parser: Parser) -> int:
    """Serve until a signal ends it, and return the exit code."""
    messages = messages_for(arguments)
    settings = key_values(arguments.settings, "--set", parser)
    try:
        authenticator = authenticator_for(arguments)
        log = ServerLog(Path(arguments.log_file) if arguments.log_file else None, arguments.log_size)
        audit = audit_of(arguments, log)
        if audit is not None:
            authenticator = AuditedAuthenticator(authenticator, audit)
        access_for = None if audit is None else access_of(arguments, audit)
        server = Server(
            options_of(arguments, settings), authenticator, log, access_for=access_for, audit=audit
        )
    except PenstockError as error:
        messages.error(error)
        return refusal_code(error)
    except OSError as error:
        messages.error(_no_log(error))
        return EXIT_QUERY
    server.on_ready = lambda: announce(server.addresses)
    try:
        with handling_signals(server, log):
            server.run()
    except PenstockError as error:
        log("failed", {"code": error.code, "message": error.message}, level="error")
        messages.error(error)
        return EXIT_QUERY
    return EXIT_OK


def options_of(arguments: argparse.Namespace, settings: Mapping[str, str]) -> ServerOptions:
    """Return the options of a command line."""
    ports = {name: getattr(arguments, flag) for name, flag in _PORT_FLAGS.items() if name in LISTENERS}
    limits = SessionLimits(
        arguments.max_sessions,
        arguments.max_statements,
        arguments.max_results,
        arguments.idle_timeout,
        arguments.max_memory,
        arguments.session_memory,
    )
    tls = None if arguments.tls_cert is None else TlsFiles(Path(arguments.tls_cert), Path(arguments.tls_key))
    return ServerOptions(
        parse_location(arguments.state),
        arguments.host,
        {name: port for name, port in ports.items() if port is not None},
        settings,
        limits,
        tls,
        None if arguments.init is None else Path(arguments.init),
    )


def authenticator_for(arguments: argparse.Namespace) -> Authenticator:
    """Return who knows the clients. CLI-6209 for a server that other machines reach without users or TLS."""
    if not is_loopback(arguments.host) and (arguments.users is None or arguments.tls_cert is None):
        raise PenstockError(
            "CLI-6209",
            f"a server without users and TLS listens on this machine only, not on {arguments.host}",
            hint="add --users FILE, --tls-cert and --tls-key; or leave --host out",
            kind=Kind.USER,
            sqlstate="42501",
        )
    return OpenAuthenticator() if arguments.users is None else FileAuthenticator(arguments.users)


def audit_of(arguments: argparse.Namespace, log: ServerLog) -> AuditLog | None:
    """Return the audit log; None where every client is the operator and no audit is asked for. OSError where
    it cannot be written.
    """
    if arguments.users is None and arguments.audit_log is None:
        return None
    write = log.audit if arguments.audit_log is None else JsonLines(Path(arguments.audit_log)).write
    return AuditLog(write, SystemClock().wall_ms)


def access_of(
    arguments: argparse.Namespace, audit: AuditLog
) -> Callable[[Principal, ClientAddress, str], AccessControl]:
    """Return what the sessions of clients may do."""
    policy = AccessPolicy(tuple(arguments.allowed_path), tuple(arguments.allowed_host))

    def access(principal: Principal, client: ClientAddress, session_id: str) -> AccessControl:
        return PrincipalAccess(principal, policy, audit, f"{client.listener} {client.address}", session_id)

    return access


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def handling_signals(server: Server, log: ServerLog) -> Iterator[None]:
    """End in order at the first SIGTERM or Ctrl-C, at once at the second; begin a log file at SIGHUP.

    A handler in Python runs in the main thread. One that comes just before this thread waits for an Event is
    noticed when the wait is over, that is never; one that interrupts it in the lock of an Event must not wait
    for that lock. So the interpreter writes the numbers of signals into a socket, which another thread reads.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    thread = EngineThread(lambda: _act_on_signals(receiver, server, log), "penstock-signals")
    thread.start()
    former = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    # without a handler in Python the interpreter writes nothing, and the signal ends the process
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    handlers = {number: signal.signal(number, lambda signum, frame: None) for number in numbers}
    try:
        yield
    finally:
        # the former handlers are restored: a program may call the command line as a function
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(former)
        sender.send(_NO_SIGNAL)
        thread.join()
        receiver.close()
        sender.close()


def _act_on_signals(receiver: socket.socket, server: Server, log: ServerLog) -> None:
    while (number := receiver.recv(1)) != _NO_SIGNAL:
        if number[0] == signal.SIGHUP:
            log.rotate()
        elif server.is_stopping:
            # the state is as after a kill, from which every job resumes
            os._exit(EXIT_INTERRUPTED)
        else:
            notify_systemd("STOPPING=1")
            server.stop()


def announce(addresses: Mapping[str, str]) -> None:
    """Print where the server listens, and let systemd know that it is ready."""
    listed = ", ".join(f"{name} {address}" for name, address in addresses.items()) or "no port"
    sys.stdout.write(f"penstock serves: {listed}\n")
    sys.stdout.flush()
    notify_systemd("READY=1")
    # what the start has made stays: a full collection would stop every client for the 50 ms that it takes
    gc.freeze()


def notify_systemd(state: str) -> None:
    """Send a state to systemd, where it has started this process with Type=notify."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    # an @ stands for the zero byte of an abstract socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state.encode(), "\0" + path[1:] if path.startswith("@") else path)


def _no_log(error: OSError) -> PenstockError:
    return PenstockError(
        "CLI-6209",
        f"the log cannot be written to {error.filename}: {error.strerror}",
        hint="name a file in a directory that exists, or leave --log-file and --audit-log out",
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )
