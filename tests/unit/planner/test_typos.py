"""One wrong letter in a keyword, a name, a function, a type, an option or a setting: the right word is the
first suggestion.
"""

from __future__ import annotations

from penstock.catalog.errors import PenstockError
from tests.unit.planner.frontend import run_statements, sample_catalog

TEMPLATES = {
    "{} price FROM bid": ["SELECT"],
    "SELECT price {} bid": ["FROM"],
    "SELECT price FROM bid {} price > 1": ["WHERE"],
    "SELECT channel FROM bid {} BY channel": ["GROUP"],
    "SELECT channel FROM bid GROUP BY channel {} count(*) > 1": ["HAVING"],
    "SELECT name FROM city {} BY name": ["ORDER"],
    "SELECT name FROM city {} 5": ["LIMIT"],
    "SELECT a.name FROM city a {} city b ON a.name = b.name": ["JOIN"],
    "SELECT a.name FROM city a {} JOIN city b ON a.name = b.name": [
        "LEFT",
        "RIGHT",
        "INNER",
        "FULL",
        "CROSS",
    ],
    "{} TABLE t (a INT) WITH ('connector' = 'datagen')": ["CREATE"],
    "CREATE {} t (a INT) WITH ('connector' = 'datagen')": ["TABLE"],
    "{} INTO totals SELECT 1, 2, 'a'": ["INSERT"],
    "INSERT INTO totals {} 1, 2, 'a'": ["SELECT"],
    "{} SELECT 1": ["EXPLAIN"],
    "SHOW {}": ["TABLES", "VIEWS", "FUNCTIONS", "CONNECTORS", "JOBS", "CATALOGS", "DATABASES"],
    "SELECT {} FROM bid": ["auction", "bidder", "price", "channel"],
    "SELECT 1 FROM {}": ["person", "airline", "totals"],
    "SELECT {}(channel) FROM bid": [
        "upper",
        "lower",
        "length",
        "reverse",
        "initcap",
        "count",
        "collect_list",
        "histogram",
        "median",
    ],
    "SELECT {}(price, bidder) FROM bid": ["corr", "max_by", "covar_pop"],
    "SELECT {}(channel, 'a') FROM bid": ["listagg", "split", "instr", "contains"],
    "SELECT {}(ARRAY[1, 2]) AS x": ["array_distinct", "array_max", "cardinality", "sort_array"],
    "SELECT CAST(price AS {}) FROM bid": ["BIGINT", "DOUBLE", "STRING", "DECIMAL", "TIMESTAMP", "SMALLINT"],
    "CREATE TABLE t (a {}<INT>) WITH ('connector' = 'datagen')": ["ARRAY"],
    "SET '{}' = '1'": [
        "parallelism.default",
        "pipeline.max-parallelism",
        "table.exec.source.idle-timeout",
        "execution.checkpointing.interval",
        "table.local-time-zone",
    ],
    "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', '{}' = '1')": [
        "number-of-rows",
        "rows-per-second",
    ],
    "CREATE TABLE t (a INT) WITH ('connector' = '{}')": ["datagen", "blackhole", "filesystem"],
    "SELECT price FROM bid {} ROW_NUMBER() OVER (PARTITION BY channel ORDER BY price) = 1": ["QUALIFY"],
    "SELECT 1 FROM bid CROSS JOIN {}(ARRAY[1, 2]) AS u(x)": ["UNNEST"],
    "SELECT * FROM {}(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)": ["TUMBLE", "SESSION"],
}


def typos(word: str) -> list[str]:
    """Words one edit away: a letter left out, two swapped, one doubled, one replaced, each in one place
    chosen by the word itself.
    """
    middle = max(1, len(word) // 2)
    candidates = [
        word[:middle] + word[middle + 1 :],
        word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :],
        word[:middle] + word[middle] + word[middle:],
        word[:-1] + ("x" if word.islower() else "X"),
    ]
    return [candidate for candidate in candidates if candidate != word]


def suggestion(text: str) -> str:
    try:
        run_statements(text, sample_catalog())
    except PenstockError as error:
        return error.hint or ""
    return "accepted"


def test_the_first_suggestion_is_the_right_word() -> None:
    wrong, tried = [], 0
    for template, words in TEMPLATES.items():
        for word in words:
            for typo in typos(word):
                tried += 1
                hint = suggestion(template.format(typo))
                meant = {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}.get(word, word)
                if f'"{meant}"'.lower() not in hint.lower() and f'"{word}"'.lower() not in hint.lower():
                    wrong.append(f"{typo}: {hint}")
    assert tried >= 200
    assert len(wrong) <= tried * 0.05, "\n".join(wrong)


def test_nothing_near_is_suggested_when_nothing_is_near() -> None:
    for text in [
        "SELECT zzqqy FROM bid",
        "SELECT 1 FROM zzqqy",
        "SELECT zzqqy(1)",
        "SELECT CAST(1 AS ZZQQY)",
        "SET 'zzqqy' = '1'",
    ]:
        assert "did you mean" not in suggestion(text), text
