"""Worker processes: a job's tasks run in other processes of this machine."""
