SELECT auction FROM bid INTERSECT SELECT id FROM person
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Filter predicate=(CASE WHEN (left_rows < right_rows) THEN left_rows ELSE right_rows END > 0)
    Aggregate keys=(0) aggregates=(count(*) FILTER (WHERE side), count(*) FILTER (WHERE not(side))) names=(left_rows, right_rows) phase=single
      : auction BIGINT, left_rows BIGINT NOT NULL, right_rows BIGINT NOT NULL
      Union
        Project expressions=(auction, TRUE) names=(auction, side)
          Project expressions=(auction) names=(auction)
            WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
              Scan bid columns=(0, 1, 2, 3, 4)
                : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        Project expressions=(id, FALSE) names=(id, side)
          Project expressions=(id) names=(id)
            WatermarkAssign time_column=3 watermark=joined
              Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
                Scan person columns=(0, 1, 2, 3, 4, 5)
                  : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT size FROM city INTERSECT ALL SELECT auction FROM bid
---
Repeat
  : size BIGINT
  Project expressions=(size, CASE WHEN (left_rows < right_rows) THEN left_rows ELSE right_rows END) names=(size, rows)
    Filter predicate=(CASE WHEN (left_rows < right_rows) THEN left_rows ELSE right_rows END > 0)
      Aggregate keys=(0) aggregates=(count(*) FILTER (WHERE side), count(*) FILTER (WHERE not(side))) names=(left_rows, right_rows) phase=single
        : size BIGINT, left_rows BIGINT NOT NULL, right_rows BIGINT NOT NULL
        Union
          Project expressions=(size, TRUE) names=(size, side)
            Project expressions=(CAST(size AS BIGINT)) names=(size)
              Project expressions=(size) names=(size)
                Scan city columns=(0, 1, 2)
                  : name STRING, country STRING, size INT
          Project expressions=(auction, FALSE) names=(auction, side)
            Project expressions=(auction) names=(auction)
              WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                Scan bid columns=(0, 1, 2, 3, 4)
                  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT name, size FROM city EXCEPT SELECT name, 1 FROM airline
---
Project expressions=(name, size) names=(name, size)
  : name STRING, size INT
  Filter predicate=(CASE WHEN (right_rows = 0) THEN left_rows ELSE 0 END > 0)
    Aggregate keys=(0, 1) aggregates=(count(*) FILTER (WHERE side), count(*) FILTER (WHERE not(side))) names=(left_rows, right_rows) phase=single
      : name STRING, size INT, left_rows BIGINT NOT NULL, right_rows BIGINT NOT NULL
      Union
        Project expressions=(name, size, TRUE) names=(name, size, side)
          Project expressions=(name, size) names=(name, size)
            Scan city columns=(0, 1, 2)
              : name STRING, country STRING, size INT
        Project expressions=(name, 1, FALSE) names=(name, 1, side)
          Project expressions=(name, 1) names=(name, 1)
            Scan airline columns=(0, 1)
              : carrier STRING, name STRING
====
SELECT name FROM city EXCEPT ALL SELECT name FROM airline
---
Repeat
  : name STRING
  Project expressions=(name, (left_rows - right_rows)) names=(name, rows)
    Filter predicate=((left_rows - right_rows) > 0)
      Aggregate keys=(0) aggregates=(count(*) FILTER (WHERE side), count(*) FILTER (WHERE not(side))) names=(left_rows, right_rows) phase=single
        : name STRING, left_rows BIGINT NOT NULL, right_rows BIGINT NOT NULL
        Union
          Project expressions=(name, TRUE) names=(name, side)
            Project expressions=(name) names=(name)
              Scan city columns=(0, 1, 2)
                : name STRING, country STRING, size INT
          Project expressions=(name, FALSE) names=(name, side)
            Project expressions=(name) names=(name)
              Scan airline columns=(0, 1)
                : carrier STRING, name STRING
====
# INTERSECT binds closer than UNION and EXCEPT
SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3
---
Union
  : 1 INT NOT NULL
  Values rows=((1))
    : 1 INT NOT NULL
  Project expressions=(2) names=(2)
    Filter predicate=(CASE WHEN (left_rows < right_rows) THEN left_rows ELSE right_rows END > 0)
      Aggregate keys=(0) aggregates=(count(*) FILTER (WHERE side), count(*) FILTER (WHERE not(side))) names=(left_rows, right_rows) phase=single
        : 2 INT NOT NULL, left_rows BIGINT NOT NULL, right_rows BIGINT NOT NULL
        Union
          Project expressions=(2, TRUE) names=(2, side)
            Values rows=((2))
              : 2 INT NOT NULL
          Project expressions=(3, FALSE) names=(3, side)
            Values rows=((3))
              : 3 INT NOT NULL
====
SELECT name FROM city MINUS SELECT name FROM airline ORDER BY name LIMIT 2
---
TopN keys=(name NULLS FIRST) limit=2 offset=0
  : name STRING
  Project expressions=(name) names=(name)
    Filter predicate=(CASE WHEN (right_rows = 0) THEN left_rows ELSE 0 END > 0)
      Aggregate keys=(0) aggregates=(count(*) FILTER (WHERE side), count(*) FILTER (WHERE not(side))) names=(left_rows, right_rows) phase=single
        : name STRING, left_rows BIGINT NOT NULL, right_rows BIGINT NOT NULL
        Union
          Project expressions=(name, TRUE) names=(name, side)
            Project expressions=(name) names=(name)
              Scan city columns=(0, 1, 2)
                : name STRING, country STRING, size INT
          Project expressions=(name, FALSE) names=(name, side)
            Project expressions=(name) names=(name)
              Scan airline columns=(0, 1)
                : carrier STRING, name STRING
