# the backend makes no watermarks: down to the scan
SELECT a FROM archive WHERE a > 3
---
Sink to the client [a]
└── Project a
    └── Filter a > 3
        └── WatermarkAssign ts AS ts
            └── Scan archive [ts, a]
=>
Sink to the client [a]
└── Project a
    └── WatermarkAssign ts AS ts
        └── Scan archive [ts, a] where a > 3
====
# below windows as well
SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE archive, DESCRIPTOR(ts), INTERVAL '1' MINUTE) WHERE k = 'x' GROUP BY window_start, window_end
---
Sink to the client [window_start, n]
└── Project window_start, count(*) AS n
    └── WindowAggregate tumble(ts, 1 min): count(*)
        └── Project ts
            └── Filter k = 'x'
                └── WatermarkAssign ts AS ts
                    └── Scan archive [ts, k]
=>
Sink to the client [window_start, n]
└── Project window_start, count(*) AS n
    └── WindowAggregate tumble(ts, 1 min): count(*)
        └── Project ts
            └── WatermarkAssign ts AS ts
                └── Scan archive [ts, k] where k = 'x'
====
# a filter on an aggregate stays above the aggregate, so no watermark is passed
SELECT k FROM (SELECT k, MAX(a) AS m FROM archive GROUP BY k) WHERE m > 3
---
Sink to the client [k]
└── Project k
    └── Filter max(a) > 3
        └── Aggregate by k: max(a)
            └── Project k, a
                └── WatermarkAssign ts AS ts
                    └── Scan archive [ts, k, a]
(unchanged)
