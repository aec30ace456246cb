"""Window arithmetic, assignment, lateness: pure."""
