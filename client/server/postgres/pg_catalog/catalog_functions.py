"""The functions of PostgreSQL's system catalog, as macros of DuckDB over variables of a session."""

from __future__ import annotations

TYPE_NAMES: dict[int, str] = {
    16: "boolean", 17: "bytea", 18: '"char"', 19: "name", 20: "bigint", 21: "smallint", 23: "integer",
    25: "text", 26: "oid", 114: "json", 700: "real", 701: "double precision", 1042: "character",
    1043: "character varying", 1082: "date", 1083: "time without time zone",
    1114: "timestamp without time zone", 1184: "timestamp with time zone", 1186: "interval", 1700: "numeric",
    2950: "uuid", 3802: "jsonb",
}  # fmt: skip


def _looked_up(variable: str) -> str:
    """Return the entry of an object in a variable. The names of a subquery would hide those of the argument,
    such as oid in pg_table_is_visible(oid).
    """
    return f"map_extract_value(getvariable('{variable}'), id::BIGINT)"


# by name: parameters and body, one entry for each number of parameters
MACROS: dict[str, list[str]] = {
    "version": ["() AS getvariable('version')"],
    "current_database": ["() AS getvariable('database')"],
    "current_schema": ["() AS getvariable('schema')"],
    "current_schemas": [
        "(implicit) AS CASE WHEN implicit THEN ['pg_catalog', getvariable('schema')] "
        "ELSE [getvariable('schema')] END"
    ],
    "current_setting": [
        "(key) AS map_extract_value(getvariable('settings'), lower(key))",
        "(key, missing) AS map_extract_value(getvariable('settings'), lower(key))",
    ],
    "set_config": ["(key, val, is_local) AS val"],
    "pg_backend_pid": ["() AS getvariable('pid')"],
    "pg_is_in_recovery": ["() AS false"],
    "pg_my_temp_schema": ["() AS 0"],
    "pg_postmaster_start_time": ["() AS TIMESTAMPTZ '1970-01-01 00:00:00+00'"],
    "txid_current": ["() AS 1"],
    "inet_server_addr": ["() AS NULL::VARCHAR"],
    "inet_server_port": ["() AS NULL::INTEGER"],
    "inet_client_addr": ["() AS NULL::VARCHAR"],
    "pg_table_is_visible": ["(id) AS coalesce(list_contains(getvariable('visible'), id::BIGINT), false)"],
    "pg_type_is_visible": ["(id) AS true"],
    "pg_function_is_visible": ["(id) AS true"],
    "pg_collation_is_visible": ["(id) AS true"],
    "pg_opclass_is_visible": ["(id) AS true"],
    "pg_operator_is_visible": ["(id) AS true"],
    "pg_statistics_obj_is_visible": ["(id) AS true"],
    "pg_get_userbyid": ["(id) AS getvariable('user')"],
    "pg_get_expr": ["(node, rel) AS node::VARCHAR", "(node, rel, pretty) AS node::VARCHAR"],
    "pg_get_constraintdef": [
        f"(id) AS {_looked_up('constraints')}",
        f"(id, pretty) AS {_looked_up('constraints')}",
    ],
    "pg_get_indexdef": [
        f"(id) AS {_looked_up('indexes')}",
        f"(id, col, pretty) AS CASE col WHEN 0 THEN {_looked_up('indexes')} "
        f"ELSE {_looked_up('index_columns')}[col] END",
    ],
    "pg_get_viewdef": [f"(id) AS {_looked_up('views')}", f"(id, pretty) AS {_looked_up('views')}"],
    "pg_get_function_result": ["(id) AS NULL::VARCHAR"],
    "pg_get_function_arguments": ["(id) AS ''"],
    "pg_get_function_identity_arguments": ["(id) AS ''"],
    "pg_get_functiondef": ["(id) AS NULL::VARCHAR"],
    "pg_get_triggerdef": ["(id) AS NULL::VARCHAR", "(id, pretty) AS NULL::VARCHAR"],
    "pg_get_ruledef": ["(id) AS NULL::VARCHAR", "(id, pretty) AS NULL::VARCHAR"],
    "pg_get_partkeydef": ["(id) AS NULL::VARCHAR"],
    "pg_get_partition_constraintdef": ["(id) AS NULL::VARCHAR"],
    "pg_get_statisticsobjdef_columns": ["(id) AS NULL::VARCHAR"],
    "pg_get_serial_sequence": ["(tab, col) AS NULL::VARCHAR"],
    "pg_relation_is_publishable": ["(id) AS false"],
    "pg_partition_ancestors": ["(id) AS NULL::BIGINT"],
    "obj_description": [f"(id) AS {_looked_up('comments')}", f"(id, class) AS {_looked_up('comments')}"],
    "col_description": ["(id, num) AS NULL::VARCHAR"],
    "shobj_description": ["(id, class) AS NULL::VARCHAR"],
    "pg_encoding_to_char": ["(encoding) AS 'UTF8'"],
    "pg_char_to_encoding": ["(name) AS 6"],
    "getdatabaseencoding": ["() AS 'UTF8'"],
    "pg_client_encoding": ["() AS 'UTF8'"],
    **{
        f"has_{what}_privilege": ["(a, b) AS true", "(a, b, c) AS true"]
        for what in ("table", "schema", "database", "any_column", "function", "sequence", "language")
    },
    "has_column_privilege": ["(a, b, c) AS true", "(a, b, c, d) AS true"],
    "pg_has_role": ["(a, b) AS true", "(a, b, c) AS true"],
    "pg_relation_size": ["(id) AS 0", "(id, fork) AS 0"],
    "pg_table_size": ["(id) AS 0"],
    "pg_indexes_size": ["(id) AS 0"],
    "pg_total_relation_size": ["(id) AS 0"],
    "pg_database_size": ["(id) AS 0"],
    "pg_size_pretty": ["(bytes) AS bytes || ' bytes'"],
    "pg_tablespace_location": ["(id) AS ''"],
    "pg_stat_get_numscans": ["(id) AS 0"],
    "pg_stat_get_live_tuples": ["(id) AS 0"],
    "pg_get_keywords": ["() AS TABLE SELECT ''::VARCHAR AS word, 'U' AS catcode, '' AS catdesc WHERE false"],
    "quote_ident": [
        "(name) AS CASE WHEN regexp_full_match(name, '[a-z_][a-z0-9_$]*') THEN name "
        "ELSE '\"' || replace(name, '\"', '\"\"') || '\"' END"
    ],
    "to_regclass": ["(name) AS pgc.regclass_oid(name)"],
    "to_regtype": ["(name) AS pgc.regtype_oid(name)"],
    "array_upper": ["(list, dimension) AS nullif(len(list), 0)"],
    "array_lower": ["(list, dimension) AS CASE WHEN len(list) > 0 THEN 1 END"],
    "_pg_expandarray": [
        "(list) AS unnest(list_transform(list, lambda x, i: {'x': x, 'n': i}))"
    ],
    "format_type": [
        "(id, mod) AS CASE "
        "WHEN id = 1700 AND mod >= 4 "
        "THEN 'numeric(' || ((mod - 4) >> 16) || ',' || ((mod - 4) & 65535) || ')' "
        "WHEN id = 1114 AND mod >= 0 THEN 'timestamp(' || mod || ') without time zone' "
        "WHEN id = 1184 AND mod >= 0 THEN 'timestamp(' || mod || ') with time zone' "
        "ELSE pgc.type_name(id) END"
    ],
}  # fmt: skip
# made before the others, which call them
_FIRST: dict[str, str] = {
    "type_name": f"(id) AS {_looked_up('types')}",
    "regclass_oid": "(name) AS coalesce(try_cast(name AS BIGINT), map_extract_value(getvariable('classes'), "
    "replace(name, '\"', '')))",
    "regclass_name": f"(id) AS coalesce({_looked_up('class_names')}, id::VARCHAR)",
    "regtype_oid": "(name) AS coalesce(try_cast(name AS BIGINT), "
    "map_extract_value(getvariable('type_oids'), lower(name)))",
    "regtype_name": "(id) AS pgc.type_name(id)",
}
NAMES = frozenset((*MACROS, *_FIRST))


def definitions() -> list[str]:
    """Return the statements that create every macro, in the schema pgc."""
    made = [f"CREATE MACRO pgc.{name} {body}" for name, body in _FIRST.items()]
    late = [name for name in MACROS if name == "format_type"]
    for name in (*(name for name in MACROS if name not in late), *late):
        made.append(f"CREATE MACRO pgc.{name} {', '.join(MACROS[name])}")
    return made
