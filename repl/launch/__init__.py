"""Flags, configuration, session, scripts."""
