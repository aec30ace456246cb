"""Hash tables and linked lists."""
