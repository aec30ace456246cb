# the subquery is joined with the different outer values below its union
SELECT auction FROM bid WHERE channel IN (SELECT name FROM city WHERE size = bid.auction UNION ALL SELECT country FROM city WHERE size < bid.auction)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Project expressions=(auction, bidder, price, channel, ts) names=(auction, bidder, price, channel, ts)
    Join kind=semi left_keys=(5, 6, 3) right_keys=(2, 3, 0)
      Project expressions=(auction, bidder, price, channel, ts, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END) names=(auction, bidder, price, channel, ts, key1, key2)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, outer1, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END) names=(name, outer1, key1, key2)
        Union
          Project expressions=(name, outer1) names=(name, outer1)
            Filter predicate=(CAST(size AS BIGINT) = auction)
              Join kind=inner
                Scan city columns=(0, 1, 2)
                  : name STRING, country STRING, size INT
                Project expressions=($0) names=(outer1)
                  Aggregate keys=(0) phase=single
                    : auction BIGINT
                    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                      Scan bid columns=(0, 1, 2, 3, 4)
                        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
          Project expressions=(country, outer1) names=(country, outer1)
            Filter predicate=(CAST(size AS BIGINT) < auction)
              Join kind=inner
                Scan city columns=(0, 1, 2)
                  : name STRING, country STRING, size INT
                Project expressions=($0) names=(outer1)
                  Aggregate keys=(0) phase=single
                    : auction BIGINT
                    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                      Scan bid columns=(0, 1, 2, 3, 4)
                        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# an aggregate without GROUP BY has a row for each outer value
SELECT (SELECT count(*) + b.auction FROM city WHERE size > b.auction) AS n FROM bid AS b
---
Project expressions=(value) names=(n)
  : n BIGINT
  Join kind=left left_keys=(5, 6) right_keys=(0, 1)
    Project expressions=(auction, bidder, price, channel, ts, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END) names=(auction, bidder, price, channel, ts, key1, key2)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(key1, key2, count(*) + b.auction) names=(key1, key2, value)
      Project expressions=(count(*) + b.auction, outer1, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END) names=(count(*) + b.auction, outer1, key1, key2)
        Project expressions=((count(*) + auction), outer1) names=(count(*) + b.auction, outer1)
          Project expressions=(CASE WHEN is_null(count(*)) THEN 0 ELSE count(*) END, outer1) names=(count(*), outer1)
            Project expressions=(outer1, count(*), outer1) names=(outer1, count(*), outer1)
              Join kind=left left_keys=(1, 2) right_keys=(2, 3)
                Project expressions=(outer1, is_null(outer1), CASE WHEN is_null(outer1) THEN 0 ELSE outer1 END) names=(outer1, key1, key2)
                  Project expressions=($0) names=(outer1)
                    Aggregate keys=(0) phase=single
                      : auction BIGINT
                      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                        Scan bid columns=(0, 1, 2, 3, 4)
                          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                Project expressions=(count(*), outer1, is_null(outer1), CASE WHEN is_null(outer1) THEN 0 ELSE outer1 END) names=(count(*), outer1, key1, key2)
                  Project expressions=(count(*), outer1) names=(count(*), outer1)
                    Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
                      : outer1 BIGINT, count(*) BIGINT NOT NULL
                      Filter predicate=(CAST(size AS BIGINT) > auction)
                        Join kind=inner
                          Scan city columns=(0, 1, 2)
                            : name STRING, country STRING, size INT
                          Project expressions=($0) names=(outer1)
                            Aggregate keys=(0) phase=single
                              : auction BIGINT
                              WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                                Scan bid columns=(0, 1, 2, 3, 4)
                                  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# LIMIT per outer value is a Top-N of its partition, in the order of all columns
SELECT b.auction, c.name FROM bid AS b, LATERAL (SELECT name FROM city WHERE country = b.channel LIMIT 1) AS c
---
Project expressions=(auction, name) names=(auction, name)
  : auction BIGINT, name STRING
  Project expressions=(auction, bidder, price, channel, ts, name) names=(auction, bidder, price, channel, ts, name)
    Project expressions=(auction, bidder, price, channel, ts, name, outer1) names=(auction, bidder, price, channel, ts, name, outer1)
      Join kind=inner left_keys=(5, 6) right_keys=(2, 3)
        Project expressions=(auction, bidder, price, channel, ts, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(auction, bidder, price, channel, ts, key1, key2)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        Project expressions=(name, outer1, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(name, outer1, key1, key2)
          PartitionTop partition=(1) order=(name NULLS FIRST) rank=row_number limit=1
            Project expressions=(name, outer1) names=(name, outer1)
              Filter predicate=(country = channel)
                Join kind=inner
                  Scan city columns=(0, 1, 2)
                    : name STRING, country STRING, size INT
                  Project expressions=($0) names=(outer1)
                    Aggregate keys=(3) phase=single
                      : channel STRING
                      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                        Scan bid columns=(0, 1, 2, 3, 4)
                          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# two levels out: the middle query carries the outer value
SELECT auction FROM bid WHERE EXISTS (SELECT 1 FROM city WHERE name IN (SELECT name FROM airline WHERE carrier = bid.channel))
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Project expressions=(auction, bidder, price, channel, ts) names=(auction, bidder, price, channel, ts)
    Join kind=semi left_keys=(5, 6) right_keys=(4, 5)
      Project expressions=(auction, bidder, price, channel, ts, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(auction, bidder, price, channel, ts, key1, key2)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, outer1, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(name, country, size, outer1, key1, key2)
        Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
          Join kind=semi left_keys=(0, 4, 5) right_keys=(1, 3, 4)
            Project expressions=(name, country, size, outer1, is_null(outer1), CASE WHEN is_null(CAST(outer1 AS STRING)) THEN '' ELSE CAST(outer1 AS STRING) END) names=(name, country, size, outer1, key2, key3)
              Join kind=inner
                Scan city columns=(0, 1, 2)
                  : name STRING, country STRING, size INT
                Project expressions=($0) names=(outer1)
                  Aggregate keys=(3) phase=single
                    : channel STRING
                    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                      Scan bid columns=(0, 1, 2, 3, 4)
                        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
            Project expressions=(carrier, name, outer1, is_null(outer1), CASE WHEN is_null(CAST(outer1 AS STRING)) THEN '' ELSE CAST(outer1 AS STRING) END) names=(carrier, name, outer1, key2, key3)
              Filter predicate=(carrier = channel)
                Join kind=inner
                  Scan airline columns=(0, 1)
                    : carrier STRING, name STRING
                  Project expressions=($0) names=(outer1)
                    Aggregate keys=(3) phase=single
                      : channel STRING
                      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                        Scan bid columns=(0, 1, 2, 3, 4)
                          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# the list of a LEFT JOIN LATERAL over both sides is computed below the join
SELECT * FROM bid AS b LEFT JOIN LATERAL (SELECT size + b.price AS s FROM city WHERE name = b.channel) AS c ON TRUE
---
Project expressions=(auction, bidder, price, channel, ts, s) names=(auction, bidder, price, channel, ts, s)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time], s DECIMAL(13, 2)
  Project expressions=(auction, bidder, price, channel, ts, s, outer1, outer2) names=(auction, bidder, price, channel, ts, s, outer1, outer2)
    Join kind=left left_keys=(5, 6, 7, 8) right_keys=(3, 4, 5, 6)
      Project expressions=(auction, bidder, price, channel, ts, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(auction, bidder, price, channel, ts, key1, key2, key3, key4)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(s, outer1, outer2, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(s, outer1, outer2, key1, key2, key3, key4)
        Project expressions=((CAST(size AS DECIMAL(10, 0)) + price), outer1, outer2) names=(s, outer1, outer2)
          Filter predicate=(name = channel)
            Join kind=inner
              Scan city columns=(0, 1, 2)
                : name STRING, country STRING, size INT
              Project expressions=($0, $1) names=(outer1, outer2)
                Aggregate keys=(2, 3) phase=single
                  : price DECIMAL(10, 2), channel STRING
                  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                    Scan bid columns=(0, 1, 2, 3, 4)
                      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT * FROM bid AS b, LATERAL (SELECT b.price, count(*) FROM city GROUP BY b.price) AS c
---
Project expressions=(auction, bidder, price, channel, ts, price, count(*)) names=(auction, bidder, price, channel, ts, price, count(*))
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time], price DECIMAL(10, 2), count(*) BIGINT NOT NULL
  Project expressions=(auction, bidder, price, channel, ts, price, count(*), outer1) names=(auction, bidder, price, channel, ts, price, count(*), outer1)
    Join kind=inner left_keys=(5, 6) right_keys=(3, 4)
      Project expressions=(auction, bidder, price, channel, ts, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END) names=(auction, bidder, price, channel, ts, key1, key2)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(price, count(*), outer1, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END) names=(price, count(*), outer1, key1, key2)
        Project expressions=(price, count(*), outer1) names=(price, count(*), outer1)
          Aggregate keys=(3, 4) aggregates=(count(*)) names=(count(*)) phase=single
            : price DECIMAL(10, 2), outer1 DECIMAL(10, 2), count(*) BIGINT NOT NULL
            Project expressions=(name, country, size, price, outer1) names=(name, country, size, price, outer1)
              Join kind=inner
                Scan city columns=(0, 1, 2)
                  : name STRING, country STRING, size INT
                Project expressions=($0) names=(outer1)
                  Aggregate keys=(2) phase=single
                    : price DECIMAL(10, 2)
                    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                      Scan bid columns=(0, 1, 2, 3, 4)
                        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT * FROM bid AS b LEFT JOIN LATERAL (SELECT b.*) AS c ON TRUE
---
Project expressions=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts) names=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time], auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
  Project expressions=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts, outer1, outer2, outer3, outer4, outer5) names=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts, outer1, outer2, outer3, outer4, outer5)
    Join kind=left left_keys=(5, 6, 7, 8, 9, 10, 11, 12, 13, 14) right_keys=(10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
      Project expressions=(auction, bidder, price, channel, ts, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END, is_null(bidder), CASE WHEN is_null(bidder) THEN 0 ELSE bidder END, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END, is_null(ts), CASE WHEN is_null(CAST(ts AS STRING)) THEN '' ELSE CAST(ts AS STRING) END) names=(auction, bidder, price, channel, ts, key1, key2, key3, key4, key5, key6, key7, key8, key9, key10)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(auction, bidder, price, channel, ts, outer1, outer2, outer3, outer4, outer5, is_null(auction), CASE WHEN is_null(auction) THEN 0 ELSE auction END, is_null(bidder), CASE WHEN is_null(bidder) THEN 0 ELSE bidder END, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END, is_null(ts), CASE WHEN is_null(CAST(ts AS STRING)) THEN '' ELSE CAST(ts AS STRING) END) names=(auction, bidder, price, channel, ts, outer1, outer2, outer3, outer4, outer5, key1, key2, key3, key4, key5, key6, key7, key8, key9, key10)
        Project expressions=(auction, bidder, price, channel, ts, outer1, outer2, outer3, outer4, outer5) names=(auction, bidder, price, channel, ts, outer1, outer2, outer3, outer4, outer5)
          Join kind=inner
            Values rows=((0))
              : nothing INT NOT NULL
            Project expressions=($0, $1, $2, $3, $4) names=(outer1, outer2, outer3, outer4, outer5)
              Aggregate keys=(0, 1, 2, 3, 4) phase=single
                : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                  Scan bid columns=(0, 1, 2, 3, 4)
                    : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# LIMIT 0 of an aggregate: no row
SELECT (SELECT max(size) FROM city WHERE name = b.channel LIMIT 0) FROM bid AS b
---
Project expressions=(value) names=((SELECT max(size) FROM city WHERE name = b.channel LIMIT 0))
  : (SELECT max(size) FROM city WHERE name = b.channel LIMIT 0) INT
  Join kind=left left_keys=(5, 6) right_keys=(0, 1)
    Project expressions=(auction, bidder, price, channel, ts, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(auction, bidder, price, channel, ts, key1, key2)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(key1, key2, max(size)) names=(key1, key2, value)
      Project expressions=(max(size), outer1, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(max(size), outer1, key1, key2)
        Filter predicate=FALSE
          Project expressions=(max(size), outer1) names=(max(size), outer1)
            Project expressions=(outer1, max(size), outer1) names=(outer1, max(size), outer1)
              Join kind=left left_keys=(1, 2) right_keys=(2, 3)
                Project expressions=(outer1, is_null(outer1), CASE WHEN is_null(CAST(outer1 AS STRING)) THEN '' ELSE CAST(outer1 AS STRING) END) names=(outer1, key1, key2)
                  Project expressions=($0) names=(outer1)
                    Aggregate keys=(3) phase=single
                      : channel STRING
                      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                        Scan bid columns=(0, 1, 2, 3, 4)
                          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                Project expressions=(max(size), outer1, is_null(outer1), CASE WHEN is_null(CAST(outer1 AS STRING)) THEN '' ELSE CAST(outer1 AS STRING) END) names=(max(size), outer1, key1, key2)
                  Project expressions=(max(size), outer1) names=(max(size), outer1)
                    Aggregate keys=(3) aggregates=(max(size)) names=(max(size)) phase=single
                      : outer1 STRING, max(size) INT
                      Filter predicate=(name = channel)
                        Join kind=inner
                          Scan city columns=(0, 1, 2)
                            : name STRING, country STRING, size INT
                          Project expressions=($0) names=(outer1)
                            Aggregate keys=(3) phase=single
                              : channel STRING
                              WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                                Scan bid columns=(0, 1, 2, 3, 4)
                                  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# > ANY is a comparison with the least value, <= ALL the negation of > ANY
SELECT * FROM bid WHERE price > ANY (SELECT score FROM person)
---
Project expressions=(auction, bidder, price, channel, ts) names=(auction, bidder, price, channel, ts)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time]
  Filter predicate=CASE WHEN (CAST(price AS DOUBLE) > min(score)) THEN TRUE WHEN (CASE WHEN is_null(count(*)) THEN 0 ELSE count(*) END = 0) THEN FALSE WHEN (count(score) < count(*)) THEN NULL WHEN is_null(CAST(price AS DOUBLE)) THEN NULL ELSE FALSE END
    Join kind=inner
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Aggregate aggregates=(min(score), max(score), count(score), count(*)) names=(min(score), max(score), count(score), count(*)) phase=single
        : min(score) DOUBLE, max(score) DOUBLE, count(score) BIGINT NOT NULL, count(*) BIGINT NOT NULL
        WatermarkAssign time_column=3 watermark=joined
          Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
            Scan person columns=(0, 1, 2, 3, 4, 5)
              : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT auction FROM bid WHERE auction < ANY (1, (2)) AND bidder >= ALL (1, 2)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Filter predicate=(((auction < 1) OR (auction < 2)) AND ((bidder >= 1) AND (bidder >= 2)))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a list leaves NULLs out, so ARRAY collects rows of one field
SELECT ARRAY(SELECT size FROM city WHERE name = b.channel ORDER BY country DESC) AS sizes FROM bid AS b
---
Project expressions=(CASE WHEN is_null(collect_list(struct(size) ORDER BY country DESC NULLS LAST)) THEN array() ELSE transform(collect_list(struct(size) ORDER BY country DESC NULLS LAST), x -> x.col1) END) names=(sizes)
  : sizes ARRAY<INT> NOT NULL
  Join kind=left left_keys=(5, 6) right_keys=(0, 1)
    Project expressions=(auction, bidder, price, channel, ts, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(auction, bidder, price, channel, ts, key1, key2)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Aggregate keys=(3, 4) aggregates=(collect_list(struct(size) ORDER BY country DESC NULLS LAST)) names=(collect_list(struct(size) ORDER BY country DESC NULLS LAST)) phase=single
      : key1 BOOLEAN NOT NULL, key2 STRING NOT NULL, collect_list(struct(size) ORDER BY country DESC NULLS LAST) ARRAY<ROW<col1 INT>> NOT NULL
      Project expressions=(size, country, outer1, is_null(channel), CASE WHEN is_null(CAST(channel AS STRING)) THEN '' ELSE CAST(channel AS STRING) END) names=(size, country, outer1, key1, key2)
        Project expressions=(size, country, outer1) names=(size, country, outer1)
          Filter predicate=(name = channel)
            Join kind=inner
              Scan city columns=(0, 1, 2)
                : name STRING, country STRING, size INT
              Project expressions=($0) names=(outer1)
                Aggregate keys=(3) phase=single
                  : channel STRING
                  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                    Scan bid columns=(0, 1, 2, 3, 4)
                      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# the nearest row is a Top-1 per different value of the left columns
SELECT b.auction, p.name FROM bid AS b ASOF LEFT JOIN person AS p MATCH_CONDITION (b.ts >= p.joined) ON b.bidder = p.id
---
Project expressions=(auction, name) names=(auction, name)
  : auction BIGINT, name STRING
  Project expressions=(auction, bidder, price, channel, ts, id, name, city, joined, born, score, joined_day) names=(auction, bidder, price, channel, ts, id, name, city, joined, born, score, joined_day)
    Join kind=left left_keys=(1, 4) right_keys=(7, 8)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      PartitionTop partition=(7, 8) order=(joined DESC NULLS LAST) rank=row_number limit=1
        Project expressions=(id, name, city, joined, born, score, joined_day, outer1, outer2) names=(id, name, city, joined, born, score, joined_day, outer1, outer2)
          Join kind=inner left_keys=(0) right_keys=(0) residual=(ts >= joined)
            Project expressions=($0, $1) names=(outer1, outer2)
              Aggregate keys=(1, 4) phase=single
                : bidder BIGINT, ts TIMESTAMP(3)
                WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                  Scan bid columns=(0, 1, 2, 3, 4)
                    : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
            WatermarkAssign time_column=3 watermark=joined
              Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
                Scan person columns=(0, 1, 2, 3, 4, 5)
                  : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT b.auction, c.size FROM bid AS b LEFT JOIN (person AS p JOIN city AS c ON c.name = p.city) ON p.id = b.bidder
---
Project expressions=(auction, size) names=(auction, size)
  : auction BIGINT, size INT
  Join kind=left left_keys=(1) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Join kind=inner left_keys=(2) right_keys=(0)
      WatermarkAssign time_column=3 watermark=joined
        Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
          Scan person columns=(0, 1, 2, 3, 4, 5)
            : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
