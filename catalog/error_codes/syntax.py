"""Causes and cures of errors: texts, names, clauses, functions and types."""

from __future__ import annotations

SYNTAX: dict[str, tuple[str, str]] = {
    "SQL-1001": (
        "The parser met a word or a sign that is not valid at the marked place.",
        "Correct the text at the caret; the hint has the word that was probably meant.",
    ),
    "SQL-1002": (
        "The text has a character that SQL does not use outside of strings and quoted names.",
        "Remove it, or put it into quotes; typographic quotes must be ' or `.",
    ),
    "SQL-1003": (
        "A string, a quoted name or a comment begins and never ends.",
        "Close it with the sign of the hint.",
    ),
    "SQL-1004": (
        "A query, an expression or a whole statement is empty.",
        "Write what is missing, such as SELECT .. FROM ..",
    ),
    "SQL-1005": (
        "The statement is longer than the parser reads.",
        "Put long lists of values into a table, and join it.",
    ),
    "SQL-1006": (
        "Parentheses, subqueries or expressions nest deeper than the parser allows.",
        "Name inner queries in a WITH clause or in a view.",
    ),
    "SQL-1007": (
        "The statement has more branches, joins, operators or grouping sets than the planner allows.",
        "Split it into views or several statements.",
    ),
    "SQL-1008": ("A name is empty, or it is a reserved word.", "Put the name into backticks: `order`."),
    "SQL-1009": ("A hint in /*+ .. */ cannot be read.", "Write it in the form that the message prints."),
    "SQL-1010": (
        "No statement of the language begins with this word.",
        "Correct the first word; HELP lists the statements.",
    ),
    "SQL-1011": (
        "A number, a date or an interval in the text has no such value or unit.",
        "Write DATE '2024-01-31', TIMESTAMP '2024-01-31 12:00:00' or INTERVAL '5' MINUTE.",
    ),
    "SQL-1012": (
        "LIMIT, OFFSET or FETCH has something else than a whole number.",
        "Write a whole number such as LIMIT 10.",
    ),
    "SQL-1013": (
        "The values given are not those that the ? or the names of the statement ask for.",
        "Pass a list with one value for each ?, or a dict with one for each :name.",
    ),
    "SQL-1014": (
        "A Python value of this type has no SQL type, or it is no column of the Table API.",
        "Pass a number, string, date, bytes, list, dict or None; wrap a constant in lit(..).",
    ),
    "SQL-1015": ("select of the Table API has no column.", "Pass at least one name or column expression."),
    "SQL-1016": (
        "Views and names make the plan larger than the limit of nodes.",
        "Write what is read many times into a table, or raise the setting that the hint names.",
    ),
    "SQL-1017": (
        "A type has too many parts or nests too deep.",
        "Select the fields that are needed, a column each.",
    ),
    "SQL-1041": (
        "No table or view has this name in the current catalog and database.",
        "SHOW TABLES lists the names; CREATE TABLE makes one.",
    ),
    "SQL-1042": (
        "No table of the FROM clause has a column of this name.",
        "DESCRIBE the table; the hint has the nearest name. Text goes into single quotes.",
    ),
    "SQL-1043": (
        "Several tables of the FROM clause have a column of this name.",
        "Write the table in front of it: orders.id.",
    ),
    "SQL-1044": (
        "The name in front of the dot is no table or alias of this FROM clause.",
        "Use the alias of FROM, or add the table there.",
    ),
    "SQL-1045": ("One name is declared twice.", "Rename one of them."),
    "SQL-1046": (
        "The list of column names and the columns differ in number.",
        "Give one name for each column that the message lists.",
    ),
    "SQL-1047": (
        "The table can only be written.",
        "Read the tables its rows come from, or write it in a format that can be read.",
    ),
    "SQL-1048": (
        "A view reads itself, or views are nested too deep.",
        "Take the view out of its own definition.",
    ),
    "SQL-1049": (
        "A table of the view has changed, so the view has other columns now.",
        "DROP VIEW, and create it again.",
    ),
    "SQL-1050": (
        "A position in ORDER BY or GROUP BY is no position of the SELECT list.",
        "Write a number from 1 to the number of columns, or a name.",
    ),
    "SQL-1051": (
        "ORDER BY of a SELECT DISTINCT uses a column that the SELECT list has not.",
        "Add the column to the SELECT list.",
    ),
    "SQL-1061": (
        "A column is neither aggregated nor a key of GROUP BY.",
        "Add it to GROUP BY, or write any_value(column).",
    ),
    "SQL-1062": (
        "An aggregate is in WHERE, GROUP BY or another clause that is computed before aggregation.",
        "Write it in HAVING, or aggregate in a subquery.",
    ),
    "SQL-1063": (
        "GROUPING has an argument that is no key of GROUP BY.",
        "Pass a key of GROUP BY ROLLUP, CUBE or GROUPING SETS.",
    ),
    "SQL-1064": (
        "An ORDER BY has no effect here, or an aggregate cannot use it.",
        "Remove it, or add LIMIT; for first and last values, give one ascending key.",
    ),
    "SQL-1065": (
        "A window function is without OVER, or OVER is at a wrong place.",
        "Write OVER (PARTITION BY .. ORDER BY ..) in the SELECT list, and filter outside.",
    ),
    "SQL-1066": (
        "The frame of an OVER clause is not valid.",
        "Write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW, or RANGE with an INTERVAL.",
    ),
    "SQL-1067": (
        "OVER names a window that the WINDOW clause has not.",
        "Declare it: WINDOW w AS (PARTITION BY ..).",
    ),
    "SQL-1068": ("QUALIFY is used without a window function.", "Use WHERE or HAVING instead."),
    "SQL-1081": ("The rows of VALUES have different numbers of columns.", "Write NULL for a missing value."),
    "SQL-1082": ("The values of one column of VALUES have no common type.", "CAST them to one type."),
    "SQL-1083": (
        "The branches of UNION, INTERSECT or EXCEPT have different numbers of columns.",
        "Select the same number of columns in each branch.",
    ),
    "SQL-1084": (
        "A column of UNION, INTERSECT or EXCEPT has types that do not combine.",
        "CAST it in one branch.",
    ),
    "SQL-1085": (
        "A subquery returns another number of columns than its place takes.",
        "List one column, or as many as are compared.",
    ),
    "SQL-1086": (
        "A subquery that is used as a value could return several rows.",
        "Aggregate it, or add LIMIT 1.",
    ),
    "SQL-1090": (
        "The query of an INSERT has another number of columns than the table.",
        "Name the columns: INSERT INTO t (a, b) SELECT ..",
    ),
    "SQL-1091": ("The column is computed, so it cannot be written.", "Leave it out of the column list."),
    "SQL-1092": (
        "A column of the query does not fit the type of the table's column.",
        "Write the CAST of the hint.",
    ),
    "SQL-1093": (
        "A NOT NULL column gets no value or NULL.",
        "Add the column to the list, or write COALESCE(column, default).",
    ),
    "SQL-1094": ("The table can only be read.", "Write to a table of filesystem, print or another sink."),
    "SQL-1101": (
        "The language has no function of this name.",
        "SHOW FUNCTIONS lists them; the hint has the nearest one.",
    ),
    "SQL-1102": ("A function has too many or too few arguments.", "Write the call as the hint shows it."),
    "SQL-1103": (
        "An argument has a type that the function or clause does not take.",
        "CAST the argument to the type of the message.",
    ),
    "SQL-1104": (
        "An aggregate is used as an argument or a filter, where single rows are computed.",
        "Aggregate in a subquery first.",
    ),
    "SQL-1105": (
        "DISTINCT, FILTER, ORDER BY or IGNORE NULLS does not go with this function.",
        "Remove that word.",
    ),
    "SQL-1106": (
        "The value cannot be cast to the wanted type.",
        "Cast to STRING first, or select another column.",
    ),
    "SQL-1107": (
        "A table function is used as a value.",
        "Write it in FROM: CROSS JOIN UNNEST(items) AS i(item).",
    ),
    "SQL-1108": (
        "A value has no fields or elements, or no field of this name.",
        "DESCRIBE shows the types; the hint has the nearest field.",
    ),
    "SQL-1109": ("Position 0 of an array is read.", "The first element is a[1]."),
    "SQL-1110": (
        "A row has no field, or several fields, of this name.",
        "Read it by the exact name; elements of a map are m['key'].",
    ),
    "SQL-1111": (
        "A SELECT list has several table functions, or one beside GROUP BY.",
        "Write it in FROM, with UNNEST or LATERAL VIEW.",
    ),
    "SQL-1112": (
        "Values of this type have no order, so ORDER BY, MIN, MAX and < are not defined.",
        "Order by a field or by a CAST to STRING.",
    ),
    "SQL-1113": (
        "A lambda such as x -> x + 1 is at a place that takes values.",
        "Use it as an argument of transform, filter, aggregate and their kind.",
    ),
    "SQL-1114": ("Rows of values of different widths are compared.", "Write as many values on both sides."),
    "SQL-1201": (
        "Precision or scale of a DECIMAL is out of range.",
        "Write DECIMAL(p, s) with p from 1 to 38, and s from 0 to p.",
    ),
    "SQL-1202": ("A type cannot be stored in a column.", "CAST it to a type of a column, such as STRING."),
    "SQL-1203": (
        "A registered table has an Arrow type that SQL has not.",
        "Cast the column before the table is registered.",
    ),
    "SQL-1204": (
        "The language has no type of this name.",
        "Write BIGINT, DOUBLE, STRING, TIMESTAMP(3) or another type of the hint.",
    ),
    "SQL-1205": ("A ROW type declares a field twice.", "Rename one field."),
    "SQL-1206": (
        "A type has wrong parameters.",
        "Times have 0 to 6 digits of a second; write TIMESTAMP_LTZ for an instant.",
    ),
    "SQL-1207": (
        "The other system has a type here that penstock has not.",
        "Leave the column out, or read a view there that casts it to STRING.",
    ),
    "SQL-1290": (
        "Values of this type cannot be keys of groups, partitions or joins.",
        "Use one of their fields or elements.",
    ),
}
