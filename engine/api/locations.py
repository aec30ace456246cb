"""Where state and data lie: a directory of this machine, or a URL of an object store."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.catalog.connectors.filesystem import OBJECT_SCHEMES
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class ObjectUrl:
    """A place in an object store: ``s3://bucket/prefix``. It takes the part of a Path for what has none:
    parts are joined with ``/``, and nothing is ever relative to a working directory.

    ``prefix`` neither begins nor ends with a slash.
    """

    scheme: str
    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    def __truediv__(self, name: str) -> ObjectUrl:
        return ObjectUrl(self.scheme, self.bucket, f"{self.prefix}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last part: of a job's place, the job's id."""
        return self.prefix.rpartition("/")[2] or self.bucket

    def with_name(self, name: str) -> ObjectUrl:
        """Return a place beside this one."""
        parent = self.prefix.rpartition("/")[0]
        return ObjectUrl(self.scheme, self.bucket, f"{parent}/{name}".strip("/"))

    def absolute(self) -> ObjectUrl:
        """Return itself: a URL means the same in every process."""
        return self


Location = Path | ObjectUrl


def parse_location(text: str) -> Location:
    """Return the place that a text names: a path, ``file://`` or the URL of an object store. DAT-5501 for
    another URL, or one without a bucket.
    """
    match = _URL.fullmatch(text)
    if match is None:
        return Path(text)
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme == "file":
        return Path(rest)
    bucket, _, prefix = rest.partition("/")
    if scheme not in OBJECT_SCHEMES or not bucket or "@" in bucket:
        # whatever stands before an @ may be a password: it is not repeated
        raise PenstockError(
            "DAT-5501",
            f"{scheme}://{bucket.rpartition('@')[2]} is no place for state or data",
            hint="write a directory, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix; "
            "credentials are taken from the environment",
            kind=Kind.USER,
            sqlstate="22023",
        )
    return ObjectUrl(OBJECT_SCHEMES[scheme], bucket, re.sub("/+", "/", prefix).strip("/"))
