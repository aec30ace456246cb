"""Penstock run, -c, jobs, checkpoint, doctor, spark."""
