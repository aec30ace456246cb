-- prefix: an aggregate without keys had no row at a barrier before its first row came
SELECT count(*) AS n, max(v) AS m, (SELECT count(*) FROM nothing) AS z FROM u WHERE id > 15
