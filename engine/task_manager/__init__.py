"""Slots, placement and deployment of tasks."""
