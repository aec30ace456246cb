"""The client of the keep-alive daemon: leases the Spark of this user and installation, starts it, asks for
its state, stops it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.bounded.spark.connect_application import SparkServer
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.jvm_launcher import START_TIMEOUT_S, spark_home

_CONNECT_MODULES = ("grpc", "grpc_status", "google.rpc", "zstandard")
_POLL_S = 0.05
# a daemon answers from its own state at once; one that does not is hung
_ANSWER_S = 10.0


def lease_spark(keep_alive_ms: int, settings: Mapping[str, str]) -> SparkServer:
    """Lease the Spark that is kept alive; start one when there is none. BND-5016 when this machine cannot
    keep one, else the errors of a start.
    """
    _check_possible()
    path = _directory() / f"{_key()}.sock"
    request = {"do": "lease", "keep_alive_ms": keep_alive_ms}
    # a socket file without a daemon refuses the connection, and a new daemon replaces it
    answer = _ask(path, request) or _started(path, request, settings)
    lease, state = answer
    # only peeked at from now on, to see whether the daemon has closed it
    lease.setblocking(False)
    return SparkServer(state["url"], lease, state["token"])


def missing_modules() -> list[str]:
    """Return which modules Spark Connect needs that are not installed; none is imported."""
    return [name for name in _CONNECT_MODULES if not _importable(name)]


def daemon_states() -> list[dict[str, Any]]:
    """Return the states of this user's daemons; none is started."""
    return [state for path in _sockets() if (state := _ask_once(path, "status")) is not None]


def stop_daemons() -> int:
    """End all Sparks that are kept alive for this user; return their number."""
    return sum(_ask_once(path, "stop") is not None for path in _sockets())


def _sockets() -> Iterator[Path]:
    with contextlib.suppress(PenstockError):
        yield from sorted(_directory().glob("*.sock"))


def _ask_once(path: Path, what: str) -> dict[str, Any] | None:
    answer = _ask(path, {"do": what})
    if answer is None:
        return None
    # status and stop need no lease
    answer[0].close()
    return answer[1]


def _ask(path: Path, request: Mapping[str, object]) -> tuple[socket.socket, dict[str, Any]] | None:
    """Send a request to a daemon. Return the connection and the response, ``None`` when no daemon answers."""
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    wire.settimeout(_ANSWER_S)
    try:
        wire.connect(str(path))
        wire.sendall(json.dumps(request).encode())
        # one line of JSON in each direction
        with wire.makefile("r", encoding="utf-8") as lines:
            return wire, json.loads(lines.readline())
    except (OSError, ValueError):
        wire.close()
        return None


def _started(
    path: Path, request: Mapping[str, object], settings: Mapping[str, str]
) -> tuple[socket.socket, dict[str, Any]]:
    """Start a daemon and wait until it answers. If another process starts one at the same time, one of the
    two exits.
    """
    command = [sys.executable, "-m", "penstock.engine.bounded.spark.keep_alive_daemon", str(path)]
    where = path.parent  # not where this process happens to be, which may be removed
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    # its output is the log: stdout of ours belongs to the user
    with path.with_suffix(".log").open("w+") as log:
        keeper = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
            text=True,
            cwd=where,
        )
        assert keeper.stdin is not None
        # through a pipe: settings may hold secrets, and a command line is public
        keeper.stdin.write(json.dumps({"settings": dict(settings), **request}) + "\n")
        keeper.stdin.close()
        pause, waited = threading.Event(), 0.0
        while waited < START_TIMEOUT_S:
            answer = _ask(path, request)
            if answer is not None:
                return answer
            # it ended: with an error in its log, or because another daemon was first, which is asked again
            if keeper.poll() is not None:
                _raise_daemon_error(path)
            pause.wait(_POLL_S)
            waited += _POLL_S
    raise PenstockError(
        "BND-5002",
        "the Spark to be kept alive did not start in time",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="58000",
    )


def _raise_daemon_error(path: Path) -> None:
    """Raise the error that a daemon logged before it ended; nothing when it ended because another one
    runs.
    """
    text = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace").strip()
    if not text:
        return
    try:
        # the last line is the error as JSON; anything else is a traceback
        error = json.loads(text.splitlines()[-1])["error"]
    except (ValueError, KeyError, TypeError):
        error = {
            "code": "BND-5002",
            "message": "the Spark to be kept alive could not be started",
            "detail": text[-400:],
        }
    known = {name: error[name] for name in ("detail", "hint", "sqlstate") if error.get(name)}
    raise PenstockError(error["code"], error["message"], kind=Kind.EXTERNAL, **known)


def _check_possible() -> None:
    missing = missing_modules()
    if os.name == "posix" and not missing:
        return
    why = f"modules {', '.join(missing)} are not installed" if missing else "it needs a POSIX system"
    hint = "pip install 'penstock[spark]', or SET 'spark.keep-alive' = '0'"
    raise PenstockError(
        "BND-5016", f"no Spark can be kept alive: {why}", hint=hint, kind=Kind.EXTERNAL, sqlstate="58000"
    )


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _key() -> str:
    """Hash everything that processes must share to use one Spark: its program, its Java, its Python, the
    module path of its workers.
    """
    java = find_java()
    words = (
        str(spark_home()),
        str(java.program),
        java.build,
        sys.executable,
        os.environ.get("SPARK_CONF_DIR", ""),
        *sys.path,
    )
    # NUL between the words: no path holds one, so no two lists give the same text
    return f"{zlib.crc32(chr(0).join(words).encode()):08x}"


def _directory() -> Path:
    """Return the directory of this user's daemons, which no other user can enter. BND-5016 when another user
    owns it.
    """
    path = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"penstock-spark-{os.getuid()}"
    # made with its mode, so that nobody can enter before chmod
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    # lstat: another user could put a link to a directory of ours here
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        hint = "remove it, or set TMPDIR; or SET 'spark.keep-alive' = '0'"
        raise PenstockError(
            "BND-5016",
            f"no Spark can be kept alive: {path} is not this user's",
            hint=hint,
            kind=Kind.EXTERNAL,
            sqlstate="58000",
        )
    path.chmod(0o700)
    return path
