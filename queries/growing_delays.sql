-- Planes that leave later and later: at least five departures in a row, each delayed more than the one before, the last by two hours or more.
-- A row pattern (MATCH_RECOGNIZE) over the flights of each plane; a match is given once, when the next departure shows that it has ended.
--
--   penstock run queries/growing_delays.sql

CREATE TEMPORARY TABLE flights (
  `year` INT, `month` INT, `day` INT,
  dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT,
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  air_time INT, distance INT, `hour` INT, `minute` INT, time_hour STRING,
  departed AS TIMESTAMPADD(MINUTE, COALESCE(dep_time, sched_dep_time) DIV 100 * 60 + COALESCE(dep_time, sched_dep_time) % 100,
                           CAST(MAKE_DATE(`year`, `month`, `day`) AS TIMESTAMP)),
  -- each month's file is a split of its own; inside one, a day's cancelled flights stand behind those that left
  WATERMARK FOR departed AS departed - INTERVAL '1' DAY
) WITH (
  'connector' = 'filesystem', 'path' = 'queries/data/flights', 'format' = 'csv',
  'csv.null-literal' = 'NA', 'source.replay' = 'true'
);

SELECT tailnum, began, ended, departures, first_delay, last_delay, last_from
FROM (SELECT * FROM flights WHERE dep_time IS NOT NULL AND tailnum IS NOT NULL)
MATCH_RECOGNIZE (
  PARTITION BY tailnum
  ORDER BY departed, flight, origin
  MEASURES
    FIRST(departed) AS began,
    LAST(departed) AS ended,
    COUNT(*) AS departures,
    FIRST(dep_delay) AS first_delay,
    LAST(LATER.dep_delay) AS last_delay,
    LAST(LATER.origin) AS last_from
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (STRT LATER{4,})
  DEFINE LATER AS LATER.dep_delay > PREV(LATER.dep_delay)
)
WHERE last_delay >= 120;
