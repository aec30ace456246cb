"""SQLAlchemy's own tests of a dialect, collected from here by its pytest plugin."""

from sqlalchemy.testing.suite import *  # noqa: F403
