"""Subqueries, decorrelated into joins. It may import what planner/binder may."""
