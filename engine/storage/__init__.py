"""Durable files behind six verbs."""
