"""The nexmark source: an endless or finite sequence of events, distributed over splits by turns. Any row can
be regenerated from its position. The model numbers and dates the events, the columns compute their values,
and the source orders them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import DataType, Row, to_arrow
from penstock.engine.api.arrow_numpy import array_of, texts
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.generated.column_generators import mix
from penstock.engine.connectors.generated.split_reader import GeneratedReader
from penstock.engine.formats.decoded_batch import batch_of

KINDS = ("person", "auction", "bid")
# ids, hot ratios and lead as in the original generator of the NEXMark benchmark
FIRST_ID = 1000
HOT_BATCH = 100
_LEAD = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Events:
    """Events to generate: their numbers (int64) and one random word each (uint64)."""

    numbers: np.ndarray
    noise: np.ndarray

    def words(self, salt: int) -> np.ndarray:
        """Return other random words for another salt, one per event."""
        return mix(self.noise ^ mix(np.array([salt], np.uint64)))

    def take(self, rows: np.ndarray) -> Events:
        """Return the events of some rows."""
        return Events(self.numbers[rows], self.noise[rows])


def below(words: np.ndarray, bound: np.ndarray | int, *, low: bool = False) -> np.ndarray:
    """Map each word to an int64 in [0, bound), bound < 2^31, from its upper or its lower half."""
    # multiply and shift instead of a remainder: no division per row
    half = words & _LOW if low else words >> _HALF
    return ((half * np.asarray(bound).astype(np.uint64)) >> _HALF).astype(np.int64)


class NexmarkModel:
    """The event mix: of every ``total`` events the first are people, then auctions, then bids."""

    def __init__(self, table: CatalogTable) -> None:
        def number(key: str) -> int:
            return int(option(table, key) or 0)

        # of every turn of ``total`` events
        self.people, self.auctions, self.bids = (number(f"{kind}.proportion") for kind in KINDS)
        self.total = self.people + self.auctions + self.bids
        self.rate = number("event-rate")
        self.hot_person, self.hot_auction = number("person.hot-ratio"), number("auction.hot-ratio")
        self.active_people, self.in_flight = number("person.active-num"), number("auction.in-flight-num")
        self._base_us = _base_time(table)
        self.seed = mix(np.array([number("seed") & 0xFFFFFFFFFFFFFFFF], np.uint64))[0]

    def turn(self, table: str) -> tuple[int, int]:
        """Return the position of a table's events within each turn: the offset of the first, and their
        number.
        """
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
        """Return the kind of each event, as a position in ``KINDS`` (int32)."""
        offsets = numbers % self.total
        # 0 person, 1 auction, 2 bid: the number of bounds that are reached
        return (offsets >= self.people).astype(np.int32) + (offsets >= self.people + self.auctions)

    def time_us(self, numbers: np.ndarray) -> np.ndarray:
        """Return the time of each event: whole milliseconds, ascending with the number."""
        # ``rate`` events a second, cut to milliseconds
        return self._base_us + numbers * 1000 // self.rate * 1000

    def last_person(self, numbers: np.ndarray) -> np.ndarray:
        """Return the last person at each event, counted from 0, including a person of the event itself."""
        # people of whole turns, and those of this turn so far
        return numbers // self.total * self.people + np.minimum(numbers % self.total, self.people - 1)

    def last_auction(self, numbers: np.ndarray) -> np.ndarray:
        """Return the last auction at each event, counted from 0 (-1 before the first), including an auction
        of the event itself.
        """
        offsets = np.clip(numbers % self.total - self.people, -1, self.auctions - 1)
        return numbers // self.total * self.auctions + offsets

    def some_person(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return a random person per event, among the active ones and the next few, counted from 0."""
        count = self.last_person(numbers) + 1
        active = np.minimum(count, self.active_people)
        return count - active + below(words, active + _LEAD, low=True)

    def some_auction(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return a random auction per event, among the open ones and the next few, counted from 0."""
        last = np.maximum(self.last_auction(numbers), 0)
        first = np.maximum(last - self.in_flight, 0)
        return first + below(words, last - first + 1 + _LEAD, low=True)

    def auction_lengths_ms(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the durations of auctions: on average, until as many others have begun as are open at a
        time.
        """
        # the event at which as many auctions have begun
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

    # Arrow's offsets of texts: (rows + 1,)
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
    # 16 bits of the word a group; digits from the right
    for group in range(4):
        number = ((words >> np.uint64(16 * group)) & np.uint64(0xFFFF)) % np.uint64(10_000)
        for digit in range(4):
            text[:, group * 5 + 3 - digit] = ord("0") + number % np.uint64(10)
            number //= np.uint64(10)
    offsets = np.arange(len(words) + 1, dtype=np.int32) * 19
    return pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(offsets), pa.py_buffer(text)])


class Channels:
    """The channels of bids: four hot ones with half of the bids, and ten thousand others; each has its own
    address.
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
        # half of the bids go through the hot channels
        hot = (words & np.uint64(1)) == 0
        return array_of(
            np.where(hot, below(words, len(HOT_CHANNELS)), len(HOT_CHANNELS) + below(words, CHANNELS))
        )


_CATEGORIES = 5
_FIRST_CATEGORY = 10
Maker = Callable[[Events], pa.Array]


class NexmarkColumns:
    """Generates event columns by name. Each column has its own salt; columns that must agree (channel and
    url) share one.
    """

    def __init__(self, model: NexmarkModel) -> None:
        self._model = model
        self._makers: dict[str, dict[str, Maker]] = {
            "person": self._person(),
            "auction": self._auction(),
            "bid": self._bid(),
        }

    @cached_property
    def _channels(self) -> Channels:
        # 20 ms to make, which only the channel and url of a bid need
        return Channels(self._model.seed)

    def column(self, table: str, name: str, kind: DataType, events: Events) -> pa.Array:
        """Return a column of a table: a generated one, or in ``events`` a ROW that is NULL for events of
        another kind.
        """
        # a table of one kind; in ``events`` an int column is the kind, and ROW columns are the three kinds
        if table != "events":
            return self._makers[table][name.lower()](events).cast(to_arrow(kind))
        if not isinstance(kind, Row):
            return array_of(self._model.kinds(events.numbers)).cast(to_arrow(kind))
        return self._row(name.lower(), kind, events)

    def _row(self, table: str, kind: Row, events: Events) -> pa.Array:
        wanted = self._model.kinds(events.numbers) == KINDS.index(table)
        rows = np.flatnonzero(wanted)
        own = events.take(rows)
        # the index of each event's generated row; NULL for events of another kind
        spread = array_of(np.cumsum(wanted) - 1, ~wanted)
        parts = [
            self._makers[table][name.lower()](own).cast(to_arrow(part)).take(spread)
            for name, part in kind.fields
        ]
        return pa.StructArray.from_arrays(parts, fields=list(to_arrow(kind)), mask=array_of(~wanted))

    def _times(self, events: Events) -> pa.Array:
        return _timestamps(self._model.time_us(events.numbers))

    def _person(self) -> dict[str, Maker]:
        model = self._model
        return {
            "id": lambda events: array_of(FIRST_ID + model.last_person(events.numbers)),
            "name": lambda events: one_of(NAMES, events.words(1)),
            "emailaddress": lambda events: emails(events.words(2), events.words(3)),
            "creditcard": lambda events: credit_cards(events.words(4)),
            "city": lambda events: one_of(CITIES, events.words(5)),
            "state": lambda events: one_of(STATES, events.words(6)),
            "datetime": self._times,
            "extra": lambda events: letters(events.words(7), 110, 164),
        }

    def _auction(self) -> dict[str, Maker]:
        model = self._model

        def expires(events: Events) -> pa.Array:
            lengths = model.auction_lengths_ms(events.numbers, events.words(12))
            return _timestamps(model.time_us(events.numbers) + lengths * 1000)

        def seller(events: Events) -> pa.Array:
            words = events.words(13)
            # the hot one changes every HOT_BATCH people
            hot = model.last_person(events.numbers) // HOT_BATCH * HOT_BATCH
            return array_of(
                FIRST_ID
                + np.where(below(words, model.hot_person) > 0, hot, model.some_person(events.numbers, words))
            )

        return {
            "id": lambda events: array_of(FIRST_ID + model.last_auction(events.numbers)),
            "itemname": lambda events: letters(events.words(8), 3, 19, spaces=True),
            "description": lambda events: letters(events.words(9), 3, 99, spaces=True),
            "initialbid": lambda events: array_of(_prices(events.words(10))),
            "reserve": lambda events: array_of(_prices(events.words(10)) + _prices(events.words(11))),
            "datetime": self._times,
            "expires": expires,
            "seller": seller,
            "category": lambda events: array_of(_FIRST_CATEGORY + below(events.words(14), _CATEGORIES)),
            "extra": lambda events: letters(events.words(15), 312, 468),
        }

    def _bid(self) -> dict[str, Maker]:
        model = self._model

        def auction(events: Events) -> pa.Array:
            words = events.words(16)
            hot = np.maximum(model.last_auction(events.numbers), 0) // HOT_BATCH * HOT_BATCH
            return array_of(
                FIRST_ID
                + np.where(
                    below(words, model.hot_auction) > 0, hot, model.some_auction(events.numbers, words)
                )
            )

        def bidder(events: Events) -> pa.Array:
            words = events.words(17)
            # the second, so that hot bidders are not the hot sellers
            hot = model.last_person(events.numbers) // HOT_BATCH * HOT_BATCH + 1
            return array_of(
                FIRST_ID
                + np.where(below(words, model.hot_person) > 0, hot, model.some_person(events.numbers, words))
            )

        return {
            "auction": auction,
            "bidder": bidder,
            "price": lambda events: array_of(_prices(events.words(18))),
            "channel": lambda events: self._channels.names.take(self._channels.pick(events.words(19))),
            "url": lambda events: self._channels.addresses.take(self._channels.pick(events.words(19))),
            "datetime": self._times,
            "extra": lambda events: letters(events.words(20), 54, 81),
        }


def _prices(words: np.ndarray) -> np.ndarray:
    """Return prices in cents from 100 to 100,000,000, uniform over the magnitudes."""
    # 53 bits as a double in [0, 1), then six magnitudes
    unit = (words >> np.uint64(11)) * 2.0**-53
    return np.rint(np.power(10.0, unit * 6.0) * 100.0).astype(np.int64)


def _timestamps(time_us: np.ndarray) -> pa.Array:
    return array_of(time_us).view(pa.timestamp("us"))


# primes: one that does not divide a group has no common divisor with it
_STRIDES = (953, 967, 971)


class NexmarkSource:
    """Split s of n has the turns s, s + n, s + 2n and so on of people, auctions and bids. A table of one kind
    has its rows of each turn.
    """

    def __init__(self, request: ScanRequest) -> None:
        table = request.table
        self._request = request
        self._model = NexmarkModel(table)
        self._columns = NexmarkColumns(self._model)
        self._table = str(option(table, "table"))
        self._fields = tuple(table.source_schema[index] for index in request.columns)
        self._splits = int(option(table, "splits") or 1)
        declared = option(table, "events.num")
        self._events = None if declared is None else int(declared)
        self._first, self._per_turn = self._model.turn(self._table)
        self._group, self._stride = self._disorder(int(option(table, "out-of-order") or 0))

    def splits(self) -> list[str]:
        return [f"{split:05d}/{self._splits}" for split in range(self._splits)]

    def recall(self, split_ids: list[str]) -> None:
        if sorted(split_ids) != self.splits():
            message = f"table {self._request.table.name} had {len(split_ids)} splits, it has {self._splits}"
            raise PenstockError(
                "DAT-4107", message, hint="set 'splits' to its former value to resume from a checkpoint"
            )

    def open(self, split_id: str, position: Position | None) -> GeneratedReader:
        split = int(split_id.partition("/")[0])
        rows = self._rows(split)
        return GeneratedReader(lambda first, count: self.make(split, first, count, rows), rows, position)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return int(option(self._request.table, "rows-per-second") or 0)

    def make(self, split: int, first: int, count: int, rows: int | None) -> pa.RecordBatch:
        """Return the rows first .. first + count of a split that has so many in all (``None``: endless)."""
        events = self._model.events(self._numbers(split, self._order(first, count, rows)))
        arrays = [self._columns.column(self._table, field.name, field.type, events) for field in self._fields]
        return batch_of(arrays, self._fields, count)

    def _numbers(self, split: int, positions: np.ndarray) -> np.ndarray:
        """Return the event numbers of rows of a split."""
        # row to turn of this split, turn to turn of all splits, and the event within it
        turns, offsets = np.divmod(positions, self._per_turn)
        return (turns * self._splits + split) * self._model.total + self._first + offsets

    def _order(self, first: int, count: int, rows: int | None) -> np.ndarray:
        """Return the time-ordered row numbers at these positions of the split: full groups of turns are
        shuffled.
        """
        positions = np.arange(first, first + count, dtype=np.int64)
        if self._group <= 1:
            return positions
        starts = positions // self._group * self._group
        # a stride without a common divisor with the group visits each of its rows once
        shuffled = starts + (positions - starts) * self._stride % self._group
        # the last group may be incomplete: it stays in order
        return shuffled if rows is None else np.where(starts + self._group > rows, positions, shuffled)

    def _disorder(self, out_of_order_ms: int) -> tuple[int, int]:
        """Return the size of a group whose times are within the bound, and a step that visits all of its
        rows.
        """
        # events within the bound; a group spans at most so many
        events = out_of_order_ms * self._model.rate // 1000
        turns = (events // self._model.total - 1) // self._splits + 1 if events >= self._model.total else 0
        group = turns * self._per_turn
        return group, next((stride for stride in _STRIDES if group % stride), 1)

    def _rows(self, split: int) -> int | None:
        if self._events is None:
            return None
        # whole turns, and the events of the last, incomplete one
        turns, remainder = divmod(self._events, self._model.total)
        own = (turns - split + self._splits - 1) // self._splits if turns > split else 0
        last = min(max(remainder - self._first, 0), self._per_turn) if turns % self._splits == split else 0
        return own * self._per_turn + last
