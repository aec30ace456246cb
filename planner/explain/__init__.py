"""Every stage as text."""
