# fields nobody reads are not read, through filters and projections that pass the row on
SELECT c FROM (SELECT place, place.city AS c FROM sites WHERE id > 2) WHERE place.code > 3
---
Sink to the client [c]
└── Project place.city AS c
    └── Scan sites [id, place] where (id > 2) AND (place.code > 3)
=>
Sink to the client [c]
└── Project place.city AS c
    └── Scan sites [id, place(city, code)] where (id > 2) AND (place.code > 3)
====
# a row that is wanted whole is read whole
SELECT place, place.city FROM sites
---
Sink to the client [place, city]
└── Project place, place.city AS city
    └── Scan sites [place]
(unchanged)
====
# of rows inside of rows the outer fields
SELECT place.deep.x + id AS s FROM sites WHERE place.deep IS NOT NULL
---
Sink to the client [s]
└── Project CAST(place.deep.x AS BIGINT) + id AS s
    └── Scan sites [id, place] where is_not_null(place.deep)
=>
Sink to the client [s]
└── Project CAST(place.deep.x AS BIGINT) + id AS s
    └── Scan sites [id, place(deep)] where is_not_null(place.deep)
====
# readings of one table are narrowed alike
SELECT a.c FROM (SELECT id, place.city AS c FROM sites WHERE id > 1) AS a JOIN (SELECT place.code AS n FROM sites) AS b ON a.id = b.n
---
Sink to the client [c]
└── Project c
    └── Join inner on id = key1
        ├── Project id, place.city AS c
        │   └── Scan sites [id, place] where id > 1
        └── Project CAST(place.code AS BIGINT) AS key1
            └── Scan sites [place]
=>
Sink to the client [c]
└── Project c
    └── Join inner on id = key1
        ├── Project id, place.city AS c
        │   └── Scan sites [id, place(city, code)] where id > 1
        └── Project CAST(place.code AS BIGINT) AS key1
            └── Scan sites [place(city, code)]
====
SELECT place.city, count(*) FROM sites GROUP BY place.city
---
Sink to the client [city, count(*)]
└── Project place.city AS city, count(*)
    └── Global Aggregate by place.city: sum0(count(*)) AS count(*)
        └── Local Aggregate by place.city: count(*)
            └── Project place.city
                └── Scan sites [place]
=>
Sink to the client [city, count(*)]
└── Project place.city AS city, count(*)
    └── Global Aggregate by place.city: sum0(count(*)) AS count(*)
        └── Local Aggregate by place.city: count(*)
            └── Project place.city
                └── Scan sites [place(city)]
====
# other formats cannot leave fields out
SELECT k FROM arrivals
---
Sink to the client [k]
└── Scan arrivals [k]
(unchanged)
====
SELECT max(place.code) AS m, count(*) FILTER (WHERE place.city > 'a') AS n FROM sites
---
Sink to the client [m, n]
└── Project max(place.code) AS m, count(*) FILTER (WHERE (place.city > 'a')) AS n
    └── Global Aggregate: max(max(place.code)) AS max(place.code), sum0(count(*) FILTER (WHERE (place.city > 'a'))) AS count(*) FILTER (WHERE (place.city > 'a'))
        └── Local Aggregate: max(place.code), count(*) FILTER (WHERE (place.city > 'a'))
            └── Scan sites [place]
=>
Sink to the client [m, n]
└── Project max(place.code) AS m, count(*) FILTER (WHERE (place.city > 'a')) AS n
    └── Global Aggregate: max(max(place.code)) AS max(place.code), sum0(count(*) FILTER (WHERE (place.city > 'a'))) AS count(*) FILTER (WHERE (place.city > 'a'))
        └── Local Aggregate: max(place.code), count(*) FILTER (WHERE (place.city > 'a'))
            └── Scan sites [place(city, code)]
