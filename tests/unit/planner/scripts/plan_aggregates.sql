SELECT FIRST_VALUE(price) AS f, LAST(channel) IGNORE NULLS AS l FROM bid
---
Project expressions=(first_value(price ORDER BY ts NULLS FIRST), last_value(channel ORDER BY ts NULLS FIRST) FILTER (WHERE is_not_null(channel))) names=(f, l)
  : f DECIMAL(10, 2), l STRING
  Aggregate aggregates=(first_value(price ORDER BY ts NULLS FIRST), last_value(channel ORDER BY ts NULLS FIRST) FILTER (WHERE is_not_null(channel))) names=(first_value(price ORDER BY ts NULLS FIRST), last_value(channel ORDER BY ts NULLS FIRST) FILTER (WHERE is_not_null(channel))) phase=single
    : first_value(price ORDER BY ts NULLS FIRST) DECIMAL(10, 2), last_value(channel ORDER BY ts NULLS FIRST) FILTER (WHERE is_not_null(channel)) STRING
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT LISTAGG(DISTINCT channel, ', ') WITHIN GROUP (ORDER BY channel DESC) AS l, ARRAY_AGG(price ORDER BY ts DESC, bidder) AS a FROM bid
---
Project expressions=(listagg(DISTINCT channel, ', ' ORDER BY channel DESC NULLS LAST), collect_list(price ORDER BY ts DESC NULLS LAST, bidder NULLS FIRST)) names=(l, a)
  : l STRING, a ARRAY<DECIMAL(10, 2)> NOT NULL
  Aggregate aggregates=(listagg(DISTINCT channel, ', ' ORDER BY channel DESC NULLS LAST), collect_list(price ORDER BY ts DESC NULLS LAST, bidder NULLS FIRST)) names=(listagg(DISTINCT channel, ', ' ORDER BY channel DESC NULLS LAST), collect_list(price ORDER BY ts DESC NULLS LAST, bidder NULLS FIRST)) phase=single
    : listagg(DISTINCT channel, ', ' ORDER BY channel DESC NULLS LAST) STRING, collect_list(price ORDER BY ts DESC NULLS LAST, bidder NULLS FIRST) ARRAY<DECIMAL(10, 2)> NOT NULL
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY price) AS p, MEDIAN(price) AS m, APPROX_PERCENTILE(price, 0.5, 100) AS a FROM bid
---
Project expressions=(percentile(CAST(price AS DOUBLE), 0.9), percentile(CAST(price AS DOUBLE), 0.5), percentile_approx(price, 0.5)) names=(p, m, a)
  : p DOUBLE, m DOUBLE, a DECIMAL(10, 2)
  Aggregate aggregates=(percentile(CAST(price AS DOUBLE), 0.9), percentile(CAST(price AS DOUBLE), 0.5), percentile_approx(price, 0.5)) names=(percentile(CAST(price AS DOUBLE), 0.9), percentile(CAST(price AS DOUBLE), 0.5), percentile_approx(price, 0.5)) phase=single
    : percentile(CAST(price AS DOUBLE), 0.9) DOUBLE, percentile(CAST(price AS DOUBLE), 0.5) DOUBLE, percentile_approx(price, 0.5) DECIMAL(10, 2)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT COUNT_IF(price > 1) AS c, APPROX_COUNT_DISTINCT(bidder, 0.01) AS d, REGR_COUNT(price, bidder) AS r, COLLECT_SET(channel) AS s FROM bid
---
Project expressions=(count(CASE WHEN (price > 1.00) THEN TRUE ELSE NULL END), count(DISTINCT bidder), count(CASE WHEN (is_not_null(CAST(price AS DOUBLE)) AND is_not_null(CAST(bidder AS DOUBLE))) THEN TRUE ELSE NULL END), collect_list(DISTINCT channel)) names=(c, d, r, s)
  : c BIGINT NOT NULL, d BIGINT NOT NULL, r BIGINT NOT NULL, s ARRAY<STRING> NOT NULL
  Aggregate aggregates=(count(CASE WHEN (price > 1.00) THEN TRUE ELSE NULL END), count(DISTINCT bidder), count(CASE WHEN (is_not_null(CAST(price AS DOUBLE)) AND is_not_null(CAST(bidder AS DOUBLE))) THEN TRUE ELSE NULL END), collect_list(DISTINCT channel)) names=(count(CASE WHEN (price > 1.00) THEN TRUE ELSE NULL END), count(DISTINCT bidder), count(CASE WHEN (is_not_null(CAST(price AS DOUBLE)) AND is_not_null(CAST(bidder AS DOUBLE))) THEN TRUE ELSE NULL END), collect_list(DISTINCT channel)) phase=single
    : count(CASE WHEN (price > 1.00) THEN TRUE ELSE NULL END) BIGINT NOT NULL, count(DISTINCT bidder) BIGINT NOT NULL, count(CASE WHEN (is_not_null(CAST(price AS DOUBLE)) AND is_not_null(CAST(bidder AS DOUBLE))) THEN TRUE ELSE NULL END) BIGINT NOT NULL, collect_list(DISTINCT channel) ARRAY<STRING> NOT NULL
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT MAX_BY(channel, price) AS m, HISTOGRAM(channel) AS h, MODE(bidder) AS o, CORR(price, bidder) AS c, BIT_XOR(bidder) AS x FROM bid
---
Project expressions=(max_by(channel, price), histogram(channel), mode(bidder), corr(CAST(price AS DOUBLE), CAST(bidder AS DOUBLE)), bit_xor(bidder)) names=(m, h, o, c, x)
  : m STRING, h MAP<STRING, BIGINT>, o BIGINT, c DOUBLE, x BIGINT
  Aggregate aggregates=(max_by(channel, price), histogram(channel), mode(bidder), corr(CAST(price AS DOUBLE), CAST(bidder AS DOUBLE)), bit_xor(bidder)) names=(max_by(channel, price), histogram(channel), mode(bidder), corr(CAST(price AS DOUBLE), CAST(bidder AS DOUBLE)), bit_xor(bidder)) phase=single
    : max_by(channel, price) STRING, histogram(channel) MAP<STRING, BIGINT>, mode(bidder) BIGINT, corr(CAST(price AS DOUBLE), CAST(bidder AS DOUBLE)) DOUBLE, bit_xor(bidder) BIGINT
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT MIN(ROW(price, channel)) AS m, COLLECT_LIST(ARRAY[auction] ORDER BY ROW(ts, price) DESC) AS l, HISTOGRAM(ARRAY[channel]) AS h FROM bid
---
Project expressions=(min(struct(price, channel)), collect_list(array(auction) ORDER BY struct(ts, price) DESC NULLS LAST), histogram(array(channel))) names=(m, l, h)
  : m ROW<price DECIMAL(10, 2), channel STRING>, l ARRAY<ARRAY<BIGINT>> NOT NULL, h MAP<ARRAY<STRING>, BIGINT>
  Aggregate aggregates=(min(struct(price, channel)), collect_list(array(auction) ORDER BY struct(ts, price) DESC NULLS LAST), histogram(array(channel))) names=(min(struct(price, channel)), collect_list(array(auction) ORDER BY struct(ts, price) DESC NULLS LAST), histogram(array(channel))) phase=single
    : min(struct(price, channel)) ROW<price DECIMAL(10, 2), channel STRING>, collect_list(array(auction) ORDER BY struct(ts, price) DESC NULLS LAST) ARRAY<ARRAY<BIGINT>> NOT NULL, histogram(array(channel)) MAP<ARRAY<STRING>, BIGINT>
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# groups of the one row a SELECT without FROM has
SELECT 1 AS x, count(*) AS n GROUP BY 1
---
Project expressions=(1, count(*)) names=(x, n)
  : x INT NOT NULL, n BIGINT NOT NULL
  Aggregate keys=(1) aggregates=(count(*)) names=(count(*)) phase=single
    : 1 INT NOT NULL, count(*) BIGINT NOT NULL
    Project expressions=(nothing, 1) names=(nothing, 1)
      Values rows=((0))
        : nothing INT NOT NULL
====
SELECT 1 AS x GROUP BY 1
---
Project expressions=(1) names=(x)
  : x INT NOT NULL
  Aggregate keys=(1) phase=single
    : 1 INT NOT NULL
    Project expressions=(nothing, 1) names=(nothing, 1)
      Values rows=((0))
        : nothing INT NOT NULL
====
# every item that is not computed of groups is a key, those of * too
SELECT *, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS r FROM (SELECT auction, price FROM bid) AS b GROUP BY ALL HAVING COUNT(*) > 1
---
Project expressions=(auction, price, count(*), over1) names=(auction, price, n, r)
  : auction BIGINT, price DECIMAL(10, 2), n BIGINT NOT NULL, r INT NOT NULL
  Over order=(count(*) NULLS FIRST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(row_number()) names=(over1) timely=False
    Filter predicate=(count(*) > 1)
      Aggregate keys=(0, 1) aggregates=(count(*)) names=(count(*)) phase=single
        : auction BIGINT, price DECIMAL(10, 2), count(*) BIGINT NOT NULL
        Project expressions=(auction, price) names=(auction, price)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT COUNT(*) AS n FROM bid GROUP BY ALL
---
Project expressions=(count(*)) names=(n)
  : n BIGINT NOT NULL
  Aggregate aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY ALL
---
Project expressions=(window_start, window_end, count(*)) names=(window_start, window_end, n)
  : window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], n BIGINT NOT NULL
  WindowAggregate window={start_column: 5, end_column: 6} aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
