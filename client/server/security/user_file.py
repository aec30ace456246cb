"""The file of users and tokens: names, roles, and secrets that prove a password or token."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.persistence.durable_file import exclusive, replace_file
from penstock.client.server.principal import PrincipalRole
from penstock.client.server.security.scram import SALT_BYTES, ScramSecret, derive_secret, parse_secret

# Of the file: {"format": 1, "users": {..}, "tokens": {..}}.
FORMAT = 1
TOKEN_BYTES = 32
TOKEN_PREFIX = "pstk_"
"""Begins each token, so that scanners of repositories recognize one that was published."""


@dataclass(frozen=True)
class User:
    """A user who logs in by password."""

    role: PrincipalRole
    secret: ScramSecret


@dataclass(frozen=True)
class Token:
    """A bearer token. Only its digest is stored: 32 random bytes need no salt."""

    role: PrincipalRole
    digest: str


@dataclass(frozen=True)
class Users:
    """The content of a file of users: by name, in the order they were added."""

    users: Mapping[str, User] = field(default_factory=dict)
    tokens: Mapping[str, Token] = field(default_factory=dict)

    def with_user(
        self, name: str, role: PrincipalRole, password: str, random_bytes: Callable[[int], bytes]
    ) -> Users:
        """Return these users with one added, or with the new role and password of one that is there."""
        _check_name(name)
        if not password:
            raise PenstockError(
                "CLI-6213", f"user {name} has an empty password", hint="choose one of 12 letters or more"
            )
        secret = derive_secret(password, random_bytes(SALT_BYTES))
        return replace(self, users={**self.users, name: User(role, secret)})

    def with_token(
        self, name: str, role: PrincipalRole, random_bytes: Callable[[int], bytes]
    ) -> tuple[Users, str]:
        """Return these users with a token added, and the token. It can never be read again."""
        _check_name(name)
        token = TOKEN_PREFIX + random_bytes(TOKEN_BYTES).hex()
        return replace(self, tokens={**self.tokens, name: Token(role, digest_token(token))}), token

    def without(self, name: str) -> Users:
        """Return these users less the user and the token of a name. Raise CLI-6214 when there is neither."""
        if name not in self.users and name not in self.tokens:
            known = [*self.users, *self.tokens]
            raise PenstockError(
                "CLI-6214", f"there is no user or token {name}", hint=did_you_mean(name, known, others=True)
            )
        return Users(
            {key: user for key, user in self.users.items() if key != name},
            {key: token for key, token in self.tokens.items() if key != name},
        )


def digest_token(token: str) -> str:
    """Return the digest by which a token is stored and found."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_users(path: Path) -> Users:
    """Return the content of a file of users. Raise CLI-6215 for a file that others may read, that is
    missing or damaged.
    """
    try:
        with path.open(encoding="utf-8") as file:
            # the open file, not its name: the name may be of another file by now
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise _unreadable(path, "other users of this machine may read it", f"chmod 600 {path}")
            content = json.load(file)
    except FileNotFoundError:
        raise _unreadable(path, "it does not exist", "penstock user add NAME --users FILE makes it") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no JSON"
        raise _unreadable(path, why, "restore it from a copy, or make it anew by penstock user add") from None
    try:
        if content["format"] != FORMAT:
            raise _unreadable(path, f"it is not of format {FORMAT}", "use the penstock that wrote it")
        return Users(
            {
                name: User(PrincipalRole(entry["role"]), parse_secret(entry["scram"]))
                for name, entry in content["users"].items()
            },
            {
                name: Token(PrincipalRole(entry["role"]), str(entry["sha256"]))
                for name, entry in content["tokens"].items()
            },
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _unreadable(path, "it has no users and tokens as penstock writes them", "restore it") from None


@contextmanager
def changing_users(path: Path) -> Iterator[None]:
    """Let no other program change the file between reading and writing it. Raise CLI-6215."""
    with ExitStack() as stack:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(exclusive(path))
        except OSError as error:
            raise _unwritable(path, error) from error
        yield


def write_users(path: Path, users: Users) -> None:
    """Write a file of users, whole or not at all, readable by its owner only. Raise CLI-6215."""
    content = {
        "format": FORMAT,
        "users": {
            name: {"role": user.role.value, "scram": user.secret.to_text()}
            for name, user in users.users.items()
        },
        "tokens": {
            name: {"role": token.role.value, "sha256": token.digest} for name, token in users.tokens.items()
        },
    }
    try:
        replace_file(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> PenstockError:
    return _unreadable(path, error.strerror or str(error), "choose another file by --users")


def _check_name(name: str) -> None:
    # a name is printed in logs and lists: no line breaks, no blanks at its ends
    if not name or name != name.strip() or not name.isprintable() or len(name) > 63:
        raise PenstockError(
            "CLI-6213",
            f"{name!r} cannot be the name of a user or token",
            hint="a name has 1 to 63 printable characters, and no blank at its ends",
        )


def _unreadable(path: Path, why: str, hint: str) -> PenstockError:
    return PenstockError("CLI-6215", f"the file of users {path} cannot be used: {why}", hint=hint)
