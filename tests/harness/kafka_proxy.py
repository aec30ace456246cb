"""A proxy before the Kafka broker of the tests: it speaks TLS, which that broker does not, and it can keep the
broker's answers back.

The broker listens at 127.0.0.2 and names that address to its clients. The proxy listens at 127.0.0.1, at the
same port, and writes its own address into the answers: both have as many bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading

from tests.harness.kafka_broker import KafkaBroker

BEHIND, BEFORE = "127.0.0.2", "127.0.0.1"


class TlsStream:
    """The server's side of a connection with TLS. Unlike asyncio's own it tells the client why it refuses."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext
    ) -> None:
        self._reader, self._writer = reader, writer
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._received, self._to_send, server_side=True)

    async def accept(self) -> None:
        """Shake hands. ssl.SSLError when a side refuses the other."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                pass
            finally:
                await self._send()
            await self._receive()

    async def read(self) -> bytes:
        """Return what the client has sent, b"" at its end."""
        while True:
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                return self._tls.read(1 << 16)
            if not await self._receive():
                return b""

    async def write(self, data: bytes) -> None:
        """Send data."""
        self._tls.write(data)
        await self._send()

    async def _receive(self) -> bytes:
        data = await self._reader.read(1 << 16)
        if data:
            self._received.write(data)
        else:
            self._received.write_eof()
        return data

    async def _send(self) -> None:
        self._writer.write(self._to_send.read())
        await self._writer.drain()


class PlainStream:
    """A connection without TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def accept(self) -> None:
        """Nothing is to be done."""

    async def read(self) -> bytes:
        """Return what the client has sent, b"" at its end."""
        return await self._reader.read(1 << 16)

    async def write(self, data: bytes) -> None:
        """Send data."""
        self._writer.write(data)
        await self._writer.drain()


class KafkaProxy:
    """A proxy in a thread of its own. ``tls``: the context of connections to it from
    now on."""

    def __init__(self, broker: KafkaBroker, tls: ssl.SSLContext | None = None) -> None:
        assert broker.host == BEHIND
        self._broker, self.tls = broker, tls
        self._loop = asyncio.new_event_loop()
        self._passes = asyncio.Event()
        self._passes.set()
        self._writers: set[asyncio.StreamWriter] = set()
        # how often answers that were kept back have been dropped
        self._drops = 0
        self._server: asyncio.Server | None = None
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="kafka proxy", daemon=True)
        self._thread.start()
        ready.wait()

    @property
    def bootstrap(self) -> str:
        """Its address, as bootstrap.servers has it."""
        return f"{BEFORE}:{self._broker.port}"

    def hold(self) -> None:
        """Keep the broker's answers back from now on."""
        asyncio.run_coroutine_threadsafe(self._set(False), self._loop).result(10)

    def drop(self) -> None:
        """Drop what is kept back, with its connections, and pass answers on again."""
        asyncio.run_coroutine_threadsafe(self._set(True), self._loop).result(10)

    def disconnect(self) -> None:
        """End all connections there are."""
        asyncio.run_coroutine_threadsafe(self._disconnect(), self._loop).result(10)

    async def _disconnect(self) -> None:
        for writer in tuple(self._writers):
            writer.close()

    async def _set(self, passes: bool) -> None:
        if passes:
            self._drops += 1
            self._passes.set()
        else:
            self._passes.clear()

    def close(self) -> None:
        """End it and all its connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, BEFORE, self._broker.port)
        )
        ready.set()
        self._loop.run_forever()
        self._server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                self._loop.run_until_complete(task)
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = TlsStream(reader, writer, self.tls) if self.tls else PlainStream(reader, writer)
        self._writers.add(writer)
        try:
            with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
                await client.accept()
                await self._forward(client)
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _forward(self, client: TlsStream | PlainStream) -> None:
        broker, to_broker = await asyncio.open_connection(BEHIND, self._broker.port)
        ways = [
            asyncio.ensure_future(self._requests(client, to_broker)),
            asyncio.ensure_future(self._answers(broker, client)),
        ]
        try:
            # the end of one side is the end of the other
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            to_broker.close()

    async def _requests(self, client: TlsStream | PlainStream, to_broker: asyncio.StreamWriter) -> None:
        while data := await client.read():
            to_broker.write(data)
            await to_broker.drain()

    async def _answers(self, broker: asyncio.StreamReader, client: TlsStream | PlainStream) -> None:
        while True:
            size = await broker.readexactly(4)
            answer = await broker.readexactly(int.from_bytes(size, "big"))
            drops = self._drops
            await self._passes.wait()
            if self._drops != drops:
                return
            await client.write(size + answer.replace(BEHIND.encode(), BEFORE.encode()))
