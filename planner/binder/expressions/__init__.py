"""Scalar expressions, resolved and typed. It may import what planner/binder may."""
