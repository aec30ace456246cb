"""The model of the auction site: which event a number is, when it was, and who and what existed by then.
All are functions of the number.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.generated.column_generators import mix

KINDS = ("person", "auction", "bid")
FIRST_ID = 1000
HOT_BATCH = 100
_LEAD = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Events:
    """Events to be made: their numbers, and noise that is theirs (uint64 each, int64 the numbers)."""

    numbers: np.ndarray
    noise: np.ndarray

    def words(self, salt: int) -> np.ndarray:
        """Return other noise for another salt, a word each."""
        return mix(self.noise ^ mix(np.array([salt], np.uint64)))

    def taken(self, rows: np.ndarray) -> Events:
        """Return the events of some rows."""
        return Events(self.numbers[rows], self.noise[rows])


def below(words: np.ndarray, bound: np.ndarray | int, *, low: bool = False) -> np.ndarray:
    """Return for each word an int64 in [0, bound), bound < 2^31, from its upper half or its lower one."""
    half = words & _LOW if low else words >> _HALF
    return ((half * np.asarray(bound).astype(np.uint64)) >> _HALF).astype(np.int64)


class NexmarkModel:
    """People, auctions and bids come in turns: of every ``total`` events the first are people, then
    auctions, then bids.
    """

    def __init__(self, table: CatalogTable) -> None:
        def number(key: str) -> int:
            return int(option(table, key) or 0)

        self.people, self.auctions, self.bids = (number(f"{kind}.proportion") for kind in KINDS)
        self.total = self.people + self.auctions + self.bids
        self.rate = number("event-rate")
        self.hot_person, self.hot_auction = number("person.hot-ratio"), number("auction.hot-ratio")
        self.active_people, self.in_flight = number("person.active-num"), number("auction.in-flight-num")
        self._base_us = _base_time(table)
        self.seed = mix(np.array([number("seed") & 0xFFFFFFFFFFFFFFFF], np.uint64))[0]

    def turn(self, table: str) -> tuple[int, int]:
        """Return the events of a table within each turn: the first one's offset, and how many there are."""
        spans = {
            "person": (0, self.people),
            "auction": (self.people, self.auctions),
            "bid": (self.people + self.auctions, self.bids),
        }
        return spans.get(table, (0, self.total))

    def events(self, numbers: np.ndarray) -> Events:
        """Return the events of these numbers (int64)."""
        return Events(numbers, mix(numbers.astype(np.uint64) ^ self.seed))

    def kinds(self, numbers: np.ndarray) -> np.ndarray:
        """Return what each event is, as a position in ``KINDS`` (int32)."""
        offsets = numbers % self.total
        return (offsets >= self.people).astype(np.int32) + (offsets >= self.people + self.auctions)

    def time_us(self, numbers: np.ndarray) -> np.ndarray:
        """Return when each event was: whole milliseconds, ascending with the number."""
        return self._base_us + numbers * 1000 // self.rate * 1000

    def last_person(self, numbers: np.ndarray) -> np.ndarray:
        """Return the last person at each event, counted from 0: the one it makes, if it makes one."""
        return numbers // self.total * self.people + np.minimum(numbers % self.total, self.people - 1)

    def last_auction(self, numbers: np.ndarray) -> np.ndarray:
        """Return the last auction at each event, counted from 0 (-1 before the first): the one it makes,
        if it makes one.
        """
        offsets = np.clip(numbers % self.total - self.people, -1, self.auctions - 1)
        return numbers // self.total * self.auctions + offsets

    def some_person(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return one of the people active at each event, or one of the next few, counted from 0."""
        count = self.last_person(numbers) + 1
        active = np.minimum(count, self.active_people)
        return count - active + below(words, active + _LEAD, low=True)

    def some_auction(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return one of the auctions open at each event, or one of the next few, counted from 0."""
        last = np.maximum(self.last_auction(numbers), 0)
        first = np.maximum(last - self.in_flight, 0)
        return first + below(words, last - first + 1 + _LEAD, low=True)

    def auction_lengths_ms(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return how long auctions are open: on average until as many others have begun as are open at a
        time.
        """
        ahead = numbers + self.in_flight * self.total // self.auctions
        horizon = (self.time_us(ahead) - self.time_us(numbers)) // 1000
        return 1 + below(words, np.minimum(np.maximum(horizon * 2, 1), 2**31 - 1))


def _base_time(table: CatalogTable) -> int:
    text = str(option(table, "base-time"))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        message = f"option 'base-time' of {table.name} cannot be '{text[:60]}'"
        raise PenstockError("SQL-1505", message, hint="write a time such as '2020-01-01 00:00:00'") from error
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // _MICROSECOND
