# a projection of everything as it is
SELECT k, name, age, id FROM people
---
Sink to the client [k, name, age, id]
└── Scan people [k, name, age, id]
(unchanged)
====
# renaming is not redundant
SELECT k AS key, name, age, id FROM people
---
Sink to the client [key, name, age, id]
└── Project k AS key, name, age, id
    └── Scan people [k, name, age, id]
(unchanged)
====
# unions of unions are one
SELECT id FROM people UNION ALL SELECT id FROM arrivals UNION ALL SELECT id FROM keyed
---
Sink to the client [id]
└── Union 3 inputs
    ├── Project id
    │   └── Scan people [id]
    ├── Project id
    │   └── Scan arrivals [id]
    └── Project id
        └── Scan keyed [id]
=>
Sink to the client [id]
└── Union 3 inputs
    ├── Scan people [id]
    ├── Scan arrivals [id]
    └── Scan keyed [id]
====
# LIMIT 0 gives nothing
SELECT id FROM people LIMIT 0
---
Sink to the client [id]
└── Limit 0
    └── Project id
        └── Scan people [id]
=>
Sink to the client [id]
└── Values 0 rows [id]
