"""The words of the dialect. A reserved word names something only in quotes; the other words serve completion
and hints.
"""

from __future__ import annotations

RESERVED = frozenset(
    (
        "ALL", "AND", "ANTI", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CREATE", "CROSS", "DESC", "DISTINCT", "DROP", "ELSE", "END",
        "EXCEPT", "EXISTS", "FALSE", "FETCH", "FOR", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTERSECT", "INTERVAL",
        "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "MATCH_RECOGNIZE", "NATURAL", "NOT", "NULL", "OFFSET", "ON", "OR",
        "ORDER", "OUTER", "OVER", "QUALIFY", "RIGHT", "RLIKE", "SELECT", "SEMI", "TABLE", "THEN", "TRUE", "UNION", "UNNEST", "USING",
        "VALUES", "WHEN", "WHERE", "WINDOW", "WITH",
    )
)  # fmt: skip
"""Reserved words: names or aliases only in quotes."""

CLAUSES = (
    "FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT",
    "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "ON", "USING",
)  # fmt: skip
"""Words that may begin the next clause of a query."""

STATEMENTS = (
    "SELECT", "WITH", "VALUES", "INSERT", "CREATE", "DROP", "ALTER", "EXECUTE", "BEGIN", "EXPLAIN", "SET", "RESET", "SHOW", "DESCRIBE", "DESC",
    "STOP", "CANCEL", "SUBSCRIBE", "USE", "VERIFY", "PIVOT", "UNPIVOT", "SUMMARIZE", "UPDATE", "DELETE", "MERGE", "HELP", "QUIT", "EXIT",
)  # fmt: skip
"""Words that may begin a statement."""

OTHERS = (
    "ADD", "AFTER", "AGAINST", "ANALYZE", "ARRAY", "AT", "BATCH", "CASCADE", "CATALOG", "CATALOGS", "CHANGELOG_MODE", "CHANGES", "CLOSE",
    "COLUMN", "COLUMNS", "COMMENT", "CONFLICT", "CONNECTORS", "CONSTRAINT", "CUBE", "CUMULATE", "CURRENT", "DATABASE", "DATABASES", "DATE", "DAY", "DEFINE",
    "DEDUPLICATE", "DESCRIPTOR", "DIV", "DO", "DRAIN", "EMIT", "ENFORCED", "ERROR", "ESCAPE", "EVERY", "EXTENDED", "EXTRACT", "FINAL", "FIRST", "FOLLOWING", "FUNCTION",
    "FUNCTIONS", "GROUPING", "HOP", "HOUR", "IF", "ILIKE", "JOB", "JOBS", "JSON", "KEY", "LANGUAGE", "LAST", "LATE", "LATENESS", "LOCAL",
    "LOGICAL", "MAP", "MATCH", "MATERIALIZED", "MEASURES", "MERMAID", "METADATA", "METRICS", "MINUS", "MINUTE", "MODIFY", "MONTH", "NEXT", "NO",
    "NULLS", "OF", "ONE", "OPTIMIZED", "OPTIONS", "ORDINALITY", "OUTPUT", "OVERWRITE", "PARALLELISM", "PARTITION", "PARTITIONED", "PAST", "PATTERN",
    "PER", "PERMUTE", "PHYSICAL", "PLAN", "PRECEDING", "PRECISION", "PRIMARY", "PYTHON", "QUARTER", "RANGE", "RENAME", "REPLACE", "RESTRICT",
    "ROLLUP", "ROW", "ROWS", "RULES", "RUNNING", "SAVEPOINT", "SCHEMA", "SECOND", "SESSION", "SETS", "SETTINGS", "SKIP", "STATEMENT", "STRUCT",
    "SUBSET", "SYSTEM_TIME", "TABLES", "TEMP", "TEMPORARY", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TO", "TRY_CAST", "TUMBLE", "UNBOUNDED", "UP", "VARYING",
    "COST", "ESTIMATED_COST", "FORMATTED", "IMPLEMENTATION", "JSON_EXECUTION_PLAN", "PLAN_ADVICE", "MATCHED", "NOTHING", "SOURCE",
    "VIEW", "VIEWS", "VIRTUAL", "WATERMARK", "WEEK", "WHY", "WITHIN", "WITHOUT", "YEAR", "ZONE",
)  # fmt: skip
"""Words with a meaning in one clause only; they may name columns anywhere."""

KEYWORDS = frozenset(RESERVED | set(STATEMENTS) | set(OTHERS))
"""All words a shell may highlight and complete."""
