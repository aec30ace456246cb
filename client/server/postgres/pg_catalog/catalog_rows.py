"""The rows of PostgreSQL's system catalog for the tables, views and functions of ours."""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import dataclass, field

from penstock.catalog.catalog import Catalog
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable, MaterializedView, ObjectPath, View
from penstock.catalog.types import Array, DataType, Decimal, Timestamp, TimestampLtz, is_integer
from penstock.client.server.postgres.pg_catalog.catalog_functions import TYPE_NAMES
from penstock.client.server.postgres.wire_types import (
    WIRE_TYPES,
    element_of,
    modifier,
    wire_type,
)

Row = dict[str, object]

OWNER = 10
_PG_CATALOG, _INFORMATION_SCHEMA = 11, 13_000
_FIRST_OID = 16_384  # PostgreSQL's own objects are below it
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64, "FLOAT": 24, "DOUBLE": 53}
_CATEGORIES = {
    "bool": "B", "int2": "N", "int4": "N", "int8": "N", "float4": "N", "float8": "N", "numeric": "N",
    "oid": "N", "date": "D", "time": "D", "timestamp": "D", "timestamptz": "D", "interval": "T",
    "text": "S", "varchar": "S", "bpchar": "S", "name": "S",
}  # fmt: skip
_OTHER_TYPES = (
    (18, 1002, "char", 1), (19, 1003, "name", 64), (26, 1028, "oid", 4), (1042, 1014, "bpchar", -1),
    (1043, 1015, "varchar", -1), (2950, 2951, "uuid", 16), (3802, 3807, "jsonb", -1), (705, 0, "unknown", -2),
    (2205, 2210, "regclass", 4), (2206, 2211, "regtype", 4), (24, 1008, "regproc", 4), (2278, 0, "void", 4),
)  # fmt: skip
"""Types that no column of ours has, and that clients look for: OID, that of the array, name, size."""


SYSTEM_CLASSES = {
    "pg_class": 1259, "pg_type": 1247, "pg_proc": 1255, "pg_attribute": 1249, "pg_namespace": 2615,
    "pg_constraint": 2606, "pg_index": 2610, "pg_database": 1262, "pg_trigger": 2620, "pg_rewrite": 2618,
    "pg_language": 2612, "pg_operator": 2617, "pg_opclass": 2616, "pg_cast": 2605, "pg_am": 2601,
}  # fmt: skip
"""The OIDs of PostgreSQL's own tables, by which comments and dependencies name them."""


def object_oid(name: str) -> int:
    """Return the OID of an object: the same in every session, whatever else there is."""
    return _FIRST_OID + (zlib.crc32(name.lower().encode()) & 0x3FFFFFFF)


@dataclass
class CatalogRows:
    """The rows of each table by its name, of one catalog as one session sees it."""

    database: str
    user: str
    tables: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def add(self, table: str, **row: object) -> None:
        """Add a row; columns that are not named are NULL."""
        self.tables[table].append(row)


def catalog_rows(catalog: Catalog, user: str) -> CatalogRows:
    """Return the rows of the catalog that is current, with all its databases as schemas."""
    current = catalog.current.catalog
    rows = CatalogRows(current, user)
    _add_server(rows, sorted(catalog.databases.by_catalog) + sorted(catalog.databases.external))
    _add_types(rows)
    for database in catalog.databases.of(current):
        path = ObjectPath(current, database)
        oid = object_oid(f"schema {path}")
        _add_schema(rows, oid, database)
        # a temporary relation hides a permanent one
        visible = {relation.name.lower(): relation for relation in catalog.relations_of(path)}
        for relation in visible.values():
            _add_relation(rows, relation, oid, database)
    default = object_oid(f"schema {catalog.current}")
    for entry in catalog.functions.entries():
        rows.add(
            "pg_proc",
            oid=object_oid(f"function {entry.name}"),
            proname=entry.name,
            pronamespace=default,
            proowner=OWNER,
            prolang=12,
            prokind="f",
            provolatile="v",
            proretset=False,
            proisstrict=False,
            prosecdef=False,
            pronargs=0,
            prorettype=25,
            proargnames=[],
            prosrc=None,
        )
    return rows


def _add_server(rows: CatalogRows, catalogs: list[str]) -> None:
    rows.add(
        "pg_roles",
        oid=OWNER,
        rolname=rows.user,
        rolsuper=False,
        rolinherit=True,
        rolcreaterole=False,
        rolcreatedb=False,
        rolcanlogin=True,
        rolreplication=False,
        rolconnlimit=-1,
        rolbypassrls=False,
    )
    for name in catalogs:
        rows.add(
            "pg_database",
            oid=object_oid(f"database {name}"),
            datname=name,
            datdba=OWNER,
            encoding=6,
            datlocprovider="c",
            datistemplate=False,
            datallowconn=True,
            datconnlimit=-1,
            dattablespace=1663,
            datcollate="C",
            datctype="C",
        )
    rows.add("pg_am", oid=2, amname="heap", amhandler="heap_tableam_handler", amtype="t")
    rows.add("pg_am", oid=403, amname="btree", amhandler="bthandler", amtype="i")
    rows.add("pg_tablespace", oid=1663, spcname="pg_default", spcowner=OWNER)
    rows.add("pg_language", oid=12, lanname="internal", lanowner=OWNER, lanispl=False, lanpltrusted=False)
    rows.add("pg_collation", oid=100, collname="default", collnamespace=_PG_CATALOG, collprovider="d")
    _add_schema(rows, _PG_CATALOG, "pg_catalog")
    _add_schema(rows, _INFORMATION_SCHEMA, "information_schema")


def _add_schema(rows: CatalogRows, oid: int, name: str) -> None:
    rows.add("pg_namespace", oid=oid, nspname=name, nspowner=OWNER)
    rows.add("schemata", catalog_name=rows.database, schema_name=name, schema_owner=rows.user)


def _add_types(rows: CatalogRows) -> None:
    known = [(wire.oid, wire.array_oid, wire.name, wire.size) for wire in WIRE_TYPES] + list(_OTHER_TYPES)
    for oid, array_oid, name, size in known:
        common = {
            "typnamespace": _PG_CATALOG,
            "typowner": OWNER,
            "typtype": "p" if name in ("void", "unknown") else "b",
            "typispreferred": name in ("text", "bool", "float8", "timestamptz", "interval"),
            "typisdefined": True,
            "typdelim": ",",
            "typrelid": 0,
            "typnotnull": False,
            "typbasetype": 0,
            "typtypmod": -1,
            "typndims": 0,
            "typcollation": 100 if name in ("text", "varchar", "bpchar") else 0,
            "typinput": f"{name}in",
            "typoutput": f"{name}out",
            "typreceive": f"{name}recv",
            "typsend": f"{name}send",
        }
        category = _CATEGORIES.get(name, "U")
        own = {"typlen": size, "typbyval": 0 < size <= 8, "typcategory": category, "typelem": 0}
        rows.add("pg_type", **common, **own, oid=oid, typname=name, typarray=array_oid)
        if array_oid:
            of = {"typlen": -1, "typbyval": False, "typcategory": "A", "typelem": oid, "typarray": 0}
            array = {**common, "typinput": "array_in", "typoutput": "array_out", "typtype": "b"}
            rows.add("pg_type", **array, **of, oid=array_oid, typname=f"_{name}")


def _add_relation(rows: CatalogRows, relation: CatalogTable | View, schema: int, database: str) -> None:
    name, oid = relation.name.rpartition(".")[2], object_oid(relation.name)
    is_view, is_materialized = isinstance(relation, View), isinstance(relation, MaterializedView)
    key = () if isinstance(relation, View) else relation.primary_key
    names = [column.name for column in relation.schema]
    _add_class(
        rows, oid, name, schema, "v" if is_view else "m" if is_materialized else "r", len(names), bool(key)
    )
    for number, column in enumerate(relation.schema, 1):
        _add_column(rows, oid, number, column)
        _add_information_column(rows, database, name, number, column)
    kind = "VIEW" if is_view else "BASE TABLE"
    place = {"table_catalog": rows.database, "table_schema": database, "table_name": name}
    # PostgreSQL's information_schema has no materialized views: tools find ours as tables
    writable = "NO" if is_view or is_materialized else "YES"
    rows.add("tables", **place, table_type=kind, is_insertable_into=writable, is_typed="NO")
    if isinstance(relation, View | MaterializedView):
        rows.add("views", **place, view_definition=relation.query, is_updatable="NO", is_insertable_into="NO")
    if isinstance(relation, View):
        rows.add(
            "pg_views", schemaname=database, viewname=name, viewowner=rows.user, definition=relation.query
        )
    elif isinstance(relation, MaterializedView):
        rows.add(
            "pg_matviews",
            schemaname=database,
            matviewname=name,
            matviewowner=rows.user,
            hasindexes=bool(key),
            ispopulated=True,
            definition=relation.query,
        )
    else:
        rows.add("pg_tables", schemaname=database, tablename=name, tableowner=rows.user, hasindexes=bool(key))
    if key:
        _add_key(rows, name, oid, schema, database, [names.index(column) + 1 for column in key], key)
    if comment := getattr(relation, "comment", None):
        rows.add("pg_description", objoid=oid, classoid=1259, objsubid=0, description=comment)


def _add_class(
    rows: CatalogRows, oid: int, name: str, schema: int, kind: str, columns: int, has_index: bool
) -> None:
    rows.add(
        "pg_class",
        oid=oid,
        relname=name,
        relnamespace=schema,
        reltype=0,
        reloftype=0,
        relowner=OWNER,
        relam=403 if kind == "i" else 0 if kind == "v" else 2,
        reltablespace=0,
        relpages=0,
        reltuples=-1.0,
        reltoastrelid=0,
        relhasindex=has_index,
        relisshared=False,
        relpersistence="p",
        relkind=kind,
        relnatts=columns,
        relchecks=0,
        relhasoids=False,
        relhasrules=kind == "v",
        relhastriggers=False,
        relhassubclass=False,
        relrowsecurity=False,
        relforcerowsecurity=False,
        relispopulated=True,
        relreplident="d",
        relispartition=False,
    )


def _add_column(rows: CatalogRows, table: int, number: int, column: Field) -> None:
    wire = wire_type(column.type)
    rows.add(
        "pg_attribute",
        attrelid=table,
        attname=column.name,
        atttypid=wire.oid,
        attstattarget=-1,
        attlen=wire.size,
        attnum=number,
        attndims=1 if element_of(column.type) else 0,
        atttypmod=modifier(column.type),
        attbyval=0 < wire.size <= 8,
        attalign="i",
        attstorage="p" if wire.size > 0 else "x",
        attcompression="",
        attnotnull=not column.nullable,
        atthasdef=False,
        atthasmissing=False,
        attidentity="",
        attgenerated="",
        attisdropped=False,
        attislocal=True,
        attinhcount=0,
        attcollation=100 if wire.name == "text" else 0,
    )


def _add_information_column(rows: CatalogRows, database: str, table: str, number: int, column: Field) -> None:
    kind, wire = column.type, wire_type(column.type)
    rows.add(
        "columns",
        table_catalog=rows.database,
        table_schema=database,
        table_name=table,
        column_name=column.name,
        ordinal_position=number,
        is_nullable="YES" if column.nullable else "NO",
        data_type="ARRAY" if element_of(kind) else TYPE_NAMES[wire.oid].strip('"'),
        numeric_precision=_precision(kind),
        numeric_precision_radix=10 if isinstance(kind, Decimal) else 2 if str(kind) in _BITS else None,
        numeric_scale=kind.scale if isinstance(kind, Decimal) else 0 if is_integer(kind) else None,
        datetime_precision=kind.precision if isinstance(kind, Timestamp | TimestampLtz) else None,
        udt_catalog=rows.database,
        udt_schema="pg_catalog",
        udt_name=wire.name,
        dtd_identifier=str(number),
        is_identity="NO",
        is_generated="NEVER",
        is_updatable="NO",
    )


def _precision(kind: DataType) -> int | None:
    return (
        kind.precision
        if isinstance(kind, Decimal)
        else None
        if isinstance(kind, Array)
        else _BITS.get(str(kind))
    )


def _add_key(
    rows: CatalogRows,
    table: str,
    oid: int,
    schema: int,
    database: str,
    numbers: list[int],
    key: tuple[str, ...],
) -> None:
    name = f"{table}_pkey"
    index = object_oid(f"index {database}.{name}")
    _add_class(rows, index, name, schema, "i", len(key), False)
    rows.add(
        "pg_constraint",
        oid=object_oid(f"constraint {database}.{name}"),
        conname=name,
        connamespace=schema,
        contype="p",
        condeferrable=False,
        condeferred=False,
        convalidated=True,
        conrelid=oid,
        contypid=0,
        conindid=index,
        conparentid=0,
        confrelid=0,
        conislocal=True,
        coninhcount=0,
        connoinherit=True,
        conkey=numbers,
    )
    rows.add(
        "pg_index",
        indexrelid=index,
        indrelid=oid,
        indnatts=len(key),
        indnkeyatts=len(key),
        indisunique=True,
        indnullsnotdistinct=False,
        indisprimary=True,
        indisexclusion=False,
        indimmediate=True,
        indisclustered=False,
        indisvalid=True,
        indcheckxmin=False,
        indisready=True,
        indislive=True,
        indisreplident=False,
        indkey=numbers,
        indcollation=[0] * len(key),
        indclass=[0] * len(key),
        indoption=[0] * len(key),
    )
    columns = ", ".join(key)
    definition = f"CREATE UNIQUE INDEX {name} ON {database}.{table} USING btree ({columns})"
    rows.add("pg_indexes", schemaname=database, tablename=table, indexname=name, indexdef=definition)
    place = {"constraint_catalog": rows.database, "constraint_schema": database, "constraint_name": name}
    of = {"table_catalog": rows.database, "table_schema": database, "table_name": table}
    rows.add(
        "table_constraints",
        **place,
        **of,
        constraint_type="PRIMARY KEY",
        is_deferrable="NO",
        initially_deferred="NO",
        enforced="NO",
    )
    for number, column in enumerate(key, 1):
        rows.add("key_column_usage", **place, **of, column_name=column, ordinal_position=number)


def visible_relations(rows: CatalogRows, database: str) -> list[int]:
    """Return the OIDs of the relations that are found without their schema."""
    schemas = {
        row["oid"] for row in rows.tables["pg_namespace"] if row["nspname"] in (database, "pg_catalog")
    }
    return [int(str(row["oid"])) for row in rows.tables["pg_class"] if row["relnamespace"] in schemas]


def lookups(rows: CatalogRows) -> dict[str, dict[object, object]]:
    """Return what the functions of the catalog look up: a map for each."""
    tables = rows.tables
    schemas = {row["oid"]: row["nspname"] for row in tables["pg_namespace"]}
    names: dict[object, object] = {row["oid"]: row["relname"] for row in tables["pg_class"]}
    oids: dict[object, object] = {name: oid for oid, name in names.items()}
    for name, oid in SYSTEM_CLASSES.items():
        oids |= {name: oid, f"pg_catalog.{name}": oid}
    oids |= {f"{schemas[row['relnamespace']]}.{row['relname']}": row["oid"] for row in tables["pg_class"]}
    types: dict[object, object] = {}
    for row in tables["pg_type"]:
        element = row["typelem"] if row["typcategory"] == "A" else None
        shown = TYPE_NAMES.get(int(str(element or row["oid"])), str(row["typname"]).lstrip("_"))
        types[row["oid"]] = f"{shown}[]" if element else shown
    type_oids: dict[object, object] = {name: oid for oid, name in types.items()}
    type_oids |= {row["typname"]: row["oid"] for row in tables["pg_type"]}
    by_name = {row["indexname"]: row for row in tables["pg_indexes"]}
    keys = {row["conindid"]: row for row in tables["pg_constraint"]}
    columns = {(row["attrelid"], row["attnum"]): row["attname"] for row in tables["pg_attribute"]}
    index_columns: dict[object, object] = {
        row["indexrelid"]: [columns[row["indrelid"], number] for number in row["indkey"]]  # type: ignore[attr-defined]
        for row in tables["pg_index"]
    }
    return {
        "class_names": names,
        "classes": oids,
        "types": types,
        "type_oids": type_oids,
        "index_columns": index_columns,
        "constraints": {
            keys[index]["oid"]: f"PRIMARY KEY ({', '.join(map(str, parts))})"  # type: ignore[arg-type,call-overload]
            for index, parts in index_columns.items()
        },
        "indexes": {index: by_name[names[index]]["indexdef"] for index in index_columns},
        "views": {oids[row["table_name"]]: row["view_definition"] for row in tables["views"]},
        "comments": {row["objoid"]: row["description"] for row in tables["pg_description"]},
    }
