-- Tests of worst_delays.sql: penstock test queries

SCRIPT '../worst_delays.sql';

TEST 'the fourth worst delay pushes the least one out'
GIVEN flights (`year`, `month`, `day`, dep_time, dep_delay, carrier, flight) VALUES
  (2013, 1, 1, 900, 10, 'UA', 1),
  (2013, 1, 1, 910, 20, 'UA', 2),
  (2013, 1, 1, 920, 30, 'UA', 3),
  (2013, 1, 1, 930, 40, 'UA', 4),
  (2013, 1, 1, NULL, NULL, 'UA', 5)
EXPECT (place, flight) VALUES (1, 4), (2, 3), (3, 2);
