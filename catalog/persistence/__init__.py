"""The catalog on disk, as the statements that make it again."""
