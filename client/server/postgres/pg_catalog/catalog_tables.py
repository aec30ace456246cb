"""The tables of PostgreSQL's system catalog: columns of each, and those that are always empty here."""

from __future__ import annotations

# columns by table; "name:type" where a type is none of the default of its name (see ``column_type``)
TABLES: dict[str, str] = {
    "pg_namespace": "oid nspname nspowner nspacl",
    "pg_class": "oid relname relnamespace reltype reloftype relowner relam relfilenode reltablespace "
    "relpages reltuples:DOUBLE relallvisible reltoastrelid relhasindex:BOOLEAN "
    "relisshared:BOOLEAN relpersistence relkind relnatts relchecks relhasoids:BOOLEAN "
    "relhasrules:BOOLEAN relhastriggers:BOOLEAN relhassubclass:BOOLEAN "
    "relrowsecurity:BOOLEAN relforcerowsecurity:BOOLEAN relispopulated:BOOLEAN "
    "relreplident relispartition:BOOLEAN relrewrite relfrozenxid relminmxid relacl "
    "reloptions:VARCHAR[] relpartbound",
    "pg_attribute": "attrelid attname atttypid attstattarget attlen attnum attndims attcacheoff atttypmod "
    "attbyval:BOOLEAN attalign attstorage attcompression attnotnull:BOOLEAN "
    "atthasdef:BOOLEAN atthasmissing:BOOLEAN attidentity attgenerated "
    "attisdropped:BOOLEAN attislocal:BOOLEAN attinhcount attcollation attacl "
    "attoptions:VARCHAR[] attfdwoptions:VARCHAR[] attmissingval",
    "pg_type": "oid typname typnamespace typowner typlen typbyval:BOOLEAN typtype typcategory "
    "typispreferred:BOOLEAN typisdefined:BOOLEAN typdelim typrelid typsubscript typelem "
    "typarray typinput typoutput typreceive typsend typmodin typmodout typanalyze "
    "typalign typstorage typnotnull:BOOLEAN typbasetype typtypmod typndims typcollation "
    "typdefaultbin typdefault typacl",
    "pg_constraint": "oid conname connamespace contype condeferrable:BOOLEAN condeferred:BOOLEAN "
    "convalidated:BOOLEAN conrelid contypid conindid conparentid confrelid confupdtype "
    "confdeltype confmatchtype conislocal:BOOLEAN coninhcount connoinherit:BOOLEAN "
    "conkey:BIGINT[] confkey:BIGINT[] conpfeqop:BIGINT[] conppeqop:BIGINT[] "
    "conffeqop:BIGINT[] conexclop:BIGINT[] conbin",
    "pg_index": "indexrelid indrelid indnatts indnkeyatts indisunique:BOOLEAN "
    "indnullsnotdistinct:BOOLEAN indisprimary:BOOLEAN indisexclusion:BOOLEAN "
    "indimmediate:BOOLEAN indisclustered:BOOLEAN indisvalid:BOOLEAN indcheckxmin:BOOLEAN "
    "indisready:BOOLEAN indislive:BOOLEAN indisreplident:BOOLEAN indkey:BIGINT[] "
    "indcollation:BIGINT[] indclass:BIGINT[] indoption:BIGINT[] indexprs indpred",
    "pg_database": "oid datname datdba encoding datlocprovider datistemplate:BOOLEAN "
    "datallowconn:BOOLEAN datconnlimit datfrozenxid datminmxid dattablespace datcollate "
    "datctype daticulocale datcollversion datacl datlastsysoid",
    "pg_roles": "oid rolname rolsuper:BOOLEAN rolinherit:BOOLEAN rolcreaterole:BOOLEAN "
    "rolcreatedb:BOOLEAN rolcanlogin:BOOLEAN rolreplication:BOOLEAN rolconnlimit "
    "rolpassword rolvaliduntil rolbypassrls:BOOLEAN rolconfig:VARCHAR[]",
    "pg_am": "oid amname amhandler amtype",
    "pg_description": "objoid classoid objsubid description:VARCHAR",
    "pg_proc": "oid proname pronamespace proowner prolang procost prorows provariadic prosupport "
    "prokind prosecdef:BOOLEAN proleakproof:BOOLEAN proisstrict:BOOLEAN proretset:BOOLEAN "
    "provolatile proparallel pronargs pronargdefaults prorettype proargtypes:BIGINT[] "
    "proallargtypes:BIGINT[] proargmodes:VARCHAR[] proargnames:VARCHAR[] proargdefaults "
    "prosrc probin proconfig proacl",
    "pg_tables": "schemaname tablename tableowner tablespace:VARCHAR hasindexes:BOOLEAN "
    "hasrules:BOOLEAN hastriggers:BOOLEAN rowsecurity:BOOLEAN",
    "pg_views": "schemaname viewname viewowner definition",
    "pg_matviews": "schemaname matviewname matviewowner tablespace:VARCHAR hasindexes:BOOLEAN "
    "ispopulated:BOOLEAN definition",
    "pg_indexes": "schemaname tablename indexname tablespace:VARCHAR indexdef:VARCHAR",
    "pg_settings": "name setting unit category short_desc extra_desc context vartype source min_val "
    "max_val enumvals:VARCHAR[] boot_val reset_val sourcefile sourceline "
    "pending_restart:BOOLEAN",
    "pg_tablespace": "oid spcname spcowner spcacl spcoptions:VARCHAR[]",
    "pg_language": "oid lanname lanowner lanispl:BOOLEAN lanpltrusted:BOOLEAN",
    "pg_collation": "oid collname collnamespace collowner collprovider collisdeterministic:BOOLEAN "
    "collencoding collcollate collctype colliculocale collversion",
    # empty from here on
    "pg_attrdef": "oid adrelid adnum adbin",
    "pg_inherits": "inhrelid inhparent inhseqno inhdetachpending:BOOLEAN",
    "pg_policy": "oid polname polrelid polcmd polpermissive:BOOLEAN polroles:BIGINT[] polqual polwithcheck",
    "pg_statistic_ext": "oid stxrelid stxname stxnamespace stxowner stxstattarget stxkeys stxkind:VARCHAR[] "
    "stxexprs",
    "pg_publication": "oid pubname pubowner puballtables:BOOLEAN pubinsert:BOOLEAN pubupdate:BOOLEAN "
    "pubdelete:BOOLEAN pubtruncate:BOOLEAN pubviaroot:BOOLEAN",
    "pg_publication_rel": "oid prpubid prrelid prqual prattrs:BIGINT[]",
    "pg_publication_namespace": "oid pnpubid pnnspid",
    "pg_subscription": "oid subdbid subname subowner subenabled:BOOLEAN",
    "pg_trigger": "oid tgrelid tgparentid tgname tgfoid tgtype tgenabled tgisinternal:BOOLEAN "
    "tgconstrrelid tgconstrindid tgconstraint tgdeferrable:BOOLEAN tginitdeferred:BOOLEAN "
    "tgnargs tgattr tgargs tgqual",
    "pg_event_trigger": "oid evtname evtevent evtowner evtfoid evtenabled evttags:VARCHAR[]",
    "pg_range": "rngtypid rngsubtype rngmultitypid rngcollation rngsubopc rngcanonical rngsubdiff",
    "pg_enum": "oid enumtypid enumsortorder:DOUBLE enumlabel",
    "pg_foreign_table": "ftrelid ftserver ftoptions:VARCHAR[]",
    "pg_foreign_server": "oid srvname srvowner srvfdw srvtype srvversion srvacl srvoptions:VARCHAR[]",
    "pg_foreign_data_wrapper": "oid fdwname fdwowner fdwhandler fdwvalidator fdwacl fdwoptions:VARCHAR[]",
    "pg_user_mapping": "oid umuser umserver umoptions:VARCHAR[]",
    "pg_depend": "classid objid objsubid refclassid refobjid refobjsubid deptype",
    "pg_shdepend": "dbid classid objid objsubid refclassid refobjid deptype",
    "pg_rewrite": "oid rulename ev_class ev_type ev_enabled is_instead:BOOLEAN ev_qual ev_action",
    "pg_sequence": "seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle:BOOLEAN",
    "pg_sequences": "schemaname sequencename sequenceowner data_type start_value min_value max_value "
    "increment_by cycle:BOOLEAN cache_size last_value",
    "pg_extension": "oid extname extowner extnamespace extrelocatable:BOOLEAN extversion extconfig "
    "extcondition",
    "pg_available_extensions": "name default_version installed_version comment",
    "pg_operator": "oid oprname oprnamespace oprowner oprkind oprleft oprright oprresult",
    "pg_cast": "oid castsource casttarget castfunc castcontext castmethod",
    "pg_aggregate": "aggfnoid aggkind aggnumdirectargs aggtransfn",
    "pg_opclass": "oid opcmethod opcname opcnamespace opcowner opcfamily opcintype opcdefault:BOOLEAN",
    "pg_partitioned_table": "partrelid partstrat partnatts partdefid partattrs:BIGINT[] partclass:BIGINT[] "
    "partexprs",
    "pg_auth_members": "oid roleid member grantor admin_option:BOOLEAN",
    "pg_db_role_setting": "setdatabase setrole setconfig:VARCHAR[]",
    "pg_shdescription": "objoid classoid description:VARCHAR",
    "pg_seclabel": "objoid classoid objsubid provider label",
    "pg_default_acl": "oid defaclrole defaclnamespace defaclobjtype defaclacl",
    "pg_conversion": "oid conname connamespace conowner",
    "pg_ts_config": "oid cfgname cfgnamespace cfgowner cfgparser",
    "pg_stat_activity": "datid datname pid usesysid usename application_name client_addr client_port "
    "backend_start:TIMESTAMP query_start:TIMESTAMP state_change:TIMESTAMP wait_event_type "
    "wait_event state query",
    "pg_stat_user_tables": "relid schemaname relname seq_scan n_live_tup n_dead_tup last_vacuum last_analyze",
    "pg_stat_all_tables": "relid schemaname relname seq_scan n_live_tup n_dead_tup last_vacuum last_analyze",
    "pg_stat_database": "datid datname numbackends xact_commit xact_rollback tup_returned tup_fetched",
    "pg_locks": "locktype database relation pid mode granted:BOOLEAN",
    "pg_prepared_xacts": "transaction gid prepared:TIMESTAMP owner database",
    "pg_timezone_names": "name abbrev utc_offset is_dst:BOOLEAN",
    "pg_rules": "schemaname tablename rulename definition",
}

INFORMATION_SCHEMA: dict[str, str] = {
    "schemata": "catalog_name schema_name schema_owner default_character_set_catalog "
    "default_character_set_schema default_character_set_name sql_path",
    "tables": "table_catalog table_schema table_name table_type self_referencing_column_name "
    "reference_generation user_defined_type_catalog user_defined_type_schema "
    "user_defined_type_name is_insertable_into is_typed commit_action",
    "columns": "table_catalog table_schema table_name column_name ordinal_position:INTEGER "
    "column_default is_nullable data_type character_maximum_length:INTEGER "
    "character_octet_length:INTEGER numeric_precision:INTEGER "
    "numeric_precision_radix:INTEGER numeric_scale:INTEGER datetime_precision:INTEGER "
    "interval_type character_set_name collation_name domain_name udt_catalog udt_schema "
    "udt_name dtd_identifier is_identity identity_generation is_generated "
    "generation_expression is_updatable",
    "views": "table_catalog table_schema table_name view_definition check_option is_updatable "
    "is_insertable_into",
    "table_constraints": "constraint_catalog constraint_schema constraint_name table_catalog table_schema "
    "table_name constraint_type is_deferrable initially_deferred enforced",
    "key_column_usage": "constraint_catalog constraint_schema constraint_name table_catalog table_schema "
    "table_name column_name ordinal_position:INTEGER "
    "position_in_unique_constraint:INTEGER",
    "constraint_column_usage": "table_catalog table_schema table_name column_name constraint_catalog "
    "constraint_schema constraint_name",
    "referential_constraints": "constraint_catalog constraint_schema constraint_name "
    "unique_constraint_catalog "
    "unique_constraint_schema unique_constraint_name match_option update_rule delete_rule",
    "routines": "specific_catalog specific_schema specific_name routine_catalog routine_schema "
    "routine_name routine_type data_type routine_definition external_language",
    "parameters": "specific_schema specific_name ordinal_position:INTEGER parameter_mode parameter_name "
    "data_type",
    "sequences": "sequence_catalog sequence_schema sequence_name data_type start_value minimum_value "
    "maximum_value increment",
    "triggers": "trigger_catalog trigger_schema trigger_name event_manipulation event_object_schema "
    "event_object_table action_statement action_timing",
    "check_constraints": "constraint_catalog constraint_schema constraint_name check_clause",
    "table_privileges": "grantor grantee table_catalog table_schema table_name privilege_type is_grantable",
    "role_table_grants": "grantor grantee table_catalog table_schema table_name privilege_type is_grantable",
    "column_privileges": "grantor grantee table_catalog table_schema table_name column_name privilege_type",
    "character_sets": "character_set_catalog character_set_schema character_set_name",
    "domains": "domain_catalog domain_schema domain_name data_type",
    "element_types": "object_catalog object_schema object_name collection_type_identifier data_type",
}

_TEXTS = (
    "name acl type bin kind persistence replident delim input output receive send modin modout "
    "analyze align storage default subscript handler definition owner provider collate ctype icu "
    "locale version label partbound identity generated compression missingval src qual check unit "
    "category desc context vartype source val file comment schema catalog setting exprs pred gid mode "
    "state query event abbrev offset password until volatile parallel support action enabled strat "
    "cmd options defaults config condition"
)
_NUMBERS = (
    "collowner conowner datdba evtowner extowner fdwowner lanowner nspowner opcdefault opcowner "
    "oprowner partdefid pronargdefaults proowner prorettype pubowner reloftype relowner reltype "
    "rngsubtype seqtypid spcowner srvowner stxowner subowner tgtype typbasetype typowner"
)
"""Endings of names of texts, and the names of numbers that have such an ending."""


def column_type(name: str) -> str:
    """Return the DuckDB type of a column: texts by the ending of the name, numbers else."""
    is_text = name not in _NUMBERS.split() and any(name.endswith(ending) for ending in _TEXTS.split())
    return "VARCHAR" if is_text else "BIGINT"


def definitions() -> list[str]:
    """Return the statements that create every table, in the schemas pgc and isc."""
    made = []
    for schema, tables in (("pgc", TABLES), ("isc", INFORMATION_SCHEMA)):
        for table, columns in tables.items():
            parts = []
            for column in columns.split():
                name, _, kind = column.partition(":")
                # information_schema has names, but for what says otherwise
                default = (
                    "VARCHAR" if schema == "isc" else "BIGINT" if name in _NUMBERS else column_type(name)
                )
                parts.append(f'"{name}" {kind or default}')
            made.append(f"CREATE TABLE {schema}.{table} ({', '.join(parts)})")
    return made
