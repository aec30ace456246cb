"""The connection to a server: one that goes away and comes back, users, tokens and TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from penstock.catalog.errors import PenstockError
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.nats_server import nats_server
from tests.unit.engine.connectors.nats.streams import add, opened, rest, taken, target

pytestmark = pytest.mark.xdist_group("nats")
_WRITER = EpochWriter("job", "sink", 0)


def test_a_reader_waits_for_a_server_that_is_away(tmp_path: Path) -> None:
    counted = OperatorMetrics()
    with nats_server(tmp_path) as own:
        own.create("s", "s.>")
        add(own, "s.a", 1)
        # a server that has just started may leave a request unanswered
        reader = opened(own, "s", None, counted, timeout="500 ms")
        assert taken(reader, 1) == [1]
        own.kill()
        own.start()
        add(own, "s.a", 2)
        assert taken(reader, 1) == [2] and counted.counters["nats_reconnects"] >= 1
        reader.close()
        own.kill()
        with pytest.raises(PenstockError, match=r"DAT-5901.*does not answer") as raised:
            opened(own, "s")
        assert raised.value.retriable
        own.start()


def test_a_password_is_asked_for_and_not_shown(tmp_path: Path) -> None:
    identity = {"username": "ann", "password": "s3cret"}
    with nats_server(tmp_path, "--user", "ann", "--pass", "s3cret", identity=identity) as own:
        own.create("s", "s.>")
        with pytest.raises(PenstockError, match="DAT-5902"):
            opened(own, "s")
        with pytest.raises(PenstockError, match="DAT-5902") as raised:
            opened(own, "s", username="ann", password="wr0ng")
        assert "wr0ng" not in str(raised.value)
        rest(opened(own, "s", **identity, **{"scan.bounded.mode": "latest"}))


def test_what_a_user_may_not_do_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "server.conf"
    config.write_text("""authorization { users = [
        { user: all, password: a }
        { user: reads, password: r, permissions: { publish: "$JS.API.>", subscribe: "_INBOX.>" } } ] }""")
    identity = {"username": "all", "password": "a"}
    with nats_server(tmp_path / "data", "-c", str(config), identity=identity) as own:
        own.create("s", "s.>", "penstock.epochs.s.*", allow_atomic=True)
        reads = target(own, "s", username="reads", password="r", timeout="300 ms")
        with pytest.raises(PenstockError, match=r"DAT-5902.*refuses a request"):
            reads.fence([_WRITER])


def test_a_server_with_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(files["ca"])
    issued.cert_chain_pems[0].write_to_path(files["cert"])
    issued.private_key_pem.write_to_path(files["key"])
    flags = ("--tls", "--tlscert", str(files["cert"]), "--tlskey", str(files["key"]))
    identity = {"tls.ca-file": str(files["ca"])}
    with nats_server(
        tmp_path / "data", *flags, "--auth", "t0ken", identity=identity | {"token": "t0ken"}
    ) as own:
        own.create("s", "s.>")
        add(own, "s.a", 1)
        bounded = {"scan.bounded.mode": "latest", "token": "t0ken"}
        assert rest(opened(own, "s", **bounded, **identity)) == [1]
        with pytest.raises(PenstockError, match=r"DAT-590[12]") as raised:
            opened(own, "s", **bounded)
        assert "ertificate" in str(raised.value.detail)
        with pytest.raises(PenstockError, match=r"DAT-5902.*there is no file"):
            opened(own, "s", **bounded, **{"nkey-seed-file": str(tmp_path / "nothing")})
        with pytest.raises(PenstockError, match=r"DAT-5902.*cannot be read"):
            opened(own, "s", **bounded, **{"tls.ca-file": str(tmp_path / "nothing")})


def test_a_user_with_an_nkey(tmp_path: Path) -> None:
    import nkeys

    seed = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)
    public = nkeys.from_seed(bytearray(seed)).public_key.decode()
    (tmp_path / "seed").write_bytes(seed)
    config = tmp_path / "server.conf"
    config.write_text(f"authorization {{ users = [ {{ nkey: {public} }} ] }}")
    identity = {"nkey-seed-file": str(tmp_path / "seed")}
    with nats_server(tmp_path / "data", "-c", str(config), identity=identity) as own:
        own.create("s", "s.>")
        add(own, "s.a", 1)
        bounded = {"scan.bounded.mode": "latest"}
        assert rest(opened(own, "s", **bounded, **identity)) == [1]
        with pytest.raises(PenstockError, match="DAT-5902"):
            opened(own, "s", **bounded)
