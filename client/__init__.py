"""Session, DB-API connection and cursor. It may import engine, optimizer, planner and catalog."""
