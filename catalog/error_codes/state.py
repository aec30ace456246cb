"""Causes and cures of errors: checkpoints and savepoints."""

from __future__ import annotations

STATE: dict[str, tuple[str, str]] = {
    "STA-3001": (
        "Another process uses the state of the job.",
        "Stop that process, or give this job another state directory or name.",
    ),
    "STA-3002": ("Another process has continued the job.", "Nothing is to be done: this run ends."),
    "STA-3003": ("A file name in the state directory is not of penstock.", "Move the file away."),
    "STA-3005": (
        "A file of a checkpoint is damaged.",
        "SET 'execution.state-recovery.fallback' = 'true' restores the newest intact checkpoint.",
    ),
    "STA-3006": (
        "The state was written by a newer penstock.",
        "Run the job with that version, or a newer one.",
    ),
    "STA-3007": (
        "The state belongs to another query.",
        "Pass --allow-changed-query to resume with the changes listed, or use another state directory.",
    ),
    "STA-3008": (
        "pipeline.max-parallelism differs from that of the state.",
        "Set it to the number of the hint.",
    ),
    "STA-3009": (
        "The state of an operator does not fit the plan.",
        "Run the former statement, or start without state.",
    ),
    "STA-3010": (
        "The state directory belongs to another job.",
        "SET 'pipeline.name' to another name, or use another directory.",
    ),
    "STA-3011": (
        "Too many checkpoints failed in a row.",
        "Look at disk and log; raise execution.checkpointing.tolerable-failed-checkpoints if "
        "it was the load.",
    ),
    "STA-3012": (
        "The state directory has the state of another job name.",
        "Use the former name, or another directory.",
    ),
    "STA-3030": (
        "The state directory cannot be made or written.",
        "Give a directory that this user may write.",
    ),
    "STA-3031": ("There is no checkpoint of that number.", "Use a number of the hint."),
    "STA-3032": ("The state cannot be exported.", "Check space and permission of the target."),
    "STA-3033": (
        "The directory or job of the state is not there, or is not unique.",
        "Give the directory of --state, and --job.",
    ),
    "STA-3034": (
        "The savepoint cannot be written.",
        "Check space and permission of the target, or give another one.",
    ),
    "STA-3035": (
        "There is no savepoint at the path.",
        "Give the directory that CREATE SAVEPOINT or STOP JOB .. WITH SAVEPOINT printed.",
    ),
    "STA-3036": (
        "The job writes no checkpoints, so it has no savepoint.",
        "SET 'execution.checkpointing.interval' before the job starts.",
    ),
    "STA-3037": (
        "A savepoint has no target.",
        "Write WITH SAVEPOINT 'path' or TO 'path', or SET 'execution.checkpointing.savepoint-dir'.",
    ),
    "STA-3038": (
        "A job without checkpoints cannot resume.",
        "SET 'execution.checkpointing.interval', and start it again.",
    ),
    "STA-3039": (
        "The state of a job does not fit another parallelism.",
        "Keep its parallelism, or start without state.",
    ),
    "STA-3040": ("A job that has ended is to be rescaled, or a savepoint taken of it.", "Start it first."),
    "STA-3041": (
        "A job did not stop, or took no checkpoint, in time, so no savepoint was written.",
        "Try again; SHOW JOBS and EXPLAIN WHY NO OUTPUT tell what holds it.",
    ),
    "STA-3043": (
        "The state of the former query would make the new answer wrong.",
        "Write into another table, or use another state directory.",
    ),
    "STA-3045": (
        "A checkpoint has rows in flight to operators that the new plan has not.",
        "Stop the job with a savepoint first, then change it.",
    ),
    "STA-3050": (
        "State is larger than its memory, and no more of it can go to disk.",
        "SET 'state.memory.budget-per-slot' to more, or 'table.exec.state.ttl'.",
    ),
    "STA-3051": (
        "State cannot be written to disk.",
        "Free space, or SET 'state.spill.dir' to another directory.",
    ),
    "STA-3052": (
        "The state of a job cannot be opened.",
        "Check permission and mount of the state directory.",
    ),
    "STA-3053": (
        "Checkpoints cannot be written or read.",
        "Free space, or check the disk; the newest complete checkpoint is used.",
    ),
    "STA-3060": (
        "A state of a job is read by a catalog that is of no session.",
        "Read it in a session that runs jobs.",
    ),
    "STA-3062": (
        "A materialized view has no such checkpoint, or writes none.",
        "Read AS OF one that the hint names.",
    ),
    "STA-3063": (
        "The text behind AS OF TIMESTAMP is no timestamp.",
        "Write AS OF TIMESTAMP '2024-01-31 12:00:00'.",
    ),
    "STA-3061": (
        "A query names a state that its job has not, or one of several.",
        "SELECT * FROM STATE OF JOB 'id' lists the operators and their states.",
    ),
    "STA-3054": (
        "Statements with secrets are not stored, so recover cannot run them.",
        "Run the script it was started by, with the same --state.",
    ),
    "STA-3501": (
        "The state names a split that is no part of a file.",
        "The state is damaged or of another table; start without it.",
    ),
    "STA-3502": (
        "The state names a staged file that cannot be of this table.",
        "The state is damaged or of another table; start without it.",
    ),
    "STA-3503": (
        "Rows staged in the database are gone.",
        "Restore the table penstock_staged, or begin without state.",
    ),
    "STA-3504": ("A later attempt writes to the table.", "Nothing is to be done: this run ends."),
    "STA-3505": (
        "The table has rows of later checkpoints than the one the job resumes from.",
        "Resume from the checkpoint it names, or start the job under another name and empty the table.",
    ),
    "STA-3506": (
        "Rows are staged in the database that a later commit of their writer has passed over.",
        "Report a defect with the log. The rows are in the table penstock_staged.",
    ),
}
