"""The C library librdkafka that the package confluent-kafka brings, called without the package's Python
objects: one call returns a whole batch of messages.

Only its public interface (``rdkafka.h``) is used. Structures are declared as in that header.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

from penstock.catalog.errors import Kind, PenstockError

CONSUMER = 1
"""The kinds of a client: ``rd_kafka_type_t``."""
PRODUCER = 0
CONF_OK = 0

INSTALL = "pip install 'penstock[kafka]'"
# What a wheel calls its library: with a digest in the name, in a folder that depends on the system.
_PATTERNS = {
    "linux": "confluent_kafka.libs/librdkafka-*.so*",
    "darwin": "confluent_kafka/.dylibs/librdkafka*.dylib",
    "win32": "confluent_kafka.libs/*rdkafka-*.dll",
}


class Message(Structure):
    """``rd_kafka_message_t``. Its bytes are librdkafka's until ``rd_kafka_message_destroy``."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


# Name, result, arguments: what the source calls. A sink binds its own functions with ``bind``.
_FUNCTIONS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("rd_kafka_version_str", c_char_p, ()),
    ("rd_kafka_err2str", c_char_p, (c_int,)),
    ("rd_kafka_err2name", c_char_p, (c_int,)),
    ("rd_kafka_last_error", c_int, ()),
    ("rd_kafka_conf_new", c_void_p, ()),
    ("rd_kafka_conf_destroy", None, (c_void_p,)),
    ("rd_kafka_conf_set", c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    ("rd_kafka_conf_set_log_cb", None, (c_void_p, c_void_p)),
    ("rd_kafka_conf_set_error_cb", None, (c_void_p, c_void_p)),
    ("rd_kafka_new", c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    ("rd_kafka_destroy", None, (c_void_p,)),
    ("rd_kafka_poll", c_int, (c_void_p, c_int)),
    ("rd_kafka_topic_new", c_void_p, (c_void_p, c_char_p, c_void_p)),
    ("rd_kafka_topic_destroy", None, (c_void_p,)),
    ("rd_kafka_queue_new", c_void_p, (c_void_p,)),
    ("rd_kafka_queue_destroy", None, (c_void_p,)),
    ("rd_kafka_queue_io_event_enable", None, (c_void_p, c_int, c_char_p, c_size_t)),
    ("rd_kafka_consume_start_queue", c_int, (c_void_p, c_int32, c_int64, c_void_p)),
    ("rd_kafka_consume_stop", c_int, (c_void_p, c_int32)),
    ("rd_kafka_consume_batch_queue", c_int64, (c_void_p, c_int, POINTER(c_void_p), c_size_t)),
    ("rd_kafka_get_watermark_offsets", c_int, (c_void_p, c_char_p, c_int32, c_void_p, c_void_p)),
    ("rd_kafka_message_destroy", None, (c_void_p,)),
    ("rd_kafka_message_errstr", c_char_p, (c_void_p,)),
    ("rd_kafka_message_timestamp", c_int64, (c_void_p, c_void_p)),
    ("rd_kafka_message_leader_epoch", c_int32, (c_void_p,)),
    ("rd_kafka_message_headers", c_int, (c_void_p, c_void_p)),
    ("rd_kafka_header_get_all", c_int, (c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)),
)


class Librdkafka:
    """The loaded library. Its functions are attributes by their C names; a missing one is an AttributeError
    of ``bind``.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.bind(_FUNCTIONS)

    def bind(self, functions: tuple[tuple[str, Any, tuple[Any, ...]], ...]) -> None:
        """Declare functions of the library by name, result and arguments."""
        for name, result, arguments in functions:
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, list(arguments)
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        # only asked for what bind has not set
        raise AttributeError(f"librdkafka function {name} is not bound")

    def address(self, name: str) -> int:
        """Return where a function is in memory, for a compiled loop that calls it."""
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0

    def client(
        self,
        kind: int,
        properties: dict[str, str],
        on_error: Any = None,
        configure: Callable[[int], None] | None = None,
    ) -> int:
        """Return a new client (``rd_kafka_t``); the caller destroys it. DAT-5101 for a refused property.

        It writes no log: what goes wrong is returned by its functions, and said to ``on_error``, a C function
        that ``rd_kafka_poll`` calls. The caller holds on to it. ``configure`` is called with its
        configuration.
        """
        conf, error = self.rd_kafka_conf_new(), ctypes.create_string_buffer(512)
        self.rd_kafka_conf_set_log_cb(conf, None)
        if on_error is not None:
            self.rd_kafka_conf_set_error_cb(conf, on_error)
        for key, value in properties.items():
            if self.rd_kafka_conf_set(conf, key.encode(), value.encode(), error, len(error)) != CONF_OK:
                self.rd_kafka_conf_destroy(conf)
                raise refused_properties(error.value.decode(errors="replace"))
        if configure is not None:
            configure(conf)
        made = self.rd_kafka_new(kind, conf, error, len(error))
        if not made:
            # the configuration is the client's only once there is one
            self.rd_kafka_conf_destroy(conf)
            raise refused_properties(error.value.decode(errors="replace"))
        return int(made)


def refused_properties(reason: str) -> PenstockError:
    """Return the error of client properties that librdkafka refuses; its text may quote a value."""
    return PenstockError(
        "DAT-5101",
        "librdkafka refuses the options 'properties.*'",
        detail=reason,
        hint="correct the option it names",
        kind=Kind.USER,
    )


def package_is_there() -> bool:
    """Return whether the package confluent-kafka is installed."""
    return importlib.util.find_spec("confluent_kafka") is not None


def check_package() -> None:
    """DAT-5100 where the package confluent-kafka is missing."""
    if not package_is_there():
        raise PenstockError(
            "DAT-5100",
            "the connector kafka needs the package confluent-kafka",
            hint=INSTALL,
            kind=Kind.USER,
        )


@functools.cache
def load() -> Librdkafka | None:
    """Return the library inside the installed wheel, once a process. ``None`` where the package is
    built otherwise, so that messages are read by its Python objects. DAT-5100 without the package.
    """
    check_package()
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        return None
    pattern = _PATTERNS.get(sys.platform)
    packages = Path(spec.origin).parent.parent
    for path in sorted(packages.glob(pattern)) if pattern is not None else ():
        try:
            # the package loads the same file: the libraries it needs are found by its own import
            import confluent_kafka.cimpl  # noqa: F401

            return Librdkafka(ctypes.CDLL(str(path)))
        except (OSError, AttributeError, ImportError):
            # another build of the library: too old, or for another machine
            continue
    return None
