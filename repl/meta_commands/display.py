"""Meta commands that change how results are shown."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands.context import MetaContext
from penstock.repl.output.row_writers import FORMATS

_ROWS_MODES = ("auto", "table", "changelog")


def set_vertical(context: MetaContext, command: MetaCommand) -> None:
    """One field a line: on, off or auto."""
    style = context.printer.style
    if command.argument == "auto":
        style.vertical = "auto"
    else:
        # \x alone changes between on and off; auto becomes on.
        style.vertical = "on" if _switch(command, style.vertical == "on") else "off"
    context.note(f"one field a line: {style.vertical}")


def set_rows_only(context: MetaContext, command: MetaCommand) -> None:
    """Rows without a heading: on or off."""
    style = context.printer.style
    # \t on means no heading: the field is the opposite of the switch.
    style.look = replace(style.look, show_heading=not _switch(command, not style.look.show_heading))
    context.note(f"rows only: {'off' if style.look.show_heading else 'on'}")


def set_timing(context: MetaContext, command: MetaCommand) -> None:
    """Times of statements: on or off."""
    style = context.printer.style
    style.timing = _switch(command, style.timing)
    context.note(f"timing: {'on' if style.timing else 'off'}")


def set_mode(context: MetaContext, command: MetaCommand) -> None:
    """Which rows of a result are shown, or the format."""
    style, argument = context.printer.style, command.argument
    if argument in _ROWS_MODES:
        style.mode = argument
        # The word is both a mode and a format.
        if argument == "table":
            style.format = "table"
    elif argument in FORMATS:
        style.format = argument
    elif argument:
        known = (*_ROWS_MODES, *FORMATS)
        raise PenstockError(
            "CLI-6141",
            rf"\mode cannot be {argument}",
            hint=did_you_mean(argument, known) or f"there is {', '.join(known)}",
        )
    # \mode alone changes nothing and prints both.
    context.note(f"mode {style.mode}, format {style.format}")


def set_option(context: MetaContext, command: MetaCommand) -> None:
    """One option of how rows are shown."""
    style = context.printer.style
    key, _, value = command.argument.partition(" ")
    if key == "null":
        style.look = replace(style.look, null=value.strip("'"))
    elif key == "max_rows" and value.isdigit():
        # 0 is no limit.
        style.look = replace(style.look, max_rows=int(value) or None)
    elif key == "pager" and value in ("on", "off"):
        style.pager = value == "on"
    elif key:
        raise PenstockError(
            "CLI-6141",
            rf"\pset cannot set {command.argument}",
            hint=did_you_mean(key, ("null", "max_rows", "pager"))
            or r"\pset null TEXT, \pset max_rows N, \pset pager on|off",
        )
    context.note(
        f"null {style.look.null!r}, max_rows {style.look.max_rows or 'none'}, "
        f"pager {'on' if style.pager else 'off'}"
    )


def _switch(command: MetaCommand, now: bool) -> bool:
    # Without an argument the switch changes, as in psql.
    values = {"": not now, "on": True, "off": False}
    if command.argument not in values:
        raise PenstockError(
            "CLI-6141",
            f"{command.name} takes on or off, not {command.argument}",
            hint=did_you_mean(command.argument, ("on", "off")),
        )
    return values[command.argument]
