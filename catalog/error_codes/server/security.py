"""Causes and cures of errors: users, roles and what clients of a server may reach."""

from __future__ import annotations

SECURITY: dict[str, tuple[str, str]] = {
    "CLI-6210": (
        "A client of a server gave a user, password or token that the server does not know.",
        "penstock user list shows the users; penstock user add sets a password.",
    ),
    "CLI-6211": (
        "The role of a client does not include a statement.",
        "An administrator gives the role by penstock user role.",
    ),
    "CLI-6212": (
        "The file of users has a password secret of an unknown kind.",
        "penstock user add writes it anew.",
    ),
    "CLI-6213": (
        "A name or password of a user cannot be used, or the two passwords typed differ.",
        "Choose another; the message says which.",
    ),
    "CLI-6214": ("There is no user or token of this name.", "penstock user list shows them."),
    "CLI-6215": (
        "The file of users is missing, damaged, or others may read or write it.",
        "The hint says what to do; penstock user add makes a new file.",
    ),
    "CLI-6216": (
        "A client without the role admin reaches a file or host that the operator has not allowed.",
        "The operator starts penstock serve with --allowed-path or --allowed-host.",
    ),
}
