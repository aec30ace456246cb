"""Start the shell on a terminal and leave as soon as its prompt is drawn."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

WAIT_S = 20.0

pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.executable, [sys.executable, "-m", "penstock.repl.cli"])
seen = b""
deadline = time.monotonic() + WAIT_S
while b"penstock>" not in seen and time.monotonic() < deadline:
    if select.select([terminal], [], [], 0.05)[0]:
        seen += os.read(terminal, 65536)
        if b"\x1b[6n" in seen:  # the terminal is asked where its cursor is
            os.write(terminal, b"\x1b[1;1R")
            seen = seen.replace(b"\x1b[6n", b"")
os.kill(pid, 9)
os.waitpid(pid, 0)
if b"penstock>" not in seen:
    raise SystemExit(f"no prompt: {seen[-200:]!r}")
