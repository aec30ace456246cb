"""Errors of ``penstock serve`` itself, CLI-620x: its sessions, listeners and lease."""

from __future__ import annotations

SERVER = {
    "CLI-6200": (
        "No process can be reached that runs the jobs of a state directory.",
        "The message says whether it has ended, is on another machine, or has no control socket.",
    ),
    "CLI-6201": (
        "A client connects while the server starts, waits for another one, or ends.",
        "Connect again in a moment.",
    ),
    "CLI-6202": (
        "The server has as many sessions as it may have.",
        "Close sessions, or raise --max-sessions.",
    ),
    "CLI-6204": (
        "Another server has taken over the state of this one.",
        "Connect to that server: server.json in the state names it.",
    ),
    "CLI-6205": (
        "A server or session runs as many statements as it may, or uses as much memory.",
        "Run the statement again when others have ended, or raise the limit of penstock serve.",
    ),
    "CLI-6206": (
        "A session of a server sets what is read once for all sessions.",
        "Set it where the server is started: penstock serve --set key=value.",
    ),
    "CLI-6207": (
        "A stored statement, or a job, could not be restored when the server started.",
        "Mend what the message names, then start the server again or create the name again.",
    ),
    "CLI-6208": (
        "A listener of the server needs a package that is not installed.",
        "pip install 'penstock[server]'.",
    ),
    "CLI-6209": (
        "penstock serve cannot use one of its flags.",
        "Change the flag that the message names.",
    ),
}
