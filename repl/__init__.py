"""The command line's entry."""
