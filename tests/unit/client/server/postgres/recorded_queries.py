"""Queries that stock tools send when they connect and browse, from the public sources of each tool."""

# pgjdbc: PgDatabaseMetaData
JDBC = {
    "keywords": "select string_agg(word, ',') from pg_catalog.pg_get_keywords() "
    "where word <> ALL ('{a,abs,absolute,action}'::text[])",
    "schemas": "SELECT nspname AS TABLE_SCHEM, current_database() AS TABLE_CATALOG FROM pg_catalog.pg_namespace "
    " WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_' "
    " OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_' "
    " OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_')) "
    " ORDER BY TABLE_SCHEM",
    "tables": 'SELECT current_database() AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM", '
    "c.relname AS \"TABLE_NAME\", CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' "
    " WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind "
    "  WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   ELSE NULL   END  ELSE NULL  END "
    " WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE' "
    " WHEN 'i' THEN 'INDEX'  WHEN 'v' THEN 'VIEW'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END "
    ' ELSE NULL  END  AS "TABLE_TYPE", d.description AS "REMARKS", \'\' as "TYPE_CAT" '
    " FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c "
    " LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0 "
    " and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid "
    " AND (false  OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) "
    ' OR ( c.relkind = \'m\' ) ) ORDER BY "TABLE_TYPE","TABLE_SCHEM","TABLE_NAME"',
    "primary keys": "SELECT result.TABLE_CAT, result.TABLE_SCHEM, result.TABLE_NAME, result.COLUMN_NAME, "
    "result.KEY_SEQ, result.PK_NAME FROM (SELECT current_database() AS TABLE_CAT, n.nspname AS TABLE_SCHEM, "
    "  ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME, "
    "  (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME, "
    "  information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM "
    "FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) "
    "  JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) "
    "  JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid) "
    "  JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true  AND ct.relname = 't' "
    "AND i.indisprimary ) result where  result.A_ATTNUM = (result.KEYS).x "
    " ORDER BY result.table_name, result.pk_name, result.key_seq",
    "types": "SELECT t.typname,t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON "
    "(t.typnamespace = n.oid)  WHERE n.nspname  != 'pg_toast' AND typelem = 0 AND typrelid = 0",
}
# DBeaver: org.jkiss.dbeaver.ext.postgresql
DBEAVER = {
    "session": "SELECT current_schema(),session_user",
    "databases": "SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate "
    "OR db.datname = 'default_catalog' ORDER BY db.datname",
    "settings": "select * from pg_catalog.pg_settings where name='standard_conforming_strings'",
    "schemas": "SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN "
    "pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass "
    "ORDER BY nspname",
    "relations": "SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, "
    "pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c LEFT OUTER JOIN "
    "pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass "
    "WHERE c.relnamespace=(SELECT oid FROM pg_namespace WHERE nspname = 'default_database') "
    "AND c.relkind not in ('i','I','c')",
    "types": "SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, "
    "d.description FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem "
    "LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON t.oid=d.objoid WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') "
    "AND (et.typcategory IS NULL OR et.typcategory <> 'C')",
    "columns": "SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,"
    "dsc.description,dep.objid FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c "
    "ON (a.attrelid=c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid "
    "AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid "
    "AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid "
    "AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid "
    "WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.relname='t' ORDER BY a.attnum",
}
# Metabase: its PostgreSQL driver, for what its JDBC driver does not ask
METABASE = {
    "zone": "SELECT current_setting('TIMEZONE')",
    "version": "SELECT version()",
    "columns": 'SELECT c.column_name AS name, c.udt_name AS "database-type", '
    'c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema", '
    'c.table_name AS "table-name" FROM information_schema.columns c '
    "WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' ORDER BY 4, 5, 3",
    "materialized": "SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class WHERE relkind IN ('m')",
}
# Grafana: the query builder of its PostgreSQL data source
GRAFANA = {
    "version": "SELECT current_setting('server_version_num')::int/100",
    "tables": "SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '\"$user\"' "
    "THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array("
    "current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) "
    "as i, string_to_array(current_setting('search_path'),',') s) THEN quote_ident(table_name) "
    "ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS \"table\" "
    "FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema','pg_catalog')",
    "columns": 'SELECT quote_ident(column_name) AS "column", data_type AS "type" '
    "FROM information_schema.columns WHERE quote_ident(table_name) = 't'",
}
RECORDED = {
    f"{tool} {name}": sql
    for tool, queries in (("jdbc", JDBC), ("dbeaver", DBEAVER), ("metabase", METABASE), ("grafana", GRAFANA))
    for name, sql in queries.items()
}
