"""The words of ``penstock user``. Imports nothing but the standard library."""

from __future__ import annotations

import argparse
from pathlib import Path

from penstock.repl.launch.parser import Parser

_EXAMPLES = """\
examples:
  penstock user add ann --role run --users users.json      asks for the password; also sets a new one
  penstock user token ci --role read --users users.json    prints a token, once
  penstock user role ann admin --users users.json          sessions that are open keep their role
  penstock user list --users users.json
  penstock user remove ann --users users.json
  penstock serve --users users.json ..                     now every client must be one of these

roles: read queries; run also changes tables and jobs; admin also creates functions and catalogs, and reaches
       every file and host
"""


def user_parser() -> Parser:
    """Return the parser of ``penstock user``."""
    parser = Parser(
        prog="penstock user",
        description="Add, list and remove the users and tokens of a server.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = ("add", "token", "role", "list", "remove")
    parser.add_argument("action", choices=actions, metavar="add|token|role|list|remove")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the user or token")
    parser.add_argument("new_role", nargs="?", metavar="ROLE", help="of the action role: read, run or admin")
    parser.add_argument("--role", choices=("read", "run", "admin"), default="read", help="default read")
    parser.add_argument("--users", type=Path, required=True, metavar="FILE", help="the file of users")
    parser.add_argument(
        "--password-stdin", action="store_true", help="read the password from stdin instead of asking for it"
    )
    parser.add_argument("--json", action="store_true", help="the list as JSON")
    return parser
