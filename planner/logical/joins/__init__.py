"""The joins of the logical plan, one kind per file. It may import the other files of the logical plan."""
