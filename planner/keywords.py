"""Words with a meaning of their own: reserved ones may name something only when quoted; the others are known for completion and hints."""

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
"""Words that are never taken for a name or an alias unless quoted."""

CLAUSES = (
    "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT",
    "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "ON", "USING",
)  # fmt: skip
"""Words that may open the next part of a query."""

STATEMENTS = (
    "SELECT", "WITH", "VALUES", "INSERT", "CREATE", "DROP", "ALTER", "EXECUTE", "BEGIN", "EXPLAIN", "SET", "RESET", "SHOW", "DESCRIBE", "DESC",
    "STOP", "CANCEL", "SUBSCRIBE", "VERIFY", "HELP", "QUIT", "EXIT",
)  # fmt: skip
"""Words a statement may begin with."""

OTHERS = (
    "ADD", "BEGIN", "CANCEL", "CHANGELOG_MODE", "COLUMNS", "COMMENT", "CONNECTORS", "CUMULATE", "DATE", "DESCRIPTOR", "DIV", "ENFORCED", "ESCAPE",
    "EXECUTE", "EXPLAIN", "EXTRACT", "FIRST", "FUNCTIONS", "HOP", "IF", "JOB", "JOBS", "JSON", "KEY", "LAST", "LOGICAL", "MERMAID", "METADATA",
    "NULLS", "OPTIMIZED", "PARTITION", "PARTITIONED", "PHYSICAL", "PRIMARY", "REPLACE", "RULES", "SESSION", "STATEMENT", "TABLES", "TEMPORARY",
    "CHANGES", "CLOSE", "EMIT", "EVERY", "FINAL", "LATE", "LATENESS", "ROWS", "ANALYZE", "NO", "OUTPUT", "WHY",
    "AFTER", "AGAINST", "BATCH", "MATERIALIZED", "MODIFY", "RENAME",
    "TIMESTAMP", "TIMESTAMP_LTZ", "TRY_CAST", "TUMBLE", "VIEW", "VIEWS", "VIRTUAL", "WATERMARK", "CUBE", "GROUPING", "ROLLUP", "SETS",
    "AFTER", "DEFINE", "FINAL", "MATCH", "MEASURES", "ONE", "PATTERN", "PER", "PERMUTE", "RUNNING", "SKIP", "SUBSET", "WITHIN",
)  # fmt: skip
"""Words that mean something in one place only and may name columns everywhere."""

KEYWORDS = frozenset(RESERVED | set(STATEMENTS) | set(OTHERS))
"""All words a shell may highlight and complete."""
