"""Meta commands by name, and the run of one."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands import (
    display,
    execution,
    listings,
    named_queries,
    provenance,
    session_facts,
    shown_rows,
)
from penstock.repl.meta_commands.context import MetaContext
from penstock.repl.meta_commands.registry import check_command


def run_command(context: MetaContext, command: MetaCommand) -> bool:
    """Run one command; return False when it leaves the shell or the script. Its errors have a position."""
    name = check_command(command)
    if name == r"\q":
        return False
    try:
        ACTIONS[name](context, command)
    except PenstockError as error:
        raise command.locate(error) from error.__cause__
    return True


ACTIONS: dict[str, Callable[[MetaContext, MetaCommand], None]] = {
    r"\?": listings.list_commands,
    r"\h": listings.syntax,
    r"\d": listings.describe,
    r"\d+": listings.describe_all,
    r"\dt": listings.listing("SHOW TABLES"),
    r"\dv": listings.listing("SHOW VIEWS"),
    r"\df": listings.list_functions,
    r"\dc": listings.list_connectors,
    r"\dj": listings.list_jobs_that_run,
    r"\dj+": listings.listing("SHOW JOBS"),
    r"\g": execution.run_buffer,
    r"\gx": execution.run_buffer,
    r"\last": shown_rows.show_last,
    r"\tail": shown_rows.show_tail,
    r"\why": provenance.explain_shown_row,
    r"\n": named_queries.run_named,
    r"\ns": named_queries.save_named,
    r"\nd": named_queries.drop_named,
    r"\x": display.set_vertical,
    r"\t": display.set_rows_only,
    r"\timing": display.set_timing,
    r"\mode": display.set_mode,
    r"\pset": display.set_option,
    r"\set": session_facts.set_or_list,
    r"\i": execution.include,
    r"\ir": execution.include,
    r"\o": execution.send_output,
    r"\e": execution.edit,
    r"\watch": execution.watch,
    r"\errverbose": session_facts.show_error,
    r"\conninfo": session_facts.show_connection,
    r"\c": session_facts.connect,
}
