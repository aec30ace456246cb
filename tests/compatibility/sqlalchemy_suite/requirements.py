"""What the dialect claims before SQLAlchemy's suite: each property is True where the suite's default is not."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements


def _all(answer: Any, *names: str) -> dict[str, property]:
    return {name: property(lambda self: answer()) for name in names}


_CLAIMED = _all(
    exclusions.open,
    # statements
    "table_ddl_if_exists",
    "views",
    "temporary_views",
    "create_or_replace_view",
    "temp_table_names",
    "has_temp_table",
    # queries
    "table_value_constructor",
    "boolean_col_expressions",
    "nullsordering",
    "intersect",
    "except_",
    "window_functions",
    "window_range",
    # declared with a warning that nothing enforces them
    "foreign_keys",
    "ctes",
    "ctes_with_values",
    "tuple_in",
    "order_by_label_with_expression",
    "mod_operator_as_percent_sign",
    "fetch_first",
    "regexp_match",
    "regexp_replace",
    "supports_is_distinct_from",
    "supports_bitwise_or",
    "supports_bitwise_and",
    "supports_bitwise_not",
    "supports_bitwise_xor",
    "supports_bitwise_shift",
    "server_side_cursors",
    "insert_from_select",
    # names
    "unicode_ddl",
    "percent_schema_names",
    # values
    "datetime_interval",
    "datetime_literals",
    "datetime_timezone",
    "datetime_historic",
    "datetime_timezone_historic",
    "date_historic",
    "timestamp_microseconds",
    "array_type",
    "precision_numerics_enotation_small",
    "precision_numerics_many_significant_digits",
    "precision_numerics_retains_significant_digits",
    "infinity_floats",
    "unbounded_varchar",
    # the one isolation level
    "autocommit",
    "get_isolation_level_values",
    "dialect_level_isolation_level_param",
)

_NOT_CLAIMED = _all(
    exclusions.closed,
    # nothing is enforced, and nothing is indexed
    "self_referential_foreign_keys",
    "foreign_key_ddl",
    "foreign_key_constraint_reflection",
    "named_constraints",
    "implicitly_named_constraints",
    "unique_constraint_reflection",
    "index_reflection",
    "temp_table_reflect_indexes",
    "duplicate_key_raises_integrity_error",
    "recursive_fk_cascade",
    "indexes_with_ascdesc",
    "reflect_indexes_with_ascdesc",
    # the suite gives a materialized view an index, by a text of its own
    "materialized_views",
    # no UPDATE and no DELETE
    "update_where_target_in_subquery",
    # no numbers that the engine assigns, no default values
    "autoincrement_insert",
    "autoincrement_without_sequence",
    "empty_inserts",
    "empty_inserts_executemany",
    "implements_get_lastrowid",
    # all connections of an engine are one session
    "independent_connections",
    "independent_readonly_connections",
    # LIMIT and OFFSET take a constant or a parameter
    "sql_expression_limit_offset",
    # no collations
    "order_by_collation",
)

Requirements = type("Requirements", (SuiteRequirements,), {**_CLAIMED, **_NOT_CLAIMED})
