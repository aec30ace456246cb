"""SQL and Table frontend, logical plan, edges, chains, physical plan, EXPLAIN."""
