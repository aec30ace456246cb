"""What is derived of a plan node: changelog mode, unique keys, distribution, state bound. In optimizer
it imports no other folder.
"""
