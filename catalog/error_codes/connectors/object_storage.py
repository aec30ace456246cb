"""Causes and cures of errors: object stores, for data and for the state of jobs."""

from __future__ import annotations

OBJECT_STORAGE: dict[str, tuple[str, str]] = {
    "DAT-5501": (
        "A place for state or data is a URL that is not of an object store, or has no bucket.",
        "Write a directory, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.",
    ),
    "DAT-5502": (
        "The package that speaks to object stores is not installed.",
        "Install it: pip install 'penstock[storage]'.",
    ),
    "DAT-5503": (
        "The settings of an object store are incomplete or unknown to it.",
        "Read the reason; the page on object storage has the variables and options of each store.",
    ),
    "DAT-5504": ("The bucket or container does not exist.", "Make it, or correct the URL."),
    "DAT-5505": (
        "There are no credentials for the object store, or it does not know them.",
        "Set the variables that the hint names, or the options of the table.",
    ),
    "DAT-5506": (
        "The credentials lack a right in the bucket.",
        "Allow listing, reading, writing and deleting below the prefix.",
    ),
    "DAT-5507": (
        "The credentials have expired, or the machine's clock is wrong.",
        "Renew the credentials or set the clock, then start the job again: it resumes.",
    ),
    "DAT-5508": (
        "The bucket is in another region than the one that is set.",
        "Set AWS_REGION, or the option 's3.region' of the table, to the bucket's region.",
    ),
    "DAT-5509": (
        "The object store did not answer, or asked for fewer requests, in all attempts.",
        "Check the endpoint and the network. A checkpoint that failed is followed by another.",
    ),
    "DAT-5510": ("The object store refused a request.", "Read its answer in the message."),
    "DAT-5511": (
        "The object store ignores the conditions of writes, so two writers could not be kept apart.",
        "Keep the state in a directory, or in a store with conditional writes: S3, GCS, Azure, MinIO.",
    ),
    "DAT-5512": (
        "The object that says who writes a job's state is damaged or of a newer version.",
        "Restore it from a version of the bucket, upgrade penstock, or begin with another prefix.",
    ),
    "DAT-5513": (
        "A job with its state in an object store has an input that stages rows in files.",
        "Keep the state in a shared directory, or read the table as a stream.",
    ),
    "DAT-5514": (
        "The object that says which checkpoint a table in an object store has is damaged.",
        "Restore it from a version of the bucket, or write to another path.",
    ),
}
