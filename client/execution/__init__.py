"""The state of an engine and of each of its sessions, the query pipeline and the submission of jobs.

In client it may import results and monitoring.
"""
