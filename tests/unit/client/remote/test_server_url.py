from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.remote.server_url import ServerUrl, host_url, parse_url


def test_every_part_of_a_url() -> None:
    found = parse_url("penstock://ada:p%40@[::1]:9000/c.d?token=t&tls=true&parallelism.default=2")
    assert found == ServerUrl("::1", 9000, "ada", "p@", "t", "", "c", "d", {"parallelism.default": "2"})
    assert found.address == "[::1]:9000"
    assert "p@" not in repr(found) and "'t'" not in repr(found)
    assert parse_url("penstock://host") == ServerUrl("host")
    assert parse_url(host_url("host:1")) == ServerUrl("host", 1)
    assert host_url("penstock://h") == "penstock://h"


def test_a_certificate_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"pem")
    assert parse_url(f"penstock://h?tls={tmp_path}/ca.pem").certificate == b"pem"
    assert parse_url("penstock://h?tls=on").certificate is None
    with pytest.raises(PenstockError, match="cannot read the certificate"):
        _ = parse_url(f"penstock://h?tls={tmp_path}/none.pem").certificate


@pytest.mark.parametrize(
    "url", ["", "host:1", "http://h", "penstock://", "penstock://h:port", "penstock://[h"]
)
def test_what_is_no_url_is_refused_with_the_form(url: str) -> None:
    with pytest.raises(PenstockError, match="CLI-6240") as caught:
        parse_url(url)
    assert "penstock://host:port" in str(caught.value.hint)
