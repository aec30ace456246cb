"""Causes and cures of errors: the client, the command line and the shell."""

from __future__ import annotations

CLIENT: dict[str, tuple[str, str]] = {
    "CLI-6001": ("A cursor is asked for rows before it has executed a statement.", "Call execute first."),
    "CLI-6002": ("The connection or cursor is closed.", "Open another one."),
    "CLI-6003": ("The statement has no rows to fetch.", "Call fetch for queries only."),
    "CLI-6004": ("executemany got a query.", "Call execute for each query."),
    "CLI-6005": ("execute got no statement, or several.", "Call executescript for several."),
    "CLI-6006": (
        "Parameters are passed to a statement without values.",
        "Write the value into the statement; SELECT, INSERT and CREATE TABLE .. AS take parameters.",
    ),
    "CLI-6007": ("QUIT is executed outside of the shell.", "Close the connection."),
    "CLI-6008": (
        "Parameters are of a Python type that cannot be matched with the text.",
        "Pass a tuple such as (1, 'x') for ?, or a dict such as {'a': 1} for :a.",
    ),
    "CLI-6009": (
        "Rows are fetched from an endless result whose rows are updated later, or get other places.",
        "Iterate over changes(), which gives (op, row), or call fetchall(timeout=) for the rows so far.",
    ),
    "CLI-6010": (
        "All rows are asked of a result that never ends.",
        "Iterate, call fetchmany, or add a LIMIT.",
    ),
    "CLI-6011": (
        "A value is beyond what Python's datetime can hold.",
        "Call fetch_arrow_table, or CAST the column to STRING.",
    ),
    "CLI-6012": (
        "A connection is used in a process that was forked from the one that opened it.",
        "Connect in the new process, or start processes by spawn.",
    ),
    "CLI-6014": (
        "A text is no UTF-8, so it is no str of Python.",
        "Call fetch_arrow_table, which returns its bytes.",
    ),
    "CLI-6015": (
        "An INSERT OVERWRITE was stopped before its end; the table keeps its old rows.",
        "Run the statement again.",
    ),
    "CLI-6021": (
        "rollback is called, and there are no transactions.",
        "Each statement takes effect at once.",
    ),
    "CLI-6022": (
        "Rows are asked for as a frame of a library that is not installed.",
        "Install pandas or polars, or call fetch_arrow_table.",
    ),
    "CLI-6030": (
        "No job, or no connection of a table, is there.",
        "SHOW JOBS and penstock jobs list the jobs.",
    ),
    "CLI-6031": ("The port for metrics is in use.", "Choose another port; 0 turns the endpoint off."),
    "CLI-6035": ("The state directory does not exist.", "Pass the --state directory of penstock run."),
    "CLI-6040": ("A table is registered without a name.", "Pass a name."),
    "CLI-6041": ("time_column names no timestamp column.", "Name a timestamp column of the data."),
    "CLI-6042": ("The delay of a registered table cannot be read.", "Write '5 s', or pass a timedelta."),
    "CLI-6043": ("unregister got the name of a table that was created.", "Remove it by DROP TABLE."),
    "CLI-6100": (
        "A command or flag does not exist, or has a wrong value.",
        "penstock --help lists them; the hint has the nearest one.",
    ),
    "CLI-6110": ("A script uses ${name}, and the variable has no value.", "Pass --var name=value."),
    "CLI-6111": ("The value of a variable has several lines.", "Pass one line."),
    "CLI-6120": ("The configuration file cannot be read.", "Check its path and permission."),
    "CLI-6121": (
        "The configuration file has a key or value that it cannot have.",
        "Correct the line; the hint has the nearest key.",
    ),
    "CLI-6130": ("The time of --timeout is over.", "Raise --timeout, add a LIMIT, or EXPLAIN WHY NO OUTPUT."),
    "CLI-6131": ("A file cannot be read or written.", "Correct the path or its permission."),
    "CLI-6132": ("A script is no UTF-8.", "Save it as UTF-8."),
    "CLI-6140": ("There is no such meta command.", "\\? lists them."),
    "CLI-6141": ("A meta command has a wrong argument.", "Write it as the hint shows it."),
    "CLI-6142": ("The editor of \\e failed.", "Set EDITOR to a program that is installed."),
    "CLI-6143": ("\\g or \\watch has no statement to run.", "Write a statement before it."),
    "CLI-6144": (
        "\\watch is on a query that never ends.",
        "Run it without \\watch: it shows changes by itself.",
    ),
    "CLI-6145": ("\\last or \\tail has no result to show again.", "Run a query first."),
    "CLI-6146": ("A script has \\e, which edits the text of a prompt.", "Use \\e in the shell."),
    "CLI-6147": ("A script includes itself by \\i or \\ir.", "Remove the command."),
    "CLI-6148": ("There is no named query of that name.", "\\n lists them, \\ns saves one."),
    "CLI-6149": (
        "\\tail is on what nobody can read: a view, or a table that is a sink only.",
        "Name a table that can be read, or a job that writes to one.",
    ),
    "CLI-6150": (
        "PENSTOCK_FAILPOINTS names no failpoint or cannot be read.",
        "Unset it; it is for fault tests only.",
    ),
    "CLI-6151": ("A directory to format has no .sql file.", "Name the files themselves."),
    "CLI-6152": ("A file of the new project is there already.", "Name a new directory."),
    "CLI-6153": ("A file of the new project cannot be written.", "Name a directory that can be written."),
    "CLI-6154": (
        "penstock fmt would change what a statement means.",
        "Leave the file as it is, and report the statement.",
    ),
    "CLI-6160": (
        "There is no error of this code.",
        "penstock explain-error without a code lists all of them.",
    ),
    "CLI-6180": (
        "A TEST or SCRIPT statement is not written as it must be.",
        "Write it as the hint shows it.",
    ),
    "CLI-6181": (
        "A test gives or expects a table that it cannot.",
        "Give tables of CREATE TABLE once; expect a table that the script fills, a view or a query.",
    ),
    "CLI-6182": (
        "A query under test reads a table that the test gives no rows.",
        "Add GIVEN table VALUES (..) or GIVEN table NO ROWS.",
    ),
    "CLI-6183": (
        "A test file has no TEST statement.",
        "Write a TEST statement: the given rows, then the expected ones.",
    ),
}
