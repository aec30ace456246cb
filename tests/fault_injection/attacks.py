"""The card of attacks: strangers and clients of a small role against every port of ``penstock serve``.

Pass: honest clients are answered in between and after each attack, nothing is answered to a stranger, no client
does more than its role, no planted secret leaves the process, and memory stays in bounds.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import psycopg
from adbc_driver_flightsql import dbapi as flight_dbapi
from adbc_driver_manager import ProgrammingError

from tests.fault_injection.verdict import Verdict
from tests.harness.patience import PATIENCE_S
from tests.harness.server_process import end_with_this_process

SECRET = "planted-9f2c71"
PASSWORDS = {role: f"of-{role}-{secrets.token_hex(8)}" for role in ("read", "run", "admin")}
GROWTH_MB = 300
"""Of the server's memory over all attacks: buffers of what is refused must not stay. The first statements load
DuckDB and connectors, which takes about 65 MB once.
"""
GROWTH_AGAIN_MB = 32
"""Of the same attacks once more: nothing is loaded any more, so what grows would grow for ever."""
STRANGERS = ("garbage", "huge frames", "slow clients", "wrong passwords", "paths")
BEYOND_READ = (
    "CREATE TABLE t9 (a INT) WITH ('connector' = 'blackhole')",
    "DROP TABLE secret_table",
    "INSERT INTO hole SELECT 1",
    "CREATE FUNCTION f AS 'os.getcwd' LANGUAGE PYTHON",
    "CREATE CATALOG c WITH ('type' = 'file', 'path' = '/tmp')",
    "SET 'python.modules' = 'os'",
    "CANCEL JOB 'x'",
)
OUTSIDE = (
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM '{shared}/../private/a.csv'",
    "SELECT * FROM 'file://{shared}/%2e%2e/private/a.csv'",
    "SELECT * FROM read_csv('{shared}/link/a.csv')",
    "SELECT * FROM listed /*+ OPTIONS('path' = '/etc/passwd') */",
    "CREATE TABLE t8 (a STRING) WITH ('connector' = 'http', 'url' = 'http://169.254.169.254/', 'format' = 'raw')",
    "CREATE TABLE t7 WITH ('connector' = 'filesystem', 'path' = '{private}/out', 'format' = 'csv') AS SELECT 1 AS a",
    "SELECT * FROM STATE OF SAVEPOINT '{private}'",
)
PATHS = (
    "/../../../etc/passwd",
    "/static/..%2f..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "//etc/passwd",
)


class AttackedServer:
    """``penstock serve`` with three users, every port, and a secret in a table that the administrator declared."""

    def __init__(self, directory: Path, *, careless: bool = False) -> None:
        self.directory, self.users = directory, directory / "users.json"
        self.shared, self.private = directory / "shared", directory / "private"
        for folder in (self.shared, self.private):
            folder.mkdir()
            (folder / "a.csv").write_text("x\n1\n", encoding="utf-8")
        (self.shared / "link").symlink_to(self.private)
        for role, password in PASSWORDS.items():
            held = "admin" if careless else role
            words = ["user", "add", role, "--role", held, "--users", str(self.users), "--password-stdin"]
            subprocess.run([sys.executable, "-m", "penstock", *words], input=password, text=True, check=True)
        ports = [word for name in ("postgres", "flight", "http") for word in (f"--{name}-port", "0")]
        flags = ["--users", str(self.users), "--allowed-path", str(self.shared), *ports]
        flags += ["--audit-log", str(directory / "audit.jsonl"), "--log-file", str(directory / "log.jsonl")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "serve", "--state", str(directory / "state"), *flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        end_with_this_process(self.process.pid)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.ports = {name: int(port) for name, port in re.findall(r"(\w+) 127\.0\.0\.1:(\d+)", line)}

    def psql(self, role: str) -> psycopg.Connection:
        """Return a connection of a user over the PostgreSQL port."""
        return psycopg.connect(
            f"host=127.0.0.1 port={self.ports['postgres']} user={role} password={PASSWORDS[role]} dbname=default",
            autocommit=True,
        )

    @property
    def resident_mb(self) -> int:
        """The memory of the server."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * 4096 >> 20

    def is_well(self) -> bool:
        """Whether honest clients of every port are answered."""
        with self.psql("read") as client:
            answered = client.execute("SELECT 1").fetchone() == (1,)
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.ports['web']}/health", timeout=PATIENCE_S
        ) as health:
            answered &= health.status == 200
        uri = f"grpc://127.0.0.1:{self.ports['flight']}"
        words = {"username": "read", "password": PASSWORDS["read"]}
        with flight_dbapi.connect(uri, db_kwargs=words, autocommit=True) as client, client.cursor() as cursor:
            cursor.execute("SELECT 1")
            answered &= cursor.fetchone() == (1,)
        return answered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this card."""
    parser.add_argument("--careless", action="store_true", help="control: every user is an administrator")
    parser.add_argument("--messages", type=int, default=2_000, help="of garbage, on each port")
    parser.add_argument(
        "--slow", type=int, default=100, help="clients that send a byte and wait, on each port"
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Attack in turn, and look after each attack whether honest clients are answered."""
    server = AttackedServer(arguments.directory, careless=arguments.careless)
    random = Random(arguments.seed)
    verdict.least = {f"garbage {name}": arguments.messages for name in server.ports}
    verdict.check(len(server.ports) == 3, f"the server listens on {server.ports}")
    try:
        with server.psql("admin") as admin:
            admin.execute("CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')")
            admin.execute(
                "CREATE TABLE listed (x INT) WITH ('connector' = 'filesystem', 'format' = 'csv',"
                f" 'path' = '{server.private}/a.csv')"
            )
            admin.execute(
                "CREATE TABLE secret_table (a INT) WITH ('connector' = 'postgres', 'table-name' = 't',"
                f" 'url' = 'postgresql://u@127.0.0.1:1/x', 'password' = '{SECRET}')"
            )
        before_mb = server.resident_mb
        attacks: dict[str, Callable[[], None]] = {
            "garbage": lambda: send_garbage(server, arguments.messages, random, verdict),
            "huge frames": lambda: send_huge_frames(server, verdict),
            "slow clients": lambda: hold_slow_clients(server, arguments.slow, verdict),
            "wrong passwords": lambda: try_passwords(server, verdict),
            "paths": lambda: try_paths(server, verdict),
            "roles": lambda: exceed_roles(server, verdict),
            "secrets": lambda: look_for_secrets(server, verdict),
        }
        for name, attack in attacks.items():
            began = time.monotonic()
            attack()
            verdict.check(server.process.poll() is None, f"the server has ended during {name}")
            verdict.check(server.is_well(), f"honest clients are not answered after {name}")
            verdict.figures[f"{name}, seconds"] = round(time.monotonic() - began, 1)
        verdict.figures["memory before and after, MB"] = [before_mb, server.resident_mb]
        verdict.check(server.resident_mb - before_mb < GROWTH_MB, "the memory has grown")
        once_mb = server.resident_mb
        for name in STRANGERS:
            attacks[name]()
        verdict.figures["memory after the same again, MB"] = server.resident_mb
        verdict.check(server.resident_mb - once_mb < GROWTH_AGAIN_MB, "the memory grows with each attack")
    finally:
        server.process.terminate()
        verdict.check(server.process.wait(PATIENCE_S) == 0, "the server did not end in order")


def send_garbage(server: AttackedServer, messages: int, random: Random, verdict: Verdict) -> None:
    """Send random bytes, and beginnings that a protocol knows with random bytes behind them."""
    begins = (
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST /api/v1/query HTTP/1.1\r\nHost: x\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    )
    startups = (struct.pack(">ii", 8, 80877103), struct.pack(">ii", 60, 196608) + b"user\0read\0")
    for name, port in server.ports.items():
        for _ in range(messages):
            begin = random.choice(startups if name == "postgres" and random.random() < 0.5 else begins)
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
                stranger.sendall(begin + random.randbytes(random.choice((1, 20, 500, 5_000))))
                stranger.shutdown(socket.SHUT_WR)
                stranger.recv(200)
            verdict.coverage[f"garbage {name}"] += 1


def send_huge_frames(server: AttackedServer, verdict: Verdict) -> None:
    """Announce gigabytes, and send as many megabytes as are taken."""
    heads = {
        "postgres": struct.pack(">i", 0x7FFFFFFF),
        "web": b"POST /api/v1/query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4000000000\r\n\r\n",
        "flight": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff\xff\xff\x00\x00\x00\x00\x00\x00",
    }
    for name, head in heads.items():
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", server.ports[name]), timeout=5) as stranger,
        ):
            stranger.sendall(head)
            for _ in range(64):
                stranger.sendall(bytes(1 << 20))
        verdict.coverage["huge frames"] += 1


def hold_slow_clients(server: AttackedServer, count: int, verdict: Verdict) -> None:
    """Hold connections that have sent one byte, and ask as an honest client meanwhile."""
    with ExitStack() as held:
        for port in server.ports.values():
            for _ in range(count):
                slow = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
                with suppress(OSError):
                    slow.sendall(b"P")
                verdict.coverage["slow clients"] += 1
        verdict.check(server.is_well(), "honest clients are not answered beside slow ones")


def try_passwords(server: AttackedServer, verdict: Verdict) -> None:
    """Try users and passwords that are wrong; the answers must not tell what was wrong."""
    answers: set[str] = set()
    for user in ("read", "nobody"):
        for password in ("", "wrong", PASSWORDS["run"]):
            where = f"host=127.0.0.1 port={server.ports['postgres']} dbname=default user={user}"
            try:
                psycopg.connect(f"{where} password='{password}'").close()
                verdict.check(False, f"{user} logged in by a wrong password")
            except psycopg.OperationalError as error:
                answers |= set(re.findall(r"CLI-\d+", str(error)))
            verdict.coverage["wrong passwords"] += 1
    verdict.check(answers <= {"CLI-6210"}, f"the answers differ: {answers}")
    for token in ("", "pstk_" + "0" * 64, "Bearer"):
        asked = urllib.request.Request(
            f"http://127.0.0.1:{server.ports['web']}/api/v1/jobs",
            headers={"Authorization": f"Bearer {token}"},
        )
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(asked, timeout=PATIENCE_S):
            verdict.check(False, f"the API answered the token {token!r}")
        verdict.coverage["wrong tokens"] += 1


def try_paths(server: AttackedServer, verdict: Verdict) -> None:
    """Ask the web port for files of the machine."""
    for path in PATHS:
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", server.ports["web"]), timeout=5) as stranger,
        ):
            stranger.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: stranger.recv(65_536), b""))
            verdict.check(b"root:" not in answer, f"{path} is answered")
        verdict.coverage["paths"] += 1


def exceed_roles(server: AttackedServer, verdict: Verdict) -> None:
    """Run what a role does not include, and reach what the operator has not allowed."""
    with server.psql("read") as client:
        for text in BEYOND_READ:
            verdict.check(refusal(client, text) == "CLI-6211", f"role read may: {text}")
            verdict.coverage["roles"] += 1
    with server.psql("run") as client:
        for text in OUTSIDE:
            said = refusal(client, text.format(shared=server.shared, private=server.private))
            verdict.check(said == "CLI-6216", f"role run reaches ({said}): {text}")
            verdict.coverage["outside"] += 1
        # the control: what is allowed is answered
        verdict.check(
            refusal(client, f"SELECT * FROM '{server.shared}/a.csv'") is None, "the control is refused"
        )


def refusal(client: psycopg.Connection, text: str) -> str | None:
    """Return the code of the error of a statement, None when it runs."""
    try:
        client.execute(text)
    except (psycopg.Error, ProgrammingError) as error:
        found = re.search(r"[A-Z]{3}-\d{4}", str(error))
        return found[0] if found else str(error)
    return None


def look_for_secrets(server: AttackedServer, verdict: Verdict) -> None:
    """Look for the planted secret in answers, in the API, in logs and in the audit."""
    answers: list[str] = []
    with server.psql("run") as client:
        for text in ("SHOW CREATE TABLE secret_table", "SELECT * FROM system.jobs", "SELECT * FROM secret_table",
                     "SELECT * FROM secret_table WHERE"):  # fmt: skip
            try:
                answers.append(str(client.execute(text).fetchall()))
            except psycopg.Error as error:
                answers.append(str(error))
    for file in (
        server.directory / "audit.jsonl",
        server.directory / "log.jsonl",
        *server.directory.glob("state/*.json"),
    ):
        answers.append(file.read_text(encoding="utf-8", errors="replace"))
    for answer in answers:
        verdict.check(SECRET not in answer, f"the secret is in {answer[:200]}")
        verdict.check(not any(password in answer for password in PASSWORDS.values()), "a password is told")
        verdict.coverage["places searched"] += 1
    lines = [
        json.loads(line)
        for line in (server.directory / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    refused = sum(line["event"] == "statement_refused" for line in lines)
    verdict.check(refused >= len(BEYOND_READ) + len(OUTSIDE), f"the audit has {refused} refused statements")
