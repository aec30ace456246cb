"""Causes and cures of errors: running jobs, connections of workers, and defects."""

from __future__ import annotations

RUNTIME: dict[str, tuple[str, str]] = {
    "INT-9001": ("The planner made a plan that contradicts itself.", "Report a defect with the statement."),
    "INT-9002": (
        "The plan has an expression without a kernel, or a rule changed its result.",
        "Report a defect with the statement.",
    ),
    "INT-9004": ("The physical plan contradicts itself.", "Report a defect with the statement."),
    "INT-9005": ("Retractions reached a sink that only appends.", "Report a defect with the statement."),
    "INT-9010": ("A job was asked for a change of state that cannot be.", "Report a defect with the log."),
    "INT-9011": (
        "Barriers of two checkpoints overlapped on one channel.",
        "The job restarts by itself; report a defect with the log.",
    ),
    "INT-9013": ("An edge of the plan has no writer.", "Report a defect with the statement."),
    "INT-9014": ("An operator has no input and is no source.", "Report a defect with the statement."),
    "INT-9015": (
        "A state was not written in the order of its key groups.",
        "Report a defect with the log; the last checkpoint is intact.",
    ),
    "INT-9016": (
        "A forward edge connects different numbers of subtasks.",
        "Report a defect with the statement.",
    ),
    "INT-9017": ("A plan node has no operator.", "Report a defect with the statement."),
    "INT-9031": (
        "A part of the plan cannot be sent to a worker process.",
        "RESET 'deployment', and report a defect.",
    ),
    "INT-9032": (
        "A worker process received a job or message that it cannot read.",
        "Run one version of penstock everywhere.",
    ),
    "INT-9040": ("A statement has no executor.", "Report a defect with the statement."),
    "INT-9041": ("A statement of a server's client met a defect.", "Report a defect with the statement."),
    "INT-9045": ("An aggregate has no accumulator.", "Report a defect with the statement."),
    "INT-9046": (
        "A retraction reached an aggregate that was planned without.",
        "Report a defect with the statement.",
    ),
    "NET-5001": (
        "Something else than a penstock worker connected.",
        "Check that the port belongs to penstock alone.",
    ),
    "NET-5002": ("A frame is longer than the limit.", "Check that the port belongs to penstock alone."),
    "NET-5003": (
        "The bytes of a frame differ from their checksum.",
        "The job restarts by itself; check the network if it comes again.",
    ),
    "NET-5004": (
        "A frame was lost or came twice.",
        "The job restarts by itself; check the network if it comes again.",
    ),
    "NET-5005": (
        "A connection ended in the middle of a frame.",
        "The job restarts by itself; look at the log of the other machine.",
    ),
    "NET-5006": ("A frame has a content that cannot be read.", "Run one version of penstock everywhere."),
    "NET-5007": (
        "A process connected without the token of the job.",
        "Check that no other program uses the port.",
    ),
    "NET-5008": (
        "A process of a former attempt connected.",
        "Nothing is to be done: it is refused, and ends.",
    ),
    "NET-5009": (
        "The other side was silent for too long.",
        "The job restarts by itself; look at load and network of that machine.",
    ),
    "NET-5010": (
        "The other side sent more than it was allowed to.",
        "Run one version of penstock everywhere, or report a defect.",
    ),
    "NET-5011": (
        "A frame came that is not expected in this state.",
        "Run one version of penstock everywhere, or report a defect.",
    ),
    "NET-5012": (
        "One side of a connection uses TLS, the other does not.",
        "SET the same settings of security.ssl.internal everywhere.",
    ),
    "NET-5013": (
        "The other machine cannot be reached.",
        "Check 'jobmanager.host', the ports and the firewall.",
    ),
    "NET-5014": (
        "The other side closed the connection.",
        "The job restarts by itself; look at the log of the other machine.",
    ),
    "NET-5015": (
        "The certificates of workers cannot be used.",
        "Name PEM files that every machine has, the key without a password.",
    ),
    "NET-5016": (
        "This process cannot listen at the address.",
        "Choose a free port, and a host of this machine.",
    ),
    "NET-9001": ("The network layer failed in a way nobody expected.", "Report a defect with the log."),
    "RUN-2001": ("A number was divided by zero.", "Write NULLIF(divisor, 0), or test it with CASE."),
    "RUN-2002": (
        "A result does not fit its type.",
        "CAST the operands to a wider type, such as DOUBLE or DECIMAL(38, s).",
    ),
    "RUN-2003": ("A value cannot be cast.", "Write TRY_CAST, which returns NULL."),
    "RUN-2004": (
        "An argument has a value that the function does not take.",
        "Test the value first, or correct it as the hint says.",
    ),
    "RUN-2005": ("NULL would get into a NOT NULL column.", "Filter with IS NOT NULL, or write COALESCE."),
    "RUN-2006": ("A function would return a value that is too large.", "Check the size before the call."),
    "RUN-2010": ("A Python function raised an exception.", "Correct the function; the detail has its line."),
    "RUN-2011": (
        "A Python function returned another type or length than it declares.",
        "Return what is declared, or declare what is returned.",
    ),
    "RUN-2012": ("A text of Spark is no UTF-8.", "Use make_valid_utf8(column) in a view of Spark."),
    "RUN-2013": (
        "A process table function used its state, its timers or its output in a way that is not allowed.",
        "Correct the function as the hint says.",
    ),
    "RUN-2016": ("A lookup got no answer in time.", "Raise 'lookup.timeout', or look at the database."),
    "RUN-2021": (
        "AFTER MATCH SKIP TO leads to no row, or back to the first row.",
        "Write SKIP PAST LAST ROW, or SKIP TO NEXT ROW.",
    ),
    "RUN-2022": (
        "A match tries too many rows.",
        "Add WITHIN INTERVAL .., and let conditions exclude each other.",
    ),
    "RUN-2023": (
        "The values of one key or window are too large for one batch.",
        "Let fewer or shorter values be together.",
    ),
    "RUN-2024": (
        "The machine has not enough memory.",
        "SET 'state.memory.budget-per-slot' so that state goes to disk, or give the process more memory.",
    ),
    "RUN-2025": (
        "A recursive query still has new rows after the most iterations.",
        "Write UNION instead of UNION ALL, bound the steps in WHERE, or raise 'recursion.max-iterations'.",
    ),
    "RUN-2026": (
        "A subquery that is used as a value has several rows.",
        "Aggregate it, or add ORDER BY .. LIMIT 1.",
    ),
    "RUN-2027": (
        "Several rows have one primary key, and the statement says ON CONFLICT DO ERROR.",
        "Write DO NOTHING, DO DEDUPLICATE, or GROUP BY the key.",
    ),
    "RUN-2900": (
        "An exception that nobody expected ended a job or a lookup.",
        "Read the message; report a defect when it is not the data's or the database's.",
    ),
    "RUN-2901": ("The engine was closed.", "Open another connection."),
    "RUN-2902": (
        "A job of this name is running.",
        "Cancel it first, or SET 'pipeline.name' to another name.",
    ),
    "RUN-2903": (
        "A job ended before its rows were complete.",
        "Run the statement again; with a state directory it resumes.",
    ),
    "RUN-2910": (
        "A worker process was lost.",
        "The job restarts by itself; look at the log and memory of that machine.",
    ),
    "RUN-2912": (
        "Worker processes cannot read a table that is in this program.",
        "Register an Arrow table or a list, or run in this process.",
    ),
    "RUN-2913": (
        "Worker processes cannot import a Python function.",
        "Put it into a module that workers have.",
    ),
    "RUN-2920": (
        "A materialized view is being filled, or is no longer updated.",
        "Wait and run again, or drop and create the view.",
    ),
    "RUN-2921": (
        "Workers of Spark have other versions than this process.",
        "Give them its environment by 'spark.archives' or PYSPARK_PYTHON.",
    ),
    "RUN-2922": (
        "A worker does not see the directory of the job.",
        "SET 'execution.checkpointing.dir' to a directory that all machines share.",
    ),
    "RUN-2923": (
        "Spark's speculation would start workers twice.",
        "SET 'spark.speculation' = 'false' before Spark starts.",
    ),
    "RUN-2924": (
        "The history would wait for cores that the job's own workers hold.",
        "SET 'bounded.backend' = 'duckdb', or another deployment.",
    ),
    "RUN-2925": (
        "A worker of Spark did not register in time.",
        "Give Spark more cores, or correct 'jobmanager.host'.",
    ),
    "RUN-2926": (
        "NUMBA_DISABLE_JIT is set: the engine's loops are not compiled.",
        "Unset NUMBA_DISABLE_JIT in the environment of the program.",
    ),
}
