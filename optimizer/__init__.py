"""Rewrites logical plans: rules, properties, the bounded frontier, edges."""
