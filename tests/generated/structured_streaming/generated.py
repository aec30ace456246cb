"""Random queries of the subset Spark takes as streams: windows, windows of windows, interval joins,
groups, first rows.
"""

from __future__ import annotations

import random

from tests.generated.structured_streaming.shapes import Shape

_VALUES = (
    "COUNT(*)",
    "COUNT(v)",
    "SUM(v)",
    "MIN(x)",
    "MAX(x)",
    "MAX(s)",
    "MIN(ts)",
    "AVG(v)",
    "SUM(v) FILTER (WHERE x > 1)",
    "COUNT(s) FILTER (WHERE v < 4)",
    "BOOL_OR(v > 3)",
)
_TESTS = ("v > 1", "s IS NOT NULL", "x < 5 OR v = 0", "k <> 2", "upper(s) = 'A'", "v % 2 = 0")
_ITEMS = ("k", "v * 2 + id", "upper(s)", "coalesce(x, 0)", "CASE WHEN v > 2 THEN s ELSE 'low' END", "ts")


class _Dice(random.Random):
    def some(self, values: tuple[str, ...], most: int) -> list[str]:
        return self.sample(values, self.randint(1, most))

    def keys(self) -> list[str]:
        return self.choice([["k"], ["s"], ["k", "s"], []])

    def source(self, *names: str) -> str:
        name = self.choice(names or ("t", "e"))
        return name if self.random() < 0.5 else f"(SELECT * FROM {name} WHERE {self.choice(_TESTS)})"


def generated(seed: int) -> Shape:
    """Return the query of a seed, with the mode it is run in."""
    dice = _Dice(seed)
    make = dice.choice(
        (_windowed, _windowed, _of_windows, _near, _near, _after_join, _grouped, _first, _projected)
    )
    return make(dice, f"{make.__name__[1:]} {seed}")


def _named(values: list[str]) -> str:
    return "".join(f", {value} AS a{i}" for i, value in enumerate(values))


def _listed(names: list[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _window(dice: _Dice, keys: list[str]) -> str:
    size, table, time = dice.randint(1, 5), f"TABLE {dice.choice('te')}", "DESCRIPTOR(ts)"
    # Spark has no session of all rows
    match dice.choice(("tumble", "hop", "session") if keys else ("tumble", "hop")):
        case "tumble":
            return f"TUMBLE({table}, {time}, INTERVAL '{size * 4}' SECONDS)"
        case "hop":
            return f"HOP({table}, {time}, INTERVAL '{size}' SECONDS, INTERVAL '{size * dice.randint(2, 4)}' SECONDS)"
    parts = f" PARTITION BY {', '.join(keys)}" if keys else ""
    return f"SESSION({table}{parts}, {time}, INTERVAL '{size + 2}' SECONDS)"


def _windowed(dice: _Dice, name: str) -> Shape:
    keys, values = dice.keys(), dice.some(_VALUES, 3)
    window, having = _window(dice, keys), dice.choice(("", " HAVING COUNT(*) > 1", " HAVING MAX(v) > 2"))
    where = dice.choice(("", f" WHERE {dice.choice(_TESTS)}")) if "SESSION" not in window else ""
    query = f"SELECT {_listed(keys)}window_start, window_end{_named(values)} FROM {window}{where}"
    return Shape(name, f"{query} GROUP BY {_listed(keys)}window_start, window_end{having}", closes=True)


def _of_windows(dice: _Dice, name: str) -> Shape:
    """Windows of the results of windows, whole ones of them."""
    size, times = dice.randint(2, 5), dice.randint(2, 4)
    inner = (
        f"SELECT k, window_time, COUNT(*) AS n, SUM(v) AS v FROM TUMBLE(TABLE {dice.choice('te')}, DESCRIPTOR(ts), INTERVAL '{size}' SECONDS) "
        "GROUP BY k, window_start, window_end, window_time"
    )
    outer = f"TUMBLE(TABLE small, DESCRIPTOR(window_time), INTERVAL '{size * times}' SECONDS)"
    keys = dice.choice((["k"], []))
    query = f"WITH small AS ({inner}) SELECT {_listed(keys)}window_start, window_end, COUNT(*) AS windows, SUM(n) AS n, MAX(v) AS v FROM {outer}"
    return Shape(name, f"{query} GROUP BY {_listed(keys)}window_start, window_end", closes=True)


def near(kind: str, before: int, after: int, more: str = "") -> str:
    """Return an interval join of t and e. An outer join is given no rows without a time, which never leave
    Spark's state, and a full one none without a key: there Spark's streams take NULL to be equal to NULL.
    """
    test = {"": "", "FULL": " WHERE ts IS NOT NULL AND k IS NOT NULL"}.get(kind, " WHERE ts IS NOT NULL")
    timed = tuple(f"(SELECT * FROM {name}{test}) AS {name}" for name in "te")
    span = f"e.ts BETWEEN t.ts - INTERVAL '{before}' SECONDS AND t.ts + INTERVAL '{after}' SECONDS"
    return f"{timed[0]} {kind} JOIN {timed[1]} ON t.k = e.k AND {span}{more}"


def _near(dice: _Dice, name: str) -> Shape:
    kind = dice.choice(("", "LEFT", "RIGHT", "FULL"))
    joined = near(kind, dice.randint(0, 8), dice.randint(0, 8), dice.choice(("", "", " AND t.v < e.v + 3")))
    return Shape(name, f"SELECT t.id AS i, e.id AS j, t.s, e.v FROM {joined}", closes=bool(kind))


def _after_join(dice: _Dice, name: str) -> Shape:
    """Rows of one group per key of a join: changes, of which the last counts."""
    key = dice.choice(("t.k", "t.s"))
    values = dice.some(("COUNT(*)", "SUM(t.v)", "MIN(e.v)", "MAX(e.s)"), 3)
    return Shape(
        name,
        f"SELECT {key} AS key{_named(values)} FROM {near('', dice.randint(0, 8), dice.randint(0, 8))} GROUP BY {key}",
        "update",
        (0,),
    )


def _grouped(dice: _Dice, name: str) -> Shape:
    keys, values = dice.keys(), dice.some(_VALUES, 3)
    having = dice.choice(("", " HAVING COUNT(*) > 4"))
    groups = f" GROUP BY {', '.join(keys)}{having}" if keys else ""
    return Shape(
        name, f"SELECT {(_listed(keys) + _named(values)[2:])} FROM {dice.source()}{groups}", "complete"
    )


def _first(dice: _Dice, name: str) -> Shape:
    """The first of the groups, in an order that decides."""
    value = dice.choice(("COUNT(*)", "SUM(v)", "MAX(x)"))
    keys = dice.choice((["k"], ["k", "s"]))
    order = f"ORDER BY n {dice.choice(('DESC', 'ASC'))}, {', '.join(keys)} LIMIT {dice.randint(1, 4)}"
    return Shape(
        name,
        f"SELECT {_listed(keys)}{value} AS n FROM {dice.source()} GROUP BY {', '.join(keys)} {order}",
        "complete",
    )


def _projected(dice: _Dice, name: str) -> Shape:
    items, test = [f"{item} AS c{i}" for i, item in enumerate(dice.sample(_ITEMS, 3))], dice.choice(_TESTS)
    query = f"SELECT {', '.join(items)} FROM {dice.source()} WHERE {test}"
    return Shape(name, f"{query} UNION ALL {query}" if dice.random() < 0.3 else query)
