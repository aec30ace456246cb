"""The columns of people, auctions and bids, each made by itself: only those that are asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.catalog.types import DataType, Row, to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.connectors.generated.nexmark_model import (
    FIRST_ID,
    HOT_BATCH,
    KINDS,
    Events,
    NexmarkModel,
    below,
)
from penstock.engine.connectors.generated.nexmark_texts import (
    CITIES,
    NAMES,
    STATES,
    Channels,
    credit_cards,
    emails,
    letters,
    one_of,
)

_CATEGORIES = 5
_FIRST_CATEGORY = 10
Maker = Callable[[Events], pa.Array]


class NexmarkColumns:
    """Makes columns of events by name. Salts keep columns apart; those that must agree (channel and url)
    share one.
    """

    def __init__(self, model: NexmarkModel) -> None:
        self._model = model
        self._channels = Channels(model.seed)
        self._makers: dict[str, dict[str, Maker]] = {
            "person": self._person(),
            "auction": self._auction(),
            "bid": self._bid(),
        }

    def column(self, table: str, name: str, kind: DataType, events: Events) -> pa.Array:
        """Return a column of a table: one maker's, or in ``events`` a ROW that is NULL where the event is
        of another kind.
        """
        if table != "events":
            return self._makers[table][name.lower()](events).cast(to_arrow(kind))
        if not isinstance(kind, Row):
            return array_of(self._model.kinds(events.numbers)).cast(to_arrow(kind))
        return self._row(name.lower(), kind, events)

    def _row(self, table: str, kind: Row, events: Events) -> pa.Array:
        wanted = self._model.kinds(events.numbers) == KINDS.index(table)
        there = np.flatnonzero(wanted)
        own = events.taken(there)
        # which of the made rows stands where; NULL where none does
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
    """Return prices in cents from 100 to 100,000,000, as many of each magnitude."""
    unit = (words >> np.uint64(11)) * 2.0**-53
    return np.rint(np.power(10.0, unit * 6.0) * 100.0).astype(np.int64)


def _timestamps(time_us: np.ndarray) -> pa.Array:
    return array_of(time_us).view(pa.timestamp("us"))
