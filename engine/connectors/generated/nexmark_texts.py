"""The texts of the auction site: names, places, channels and their addresses, and random letters that make
rows as wide as the model says.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, texts
from penstock.engine.connectors.generated.column_generators import mix
from penstock.engine.connectors.generated.nexmark_model import below

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzaeinst", np.uint8)
_WORDS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz  eiot", np.uint8)
CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_FIRST = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
NAMES, CITIES, STATES = (
    texts([f"{first} {last}" for first in _FIRST for last in _LAST]),
    texts(list(_CITIES)),
    texts(list(_STATES)),
)


def one_of(values: pa.Array, words: np.ndarray) -> pa.Array:
    """Return one of the values for each word."""
    return values.take(array_of(below(words, len(values))))


def letters(words: np.ndarray, shortest: int, longest: int, *, spaces: bool = False) -> pa.Array:
    """Return a text of random letters for each word, ``shortest`` to ``longest`` long."""
    from penstock.engine.kernels.letters import fill_letters  # only who generates auctions needs the compiler

    offsets = np.zeros(len(words) + 1, np.int32)
    np.cumsum(shortest + below(words, longest - shortest + 1), out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    fill_letters(words, offsets, _WORDS if spaces else _LETTERS, data)
    return pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def emails(words: np.ndarray, others: np.ndarray) -> pa.Array:
    """Return addresses of random letters."""
    return pc.binary_join_element_wise(
        letters(words, 3, 7), pc.binary_join_element_wise(letters(others, 3, 5), "com", "."), "@"
    )


def credit_cards(words: np.ndarray) -> pa.Array:
    """Return four groups of four digits for each word."""
    text = np.full((len(words), 19), ord(" "), np.uint8)
    for group in range(4):
        number = ((words >> np.uint64(16 * group)) & np.uint64(0xFFFF)) % np.uint64(10_000)
        for place in range(4):
            text[:, group * 5 + 3 - place] = ord("0") + number % np.uint64(10)
            number //= np.uint64(10)
    offsets = np.arange(len(words) + 1, dtype=np.int32) * 19
    return pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(offsets), pa.py_buffer(text)])


class Channels:
    """The channels bids come through: four hot ones that get half of them, and ten thousand others; each
    has an address of its own.
    """

    def __init__(self, seed: np.uint64) -> None:
        numbers = np.arange(CHANNELS + len(HOT_CHANNELS), dtype=np.uint64)
        parts = [
            letters(mix(numbers ^ mix(np.array([seed], np.uint64) + np.uint64(salt))), 5, 5)
            for salt in range(3)
        ]
        address = pc.binary_join_element_wise("https://www.nexmark.com", *parts, "item.htm?query=1", "/")
        hot = np.arange(CHANNELS + len(HOT_CHANNELS)) < len(HOT_CHANNELS)
        backwards = array_of((mix(numbers) >> np.uint64(33)).astype(np.int64)).cast(pa.string())
        numbered = pc.binary_join_element_wise(address, backwards, "&channel_id=")
        silent = array_of(hot | (below(mix(numbers ^ seed), 10) == 0))
        self.addresses = pc.if_else(silent, address, numbered)
        self.names = texts([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))])

    @staticmethod
    def pick(words: np.ndarray) -> pa.Array:
        """Return the channel of each word, as a position in ``names`` and ``addresses``."""
        hot = (words & np.uint64(1)) == 0
        return array_of(
            np.where(hot, below(words, len(HOT_CHANNELS)), len(HOT_CHANNELS) + below(words, CHANNELS))
        )
