"""FROM: tables, joins, LATERAL and table functions. It may import what planner/binder may."""
