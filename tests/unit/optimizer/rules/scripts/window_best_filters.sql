# the rows that are the MAX of their window, in two phases
SELECT o.k, o.b, h.window_end FROM orders AS o JOIN (SELECT MAX(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts BETWEEN h.window_end - INTERVAL '30' SECOND AND h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s): max(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b]
=>
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end), window filter on max(b)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s): max(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b]
====
# MIN, and a filter on the rows alone: they are some of those that the windows see
SELECT o.k, o.b, h.window_end FROM (SELECT * FROM orders WHERE a > 2 OR a IS NULL) AS o JOIN (SELECT MIN(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts >= h.window_end - INTERVAL '1' MINUTE AND o.ts < h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND (ts >= (window_end - INTERVAL '0 00:01:00' DAY TO SECOND)) AND (ts < window_end)
        ├── Project ts, k, b
        │   └── Filter (a > 2) OR is_null(a)
        │       └── WatermarkAssign ts AS ts
        │           └── Scan orders [ts, k, a, b]
        └── Project min(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): min(min(b)) AS min(b)
                └── Local WindowAggregate tumble(ts, 30 s): min(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b]
=>
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND (ts >= (window_end - INTERVAL '0 00:01:00' DAY TO SECOND)) AND (ts < window_end), window filter on min(b)
        ├── Project ts, k, b
        │   └── Filter (a > 2) OR is_null(a)
        │       └── WatermarkAssign ts AS ts
        │           └── Scan orders [ts, k, a, b]
        └── Project min(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): min(min(b)) AS min(b)
                └── Local WindowAggregate tumble(ts, 30 s): min(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b]
====
# a right join emits windows without a match, never rows without one
SELECT o.k, o.b, h.window_end FROM orders AS o RIGHT JOIN (SELECT MAX(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts BETWEEN h.window_end - INTERVAL '30' SECOND AND h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin right on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s): max(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b]
=>
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin right on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end), window filter on max(b)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s): max(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b]
====
# a left join emits rows without a match
SELECT o.k, o.b, h.window_end FROM orders AS o LEFT JOIN (SELECT MAX(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts BETWEEN h.window_end - INTERVAL '30' SECOND AND h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin left on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s): max(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b]
(unchanged)
====
# the windows see fewer rows than the join
SELECT o.k, o.b, h.window_end FROM orders AS o JOIN (SELECT MAX(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) WHERE a > 2 GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts BETWEEN h.window_end - INTERVAL '30' SECOND AND h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end)
        ├── Project ts, k, b
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s): max(b)
                    └── Project ts, b
                        └── Filter a > 2
                            └── Project ts, a, b
                                └── WatermarkAssign ts AS ts
                                    └── Scan orders [ts, k, a, b]
(unchanged)
====
# a MAX of each key would need them all
SELECT o.k, o.b, h.window_end FROM orders AS o JOIN (SELECT k, MAX(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS h ON o.k = h.k AND o.b = h.best AND o.ts BETWEEN h.window_end - INTERVAL '30' SECOND AND h.window_end
---
Sink to the client [k, b, window_end]
└── Project k#1 AS k, b, window_end
    └── IntervalJoin inner on k = k AND b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project k, max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s) by k: max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s) by k: max(b)
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, b]
(unchanged)
====
# of another column
SELECT o.k, o.b, h.window_end FROM orders AS o JOIN (SELECT MAX(u) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts BETWEEN h.window_end - INTERVAL '30' SECOND AND h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end)
        ├── Project ts, k, b
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, b, u]
        └── Project max(u) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(u)) AS max(u)
                └── Local WindowAggregate tumble(ts, 30 s): max(u)
                    └── Project ts, u
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b, u]
(unchanged)
====
# of other times: nothing bounds how long before its window a row may be
SELECT o.k, o.b, h.window_end FROM orders AS o JOIN (SELECT MAX(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts <= h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND ts <= window_end
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project max(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): max(max(b)) AS max(b)
                └── Local WindowAggregate tumble(ts, 30 s): max(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b]
(unchanged)
====
# the aggregate is no MAX
SELECT o.k, o.b, h.window_end FROM orders AS o JOIN (SELECT SUM(b) AS best, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY window_start, window_end) AS h ON o.b = h.best AND o.ts BETWEEN h.window_end - INTERVAL '30' SECOND AND h.window_end
---
Sink to the client [k, b, window_end]
└── Project k, b, window_end
    └── IntervalJoin inner on b = best AND (ts >= (window_end - INTERVAL '0 00:00:30' DAY TO SECOND)) AND (ts <= window_end)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, b]
        └── Project sum(b) AS best, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s): sum(sum(b)) AS sum(b)
                └── Local WindowAggregate tumble(ts, 30 s): sum(b)
                    └── Project ts, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b]
(unchanged)
====
# the groups that are the MAX of windows which windows below have emitted: before the MAX, and before the join
SELECT o.k, o.n, h.window_end FROM (SELECT k, COUNT(*) AS n, window_start, window_end FROM HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS o JOIN (SELECT MAX(n) AS best, window_start, window_end FROM (SELECT COUNT(*) AS n, window_start, window_end FROM HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS c GROUP BY window_start, window_end) AS h ON o.window_start = h.window_start AND o.window_end = h.window_end AND h.best <= o.n
---
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND best <= n
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Global WindowAggregate hop(slice_end, 10 s, 30 s) by k: sum0(count(*)) AS count(*)
        │       └── Local WindowAggregate hop(ts, 10 s, 30 s) by k: count(*)
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, k]
        └── Project max(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): max(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Global WindowAggregate hop(slice_end, 10 s, 30 s) by k: sum0(count(*)) AS count(*)
                        └── Local WindowAggregate hop(ts, 10 s, 30 s) by k: count(*)
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k]
=>
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND best <= n, window filter on max(n)
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Global WindowAggregate hop(slice_end, 10 s, 30 s) by k: sum0(count(*)) AS count(*)
        │       └── Local WindowAggregate hop(ts, 10 s, 30 s) by k: count(*)
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, k]
        └── Project max(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): max(n), window filter on max(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Global WindowAggregate hop(slice_end, 10 s, 30 s) by k: sum0(count(*)) AS count(*)
                        └── Local WindowAggregate hop(ts, 10 s, 30 s) by k: count(*)
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k]
====
# MIN, equal, of some of the groups
SELECT o.k, o.n, h.window_end FROM (SELECT * FROM (SELECT k, COUNT(*) AS n, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS c WHERE k > 1) AS o JOIN (SELECT MIN(n) AS best, window_start, window_end FROM (SELECT COUNT(*) AS n, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS c GROUP BY window_start, window_end) AS h ON o.window_start = h.window_start AND o.window_end = h.window_end AND o.n = h.best
---
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND n = best
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Filter CAST(k AS BIGINT) > 1
        │       └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
        │           └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
        │               └── WatermarkAssign ts AS ts
        │                   └── Scan orders [ts, k]
        └── Project min(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): min(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                        └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k]
=>
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND n = best, window filter on min(n)
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Filter CAST(k AS BIGINT) > 1
        │       └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
        │           └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
        │               └── WatermarkAssign ts AS ts
        │                   └── Scan orders [ts, k]
        └── Project min(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): min(n), window filter on min(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                        └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k]
====
# a filter below the MAX hides groups from it that the join sees: only the MAX itself has the filter
SELECT o.k, o.n, h.window_end FROM (SELECT k, COUNT(*) AS n, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS o JOIN (SELECT MAX(n) AS best, window_start, window_end FROM (SELECT COUNT(*) AS n, k, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS c WHERE n < 3 GROUP BY window_start, window_end) AS h ON o.window_start = h.window_start AND o.window_end = h.window_end AND o.n >= h.best
---
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND n >= best
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
        │       └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, k]
        └── Project max(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): max(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Filter count(*) < 3
                        └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                            └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                                └── WatermarkAssign ts AS ts
                                    └── Scan orders [ts, k]
=>
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND n >= best
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
        │       └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, k]
        └── Project max(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): max(n), window filter on max(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Filter count(*) < 3
                        └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                            └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                                └── WatermarkAssign ts AS ts
                                    └── Scan orders [ts, k]
====
# rows that are below the MAX match: only the MAX itself has the filter
SELECT o.k, o.n, h.window_end FROM (SELECT k, COUNT(*) AS n, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS o JOIN (SELECT MAX(n) AS best, window_start, window_end FROM (SELECT COUNT(*) AS n, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS c GROUP BY window_start, window_end) AS h ON o.window_start = h.window_start AND o.window_end = h.window_end AND o.n <= h.best
---
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND n <= best
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
        │       └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, k]
        └── Project max(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): max(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                        └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k]
=>
Sink to the client [k, n, window_end]
└── Project k, n, window_end#6 AS window_end
    └── WindowJoin inner on window_start = window_start AND window_end = window_end AND n <= best
        ├── Project k, count(*) AS n, window_start, window_end
        │   └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
        │       └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, k]
        └── Project max(n) AS best, window_start, window_end
            └── WindowAggregate attached(window_start, window_end): max(n), window filter on max(n)
                └── Project count(*) AS n, window_start, window_end
                    └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                        └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k]
====
# a second aggregate needs all rows
SELECT MAX(n) AS best, SUM(n) AS n, window_start, window_end FROM (SELECT k, COUNT(*) AS n, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end) AS c GROUP BY window_start, window_end
---
Sink to the client [best, n, window_start, window_end]
└── Project max(n) AS best, sum(n) AS n, window_start, window_end
    └── WindowAggregate attached(window_start, window_end): max(n), sum(n)
        └── Project count(*) AS n, window_start, window_end
            └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k]
(unchanged)
====
# windows that are not those of the rows below
SELECT MAX(n) AS best FROM (SELECT k, COUNT(*) AS n, window_time FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND) GROUP BY k, window_start, window_end, window_time) AS c GROUP BY TUMBLE(window_time, INTERVAL '1' MINUTE)
---
Sink to the client [best]
└── Project max(n) AS best
    └── WindowAggregate tumble(window_time, 1 min): max(n)
        └── Project count(*) AS n, window_time
            └── Global WindowAggregate tumble(slice_end, 30 s) by k: sum0(count(*)) AS count(*)
                └── Local WindowAggregate tumble(ts, 30 s) by k: count(*)
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k]
(unchanged)
