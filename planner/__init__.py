"""SQL and the Table API to logical plans, physical plans and SQL text. It may import catalog."""
