"""What a master in this process needs to start executors: a home of Spark it may write into, and a Java
its launcher's options suit.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from penstock.engine.bounded.spark.java_runtime import VECTOR_MODULE, Java

_SCALA = "2.13"


def executors_environment(master: str, home: Path, java: Java, directory: Path) -> dict[str, str]:
    """Return the variables executors of a ``local-cluster`` master are started with, nothing for any other
    master.

    The master writes the executors' directories into SPARK_HOME/work: its home is therefore in ``directory``,
    which goes with the virtual machine.
    """
    if not master.startswith("local-cluster["):
        return {}
    own = directory / "home"
    own.mkdir()
    for entry in home.iterdir():
        if entry.name != "work":
            (own / entry.name).symlink_to(entry)
    core = next(
        (
            found[1]
            for path in (home / "jars").glob("spark-core_*.jar")
            if (found := re.match(r"spark-core_([\d.]+)-", path.name))
        ),
        _SCALA,
    )
    return {
        "SPARK_HOME": str(own),
        "SPARK_SCALA_VERSION": core,
        "JAVA_HOME": str(_java_home(java, directory)),
    }


def _java_home(java: Java, directory: Path) -> Path:
    """Return the Java's home, or one whose program drops the option for a module that Java has not got and
    Spark's launcher asks for.
    """
    if java.has_vector:
        return java.program.parents[1]
    program = directory / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    option = f"--add-modules={VECTOR_MODULE}"
    program.write_text(
        f'#!/bin/sh\nfor word do\n  shift\n  [ "$word" = {option} ] || set -- "$@" '
        f'"$word"\ndone\nexec {shlex.quote(str(java.program))} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program.parents[1]
