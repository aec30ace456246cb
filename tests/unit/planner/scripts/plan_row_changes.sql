CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = n + 1 WHERE id > 2
---
table lake

Sink lake changes=UPDATE
  : id INT NOT NULL, n BIGINT, $fate INT NOT NULL
  Project expressions=(id, CASE WHEN $hit THEN $4 ELSE n END, $fate) names=(id, n, $fate)
    Project expressions=(id, n, CASE WHEN (id > 2) THEN TRUE ELSE FALSE END, CASE WHEN CASE WHEN (id > 2) THEN TRUE ELSE FALSE END THEN 1 ELSE 0 END, CASE WHEN CASE WHEN (id > 2) THEN TRUE ELSE FALSE END THEN (n + 1) ELSE NULL END) names=(id, n, $hit, $fate, $new0)
      Scan lake columns=(0, 1)
        : id INT NOT NULL, n BIGINT
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake AS l SET n = 1, id = l.id + 1
---
table lake

Sink lake changes=UPDATE
  : id INT, n BIGINT, $fate INT NOT NULL
  Project expressions=(CASE WHEN $hit THEN $5 ELSE id END, CASE WHEN $hit THEN CAST($4 AS BIGINT) ELSE n END, $fate) names=(id, n, $fate)
    Project expressions=(id, n, CASE WHEN TRUE THEN TRUE ELSE FALSE END, CASE WHEN CASE WHEN TRUE THEN TRUE ELSE FALSE END THEN 1 ELSE 0 END, CASE WHEN CASE WHEN TRUE THEN TRUE ELSE FALSE END THEN 1 ELSE NULL END, CASE WHEN CASE WHEN TRUE THEN TRUE ELSE FALSE END THEN (id + 1) ELSE NULL END) names=(id, n, $hit, $fate, $new0, $new1)
      Scan lake columns=(0, 1)
        : id INT NOT NULL, n BIGINT
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
DELETE FROM lake x WHERE x.id IN (SELECT l.id FROM lake AS l)
---
table lake

Sink lake changes=DELETE
  : id INT NOT NULL, n BIGINT, $fate INT NOT NULL
  Project expressions=(id, n, $fate) names=(id, n, $fate)
    Project expressions=(id, n, CASE WHEN is_not_null(found) THEN TRUE ELSE FALSE END, CASE WHEN CASE WHEN is_not_null(found) THEN TRUE ELSE FALSE END THEN 2 ELSE 0 END) names=(id, n, $hit, $fate)
      Join kind=left left_keys=(0) right_keys=(0)
        Scan lake columns=(0, 1)
          : id INT NOT NULL, n BIGINT
        Project expressions=(id, TRUE) names=(key1, found)
          Aggregate keys=(0) phase=single
            : id INT NOT NULL
            Scan lake columns=(0, 1)
              : id INT NOT NULL, n BIGINT
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING (SELECT 1 AS id, 2 AS n) AS s ON lake.id = s.id WHEN MATCHED AND s.n > 1 THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED BY SOURCE THEN DO NOTHING
---
table lake

Sink lake changes=MERGE
  : id INT, n BIGINT, $fate INT NOT NULL, $row BIGINT
  Project expressions=(CASE WHEN ($action = 1) THEN $6 WHEN ($action = 3) THEN $8 ELSE id END, CASE WHEN ($action = 1) THEN CAST($7 AS BIGINT) WHEN ($action = 3) THEN NULL ELSE n END, $fate, $row) names=(id, n, $fate, $row)
    Filter predicate=($fate <> 4)
      Project expressions=(id, n, $row, $source, CASE WHEN is_null($row) THEN CASE WHEN TRUE THEN 3 ELSE 0 END WHEN is_null($source) THEN CASE WHEN TRUE THEN 4 ELSE 0 END ELSE CASE WHEN (n > 1) THEN 1 WHEN TRUE THEN 2 ELSE 0 END END, CASE WHEN (CASE WHEN is_null($row) THEN CASE WHEN TRUE THEN 3 ELSE 0 END WHEN is_null($source) THEN CASE WHEN TRUE THEN 4 ELSE 0 END ELSE CASE WHEN (n > 1) THEN 1 WHEN TRUE THEN 2 ELSE 0 END END = 1) THEN 1 WHEN (CASE WHEN is_null($row) THEN CASE WHEN TRUE THEN 3 ELSE 0 END WHEN is_null($source) THEN CASE WHEN TRUE THEN 4 ELSE 0 END ELSE CASE WHEN (n > 1) THEN 1 WHEN TRUE THEN 2 ELSE 0 END END = 2) THEN 2 WHEN (CASE WHEN is_null($row) THEN CASE WHEN TRUE THEN 3 ELSE 0 END WHEN is_null($source) THEN CASE WHEN TRUE THEN 4 ELSE 0 END ELSE CASE WHEN (n > 1) THEN 1 WHEN TRUE THEN 2 ELSE 0 END END = 3) THEN 3 ELSE CASE WHEN is_null($row) THEN 4 ELSE 0 END END, CASE WHEN (CASE WHEN is_null($row) THEN CASE WHEN TRUE THEN 3 ELSE 0 END WHEN is_null($source) THEN CASE WHEN TRUE THEN 4 ELSE 0 END ELSE CASE WHEN (n > 1) THEN 1 WHEN TRUE THEN 2 ELSE 0 END END = 1) THEN id ELSE NULL END, CASE WHEN (CASE WHEN is_null($row) THEN CASE WHEN TRUE THEN 3 ELSE 0 END WHEN is_null($source) THEN CASE WHEN TRUE THEN 4 ELSE 0 END ELSE CASE WHEN (n > 1) THEN 1 WHEN TRUE THEN 2 ELSE 0 END END = 1) THEN n ELSE NULL END, CASE WHEN (CASE WHEN is_null($row) THEN CASE WHEN TRUE THEN 3 ELSE 0 END WHEN is_null($source) THEN CASE WHEN TRUE THEN 4 ELSE 0 END ELSE CASE WHEN (n > 1) THEN 1 WHEN TRUE THEN 2 ELSE 0 END END = 3) THEN id ELSE NULL END) names=(id, n, $row, $source, $action, $fate, $new0, $new1, $new2)
        Join kind=full left_keys=(0) right_keys=(0)
          Project expressions=(id, n, over1) names=(id, n, $row)
            Over order=(NULL NULLS FIRST) frame=ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(count(*)) names=(over1) timely=False
              Scan lake columns=(0, 1)
                : id INT NOT NULL, n BIGINT
          Project expressions=(id, n, TRUE) names=(id, n, $source)
            Values rows=((1, 2))
              : id INT NOT NULL, n INT NOT NULL
