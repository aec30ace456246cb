-- Tests of top_airports.sql: penstock test queries

SCRIPT '../top_airports.sql';

TEST 'cancelled flights are not counted, and a destination without a name stays'
GIVEN flights (dep_time, dest, distance) VALUES
  (900, 'LAX', 2475),
  (NULL, 'LAX', 2475),
  (930, 'BQN', 1576)
GIVEN airports (faa, name) VALUES ('LAX', 'Los Angeles Intl')
EXPECT IN ORDER (dest, name, flights, miles) VALUES
  ('BQN', NULL, 1, 1576),
  ('LAX', 'Los Angeles Intl', 1, 2475);

TEST 'the busiest come first'
GIVEN flights (dep_time, dest, distance) VALUES (900, 'ATL', 762), (930, 'BOS', 187), (940, 'BOS', 187)
GIVEN airports NO ROWS
EXPECT IN ORDER (dest, flights) VALUES ('BOS', 2), ('ATL', 1);
