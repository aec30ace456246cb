"""Names of functions, types and connectors that other engines have: what to write in their place."""

from __future__ import annotations

_FUNCTIONS = {
    "getdate sysdate sysdatetime utcnow": "write now()",
    "curtime current_time": "write date_format(now(), 'HH:mm:ss')",
    "format_date format_timestamp": "write date_format(time, 'yyyy-MM-dd HH:mm')",
    "parse_date parse_timestamp str_to_date todate": "write to_timestamp(text, 'dd.MM.yyyy')",
    "datetime timestamp": "write to_timestamp(text), or TIMESTAMP '2024-01-01 00:00:00'",
    "timestamp_diff timediff": "write timestampdiff(SECOND, a, b)",
    "datepart datename": "write EXTRACT(HOUR FROM time), or date_format(time, 'EEEE')",
    "to_unixtime unixepoch epoch": "write unix_timestamp(time)",
    "list array_aggregate": "write array_agg(x)",
    "group_concat": "write string_agg(x, ', ')",
    "uniq": "write approx_count_distinct(x)",
    "median_approx approx_quantile": "write percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    "sum_if sumif": "write SUM(x) FILTER (WHERE condition)",
    "to_number tonumber toint64 int": "write CAST(x AS DECIMAL(10, 2)), or TRY_CAST",
    "multiset": "write ARRAY[1, 2, 3]",
    "convert safe_cast try_convert": "write CAST(x AS INT), or TRY_CAST for NULL where it cannot be read",
    "tostring str": "write CAST(x AS STRING)",
    "match": "write regexp_like(text, pattern), regexp_match, or regexp_extract_all",
    "format sprintf": "write format_string('%s', x)",
    "isfinite": "write NOT isnan(x)",
    "list_contains array_has": "write array_contains(array, x)",
    "list_aggregate list_string_agg": "write array_join(array, ', ')",
    "string_to_array string_split": "write split(text, ',')",
    "list_value": "write ARRAY[1, 2, 3]",
    "list_transform list_apply array_transform array_apply": "write transform(array, x -> x + 1)",
    "list_filter array_filter": "write filter(array, x -> x > 1)",
    "list_reduce array_reduce": "write reduce(array, 0, (sum, x) -> sum + x)",
    "list_sort": "write sort_array(array)",
    "list_reverse_sort": "write sort_array(array, FALSE)",
    "regexp_split_to_array string_split_regex": "write split(text, ' +')",
    "struct_pack object_construct": "write named_struct('a', 1)",
    "json_extract json_extract_string json_extract_scalar": "write json_value(text, '$.a')",
    "json": "write parse_json(text), a VARIANT",
    "object_of": "write CAST(named_struct('a', 1) AS VARIANT)",
    "raise_error assert_true": "write such rows to a table of their own by WHERE",
    "from_csv to_csv schema_of_csv": "write split(text, ','), and CAST its elements",
    "sentences": "write split(text, '[.!?] *')",
    "json_type": "write schema_of_variant(parse_json(text))",
    "json_length json_keys": "write json_array_length(text), or json_object_keys(text)",
    "uniform randn monotonically_increasing_id": "let the source add such a value to each row",
    "count_min_sketch": "write approx_count_distinct(x), or histogram(x) for the count of each value",
    "reflect java_method aes_encrypt aes_decrypt xpath xpath_string xpath_int": "write it in Python: "
    "CREATE FUNCTION f AS 'module.f' LANGUAGE PYTHON",
    "mz_now clock_timestamp": "write current_timestamp()",
    "jsonb_build_object json_build_object": "write json_object('a' VALUE x)",
    "jsonb_agg json_agg": "write json_arrayagg(x)",
    "jsonb_typeof json_typeof": "write schema_of_variant(parse_json(text))",
    "latest_by_offset": "write last_value(x)",
    "earliest_by_offset": "write first_value(x)",
    "columns": "COLUMNS(..) is for a SELECT list only: write the columns out here",
    "count_distinct": "write COUNT(DISTINCT x)",
    "topk topkdistinct": "write WHERE n <= 3 above ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) AS n",
    "as_value": "leave it out: write the column",
    "extractjsonfield": "write json_value(text, '$.a')",
    "timestamptostring formattimestamp": "write date_format(time, 'yyyy-MM-dd HH:mm')",
    "stringtotimestamp parsetimestamp": "write to_timestamp(text, 'yyyy-MM-dd HH:mm')",
    "top": "write LIMIT n at the end of the query",
    "watermark source_watermark": "write WATERMARK FOR ts AS an expression in CREATE TABLE",
    "pg_typeof": "write typeof(x)",
    "version": "penstock --version prints it",
}

_TABLE_FUNCTIONS = {
    "read_excel read_xlsx st_read": "save the sheet as csv: FROM 'orders.csv'",
    "read_csv_auto csv_scan": "write read_csv('orders.csv')",
    "parquet_scan read_orc": "write read_parquet('orders.parquet')",
    "read_json_auto read_ndjson json_scan": "write read_json('orders.json')",
    "glob read_text": "a pattern names files: FROM 'logs/*.csv'",
    "flatten json_array_elements": "write CROSS JOIN UNNEST(array) AS t (x)",
    "ml_predict vector_search": "write it in Python: CREATE FUNCTION f AS 'module.f' LANGUAGE PYTHON",
}

_TYPES = {
    "DATETIME2 SMALLDATETIME TIMESTAMP_S TIMESTAMP_MS": "write TIMESTAMP(3)",
    "TIMESTAMP_TZ DATETIMEOFFSET": "write TIMESTAMP_LTZ(3)",
    "JSON JSONB OBJECT": "write VARIANT, made by parse_json(text); or STRING, or ROW<a INT>",
    "SERIAL BIGSERIAL UBIGINT UINT64 HUGEINT": "write BIGINT",
    "MEDIUMINT UINT32 UINTEGER": "write INT, or BIGINT for larger values",
    "UINT16 USMALLINT": "write SMALLINT",
    "UINT8 UTINYINT": "write TINYINT, or SMALLINT for larger values",
    "NUMBER MONEY SMALLMONEY BIGNUMERIC": "write DECIMAL(10, 2)",
    "UUID UNIQUEIDENTIFIER ENUM NVARCHAR VARCHAR2 NCHAR": "write STRING",
    "NTEXT LONGTEXT MEDIUMTEXT TINYTEXT CLOB STR CHARACTER OBJECTID": "write STRING",
    "IMAGE": "write BYTES",
    "BIT BOOL8": "write BOOLEAN",
    "LIST VECTOR": "write ARRAY<INT>",
    "OBJECT_MAP DICT HSTORE": "write MAP<STRING, STRING>",
}

_COLUMNS = {
    "stream": "leave STREAM out: a query over a stream is one",
    "multiset": "write ARRAY[1, 2, 3]",
    "second minute hour day week month quarter year": "a unit is a text and first: date_trunc('MONTH', ts)",
    "integer int bigint smallint tinyint double float varchar string boolean": "write CAST(x AS INT)",
}

_CONNECTORS = {
    "file files fs s3 hdfs gcs local hive": "write 'connector' = 'filesystem' and 'path' = '..'",
    "jdbc": "write 'connector' = 'postgres' and 'url' = '..', or 'sqlite' or 'duckdb' and 'path' = '..', "
    "and 'table-name' = '..'",
    "mysql oracle sqlserver": "connector 'spark' reads what Spark's JDBC reads",
    "mysql-cdc oracle-cdc sqlserver-cdc mongodb-cdc tidb-cdc": "write 'connector' = 'kafka', 'topic' = '..', "
    "'properties.bootstrap.servers' = '..' and 'format' = 'debezium-json'; postgres-cdc reads PostgreSQL",
    "elasticsearch elasticsearch-6 elasticsearch-7 elasticsearch-8 opensearch hbase-2.2 mongodb": "write "
    "'connector' = 'http', 'url' = '..' and 'format' = 'json', or a connector in Python",
    "hudi paimon": "write 'connector' = 'iceberg' or 'delta'",
    "pulsar kinesis": "there is kafka; socket for a TCP server",
    "stdin stdout console": "write 'connector' = 'filesystem', 'path' = '-', or 'print' to show rows",
    "values memory inline": "write FROM (VALUES (1, 'a')) AS t (id, name)",
    "null none dev-null": "write 'connector' = 'blackhole'",
    "random generator faker sequence rowgen": "write 'connector' = 'datagen'",
}

_OPTIONS = {
    "sink.partition-commit.trigger sink.partition-commit.delay sink.partition-commit.policy.kind "
    "sink.partition-commit.policy.class sink.partition-commit.watermark-time-zone "
    "partition.time-extractor.kind partition.time-extractor.timestamp-pattern": "leave it out: files are "
    "published as a checkpoint is complete",
    "json.ignore-parse-errors csv.ignore-parse-errors ignore-parse-errors": "write 'on-error' = 'skip'",
    "json.fail-on-missing-field": "leave it out: a field that is missing is NULL",
    "json.encode.decimal-as-plain-number json.map-null-key.mode": "leave it out",
}


def _by_name(hints: dict[str, str]) -> dict[str, str]:
    return {name: hint for names, hint in hints.items() for name in names.split()}


FUNCTION_HINTS = _by_name(_FUNCTIONS)
"""Hints by the names of functions, in lower case."""
TABLE_FUNCTION_HINTS = _by_name(_TABLE_FUNCTIONS)
"""Hints by the names of table functions, in lower case."""
COLUMN_HINTS = _by_name(_COLUMNS)
"""Hints by words that are read as columns, in lower case."""
TYPE_HINTS = _by_name(_TYPES)
"""Hints by the names of types, in upper case."""
CONNECTOR_HINTS = _by_name(_CONNECTORS)
"""Hints by the names of connectors, in lower case."""
for _format in ("csv", "json", "parquet", "arrow"):
    CONNECTOR_HINTS[_format] = f"write 'connector' = 'filesystem', 'format' = '{_format}' and 'path' = '..'"
OPTION_HINTS = _by_name(_OPTIONS)
"""Hints by the keys of options."""
