"""Rows as text for people: tables with types under names, and one field a line where a table does not fit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from wcwidth import wcswidth, wcwidth

from penstock.catalog.frozen_dataclass import dataclass
from penstock.repl.output.cell_text import text_column, visible

GREY, BOLD, RESET = "\x1b[90m", "\x1b[1m", "\x1b[0m"
_GAP = " | "
# five characters and an ellipsis still tell values apart
_NARROWEST = 6


@dataclass(frozen=True)
class Look:
    """The look of tables. ``width``: terminal columns; None cuts nothing. ``max_rows``: more rows are
    elided in the middle.
    """

    null: str = "NULL"
    zone: str | None = None
    color: bool = False
    width: int | None = None
    max_rows: int | None = None
    show_types: bool = True
    show_heading: bool = True


@dataclass(frozen=True)
class RenderedColumn:
    """One column as text: its heading, its cells as safe text (NULL as the null sign), which cells are
    NULL, and its alignment.
    """

    name: str
    kind: str
    cells: pa.Array
    nulls: pa.Array
    right: bool

    @property
    def width(self) -> int:
        """Terminal columns of the widest cell or heading."""
        widest = _widest(self.cells)
        return max(widest, _display_width(self.name), _display_width(self.kind), 1)


def columns_of(rows: pa.Table, kinds: list[str], look: Look) -> list[RenderedColumn]:
    """Return the columns of a table as text; ``kinds`` are the SQL types' names in order."""
    # a column at a time: text is made by kernels, never cell by cell
    columns = []
    for position, kind in enumerate(kinds):
        field = rows.schema.field(position)
        values = (
            pa.concat_arrays(rows.column(position).chunks)
            if rows.column(position).num_chunks
            else pa.array([], field.type)
        )
        # visible: control characters in data must not move the cursor
        text = visible(text_column(values, look.zone or "UTC"))
        name = visible(pa.array([field.name]))[0].as_py()
        cells = pc.fill_null(text, look.null)
        # numbers are aligned to the right, so that digits stand below each other
        right = (
            pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
            or pa.types.is_decimal(field.type)
        )
        columns.append(
            RenderedColumn(name, kind if look.show_types else "", cells, pc.is_null(values), right)
        )
    return columns


def table_lines(
    rows: pa.Table, kinds: list[str], look: Look, *, widths: list[int] | None = None, heading: bool = True
) -> list[str]:
    """Return a table as lines. ``widths`` fixes column widths (as earlier lines of the same table had
    them).
    """
    # elided rows are not even converted to text
    shown, elided = _elide(rows, look.max_rows)
    columns = columns_of(shown, kinds, look)
    widths = widths or fitted_widths(columns, look.width)
    lines = heading_lines(columns, widths, look) if heading and look.show_heading else []
    body = body_lines(columns, widths, look)
    if elided:
        # in the middle: the first and the last rows are what people look for
        half = (look.max_rows or 0) // 2
        marks = _GAP.join("·".center(width) for width in widths)
        body[half:half] = [" " + marks, " " + f"({elided:,} rows not shown)".center(len(marks)), " " + marks]
    return lines + body


def heading_lines(columns: list[RenderedColumn], widths: list[int], look: Look) -> list[str]:
    """Return the column names, their types, and the rule under them."""
    names = _GAP.join(
        _fit(column.name, width, column.right) for column, width in zip(columns, widths, strict=True)
    )
    lines = [f"{BOLD} {names}{RESET}" if look.color else f" {names}".rstrip()]
    if look.show_types:
        kinds = _GAP.join(
            _fit(column.kind, width, column.right) for column, width in zip(columns, widths, strict=True)
        )
        # no blanks at the ends of lines where they are not colored: goldens and diffs stay clean
        lines.append(f"{GREY} {kinds}{RESET}" if look.color else f" {kinds}".rstrip())
    lines.append("-" + "-+-".join("-" * width for width in widths) + "-")
    return lines


def body_lines(columns: list[RenderedColumn], widths: list[int], look: Look) -> list[str]:
    """Return one line per row."""
    if not columns or not len(columns[0].cells):
        return []
    parts = []
    for column, width in zip(columns, widths, strict=True):
        cells = padded(cut(column.cells, width), width, column.right)
        if look.color:
            # colored after padding: escape sequences have no width
            cells = pc.if_else(column.nulls, pc.binary_join_element_wise(GREY, cells, RESET, ""), cells)
        parts.append(cells)
    lines = pc.binary_join_element_wise(" ", pc.binary_join_element_wise(*parts, _GAP), "")
    return pc.utf8_rtrim_whitespace(lines).to_pylist()


def fitted_widths(columns: list[RenderedColumn], limit: int | None) -> list[int]:
    """Return column widths that fit a terminal: the widest columns are narrowed first, none below six."""
    widths = [column.width for column in columns]
    if limit is None:
        return widths
    # a blank at each edge, and the gaps between columns
    spare = limit - 2 - len(_GAP) * (len(widths) - 1)
    # at most one round for each distinct width
    while sum(widths) > spare and max(widths) > _NARROWEST:
        widest = max(widths)
        below = max([width for width in widths if width < widest], default=_NARROWEST)
        # each of the widest columns is narrowed by an equal share, down to the next widest at most
        share = -(-(sum(widths) - spare) // widths.count(widest))
        narrowed = max(below, widest - share, _NARROWEST)
        widths = [narrowed if width == widest else width for width in widths]
    return widths


def fits(rows: pa.Table, kinds: list[str], look: Look) -> bool:
    """Return whether the table fits the terminal with no cell cut."""
    if look.width is None:
        return True
    columns = columns_of(_elide(rows, look.max_rows)[0], kinds, look)
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1) + 2 <= look.width


def vertical_lines(rows: pa.Table, kinds: list[str], look: Look, first: int = 1) -> list[str]:
    """Return rows with one field a line; ``first`` is the number of the first row."""
    shown, elided = _elide(rows, look.max_rows)
    columns = columns_of(shown, kinds, look)
    if not columns or not shown.num_rows:
        return []
    name_width = max(_display_width(column.name) for column in columns)
    # -[ row 1 ]---, as psql's \x
    numbers = pc.cast(pa.array(range(first, first + shown.num_rows)), pa.string())
    parts: list[object] = [
        padded(pc.binary_join_element_wise("-[ row ", numbers, " ]", ""), name_width + 20, False, "-")
    ]
    for column in columns:
        cells = (
            pc.if_else(column.nulls, pc.binary_join_element_wise(GREY, column.cells, RESET, ""), column.cells)
            if look.color
            else column.cells
        )
        parts.append(pc.binary_join_element_wise(_fit(column.name, name_width, False) + _GAP, cells, ""))
    lines = pc.binary_join_element_wise(*parts, "\n").to_pylist()
    if elided:
        lines.insert(len(lines) // 2, f"({elided:,} rows not shown)")
    return lines


def padded(text: pa.Array, width: int, right: bool, fill: str = " ") -> pa.Array:
    """Return strings filled to ``width`` terminal columns."""
    if _is_ascii(text):
        return (
            pc.utf8_lpad(text, width=width, padding=fill)
            if right
            else pc.utf8_rpad(text, width=width, padding=fill)
        )
    # wide characters: only wcwidth knows their columns, so each distinct value is padded in Python
    return _by_distinct_value(text, lambda value: _pad(value, width, right, fill))


def cut(text: pa.Array, width: int) -> pa.Array:
    """Return strings cut to ``width`` terminal columns, an ellipsis marking the cut."""
    if _widest(text) <= width:
        return text
    return _by_distinct_value(text, lambda value: _cut(value, width))


def _by_distinct_value(text: pa.Array, rewrite) -> pa.Array:  # type: ignore[no-untyped-def]  # str -> str
    # Python sees each distinct value once, not each row
    encoded = text.dictionary_encode()
    return pa.array([rewrite(value) for value in encoded.dictionary.to_pylist()], pa.string()).take(
        encoded.indices
    )


def _is_ascii(text: pa.Array) -> bool:
    return pc.all(pc.string_is_ascii(text)).as_py() is not False


def _widest(text: pa.Array) -> int:
    if not len(text):
        return 0
    if _is_ascii(text):
        return pc.max(pc.utf8_length(text)).as_py() or 0
    # wide characters (CJK, emoji) take two columns of a terminal
    return max(_display_width(value) for value in text.unique().to_pylist())


def _display_width(text: str) -> int:
    # -1: it holds a control character
    width = wcswidth(text)
    return width if width >= 0 else len(text)


def _pad(text: str, width: int, right: bool, fill: str = " ") -> str:
    missing = fill * max(0, width - _display_width(text))
    return missing + text if right else text + missing


def _cut(text: str, width: int) -> str:
    if _display_width(text) <= width:
        return text
    used = 0
    for position, character in enumerate(text):
        used += max(wcwidth(character), 0)
        # one column is left for the ellipsis
        if used > width - 1:
            return text[:position] + "…"
    return text


def _fit(text: str, width: int, right: bool) -> str:
    return _pad(_cut(text, width), width, right)


def _elide(rows: pa.Table, limit: int | None) -> tuple[pa.Table, int]:
    if limit is None or rows.num_rows <= limit:
        return rows, 0
    head = limit // 2
    tail = limit - head
    return pa.concat_tables([rows.slice(0, head), rows.slice(rows.num_rows - tail)]), rows.num_rows - limit
