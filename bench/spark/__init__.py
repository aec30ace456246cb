"""Benches of what runs in Spark, and what goes to it and back."""
