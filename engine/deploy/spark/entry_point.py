"""The function that Spark's tasks run: it makes our packages importable there, then runs a worker until that
is dismissed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

SCHEMA = "worker long, said string"


def worker_function(orders: dict[str, Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function; Spark sends it to the task with ``orders``, which are plain values. It emits one
    row: the worker's number and how it ended.

    The function contains its imports, since Spark's Python workers need not have penstock installed. It uses
    the packages of this process where the task sees the same files, so that compiled kernels beside them are
    reused. Otherwise it unpacks the shipped archive, once per machine.
    """

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import contextlib
        import os
        import shutil
        import sys
        import tempfile
        import zipfile
        import zlib
        from pathlib import Path

        import pyarrow as pa

        def is_there(root: Path, archive: zipfile.ZipFile) -> bool:
            def is_same(info: zipfile.ZipInfo) -> bool:
                # where the packages lie beside the folder penstock
                in_checkout = root / info.filename.removeprefix("penstock/")
                path = next((path for path in (root / info.filename, in_checkout) if path.is_file()), None)
                return path is not None and zlib.crc32(path.read_bytes()) == info.CRC

            return all(is_same(info) for info in archive.infolist())

        def root_of_code() -> Path:
            paths = map(Path, sys.path)
            shipped = next((path.absolute() for path in paths if path.name == orders["code"]), None)
            if shipped is None or not shipped.is_file():
                raise RuntimeError(f"{orders['code']} has not been shipped to this task")
            with zipfile.ZipFile(shipped) as archive:
                cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "code"
                candidates = [Path(orders["root"]), cache / shipped.stem, shipped.parent / shipped.stem]
                for candidate in candidates:
                    if is_there(candidate, archive):
                        return candidate
                for candidate in candidates[1:]:
                    with contextlib.suppress(OSError):  # not to be written, or another task was quicker
                        candidate.parent.mkdir(parents=True, exist_ok=True)
                        unpacked = Path(tempfile.mkdtemp(dir=candidate.parent))
                        archive.extractall(unpacked)
                        shutil.rmtree(candidate, ignore_errors=True)
                        unpacked.rename(candidate)
                    if is_there(candidate, archive):
                        return candidate
            raise RuntimeError(f"{shipped} cannot be unpacked on this machine")

        for _ in batches:
            pass
        root = str(root_of_code())
        # of another version, that this process ran before
        if not getattr(sys.modules.get("penstock"), "__file__", root).startswith(root):
            for name in [name for name in sys.modules if name.partition(".")[0] == "penstock"]:
                del sys.modules[name]
        path = list(sys.path)
        sys.path.insert(0, root)
        try:
            from penstock.engine.deploy.spark.worker import work_in_spark

            outcome = work_in_spark(orders)
        finally:
            sys.path[:] = path
        yield pa.RecordBatch.from_pydict({"worker": [orders["worker"]], "said": [outcome]})

    return work
