"""Counters of tasks and operators."""
