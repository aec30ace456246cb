"""Causes and cures of errors: tables, catalogs, connectors and settings."""

from __future__ import annotations

TABLES: dict[str, tuple[str, str]] = {
    "SQL-1301": (
        "A column of this name is in the table or in the list already.",
        "Rename one of them with AS.",
    ),
    "SQL-1302": (
        "A table or view of this name exists.",
        "Drop it first, or write CREATE TABLE IF NOT EXISTS.",
    ),
    "SQL-1303": (
        "The name belongs to another kind: a table, a view or a materialized view.",
        "Use the statement of that kind, such as DROP VIEW.",
    ),
    "SQL-1304": ("A table has two watermarks or two primary keys.", "Leave one of them out."),
    "SQL-1305": ("A primary key is declared as if it was enforced.", "Write PRIMARY KEY (id) NOT ENFORCED."),
    "SQL-1306": (
        "The connector has no metadata of this key or of this type.",
        "Declare the column as the hint says.",
    ),
    "SQL-1307": ("The WITH clause has one option twice.", "Remove one of them."),
    "SQL-1308": (
        "No column is left that the table could store.",
        "Declare at least one column that is neither computed nor metadata.",
    ),
    "SQL-1309": ("A column is always NULL, so its type is unknown.", "Write CAST(NULL AS STRING) AS name."),
    "SQL-1310": (
        "The table accepts inserts only, and the query updates its rows.",
        "Group by windows, write EMIT FINAL, or write to a table with 'changelog.mode'.",
    ),
    "SQL-1311": (
        "execution.runtime-mode is batch, and a table never ends.",
        "SET 'execution.runtime-mode' = 'automatic', or bound the table.",
    ),
    "SQL-1312": (
        "The primary key of the table does not identify the rows of the query.",
        "GROUP BY the key, or choose another primary key.",
    ),
    "SQL-1313": (
        "A table of Spark is written by something else than one bounded query.",
        "Write files first, then INSERT the rows of the files.",
    ),
    "SQL-1314": (
        "The rows are updated and ordered by a column that the result has not.",
        "Select that column too, add LIMIT, or drop ORDER BY.",
    ),
    "SQL-1315": (
        "A function whose value changes, such as the clock, is computed over rows that are updated.",
        "Compute it before rows are grouped or joined.",
    ),
    "SQL-1316": (
        "MATCH_RECOGNIZE reads rows that are updated.",
        "Match before aggregation, or over windows.",
    ),
    "SQL-1317": (
        "ON CONFLICT is written, and the table does not replace rows by a primary key.",
        "Leave ON CONFLICT out, or give the table a PRIMARY KEY and 'changelog.mode' = 'upsert'.",
    ),
    "SQL-1319": (
        "Changes of one key come from several subtasks, so their order is not known.",
        "SET 'parallelism.default' = '1', or GROUP BY the key last.",
    ),
    "SQL-1320": (
        "The file of the catalog cannot be read.",
        "Restore it from a copy, or move it away to begin with an empty catalog.",
    ),
    "SQL-1321": (
        "The file of the catalog cannot be written.",
        "Check space and permission of the directory.",
    ),
    "SQL-1322": (
        "A lookup join reads rows that are updated.",
        "Look up before rows are grouped, or write EMIT FINAL.",
    ),
    "SQL-1323": (
        "The left side of LATERAL SNAPSHOT updates its rows.",
        "Join before rows are grouped, or join the table itself.",
    ),
    "SQL-1324": (
        "A process table function that takes no retractions reads rows that are updated.",
        "Process the rows before they are grouped, or declare updates=True for the table.",
    ),
    "SQL-1325": (
        "Another program has changed the same name of the stored catalog.",
        "Choose another name, or connect again to use what is there.",
    ),
    "SQL-1330": (
        "A function of this name exists.",
        "Choose another name, or write CREATE OR REPLACE FUNCTION.",
    ),
    "SQL-1331": (
        "No Python function has this name.",
        "SHOW FUNCTIONS lists them; CREATE FUNCTION makes one.",
    ),
    "SQL-1332": (
        "The declaration of a Python function is not valid.",
        "Give a list of SQL types, and a mode of the hint.",
    ),
    "SQL-1333": (
        "The Python module or its function cannot be imported.",
        "Write 'module.function'; the module must be on Python's path or in the working directory.",
    ),
    "SQL-1334": (
        "The Python object is no function of SQL.",
        "Decorate it with penstock.udf, udaf, udtf or ptf.",
    ),
    "SQL-1335": (
        "A stored catalog wants to import a module that this session does not allow.",
        "SET 'python.modules' as the hint says, or create the function again.",
    ),
    "SQL-1336": ("CREATE FUNCTION names another language than Python.", "Write LANGUAGE PYTHON."),
    "SQL-1341": (
        "ALTER TABLE adds what is there, or changes what is not there.",
        "Write MODIFY for what is there, ADD for what is not.",
    ),
    "SQL-1342": (
        "A column is used by a computed column, a key or the watermark.",
        "Drop or change that first.",
    ),
    "SQL-1343": ("A materialized view is read by another one.", "Drop the view that reads it first."),
    "SQL-1344": (
        "Another session drops this materialized view at this moment.",
        "Run the statement again: the view is gone by then.",
    ),
    "SQL-1351": ("No catalog or database has this name.", "SHOW CATALOGS and SHOW DATABASES list them."),
    "SQL-1352": (
        "A catalog or database of this name exists.",
        "Choose another name, or write IF NOT EXISTS.",
    ),
    "SQL-1353": (
        "A name has too many parts, or a dot inside one part.",
        "Write catalog.database.table at most.",
    ),
    "SQL-1354": (
        "CREATE CATALOG names no type that there is.",
        "Write 'type' = 'memory', 'file', 'iceberg' or 'spark'.",
    ),
    "SQL-1355": (
        "A database that is to be dropped has tables or running views.",
        "Drop them first, or write CASCADE.",
    ),
    "SQL-1356": ("The catalog or database to drop is the current one.", "USE another one first."),
    "SQL-1357": (
        "The stored catalog cannot be opened.",
        "Read the cause in the detail, and correct the path or the file.",
    ),
    "SQL-1358": (
        "The catalog belongs to another system, which makes and drops its tables.",
        "Run the statement in that system; the change is seen here at once.",
    ),
    "SQL-1359": (
        "A statement defines something in the built-in database of system tables.",
        "Create it in another database.",
    ),
    "SQL-1360": (
        "A materialized view reads a system table, whose rows are of this process only.",
        "Query the system table where it is needed, or SUBSCRIBE to it.",
    ),
    "SQL-1401": (
        "No setting has this key.",
        "SET without arguments lists all settings; the hint has the nearest one.",
    ),
    "SQL-1402": (
        "The text is no value of the setting.",
        "Write a value as the hint shows it: '5 s', '64 mb', 'true', or one of the choices.",
    ),
    "SQL-1405": ("Two settings of checkpoints contradict each other.", "RESET one of the two."),
    "SQL-1406": (
        "Workers need a certificate, its key and its authority, and one is missing.",
        "SET all three settings, or none of them.",
    ),
    "SQL-1407": (
        "One job has a table or equal operators with two numbers of subtasks; equal parts of a job run once.",
        "Give all readers the same OPTIONS hint, equal operators the same hint PARALLELISM.",
    ),
    "SQL-1408": (
        "A table asks for watermark alignment that would do nothing: no event time, or several processes.",
        "Declare a watermark; read the table in one process, or by one subtask.",
    ),
    "SQL-1501": (
        "The WITH clause names no connector.",
        "Write 'connector' = 'filesystem', or another one of the hint.",
    ),
    "SQL-1502": ("No connector has this name.", "The hint lists the connectors."),
    "SQL-1503": (
        "The connector has no option of this key.",
        "The hint has the nearest option; the reference lists all.",
    ),
    "SQL-1504": ("A required option is missing.", "Add the option that the message names."),
    "SQL-1505": ("An option has a value that it does not take.", "Write a value as the hint shows it."),
    "SQL-1506": ("A path, pattern or list in an option cannot be read.", "Write it as the hint shows it."),
    "SQL-1507": (
        "Two options contradict each other, or one belongs to another format.",
        "Leave one of them out.",
    ),
    "SQL-1508": ("The table stores no bad records.", "Create it with 'on-error' = 'table'."),
    "SQL-1509": (
        "A column has a type that the connector cannot read or make.",
        "Declare it with the type of the hint.",
    ),
    "SQL-1510": (
        "An option names a column that the table has not.",
        "Use a column of the table; the hint has the nearest one.",
    ),
    "SQL-1511": ("The connector only writes.", "Read a table of another connector."),
    "SQL-1512": ("The connector only reads.", "Write to a table of another connector."),
    "SQL-1515": (
        "A table of changes has partitions, metadata or a column that cannot be computed twice alike.",
        "Leave that column or clause out.",
    ),
    "SQL-1516": (
        "A table that is written as changes has no key, or a column of a reserved name.",
        "Add PRIMARY KEY (..) NOT ENFORCED, or rename the column.",
    ),
}
