# each change is bound as a new declaration would be
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s SET ('csv.header' = 'false');
ALTER TABLE s ADD (m DECIMAL(10, 2) AFTER id, z AS id + 1, f STRING FIRST);
ALTER TABLE s DROP WATERMARK;
ALTER TABLE s ADD WATERMARK FOR ts AS ts - INTERVAL '5' SECOND;
ALTER TABLE s MODIFY (m DOUBLE, PRIMARY KEY (id, m) NOT ENFORCED);
ALTER TABLE s DROP (z, w);
ALTER TABLE s RENAME id TO identity;
ALTER TABLE s RENAME TO r;
ALTER TABLE r RESET ('csv.header');
SELECT * FROM r
---
table s

altered

altered

altered

altered

altered

altered

altered

altered

altered

WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
  : f STRING, identity INT NOT NULL, m DOUBLE NOT NULL, v BIGINT, ts TIMESTAMP(3) [event time]
  Scan r columns=(0, 1, 2, 3, 4)
    : f STRING, identity INT NOT NULL, m DOUBLE NOT NULL, v BIGINT, ts TIMESTAMP(3)
