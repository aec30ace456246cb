SELECT from_json(channel, 'a INT, b ARRAY<STRING>').b[1] AS b, from_json(channel, 'MAP<STRING, BIGINT>')['k'] AS k FROM bid
---
Project expressions=(from_json(channel, 'a INT, b ARRAY<STRING>').b[1], from_json(channel, 'MAP<STRING, BIGINT>')['k']) names=(b, k)
  : b STRING, k BIGINT
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT json_object(KEY 'a' VALUE auction, 'b' : json_array(price, bidder ABSENT ON NULL) NULL ON NULL) AS o, to_json(struct(auction, channel)) AS r FROM bid
---
Project expressions=(json_object('null vj', 'a', auction, 'b', json_array('absent vv', price, bidder)), to_json(struct(auction, channel))) names=(o, r)
  : o STRING NOT NULL, r STRING NOT NULL
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction, t.x, t.y FROM bid LATERAL VIEW json_tuple(channel, 'x', 'y') t AS x, y
---
Project expressions=(auction, x, y) names=(auction, x, y)
  : auction BIGINT, x STRING, y STRING
  Unnest call=stack(1, get_json_object(channel, '$[''x'']'), get_json_object(channel, '$[''y'']')) keep=(0, 1, 2, 3, 4) gives=(0, 1) outer=False ordinality=False
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction, c0 FROM bid, LATERAL TABLE(json_tuple(channel, 'x'))
---
Project expressions=(auction, c0) names=(auction, c0)
  : auction BIGINT, c0 STRING
  Unnest call=stack(1, get_json_object(channel, '$[''x'']')) keep=(0, 1, 2, 3, 4) gives=(0) outer=False ordinality=False
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
