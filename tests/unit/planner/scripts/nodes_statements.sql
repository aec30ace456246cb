CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT NOT NULL COMMENT 'c', b AS a + 1, m BIGINT METADATA FROM 'k' VIRTUAL, comment STRING, watermark TIMESTAMP(3), WATERMARK FOR watermark AS watermark - INTERVAL '1' SECOND, CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED) COMMENT 'it''s' PARTITIONED BY (comment) WITH ('A.b' = 'C')
---
CreateTable(span=Span(start=0, end=319), name=Name(text='t', span=Span(start=37, end=38), quoted=False), columns=(PhysicalColumnDef(name=Name(text='a', span=Span(start=40, end=41), quoted=False), type=Int(), nullable=False), ComputedColumnDef(name=Name(text='b', span=Span(start=68, end=69), quoted=False), expression=SqlExpression(text='a + 1', span=Span(start=73, end=78))), MetadataColumnDef(name=Name(text='m', span=Span(start=80, end=81), quoted=False), type=BigInt(), key='k', virtual=True, nullable=True, key_span=Span(start=103, end=106)), PhysicalColumnDef(name=Name(text='comment', span=Span(start=116, end=123), quoted=False), type=String(), nullable=True), PhysicalColumnDef(name=Name(text='watermark', span=Span(start=132, end=141), quoted=False), type=Timestamp(precision=3), nullable=True)), options=(OptionEntry(key='a.b', value='C', key_span=Span(start=307, end=312), value_span=Span(start=315, end=318)),), watermark=WatermarkDef(column=Name(text='watermark', span=Span(start=170, end=179), quoted=False), expression=SqlExpression(text="watermark - INTERVAL '1' SECOND", span=Span(start=183, end=214))), primary_key=(Name(text='a', span=Span(start=243, end=244), quoted=False),), partitioned_by=(Name(text='comment', span=Span(start=292, end=299), quoted=False),), comment="it's", if_not_exists=True, temporary=True)
====
CREATE TABLE t (a TINYINT, b VARCHAR(10), c DECIMAL(10, 2), d TIMESTAMP_LTZ(3), e TIMESTAMP(3) WITH LOCAL TIME ZONE, f ARRAY<ROW<x INT, `y z` MAP<STRING, BIGINT>>>, g DOUBLE PRECISION, h STRUCT<a: INT>, i INTERVAL DAY TO SECOND, j BYTES, k TIMESTAMP_NTZ, l NUMERIC, m INTERVAL YEAR) WITH ('connector' = 'x')
---
CreateTable(span=Span(start=0, end=307), name=Name(text='t', span=Span(start=13, end=14), quoted=False), columns=(PhysicalColumnDef(name=Name(text='a', span=Span(start=16, end=17), quoted=False), type=TinyInt(), nullable=True), PhysicalColumnDef(name=Name(text='b', span=Span(start=27, end=28), quoted=False), type=String(), nullable=True), PhysicalColumnDef(name=Name(text='c', span=Span(start=42, end=43), quoted=False), type=Decimal(precision=10, scale=2), nullable=True), PhysicalColumnDef(name=Name(text='d', span=Span(start=60, end=61), quoted=False), type=TimestampLtz(precision=3), nullable=True), PhysicalColumnDef(name=Name(text='e', span=Span(start=80, end=81), quoted=False), type=TimestampLtz(precision=3), nullable=True), PhysicalColumnDef(name=Name(text='f', span=Span(start=117, end=118), quoted=False), type=Array(element=Row(fields=(('x', Int()), ('y z', Map(key=String(), value=BigInt()))))), nullable=True), PhysicalColumnDef(name=Name(text='g', span=Span(start=165, end=166), quoted=False), type=Double(), nullable=True), PhysicalColumnDef(name=Name(text='h', span=Span(start=185, end=186), quoted=False), type=Row(fields=(('a', Int()),)), nullable=True), PhysicalColumnDef(name=Name(text='i', span=Span(start=203, end=204), quoted=False), type=DayTimeInterval(), nullable=True), PhysicalColumnDef(name=Name(text='j', span=Span(start=229, end=230), quoted=False), type=Binary(), nullable=True), PhysicalColumnDef(name=Name(text='k', span=Span(start=238, end=239), quoted=False), type=Timestamp(precision=6), nullable=True), PhysicalColumnDef(name=Name(text='l', span=Span(start=255, end=256), quoted=False), type=Decimal(precision=10, scale=0), nullable=True), PhysicalColumnDef(name=Name(text='m', span=Span(start=266, end=267), quoted=False), type=YearMonthInterval(), nullable=True)), options=(OptionEntry(key='connector', value='x', key_span=Span(start=289, end=300), value_span=Span(start=303, end=306)),), watermark=None, primary_key=(), partitioned_by=(), comment=None, if_not_exists=False, temporary=False)
====
CREATE OR REPLACE TEMPORARY VIEW v (a, b) AS SELECT 1, 2; DROP VIEW IF EXISTS v; DROP TABLE t; ALTER TABLE t SET ('a' = 'b')
---
CreateView(span=Span(start=0, end=56), name=Name(text='v', span=Span(start=33, end=34), quoted=False), query=Query(span=Span(start=45, end=56), text='SELECT 1, 2'), columns=(Name(text='a', span=Span(start=36, end=37), quoted=False), Name(text='b', span=Span(start=39, end=40), quoted=False)), or_replace=True, if_not_exists=False, temporary=True)
DropView(span=Span(start=0, end=21), name=Name(text='v', span=Span(start=20, end=21), quoted=False), if_exists=True)
DropTable(span=Span(start=0, end=12), name=Name(text='t', span=Span(start=11, end=12), quoted=False), if_exists=False)
AlterTable(span=Span(start=0, end=29), name=Name(text='t', span=Span(start=12, end=13), quoted=False), change=SetOptions(options=(OptionEntry(key='a', value='b', key_span=Span(start=19, end=22), value_span=Span(start=25, end=28)),)))
====
INSERT INTO t (a, b) VALUES (1, 2); INSERT INTO TABLE t (SELECT 1)
---
Insert(span=Span(start=12, end=34), target=Name(text='t', span=Span(start=12, end=13), quoted=False), query=Query(span=Span(start=21, end=34), text='VALUES (1, 2)'), columns=(Name(text='a', span=Span(start=15, end=16), quoted=False), Name(text='b', span=Span(start=18, end=19), quoted=False)), partition=(), overwrite=False, options=(), on_conflict=None)
Insert(span=Span(start=18, end=30), target=Name(text='t', span=Span(start=18, end=19), quoted=False), query=Query(span=Span(start=20, end=30), text='(SELECT 1)'), columns=(), partition=(), overwrite=False, options=(), on_conflict=None)
====
BEGIN STATEMENT SET; INSERT INTO a SELECT CASE WHEN TRUE THEN 1 END; INSERT INTO b SELECT 2; END;
---
ExecuteStatementSet(span=Span(start=0, end=96), inserts=(Insert(span=Span(start=33, end=67), target=Name(text='a', span=Span(start=33, end=34), quoted=False), query=Query(span=Span(start=35, end=67), text='SELECT CASE WHEN TRUE THEN 1 END'), columns=(), partition=(), overwrite=False, options=(), on_conflict=None), Insert(span=Span(start=81, end=91), target=Name(text='b', span=Span(start=81, end=82), quoted=False), query=Query(span=Span(start=83, end=91), text='SELECT 2'), columns=(), partition=(), overwrite=False, options=(), on_conflict=None)))
====
EXPLAIN SELECT 1; EXPLAIN PLAN FOR SELECT 1; EXPLAIN OPTIMIZED, CHANGELOG_MODE, JSON INSERT INTO t SELECT 1
---
Explain(span=Span(start=0, end=16), stages=(), statement=Query(span=Span(start=8, end=16), text='SELECT 1'))
Explain(span=Span(start=0, end=25), stages=(), statement=Query(span=Span(start=17, end=25), text='SELECT 1'))
Explain(span=Span(start=0, end=62), stages=(<ExplainStage.OPTIMIZED: 'optimized'>, <ExplainStage.CHANGELOG_MODE: 'changelog_mode'>, <ExplainStage.JSON: 'json'>), statement=Insert(span=Span(start=52, end=62), target=Name(text='t', span=Span(start=52, end=53), quoted=False), query=Query(span=Span(start=54, end=62), text='SELECT 1'), columns=(), partition=(), overwrite=False, options=(), on_conflict=None))
====
SET; SET 'a'; SET 'a' = 'b c'; SET execution.runtime-mode = batch; RESET; RESET 'a'; RESET parallelism.default
---
Set(span=Span(start=0, end=3), key=None, value=None, key_span=Span(start=0, end=0), value_span=Span(start=0, end=0))
Set(span=Span(start=0, end=7), key='a', value=None, key_span=Span(start=4, end=7), value_span=Span(start=0, end=0))
Set(span=Span(start=0, end=15), key='a', value='b c', key_span=Span(start=4, end=7), value_span=Span(start=10, end=15))
Set(span=Span(start=0, end=34), key='execution.runtime-mode', value='batch', key_span=Span(start=4, end=26), value_span=Span(start=29, end=34))
Reset(span=Span(start=0, end=5), key=None, key_span=Span(start=0, end=0))
Reset(span=Span(start=0, end=9), key='a', key_span=Span(start=6, end=9))
Reset(span=Span(start=0, end=25), key='parallelism.default', key_span=Span(start=6, end=25))
====
SHOW TABLES; SHOW VIEWS LIKE 'a%'; SHOW FUNCTIONS; SHOW CONNECTORS; SHOW JOBS; SHOW SETTINGS; SHOW COLUMNS FROM t; SHOW CREATE TABLE t; SHOW CREATE VIEW v
---
Show(span=Span(start=0, end=11), kind=<ShowKind.TABLES: 'tables'>, table=None, like=None, namespace=None)
Show(span=Span(start=0, end=20), kind=<ShowKind.VIEWS: 'views'>, table=None, like='a%', namespace=None)
Show(span=Span(start=0, end=14), kind=<ShowKind.FUNCTIONS: 'functions'>, table=None, like=None, namespace=None)
Show(span=Span(start=0, end=15), kind=<ShowKind.CONNECTORS: 'connectors'>, table=None, like=None, namespace=None)
Show(span=Span(start=0, end=9), kind=<ShowKind.JOBS: 'jobs'>, table=None, like=None, namespace=None)
Show(span=Span(start=0, end=13), kind=<ShowKind.SETTINGS: 'settings'>, table=None, like=None, namespace=None)
Show(span=Span(start=0, end=19), kind=<ShowKind.COLUMNS: 'columns'>, table=Name(text='t', span=Span(start=18, end=19), quoted=False), like=None, namespace=None)
ShowCreate(span=Span(start=0, end=19), name=Name(text='t', span=Span(start=18, end=19), quoted=False), view=False)
ShowCreate(span=Span(start=0, end=18), name=Name(text='v', span=Span(start=17, end=18), quoted=False), view=True)
====
DESCRIBE t; DESC EXTENDED t; DESCRIBE JOB 'j-1'; STOP JOB 'j-1'; CANCEL JOB 'j-1'; HELP; HELP select; QUIT; EXIT
---
Describe(span=Span(start=0, end=10), subject=Name(text='t', span=Span(start=9, end=10), quoted=False))
Describe(span=Span(start=0, end=15), subject=Name(text='t', span=Span(start=14, end=15), quoted=False))
DescribeJob(span=Span(start=0, end=18), job_id='j-1', job_span=Span(start=13, end=18))
StopJob(span=Span(start=0, end=14), job_id='j-1', job_span=Span(start=9, end=14), savepoint=None, drain=False)
CancelJob(span=Span(start=0, end=16), job_id='j-1', job_span=Span(start=11, end=16))
Help(span=Span(start=0, end=4), topic=None)
Help(span=Span(start=0, end=11), topic='select')
Quit(span=Span(start=0, end=4))
Quit(span=Span(start=0, end=4))
====
SUBSCRIBE TO bid
---
Subscribe(span=Span(start=0, end=16), query=Query(span=Span(start=13, end=16), text='bid'))
====
SUBSCRIBE SELECT 1
---
Subscribe(span=Span(start=0, end=18), query=Query(span=Span(start=10, end=18), text='SELECT 1'))
====
VERIFY SELECT 1 AGAINST BATCH
---
Verify(span=Span(start=0, end=29), query=Query(span=Span(start=7, end=15), text='SELECT 1'), backend=None, up_to=None)
====
CREATE MATERIALIZED VIEW IF NOT EXISTS v (a) COMMENT 'c' AS SELECT 1
---
CreateMaterializedView(span=Span(start=0, end=68), name=Name(text='v', span=Span(start=39, end=40), quoted=False), query=Query(span=Span(start=60, end=68), text='SELECT 1'), columns=(Name(text='a', span=Span(start=42, end=43), quoted=False),), if_not_exists=True, comment='c')
====
DROP MATERIALIZED VIEW IF EXISTS v
---
DropMaterializedView(span=Span(start=0, end=34), name=Name(text='v', span=Span(start=33, end=34), quoted=False), if_exists=True)
====
SHOW CURRENT CATALOG
---
Show(span=Span(start=0, end=20), kind=<ShowKind.CURRENT_CATALOG: 'current catalog'>, table=None, like=None, namespace=None)
====
SHOW CURRENT DATABASE
---
Show(span=Span(start=0, end=21), kind=<ShowKind.CURRENT_DATABASE: 'current database'>, table=None, like=None, namespace=None)
====
SHOW MATERIALIZED VIEWS LIKE 'a%'
---
Show(span=Span(start=0, end=33), kind=<ShowKind.MATERIALIZED_VIEWS: 'materialized views'>, table=None, like='a%', namespace=None)
