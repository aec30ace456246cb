"""The hello of a connection: both sides identify themselves before anything else, and are refused when they
do not belong together.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict, field

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.network.errors import PAYLOAD, STALE, TOKEN, UNEXPECTED, network_error

# all that a stranger can make this process buffer
HELLO_BYTES_MAX = 4096


@dataclass(frozen=True)
class Identity:
    """One side of a connection: the task manager's ``name``, its job and its deployment (epoch, attempt).

    ``token`` is the job's shared secret. It is sent in the hello only, and is in no log line and not in this
    object's text.
    """

    name: str
    job_id: str
    epoch: int
    attempt: int
    token: str = field(repr=False)

    def to_bytes(self) -> bytes:
        """Return the payload of HELLO or WELCOME."""
        return json.dumps(asdict(self), ensure_ascii=True).encode("ascii")


def read_identity(payload: bytes | memoryview) -> Identity:
    """Return the identity the peer claims. NET-5006 when the payload is not one."""
    try:
        values = json.loads(bytes(payload))
        identity = Identity(**values)
    except (ValueError, TypeError, RecursionError):
        raise network_error(PAYLOAD, "the hello of a connection cannot be read") from None
    texts, numbers = (identity.name, identity.job_id, identity.token), (identity.epoch, identity.attempt)
    # JSON carries any type: bool would pass as int
    if not all(type(text) is str for text in texts) or not all(type(number) is int for number in numbers):
        raise network_error(PAYLOAD, "the hello of a connection cannot be read")
    return identity


def check_identity(peer: Identity, mine: Identity) -> None:
    """Raise unless the peer belongs to the same deployment: NET-5007 wrong token, NET-5008 other job,
    epoch or attempt, NET-5011 own name.
    """
    # the token first: a stranger learns nothing about the job
    if not hmac.compare_digest(
        peer.token.encode("utf-8", "surrogatepass"), mine.token.encode("utf-8", "surrogatepass")
    ):
        raise network_error(TOKEN, "a connection was refused: its token is wrong")
    if peer.job_id != mine.job_id:
        raise _stale(f"it is for job {peer.job_id}, this is job {mine.job_id}")
    # fencing: no data of another deployment
    if (peer.epoch, peer.attempt) != (mine.epoch, mine.attempt):
        theirs, ours = (
            f"epoch {peer.epoch}, attempt {peer.attempt}",
            f"epoch {mine.epoch}, attempt {mine.attempt}",
        )
        older = (peer.epoch, peer.attempt) < (mine.epoch, mine.attempt)
        raise _stale(
            f"it is of {theirs}, which {'is over: this is' if older else 'has taken over from'} {ours}"
        )
    if peer.name == mine.name:
        raise network_error(
            UNEXPECTED, f"a connection was refused: it has the name {peer.name}, which is in use here"
        )


def _stale(why: str) -> PenstockError:
    return network_error(STALE, f"a connection was refused: {why}")
