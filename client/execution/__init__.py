"""The state of a session, the query pipeline and the submission of jobs. In client it may import results
and monitoring.
"""
