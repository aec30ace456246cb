"""The list of packages, which pyproject.toml cannot say: folders at the top of the repository are
installed under ``penstock``.
"""

from setuptools import find_packages, setup

FOLDERS = ("catalog", "planner", "optimizer", "engine", "client", "repl")

setup(
    packages=[
        "penstock",
        *(
            f"penstock.{name}"
            for name in find_packages(include=[*FOLDERS, *(f"{folder}.*" for folder in FOLDERS)])
        ),
    ]
)
