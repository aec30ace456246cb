"""Session, DB-API, results."""
