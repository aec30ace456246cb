# IN is a SEMI join; a join of two streams ends the time attribute
SELECT auction, ts FROM bid WHERE auction IN (SELECT id FROM person)
---
Project expressions=(auction, ts) names=(auction, ts)
  : auction BIGINT, ts TIMESTAMP(3) [event time]
  Join kind=semi left_keys=(0) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# over a bounded table it does not
SELECT auction, ts FROM bid WHERE channel IN (SELECT name FROM city) AND price > 10
---
Project expressions=(auction, ts) names=(auction, ts)
  : auction BIGINT, ts TIMESTAMP(3) [event time]
  Join kind=semi left_keys=(3) right_keys=(0)
    Filter predicate=(price > 10.00)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
# NOT IN over columns that are never NULL is an ANTI join
SELECT name FROM person WHERE id NOT IN (SELECT id FROM person WHERE city = 'Rome')
---
Project expressions=(name) names=(name)
  : name STRING
  Join kind=anti left_keys=(0) right_keys=(0)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Filter predicate=(city = 'Rome')
      WatermarkAssign time_column=3 watermark=joined
        Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
          Scan person columns=(0, 1, 2, 3, 4, 5)
            : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# else a second ANTI join sees to the NULLs: it drops all rows, or those whose own value is NULL
SELECT auction FROM bid WHERE auction NOT IN (SELECT size FROM city)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=anti residual=(holds_null OR is_null(auction))
    Join kind=anti left_keys=(0) right_keys=(3)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, CAST(size AS BIGINT)) names=(name, country, size, key1)
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
    Project expressions=((rows > values)) names=(holds_null)
      Filter predicate=(rows > 0)
        Aggregate aggregates=(count(*), count(CAST(size AS BIGINT))) names=(rows, values) phase=single
          : rows BIGINT NOT NULL, values BIGINT NOT NULL
          Scan city columns=(0, 1, 2)
            : name STRING, country STRING, size INT
====
# per shared key
SELECT auction FROM bid WHERE auction NOT IN (SELECT size FROM city WHERE city.name = bid.channel)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=anti left_keys=(3) right_keys=(0) residual=(holds_null OR is_null(auction))
    Join kind=anti left_keys=(3, 0) right_keys=(0, 3)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, CAST(size AS BIGINT)) names=(name, country, size, key2)
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
    Project expressions=(name, (rows > values)) names=(key1, holds_null)
      Aggregate keys=(0) aggregates=(count(*), count(CAST(size AS BIGINT))) names=(rows, values) phase=single
        : name STRING, rows BIGINT NOT NULL, values BIGINT NOT NULL
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
# IN of a row, with another condition shared
SELECT auction FROM bid b WHERE (auction, channel) NOT IN (SELECT c.size, c.name FROM city c WHERE c.size < b.price)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=anti residual=(((CAST(size AS DECIMAL(12, 2)) < CAST(price AS DECIMAL(12, 2))) AND (((auction = CAST(size AS BIGINT)) OR is_null(auction)) OR is_null(CAST(size AS BIGINT)))) AND (((channel = name) OR is_null(channel)) OR is_null(name)))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
# EXISTS: equalities are keys, the rest is the residual condition, own conditions filter below
SELECT name FROM person p WHERE EXISTS (SELECT * FROM bid b WHERE b.bidder = p.id AND b.price > p.score AND b.channel = 'web')
---
Project expressions=(name) names=(name)
  : name STRING
  Join kind=semi left_keys=(0) right_keys=(1) residual=(CAST(price AS DOUBLE) > score)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Filter predicate=(channel = 'web')
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# NOT of NOT EXISTS, nothing shared
SELECT auction FROM bid WHERE NOT (NOT EXISTS (SELECT 1 FROM city WHERE size > 5))
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=semi
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(TRUE) names=(found)
      Filter predicate=(rows > 0)
        Aggregate aggregates=(count(*)) names=(rows) phase=single
          : rows BIGINT NOT NULL
          Filter predicate=(size > 5)
            Scan city columns=(0, 1, 2)
              : name STRING, country STRING, size INT
====
# subqueries in subqueries
SELECT auction FROM bid WHERE channel IN (SELECT name FROM city WHERE country IN (SELECT name FROM airline))
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=semi left_keys=(3) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Join kind=semi left_keys=(1) right_keys=(1)
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
      Scan airline columns=(0, 1)
        : carrier STRING, name STRING
====
# under OR, and in the select list, IN and EXISTS are values
SELECT auction, bidder IN (SELECT id FROM person) AS known FROM bid WHERE price > 5 OR EXISTS (SELECT 1 FROM city WHERE name = channel)
---
Project expressions=(auction, CASE WHEN is_not_null(found) THEN TRUE WHEN is_null(holds_null) THEN FALSE WHEN holds_null THEN NULL WHEN is_null(bidder) THEN NULL ELSE FALSE END) names=(auction, known)
  : auction BIGINT, known BOOLEAN
  Join kind=left
    Join kind=left left_keys=(1) right_keys=(0)
      Filter predicate=((price > 5.00) OR is_not_null(found))
        Join kind=left left_keys=(3) right_keys=(0)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
          Project expressions=(name, TRUE) names=(key1, found)
            Aggregate keys=(0) phase=single
              : name STRING
              Scan city columns=(0, 1, 2)
                : name STRING, country STRING, size INT
      Project expressions=(id, TRUE) names=(key1, found)
        Aggregate keys=(0) phase=single
          : id BIGINT NOT NULL
          WatermarkAssign time_column=3 watermark=joined
            Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
              Scan person columns=(0, 1, 2, 3, 4, 5)
                : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Project expressions=((rows > values)) names=(holds_null)
      Filter predicate=(rows > 0)
        Aggregate aggregates=(count(*), count(id)) names=(rows, values) phase=single
          : rows BIGINT NOT NULL, values BIGINT NOT NULL
          WatermarkAssign time_column=3 watermark=joined
            Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
              Scan person columns=(0, 1, 2, 3, 4, 5)
                : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# an aggregate without keys always has its row
SELECT auction, price - (SELECT max(size) FROM city) AS above FROM bid
---
Project expressions=(auction, (price - CAST(max(size) AS DECIMAL(10, 0)))) names=(auction, above)
  : auction BIGINT, above DECIMAL(13, 2)
  Join kind=inner
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Aggregate aggregates=(max(size)) names=(max(size)) phase=single
      : max(size) INT
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
====
# a correlated one is grouped by what it shares; a count without rows is 0
SELECT name, (SELECT count(*) FROM bid WHERE bidder = person.id) AS bids, (SELECT max(price) FROM bid WHERE bidder = person.id) + 1 AS best FROM person
---
Project expressions=(name, CASE WHEN is_not_null(count(*)) THEN count(*) ELSE 0 END, (max(price) + 1)) names=(name, bids, best)
  : name STRING, bids BIGINT NOT NULL, best DECIMAL(11, 2)
  Join kind=left left_keys=(0) right_keys=(0)
    Join kind=left left_keys=(0) right_keys=(0)
      WatermarkAssign time_column=3 watermark=joined
        Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
          Scan person columns=(0, 1, 2, 3, 4, 5)
            : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
      Aggregate keys=(1) aggregates=(count(*)) names=(count(*)) phase=single
        : bidder BIGINT, count(*) BIGINT NOT NULL
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Aggregate keys=(1) aggregates=(max(price)) names=(max(price)) phase=single
      : bidder BIGINT, max(price) DECIMAL(10, 2)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# in HAVING and over groups
SELECT channel, count(*) AS n, (SELECT max(size) FROM city WHERE name = channel) AS size FROM bid GROUP BY channel HAVING count(*) > (SELECT min(size) FROM city)
---
Project expressions=(channel, count(*), max(size)) names=(channel, n, size)
  : channel STRING, n BIGINT NOT NULL, size INT
  Join kind=left left_keys=(0) right_keys=(0)
    Filter predicate=(count(*) > CAST(min(size) AS BIGINT))
      Join kind=inner
        Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
          : channel STRING, count(*) BIGINT NOT NULL
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        Aggregate aggregates=(min(size)) names=(min(size)) phase=single
          : min(size) INT
          Scan city columns=(0, 1, 2)
            : name STRING, country STRING, size INT
    Aggregate keys=(0) aggregates=(max(size)) names=(max(size)) phase=single
      : name STRING, max(size) INT
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
====
# one row by its form
SELECT (SELECT name FROM city ORDER BY size DESC LIMIT 1) AS biggest
---
Project expressions=(name) names=(biggest)
  : biggest STRING
  Join kind=left
    Values rows=((0))
      : nothing INT NOT NULL
    Project expressions=(name) names=(name)
      TopN keys=(size DESC NULLS LAST) limit=1 offset=0
        Project expressions=(name, size) names=(name, order1)
          Scan city columns=(0, 1, 2)
            : name STRING, country STRING, size INT
====
SELECT * FROM bid LEFT SEMI JOIN city ON bid.channel = city.name AND bid.price > city.size
---
Join kind=semi left_keys=(3) right_keys=(0) residual=(CAST(price AS DECIMAL(12, 2)) > CAST(size AS DECIMAL(12, 2)))
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time]
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
  Scan city columns=(0, 1, 2)
    : name STRING, country STRING, size INT
====
SELECT auction FROM bid LEFT ANTI JOIN city c ON bid.channel = c.name
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=anti left_keys=(3) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT (SELECT max(size) FROM city WHERE name > bid.channel) FROM bid
---
Project expressions=(max(size)) names=((SELECT max(size) FROM city WHERE name > bid.channel))
  : (SELECT max(size) FROM city WHERE name > bid.channel) INT
  Join kind=left left_keys=(3) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Aggregate keys=(3) aggregates=(max(size)) names=(max(size)) phase=single
      : outer1 STRING, max(size) INT
      Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
        Join kind=inner residual=(name > channel)
          Project expressions=($0) names=(outer1)
            Aggregate keys=(3) phase=single
              : channel STRING
              WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                Scan bid columns=(0, 1, 2, 3, 4)
                  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
          Scan city columns=(0, 1, 2)
            : name STRING, country STRING, size INT
====
SELECT (SELECT max(size + bid.auction) FROM city WHERE name = bid.channel) FROM bid
---
Project expressions=(max((CAST(size AS BIGINT) + auction))) names=((SELECT max(size + bid.auction) FROM city WHERE name = bid.channel))
  : (SELECT max(size + bid.auction) FROM city WHERE name = bid.channel) BIGINT
  Join kind=left left_keys=(5, 6, 3) right_keys=(0, 1, 2)
    Project expressions=(auction, bidder, price, channel, ts, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END) names=(auction, bidder, price, channel, ts, key1, key2)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Aggregate keys=(5, 6, 4) aggregates=(max((CAST(size AS BIGINT) + auction))) names=(max((CAST(size AS BIGINT) + auction))) phase=single
      : key1 BOOLEAN NOT NULL, key2 BIGINT NOT NULL, outer2 STRING, max((CAST(size AS BIGINT) + auction)) BIGINT
      Project expressions=(name, country, size, outer1, outer2, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END) names=(name, country, size, outer1, outer2, key1, key2)
        Project expressions=(name, country, size, outer1, outer2) names=(name, country, size, outer1, outer2)
          Join kind=inner left_keys=(1) right_keys=(0)
            Project expressions=($0, $1) names=(outer1, outer2)
              Aggregate keys=(0, 3) phase=single
                : auction BIGINT, channel STRING
                WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                  Scan bid columns=(0, 1, 2, 3, 4)
                    : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
            Scan city columns=(0, 1, 2)
              : name STRING, country STRING, size INT
====
SELECT * FROM bid WHERE price > 1 OR channel IN (SELECT name FROM city WHERE size < bid.price)
---
Project expressions=(auction, bidder, price, channel, ts) names=(auction, bidder, price, channel, ts)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time]
  Filter predicate=((price > 1.00) OR CASE WHEN is_not_null(found) THEN TRUE WHEN is_null(holds_null) THEN FALSE WHEN holds_null THEN NULL WHEN is_null(channel) THEN NULL ELSE FALSE END)
    Join kind=left left_keys=(2) right_keys=(0)
      Join kind=left left_keys=(2, 3) right_keys=(0, 1)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        Project expressions=(outer1, name, TRUE) names=(key1, key2, found)
          Aggregate keys=(3, 0) phase=single
            : outer1 DECIMAL(10, 2), name STRING
            Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
              Join kind=inner residual=(CAST(size AS DECIMAL(12, 2)) < CAST(price AS DECIMAL(12, 2)))
                Project expressions=($0) names=(outer1)
                  Aggregate keys=(2) phase=single
                    : price DECIMAL(10, 2)
                    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                      Scan bid columns=(0, 1, 2, 3, 4)
                        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                Scan city columns=(0, 1, 2)
                  : name STRING, country STRING, size INT
      Project expressions=(outer1, (rows > values)) names=(key1, holds_null)
        Aggregate keys=(3) aggregates=(count(*), count(name)) names=(rows, values) phase=single
          : outer1 DECIMAL(10, 2), rows BIGINT NOT NULL, values BIGINT NOT NULL
          Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
            Join kind=inner residual=(CAST(size AS DECIMAL(12, 2)) < CAST(price AS DECIMAL(12, 2)))
              Project expressions=($0) names=(outer1)
                Aggregate keys=(2) phase=single
                  : price DECIMAL(10, 2)
                  Join kind=left left_keys=(2, 3) right_keys=(0, 1)
                    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                      Scan bid columns=(0, 1, 2, 3, 4)
                        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                    Project expressions=(outer1, name, TRUE) names=(key1, key2, found)
                      Aggregate keys=(3, 0) phase=single
                        : outer1 DECIMAL(10, 2), name STRING
                        Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
                          Join kind=inner residual=(CAST(size AS DECIMAL(12, 2)) < CAST(price AS DECIMAL(12, 2)))
                            Project expressions=($0) names=(outer1)
                              Aggregate keys=(2) phase=single
                                : price DECIMAL(10, 2)
                                WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                                  Scan bid columns=(0, 1, 2, 3, 4)
                                    : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                            Scan city columns=(0, 1, 2)
                              : name STRING, country STRING, size INT
              Scan city columns=(0, 1, 2)
                : name STRING, country STRING, size INT
====
SELECT sum((SELECT max(size) FROM city)) FROM bid
---
Project expressions=(sum(max(size))) names=(sum((SELECT max(size) FROM city)))
  : sum((SELECT max(size) FROM city)) BIGINT
  Aggregate aggregates=(sum(max(size))) names=(sum(max(size))) phase=single
    : sum(max(size)) BIGINT
    Join kind=inner
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Aggregate aggregates=(max(size)) names=(max(size)) phase=single
        : max(size) INT
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
SELECT * FROM bid JOIN city ON bid.auction IN (SELECT size FROM city)
---
Join kind=semi left_keys=(0) right_keys=(3)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time], name STRING, country STRING, size INT
  Join kind=inner
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
  Project expressions=(name, country, size, CAST(size AS BIGINT)) names=(name, country, size, key1)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT sum((SELECT max(size) FROM city)) OVER () FROM bid
---
Project expressions=(over1) names=(sum((SELECT max(size) FROM city)) OVER ())
  : sum((SELECT max(size) FROM city)) OVER () BIGINT
  Over frame=RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING calls=(sum(max(size))) names=(over1) timely=False
    Join kind=inner
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Aggregate aggregates=(max(size)) names=(max(size)) phase=single
        : max(size) INT
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
SELECT auction FROM bid JOIN city AS c ON bid.channel = c.name AND c.size IN (SELECT size FROM city)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=semi left_keys=(7) right_keys=(2)
    Join kind=inner left_keys=(3) right_keys=(0)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT auction FROM bid LEFT JOIN city AS c ON bid.channel = c.name AND c.size > (SELECT min(size) FROM city)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=left left_keys=(3) right_keys=(0) residual=(size > min(size))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Join kind=inner
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
      Aggregate aggregates=(min(size)) names=(min(size)) phase=single
        : min(size) INT
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
SELECT sum(price + (SELECT max(size) FROM city)) AS s FROM bid GROUP BY (SELECT count(*) FROM city WHERE size < bid.auction)
---
Project expressions=(sum((price + CAST(max(size) AS DECIMAL(10, 0))))) names=(s)
  : s DECIMAL(23, 2)
  Aggregate keys=(8) aggregates=(sum((price + CAST(max(size) AS DECIMAL(10, 0))))) names=(sum((price + CAST(max(size) AS DECIMAL(10, 0))))) phase=single
    : (subquery) BIGINT NOT NULL, sum((price + CAST(max(size) AS DECIMAL(10, 0)))) DECIMAL(23, 2)
    Project expressions=(auction, bidder, price, channel, ts, outer1, count(*), max(size), CASE WHEN is_not_null(count(*)) THEN count(*) ELSE 0 END) names=(auction, bidder, price, channel, ts, outer1, count(*), max(size), (subquery))
      Join kind=inner
        Join kind=left left_keys=(0) right_keys=(0)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
          Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
            : outer1 BIGINT, count(*) BIGINT NOT NULL
            Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
              Join kind=inner residual=(CAST(size AS BIGINT) < auction)
                Project expressions=($0) names=(outer1)
                  Aggregate keys=(0) phase=single
                    : auction BIGINT
                    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                      Scan bid columns=(0, 1, 2, 3, 4)
                        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                Scan city columns=(0, 1, 2)
                  : name STRING, country STRING, size INT
        Aggregate aggregates=(max(size)) names=(max(size)) phase=single
          : max(size) INT
          Scan city columns=(0, 1, 2)
            : name STRING, country STRING, size INT
====
SELECT auction, (SELECT size FROM city WHERE name < bid.channel ORDER BY size DESC LIMIT 1) AS s FROM bid
---
Project expressions=(auction, value) names=(auction, s)
  : auction BIGINT, s INT
  Join kind=left left_keys=(3) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(outer1, size) names=(key1, value)
      PartitionTop partition=(3) order=(size DESC NULLS LAST) rank=row_number limit=1
        Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
          Join kind=inner residual=(name < channel)
            Project expressions=($0) names=(outer1)
              Aggregate keys=(3) phase=single
                : channel STRING
                WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                  Scan bid columns=(0, 1, 2, 3, 4)
                    : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
            Scan city columns=(0, 1, 2)
              : name STRING, country STRING, size INT
====
# no key says that there is one row for each name, so the rows are counted
SELECT (SELECT size FROM city WHERE name = bid.channel) AS size FROM bid
---
Project expressions=(single_value(any_value(size), count(*))) names=(size)
  : size INT
  Join kind=left left_keys=(3) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Aggregate keys=(0) aggregates=(any_value(size), count(*)) names=(any_value(size), count(*)) phase=single
      : name STRING, any_value(size) INT, count(*) BIGINT NOT NULL
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
