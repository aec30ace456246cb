"""FROM: tables, joins, lateral, table functions."""
