-- Tests of growing_delays.sql: penstock test queries

SCRIPT '../growing_delays.sql';

TEST 'five departures, each later than the one before'
GIVEN flights (`year`, `month`, `day`, dep_time, dep_delay, tailnum, flight, origin) VALUES
  (2013, 1, 1, 600, 0, 'N1', 1, 'JFK'),
  (2013, 1, 1, 900, 10, 'N1', 2, 'JFK'),
  (2013, 1, 1, 1200, 40, 'N1', 3, 'JFK'),
  (2013, 1, 1, 1500, 90, 'N1', 4, 'JFK'),
  (2013, 1, 1, 1800, 125, 'N1', 5, 'EWR'),
  (2013, 1, 1, 2100, 5, 'N1', 6, 'JFK')
EXPECT (tailnum, departures, first_delay, last_delay, last_from) VALUES ('N1', 5, 0, 125, 'EWR');

TEST 'a last delay below two hours is none'
GIVEN flights (`year`, `month`, `day`, dep_time, dep_delay, tailnum, flight, origin) VALUES
  (2013, 1, 1, 600, 0, 'N1', 1, 'JFK'),
  (2013, 1, 1, 900, 10, 'N1', 2, 'JFK'),
  (2013, 1, 1, 1200, 40, 'N1', 3, 'JFK'),
  (2013, 1, 1, 1500, 90, 'N1', 4, 'JFK'),
  (2013, 1, 1, 1800, 119, 'N1', 5, 'EWR')
EXPECT NO ROWS;
