"""Sessions and the DB-API."""
