"""The PostgreSQL wire: psql, PostgreSQL's drivers and the tools over them connect to a server."""
