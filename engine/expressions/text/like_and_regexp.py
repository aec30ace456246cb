"""LIKE and regular expressions. Constant patterns are translated once and run by Arrow (RE2)."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import scalar_of, texts
from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall, Factory
from penstock.engine.expressions.text.regex_parser import named_groups
from penstock.engine.expressions.text.regex_search import RegexSearch, Replacement
from penstock.engine.expressions.text.remembered_texts import RememberedTexts
from penstock.engine.expressions.text.scanned_texts import like_kernel
from penstock.engine.expressions.text.strings import check_replaced

_ESCAPED_BY_ARROW = "\\"


def _like_pattern(pattern: str, escape: str) -> str:
    """Return a LIKE pattern with the backslash as its escape. Raise Fault RUN-2004 for an escape before
    anything but ``%``, ``_`` or itself.
    """
    out: list[str] = []
    letters = iter(pattern)
    for letter in letters:
        # the declared escape becomes a backslash, a plain backslash is doubled
        if letter == escape:
            follower = next(letters, None)
            if follower is None or follower not in ("%", "_", escape):
                raise bad_argument(
                    f"the LIKE pattern {pattern!r} escapes {follower!r}",
                    f"{escape} may precede only %, _ and {escape}",
                )
            out.append((_ESCAPED_BY_ARROW if follower in ("%", "_", _ESCAPED_BY_ARROW) else "") + follower)
        else:
            out.append(_ESCAPED_BY_ARROW * 2 if letter == _ESCAPED_BY_ARROW else letter)
    return "".join(out)


def _like(without_case: bool) -> Factory:
    def factory(bound: BoundCall) -> Kernel:
        escape = bound.constant(2) if len(bound.kinds) == 3 else "\\"
        if not isinstance(escape, str) or len(escape) != 1:
            raise bad_argument("the ESCAPE of LIKE must be one constant character")
        pattern = bound.constant(1)
        # x LIKE y: a pattern that varies by row is DuckDB's.
        if not isinstance(pattern, str):
            name = "ILIKE" if without_case else "LIKE"
            quoted = escape.replace("'", "''").replace("{", "{{").replace("}", "}}")
            return duckdb_kernel(f"{{0}} {name} {{1}} ESCAPE '{quoted}'", pa.bool_())
        translated = _like_pattern(pattern, escape)
        scanned = like_kernel(translated, without_case)
        if scanned is not None:
            return scanned
        return lambda s, *_: pc.match_like(s, translated, ignore_case=without_case)

    return factory


def usable_pattern(pattern: str) -> str:
    """Return the pattern if RE2 accepts it. Otherwise raise Fault RUN-2004 with RE2's reason."""
    try:
        pc.match_substring_regex(texts([""]), pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).split("\n")[0].removeprefix("Invalid regular expression: ")
        raise bad_argument(
            f"the regular expression {pattern!r} cannot be used: {reason}",
            "look-around and back-references are not offered",
        ) from None
    return pattern


def _rlike(bound: BoundCall) -> Kernel:
    pattern = bound.constant(1)
    if not isinstance(pattern, str):
        return duckdb_kernel("regexp_matches({0}, {1})", pa.bool_())
    usable = usable_pattern(pattern)
    return lambda s, _: pc.match_substring_regex(s, usable)


def _replacement(text: str) -> str:
    """Return Java's replacement text (``$1``, ``\\$``) as RE2's (``\\1``, ``\\\\``)."""
    return re.sub(
        r"\\(.)|\$(\d)", lambda m: "\\" + m[2] if m[2] else ("\\\\" if m[1] == "\\" else m[1]), text
    )


def _replacement_parts(replacement: str, count: int) -> Replacement | None:
    """Return RE2's replacement as parts, ``None`` for one that it refuses."""
    literal, words, groups = b"", [], []
    for plain, escaped in re.findall(r"([^\\]+)|\\(.?)", replacement, re.DOTALL):
        if escaped.isdecimal() and escaped.isascii():
            if int(escaped) > count:
                return None
            groups.append(int(escaped))
            words.append((groups[-1], 0, 0))
        elif plain or escaped == "\\":
            begin = len(literal)
            literal += (plain or escaped).encode()
            words.append((-1, begin, len(literal)))
        else:
            return None
    return Replacement.of(words, literal)


def _regexp_replace(bound: BoundCall) -> Kernel:
    pattern, by = bound.constant(1), bound.constant(2)
    if not isinstance(pattern, str) or not isinstance(by, str):
        return duckdb_kernel(
            r"regexp_replace({0}, {1}, regexp_replace({2}, '\$(\d)', '\\\1', 'g'), 'g')", pa.string()
        )
    usable, replacement = usable_pattern(pattern), _replacement(by)
    parts = _replacement_parts(replacement, named_groups(pattern).count)
    search = None if parts is None else RegexSearch(pattern, parts.groups)

    def kernel(s: Datum, *_: Datum) -> Datum:
        (column,) = aligned(s)
        # a longer replacement may make the texts too large
        if len(by) > 1:
            check_replaced("regexp_replace", column, lambda: pc.count_substring_regex(column, usable), by)
        if parts is not None and search is not None and (matches := search.matches(column)) is not None:
            return matches.replaced(parts)
        return pc.replace_substring_regex(column, usable, replacement)

    return kernel


def of_any_group(extraction: str, bound: BoundCall) -> str:
    """Return DuckDB's extraction of the group in the third argument, by default 1. DuckDB only accepts a
    constant group from 0 to 9, so a CASE lists them.
    """
    if len(bound.kinds) < 3:
        return extraction.format(1)
    if isinstance(group := bound.constant(2), int) and 0 <= group <= 9:
        return extraction.format(group)
    cases = " ".join(f"WHEN {group} THEN {extraction.format(group)}" for group in range(10))
    return f"CASE {{2}} {cases} ELSE error('there is no group ' || {{2}} || ', only 0 to 9') END"


def _regexp_extract(bound: BoundCall) -> Kernel:
    pattern, group = bound.constant(1), bound.constant(2) if len(bound.kinds) == 3 else 1
    if not isinstance(pattern, str) or not isinstance(group, int):
        return duckdb_kernel(of_any_group("regexp_extract({{0}}, {{1}}, {})", bound), pa.string())
    groups = named_groups(usable_pattern(pattern))
    if not 0 <= group <= groups.count:
        raise bad_argument(
            f"the regular expression {pattern!r} has {groups.count} groups, not {group}",
            "group 0 is the whole match",
        )
    # Group 0 is the whole match; so the fields of Arrow's result are the groups' numbers.
    whole = f"(?P<g0>{groups.pattern})"
    nothing = scalar_of("", pa.string())
    search = RegexSearch(pattern, (group,) if group else (), most=1)

    def extract(column: pa.Array) -> pa.Array:
        if (matches := search.matches(column)) is not None:
            return matches.first_texts(absent_is_null=False)
        matched = pc.fill_null(pc.struct_field(pc.extract_regex(column, whole), group), nothing)
        return (
            pc.if_else(pc.is_valid(column), matched, pa.scalar(None, pa.string()))
            if column.null_count
            else matched
        )

    # those of auction channels repeat: searched row by row they made the query take 1.4 times as long
    remembered = RememberedTexts(extract)
    return lambda s, *_: remembered(aligned(s)[0])


TEXT_PATTERNS: dict[str, Factory] = {
    "like": _like(without_case=False),
    "ilike": _like(without_case=True),
    "rlike": _rlike,
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
}
