"""PostgreSQL change data capture: the rows of a table, then its changes by logical replication."""
