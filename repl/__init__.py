"""The shell, scripts and the command line."""
