"""The side of the job master."""
