"""The subcommands: run, jobs, checkpoint, doctor, spark. In repl it may import launch and the layers
below.
"""
