"""Reaching a running ``penstock run`` of this machine by its state directory, and being reached."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.threads import EngineThread
from penstock.repl.output.messages import Messages

if TYPE_CHECKING:
    from penstock.client.server.control_socket import ControlSocket
    from penstock.client.session import Session


@contextmanager
def controllable(session: Session, state_dir: Path, messages: Messages, *, verbose: bool) -> Iterator[None]:
    """Listen on a control socket while the jobs of a session run. It is opened beside the first statement,
    which does not wait for it.
    """
    opened: list[ControlSocket] = []

    def listen() -> None:
        try:
            # Flight: only where jobs have a state directory
            from penstock.client.server.control_socket import ControlSocket

            opened.append(ControlSocket(session, state_dir, SystemClock(), socket.gethostname()))
        except (ImportError, PenstockError, OSError) as error:
            # the jobs run all the same
            if verbose:
                messages.note(
                    f"no control socket, so penstock stop --state cannot reach this process: {error}"
                )

    thread = EngineThread(listen, "penstock-control-start")
    thread.start()
    try:
        yield
    finally:
        thread.join()
        for control in opened:
            control.close()


def running_process_url(state_dir: str) -> str:
    """Return the URL of the process that runs the jobs of a state directory. CLI-6200 where none is to be
    reached.
    """
    from penstock.client.server.control_socket import control_url, is_alive

    return control_url(Path(state_dir), socket.gethostname(), is_alive)
