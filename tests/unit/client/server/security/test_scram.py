"""Password secrets against the example of RFC 7677 and PostgreSQL's text."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.security.scram import derive_secret, mock_secret, parse_secret, prepare_password

# RFC 7677, section 3: user "user", password "pencil"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
AUTH_MESSAGE = (
    "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_the_example_of_the_rfc_is_accepted() -> None:
    secret = derive_secret("pencil", SALT, 4096)
    signature = hmac.digest(secret.stored_key, AUTH_MESSAGE.encode(), "sha256")
    client_key = bytes(a ^ b for a, b in zip(PROOF, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == secret.stored_key
    assert hmac.digest(secret.server_key, AUTH_MESSAGE.encode(), "sha256") == SERVER_SIGNATURE


def test_a_secret_is_written_and_read() -> None:
    secret = derive_secret("grüße", SALT, 4096)
    assert parse_secret(secret.to_text()) == secret
    assert secret.accepts("grüße")
    assert not secret.accepts("grusse")
    assert "gr" not in secret.to_text().split(":")[0]


@pytest.mark.parametrize(
    "text", ["", "md5abc", "SCRAM-SHA-256$x:AA==$AA==:AA==", "SCRAM-SHA-1$1:AA==$AA==:AA=="]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(PenstockError) as raised:
        parse_secret(text)
    assert raised.value.code == "CLI-6212"


def test_an_unknown_user_has_the_same_secret_each_time_and_no_password() -> None:
    once, again, other = (mock_secret(name, b"key") for name in ("ann", "ann", "bob"))
    assert once == again != other
    assert not once.accepts("")
    assert mock_secret("ann", b"another server").salt != once.salt


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("pencil", "pencil"),
        ("I\u00adX", "IX"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\u0007\u00aa", "\u0007\u00aa"),
    ],
    ids=["ascii", "soft hyphen", "feminine ordinal", "roman nine", "hard space", "prohibited stays"],
)
def test_passwords_are_prepared_as_rfc_4013_says(password: str, prepared: str) -> None:
    assert prepare_password(password) == prepared
