# options for one query; the table keeps its own
SELECT name FROM city /*+ OPTIONS('source.replay' = 'true', 'csv.null-literal' = 'it''s') */ AS c;
SELECT c.name FROM person AS p JOIN city /*+ OPTIONS('csv.header' = 'false'), OPTIONS('csv.quote' = '|') */ c ON p.city = c.name;
CREATE VIEW v AS SELECT name FROM city /*+ OPTIONS('csv.header' = 'false') */;
SELECT name FROM v;
SELECT /*+ BROADCAST(C) */ p.name FROM person AS p JOIN city AS c ON p.city = c.name;
SELECT '/*+ BROADCAST(a) */' AS text, 1 /* + no hint */ -- /*+ BROADCAST(a) */
---
Project expressions=(name) names=(name)
  : name STRING
  Scan city columns=(0, 1, 2)
    : name STRING, country STRING, size INT

Project expressions=(name) names=(name)
  : name STRING
  Join kind=inner left_keys=(2) right_keys=(0)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT

view v

Project expressions=(name) names=(name)
  : name STRING
  Scan city columns=(0, 1, 2)
    : name STRING, country STRING, size INT

Project expressions=(name) names=(name)
  : name STRING
  Join kind=inner left_keys=(2) right_keys=(0) copied=1
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT

Values rows=(('/*+ BROADCAST(a) */', 1))
  : text STRING NOT NULL, 1 INT NOT NULL
