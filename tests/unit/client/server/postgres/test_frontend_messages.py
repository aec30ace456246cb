"""Messages of clients are cut out of bytes as they come; what is none ends the connection."""

import random
import struct

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.postgres.frontend_messages import (
    STARTUP_BYTES,
    Bind,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Credentials,
    DescribeRequest,
    EncryptionRequest,
    Execute,
    FastPathCall,
    Flush,
    FrontendReader,
    Parse,
    SimpleQuery,
    Startup,
    Sync,
    Terminate,
)
from tests.harness.length import of_length


def startup(**parameters):
    body = struct.pack(">i", 196608) + b"".join(
        name.encode() + b"\0" + value.encode() + b"\0" for name, value in parameters.items()
    )
    return struct.pack(">i", len(body) + 5) + body + b"\0"


def tagged(tag, body=b""):
    return tag + struct.pack(">i", len(body) + 4) + body


MESSAGES = [
    (tagged(b"Q", b"SELECT 1\0"), SimpleQuery("SELECT 1")),
    (tagged(b"P", b"s\0SELECT $1\0\0\1\0\0\0\x17"), Parse("s", "SELECT $1", (23,))),
    (
        tagged(b"B", b"p\0s\0\0\1\0\1\0\2\0\0\0\1x\xff\xff\xff\xff\0\1\0\1"),
        Bind("p", "s", (1,), (b"x", None), (1,)),
    ),
    (tagged(b"D", b"Sname\0"), DescribeRequest("S", "name")),
    (tagged(b"E", b"p\0\0\0\0\5"), Execute("p", 5)),
    (tagged(b"C", b"P\0"), Close("P", "")),
    (tagged(b"S"), Sync()),
    (tagged(b"H"), Flush()),
    (tagged(b"X"), Terminate()),
    (tagged(b"p", b"secret\0"), Credentials(b"secret\0")),
    (tagged(b"d", b"1\t2\n"), CopyData(b"1\t2\n")),
    (tagged(b"c"), CopyDone()),
    (tagged(b"f", b"no\0"), CopyFail("no")),
    (tagged(b"F", b"\0\0\0\1"), FastPathCall()),
]


def started(most_bytes=1 << 20):
    reader = FrontendReader(most_bytes)
    reader.append(startup(user="me"))
    assert reader.next() == Startup(196608, {"user": "me"})
    reader.start_session()
    return reader


def test_messages_come_whole_however_their_bytes_come():
    data = b"".join(raw for raw, _ in MESSAGES)
    for step in (1, 7, len(data)):
        reader, found = started(), []
        for first in range(0, len(data), step):
            reader.append(data[first : first + step])
            while (message := reader.next()) is not None:
                found.append(message)
        assert found == [message for _, message in MESSAGES]


def test_requests_before_the_start_have_no_tag():
    reader = FrontendReader(1 << 20)
    reader.append(struct.pack(">ii", 8, 80877103) + struct.pack(">ii", 8, 80877104))
    assert [reader.next(), reader.next()] == [EncryptionRequest(True), EncryptionRequest(False)]
    reader.append(struct.pack(">iiiI", 16, 80877102, 5, 7))
    assert reader.next() == CancelRequest(5, 7)


@pytest.mark.parametrize(
    "data",
    [
        tagged(b"z"),
        b"Q\0\0\0\3",
        b"Q\xff\xff\xff\xff",
        tagged(b"Q", b"no end"),
        tagged(b"Q", b"\xff\0"),
        tagged(b"Q", b"SELECT 1\0more"),
        tagged(b"D", b"Xname\0"),
        tagged(b"B", b"p\0s\0\0\1"),
        tagged(b"B", b"p\0s\0\0\0\0\1\xff\xff\xff\xfe\0\0"),
        tagged(b"P", b"s\0q\0\xff\xff"),
        tagged(b"Q", b"x" * (1 << 20) + b"\0"),
    ],
)
def test_malformed_bytes_are_refused(data):
    reader = started()
    reader.append(data)
    with pytest.raises(PenstockError) as error:
        reader.next()
    assert error.value.code == "CLI-6220" and error.value.sqlstate == "08P01"


def test_a_long_message_is_refused_by_its_length_alone():
    reader = FrontendReader(1 << 30)
    reader.append(struct.pack(">ii", STARTUP_BYTES + 1, 196608))
    with pytest.raises(PenstockError, match="at most"):
        reader.next()


def test_other_versions_are_refused():
    reader = FrontendReader(1 << 20)
    reader.append(struct.pack(">iih", 10, 2 << 16, 0))
    with pytest.raises(PenstockError, match=r"2\.0"):
        reader.next()


@pytest.mark.longer
def test_garbage_is_refused_or_read_and_nothing_else():
    seen = set()
    for seed in range(of_length(400, 100_000)):
        choice = random.Random(seed)
        reader = started() if seed % 2 else FrontendReader(1 << 20)
        # a message with some bytes changed, or no message at all
        raw = bytearray(choice.choice(MESSAGES)[0] if seed % 3 else choice.randbytes(choice.randint(1, 60)))
        for _ in range(choice.randint(0, 3)):
            raw[choice.randrange(len(raw))] = choice.randrange(256)
        reader.append(bytes(raw))
        try:
            while reader.next() is not None:
                seen.add("read")
        except PenstockError as error:
            seen.add(error.code)
    assert seen == {"read", "CLI-6220"}
