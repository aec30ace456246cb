"""Causes and cures of errors: the Flight SQL listener of a server, and the client that connects to it."""

from __future__ import annotations

FLIGHT: dict[str, tuple[str, str]] = {
    "CLI-6203": ("The address of a listener is in use.", "Choose another port, or end what listens there."),
    "CLI-6210": ("The server does not know the user or token.", "Pass a user and password, or a token."),
    "CLI-6230": (
        "A prepared statement or ticket is not one of this session: it was closed, read, or is too old.",
        "Prepare or run the statement again.",
    ),
    "CLI-6231": (
        "The session has ended: the server was started again, or the session was idle for too long.",
        "Connect again. Jobs of INSERT and materialized views continue.",
    ),
    "CLI-6232": (
        "The server got a request that it does not answer.",
        "docs/FLIGHT_SQL.md lists what it answers; connect by penstock:// or a driver of Flight SQL.",
    ),
    "CLI-6233": ("A session has too many prepared statements.", "Close those that are no longer used."),
    "CLI-6234": (
        "An upload cannot create or replace this table.",
        "CREATE TABLE it with a connector and append, or upload into a temporary table.",
    ),
    "CLI-6235": (
        "An upload, or values of a statement, are larger than the server takes.",
        "Append to a table with a connector, or write files that a table reads.",
    ),
    "CLI-6236": (
        "A query is executed as an update, or with several rows of values.",
        "Execute it as a query, once for each row of values.",
    ),
    "CLI-6237": (
        "A statement or result was stopped: it was cancelled, its session was closed, or the server closes.",
        "Run it again. SHOW JOBS lists the job of an INSERT, which continues.",
    ),
    "CLI-6238": (
        "The server is about to close and opens no sessions.",
        "Connect again in a moment, or to the server that took over.",
    ),
    "CLI-6239": ("The server failed in a way of its own.", "The server's log has the cause; report it."),
    "CLI-6240": ("The URL of a server cannot be read.", "Write penstock://host:port."),
    "CLI-6241": (
        "Nothing answers at the address of a server.",
        "Start it by penstock serve, or correct the address.",
    ),
    "CLI-6242": (
        "The connection to a server was lost. Whether the last statement has run is not known.",
        "Connect again; SHOW JOBS lists the jobs that run.",
    ),
    "CLI-6243": (
        "A server answers what this client does not understand.",
        "Connect to a server of penstock, of the client's version.",
    ),
    "CLI-6244": (
        "A function, connector or iterator of this process is given to a server.",
        "Upload rows as a table or list, or name a function that the server can import.",
    ),
    "CLI-6245": (
        "An option or command is of a server, or of an engine in this process, and the other one is used.",
        "Name a server by --host or PENSTOCK_URL, or leave the option out.",
    ),
}
