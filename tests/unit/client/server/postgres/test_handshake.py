"""The start of a connection without I/O: TLS, SCRAM by the vectors of RFC 7677, passwords over TLS only."""

import base64
import hashlib
import struct

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.postgres.frontend_messages import (
    CancelRequest,
    Credentials,
    EncryptionRequest,
    SimpleQuery,
    Startup,
    Terminate,
)
from penstock.client.server.postgres.handshake import Handshake, Step
from penstock.client.server.postgres.scram import ScramExchange
from penstock.client.server.principal import LOCAL
from tests.harness.postgres_wire import Trust, Users, verifier

START = Startup(196608, {"user": "user"})
# RFC 7677, section 3
PASSWORD, SALT = "pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={PROOF}".encode()


class RfcUsers(Users):
    def scram_verifier(self, user):
        self.asked.append(user)
        return verifier(PASSWORD if user == "user" else "\0", SALT)


def handshake(authenticator=None, **options):
    return Handshake(authenticator or RfcUsers({}), lambda: SERVER_NONCE, has_tls=True, **options)


def initial(payload, mechanism=b"SCRAM-SHA-256"):
    return Credentials(mechanism + b"\0" + struct.pack(">i", len(payload)) + payload)


def test_scram_is_that_of_the_rfc():
    shake = handshake()
    assert b"SCRAM-SHA-256" in shake.receive(START).data
    first = shake.receive(initial(FIRST)).data
    expected = f"r={CLIENT_NONCE}{SERVER_NONCE},s={base64.b64encode(SALT).decode()},i=4096".encode()
    assert first[9:] == expected
    reply = shake.receive(Credentials(FINAL))
    assert reply.step is Step.OPEN and shake.principal.name == "user"
    assert b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" in reply.data
    # and then AuthenticationOk
    assert reply.data.endswith(b"R\0\0\0\x08\0\0\0\0")


def refused(call, code):
    with pytest.raises(PenstockError) as error:
        call()
    assert error.value.code == code
    return error.value


def test_wrong_proof_and_unknown_user_are_the_same_error():
    errors = []
    for user, final in (("user", FINAL.replace(b"p=d", b"p=e")), ("nobody", FINAL)):
        users = RfcUsers({})
        shake = handshake(users)
        shake.receive(Startup(196608, {"user": user}))
        shake.receive(initial(FIRST))
        errors.append(
            str(refused(lambda shake=shake, final=final: shake.receive(Credentials(final)), "CLI-6210"))
        )
        # both have a verifier, so that both cost the same
        assert users.asked == [user]
        assert shake.principal is None
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("first", "final", "code"),
    [
        (b"p=tls-unique,,n=,r=x", None, "CLI-6222"),
        (b"n,,n=,r=", None, "CLI-6222"),
        (b"n,,", None, "CLI-6222"),
        (b"\xff\xfe", None, "CLI-6222"),
        (FIRST, b"c=biws,r=other,p=" + PROOF.encode(), "CLI-6222"),
        (FIRST, FINAL.replace(b"c=biws", b"c=eSws"), "CLI-6222"),
        (FIRST, FINAL.replace(PROOF.encode(), b"no base64!"), "CLI-6222"),
        (FIRST, FINAL.replace(PROOF.encode(), b"AAAA"), "CLI-6210"),
        (FIRST, b"", "CLI-6222"),
    ],
)
def test_what_is_no_scram_is_refused(first, final, code):
    shake = handshake()
    shake.receive(START)
    if final is not None:
        shake.receive(initial(first))
    refused(lambda: shake.receive(initial(first) if final is None else Credentials(final)), code)
    assert shake.principal is None


def test_only_the_offered_mechanism_is_taken():
    shake = handshake()
    shake.receive(START)
    refused(lambda: shake.receive(initial(FIRST, b"SCRAM-SHA-1")), "CLI-6220")


def test_a_password_is_asked_for_over_tls_only():
    users = Users({"user": "pencil"})
    plain = handshake(users, by_password=True)
    # without TLS: SCRAM, so that the password is never sent
    assert b"SCRAM" in plain.receive(START).data
    shake = handshake(users, by_password=True)
    assert shake.receive(EncryptionRequest(True)).step is Step.START_TLS
    shake.is_encrypted = True
    assert shake.receive(START).data == b"R\0\0\0\x08\0\0\0\3"
    refused(lambda: shake.receive(Credentials(b"wrong\0")), "CLI-6210")
    assert shake.receive(Credentials(b"pencil\0")).step is Step.OPEN


def test_encryption():
    without = Handshake(Trust(), str, has_tls=False)
    assert without.receive(EncryptionRequest(True)).data == b"N"
    shake = handshake(Trust())
    # GSS is refused, then TLS may be asked for
    assert shake.receive(EncryptionRequest(False)).data == b"N"
    assert shake.receive(EncryptionRequest(True)).data == b"S"
    shake.is_encrypted = True
    refused(lambda: shake.receive(EncryptionRequest(True)), "CLI-6220")


def test_a_server_that_requires_tls_refuses_others():
    error = refused(lambda: handshake(Trust(), requires_tls=True).receive(START), "CLI-6221")
    assert "sslmode=require" in error.hint


def test_trust_opens_at_once():
    shake = handshake(Trust())
    assert shake.receive(START).step is Step.OPEN
    assert shake.principal == LOCAL


def test_messages_before_the_start():
    request = CancelRequest(1, 2)
    assert handshake().receive(request).cancels == request
    assert handshake().receive(Terminate()).step is Step.CLOSE
    refused(lambda: handshake().receive(SimpleQuery("SELECT 1")), "CLI-6220")
    refused(lambda: handshake().receive(Credentials(b"x")), "CLI-6220")
    refused(lambda: handshake().receive(Startup(196608, {"user": ""})), "CLI-6220")


def test_the_exchange_stores_no_password():
    exchange = ScramExchange(verifier(PASSWORD, SALT), SERVER_NONCE, AssertionError)
    exchange.first(FIRST)
    assert hashlib.sha256(PASSWORD.encode()).digest() not in repr(vars(exchange)).encode()
    assert PASSWORD not in repr(vars(exchange))
