"""Meta commands that list: tables, functions, connectors, jobs, syntax, and the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.planner.statements.nodes import Describe, Name
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands.context import MetaContext
from penstock.repl.meta_commands.registry import COMMANDS, SECTIONS

if TYPE_CHECKING:
    from penstock.catalog.tables import CatalogTable, View
    from penstock.client.session import Session

# A part of a.b.c: in quotes, or up to the next dot.
_NAME_PART = re.compile(r'`[^`]*`|"[^"]*"|[^.]+')


def list_commands(context: MetaContext, command: MetaCommand) -> None:
    """Print all meta commands."""
    width = max(len(f"{one.name} {one.arguments}") for one in COMMANDS)
    lines = []
    for title, commands in SECTIONS.items():
        lines += [title, *(f"  {f'{one.name} {one.arguments}':{width}}  {one.help}" for one in commands)]
    context.printer.lines(lines)


def describe(context: MetaContext, command: MetaCommand) -> None:
    """Print the columns of a relation or a file; without a name, the tables and views."""
    argument = command.argument
    # \d 'orders.csv': a file is a table.
    if is_path(argument):
        run_sql(context, f"DESCRIBE {argument}")
    elif argument:
        run_sql(context, f"DESCRIBE {quoted_name(argument)}")
    else:
        run_sql(context, "SHOW TABLES")
        if context.session.catalog.views():
            run_sql(context, "SHOW VIEWS")


def describe_all(context: MetaContext, command: MetaCommand) -> None:
    """Print the columns of a relation, and all else that is known of it."""
    from penstock.client.statements.relation_facts import relation_facts

    if not command.argument or is_path(command.argument):
        describe(context, command)
        return
    run_sql(context, f"DESCRIBE {quoted_name(command.argument)}")
    # all that a server says of it
    if context.session.is_remote:
        found = relation_named(context.session, command.argument)
        noun = "TABLE" if hasattr(found, "options") else "VIEW"
        run_sql(context, f"SHOW CREATE {noun} {quoted_name(command.argument)}")
        return
    relation = relation_named(context.session, command.argument)
    context.printer.show(relation_facts(context.session.state, relation), keep=False)


def list_functions(context: MetaContext, command: MetaCommand) -> None:
    """Print each function with its signature and a sentence."""
    from penstock.client.results.result import text_rows, verbatim_result
    from penstock.client.statements.function_list import function_list

    # with those that were created at a server, which has their signatures
    if context.session.is_remote:
        like = like_pattern(command.argument)
        run_sql(context, f"SHOW FUNCTIONS LIKE '{like}'" if like else "SHOW FUNCTIONS")
        return
    found = function_list(context.session.state, like_pattern(command.argument) or None)
    if context.printer.style.format in ("table", "vertical"):
        # Two lines each: the sentences do not fit beside the signatures.
        lines = [
            f"{one.usage}  ({', '.join((one.kind, *_also(one.aliases)))})\n    {one.help}" for one in found
        ]
        result = verbatim_result("functions", lines)
    else:
        rows = [(one.name, one.kind, one.usage, one.help) for one in found]
        result = text_rows(["function", "kind", "call", "meaning"], rows)
    context.printer.show(result, keep=False)
    if not found:
        context.note(f"no function matches {command.argument}")


def _also(aliases: Sequence[str]) -> list[str]:
    return [f"also {' and '.join(aliases)}"] if aliases else []


def listing(statement: str) -> Callable[[MetaContext, MetaCommand], None]:
    """Return an action that lists names; its argument is a pattern with * or %, or a part of the name."""

    def action(context: MetaContext, command: MetaCommand) -> None:
        like = like_pattern(command.argument)
        run_sql(context, statement + (f" LIKE {_literal(like)}" if like else ""))

    return action


def list_connectors(context: MetaContext, command: MetaCommand) -> None:
    """Print the connectors, or the options of those that match."""
    from penstock.client.statements.connector_list import connector_list

    if command.argument:
        run_sql(context, f"SHOW CONNECTORS LIKE {_literal(command.argument.replace('*', '%'))}")
    else:
        context.printer.show(connector_list(), keep=False)


def list_jobs_that_run(context: MetaContext, command: MetaCommand) -> None:
    """Print the jobs that run, or the figures of one."""
    from penstock.client.statements.jobs import list_jobs

    if command.argument:
        run_sql(context, f"DESCRIBE JOB {_literal(command.argument)}")
    else:
        # A long session ends many jobs: those that still run are what one looks for.
        running = [job for job in context.session.jobs() if not job.state.terminal]
        context.printer.show(list_jobs(running), keep=False)


def syntax(context: MetaContext, command: MetaCommand) -> None:
    """Print the syntax of a clause."""
    from penstock.client.statements.show import help_on

    context.printer.show(help_on(command.argument or None), keep=False)


def run_sql(context: MetaContext, text: str) -> None:
    """Run a statement that a command stands for. Its errors have no text: the user did not write it."""
    try:
        for parsed in context.session.parse(text):
            context.printer.show(context.session.run(parsed), keep=False)
    except PenstockError as error:
        error.span = error.source = None
        raise


def is_path(argument: str) -> bool:
    """Return whether an argument is the path of a file, in single quotes."""
    return len(argument) > 1 and argument[0] == argument[-1] == "'"


def quoted_name(argument: str) -> str:
    """Return a name as SQL has it: each part in backticks, so that a reserved word is a name."""
    # A dot in quotes separates nothing.
    parts = [part.strip('`"').replace("`", "``") for part in _NAME_PART.findall(argument)]
    return ".".join(f"`{part}`" for part in parts)


def relation_named(session: Session, argument: str) -> CatalogTable | View:
    """Return the table or view that an argument names; SQL-1041 when there is none."""
    # The grammar knows what a name is.
    (statement,) = session.parse(f"DESCRIBE {quoted_name(argument)}")
    assert isinstance(statement.node, Describe) and isinstance(statement.node.subject, Name)
    return session.catalog.resolve(statement.node.subject.text)


def like_pattern(argument: str) -> str:
    """Return the pattern of LIKE for an argument. ``ord``: the names that contain ord; ``ord*``: those that
    begin with it.
    """
    pattern = argument.replace("*", "%")
    return pattern if not pattern or "%" in pattern else f"%{pattern}%"


def _literal(text: str) -> str:
    # A quote in the text must not end the string.
    return "'" + text.replace("'", "''") + "'"
