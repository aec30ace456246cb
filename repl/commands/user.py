"""``penstock user``: the users and tokens of a server's file."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.client.server.principal import PrincipalRole
from penstock.client.server.security.user_file import Users, changing_users, read_users, write_users
from penstock.repl.launch.parser import EXIT_OK, EXIT_QUERY, Parser
from penstock.repl.output.messages import Messages


def run_user(arguments: argparse.Namespace, parser: Parser) -> int:
    """Change or list the file of users; nothing is written when the change is refused."""
    if arguments.action != "list" and not arguments.name:
        parser.error(f"penstock user {arguments.action} takes a name")
    try:
        if arguments.action == "list":
            _print_users(read_users(arguments.users), as_json=arguments.json)
        else:
            _change(arguments, parser)
    except PenstockError as error:
        Messages(sys.stderr).error(error)
        return EXIT_QUERY
    return EXIT_OK


def _change(arguments: argparse.Namespace, parser: Parser) -> None:
    # asked for before the file is locked: a person may take long
    password = _password(arguments) if arguments.action == "add" else ""
    with changing_users(arguments.users):
        _change_users(arguments, parser, password)


def _change_users(arguments: argparse.Namespace, parser: Parser, password: str) -> None:
    path: Path = arguments.users
    # the first user makes the file
    adds = arguments.action in ("add", "token")
    users = Users() if adds and not path.exists() else read_users(path)
    role = PrincipalRole(arguments.role)
    match arguments.action:
        case "add":
            write_users(path, users.with_user(arguments.name, role, password, os.urandom))
            sys.stdout.write(f"user {arguments.name} with the role {role}\n")
        case "token":
            users, token = users.with_token(arguments.name, role, os.urandom)
            write_users(path, users)
            # stdout has the token only, so that a script can take it
            sys.stderr.write(f"token {arguments.name} with the role {role}; it is shown only now:\n")
            sys.stdout.write(f"{token}\n")
        case "role":
            if arguments.new_role not in tuple(PrincipalRole):
                hint = did_you_mean(str(arguments.new_role), [*PrincipalRole], others=True)
                parser.error(f"penstock user role NAME takes a role: {hint}")
            write_users(path, _with_role(users, arguments.name, PrincipalRole(arguments.new_role)))
            sys.stdout.write(f"{arguments.name} has the role {arguments.new_role} from the next log-in on\n")
        case "remove":
            write_users(path, users.without(arguments.name))
            sys.stdout.write(f"{arguments.name} cannot log in any more; open sessions stay open\n")


def _with_role(users: Users, name: str, role: PrincipalRole) -> Users:
    # without: says that there is neither a user nor a token of this name
    users.without(name)
    return Users(
        {key: replace(user, role=role) if key == name else user for key, user in users.users.items()},
        {key: replace(token, role=role) if key == name else token for key, token in users.tokens.items()},
    )


def _password(arguments: argparse.Namespace) -> str:
    if arguments.password_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"password of {arguments.name}: ")
    if getpass.getpass("again: ") != password:
        raise PenstockError("CLI-6213", "the two passwords differ", hint="type the same password twice")
    return password


def _print_users(users: Users, *, as_json: bool) -> None:
    rows = [("user", name, user.role.value) for name, user in users.users.items()]
    rows += [("token", name, token.role.value) for name, token in users.tokens.items()]
    if as_json:
        entries = [{"kind": kind, "name": name, "role": role} for kind, name, role in rows]
        sys.stdout.write(json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
        return
    for kind, name, role in rows:
        sys.stdout.write(f"{kind:6}{role:6} {name}\n")
