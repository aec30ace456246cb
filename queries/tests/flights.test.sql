-- Tests of flights.sql: penstock test queries

SCRIPT '../flights.sql';

TEST 'a week per origin and airline'
GIVEN flights (`year`, `month`, `day`, dep_time, sched_dep_time, dep_delay, arr_delay, carrier, tailnum, origin) VALUES
  (2013, 1, 3, 900, 900, 0, 20, 'UA', 'N1', 'EWR'),
  (2013, 1, 4, NULL, 900, NULL, NULL, 'UA', NULL, 'EWR'),
  (2013, 1, 11, 900, 855, 5, -3, 'UA', 'N1', 'EWR')
GIVEN planes (tailnum, seats) VALUES ('N1', 150)
GIVEN airlines VALUES ('UA', 'United Air Lines Inc.')
EXPECT delays (week, airline, flights, cancelled, late_arrivals, worst_arrival, seats) VALUES
  ('2013-01-03 00:00:00', 'United Air Lines Inc.', 2, 1, 1, 20, 150),
  ('2013-01-10 00:00:00', 'United Air Lines Inc.', 1, 0, 0, -3, 150);

TEST 'a flight that comes after its week has closed is dropped'
GIVEN flights (`year`, `month`, `day`, dep_time, carrier, origin)
  VALUES (2013, 1, 3, 900, 'UA', 'EWR') WATERMARK '2013-01-10 00:00:00'
  VALUES (2013, 1, 4, 900, 'UA', 'EWR')
GIVEN planes NO ROWS
GIVEN airlines VALUES ('UA', 'United Air Lines Inc.')
EXPECT delays (week, flights) VALUES ('2013-01-03', 1);
