"""The rules of the code, held by tests: sizes, order of packages, banned words, no clock or chance in the
core, ``__init__`` files without logic, clean linters.
"""

from __future__ import annotations

import ast
import functools
import gc
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from penstock.catalog.error_codes.registry import ERROR_CODES
from penstock.catalog.reference import PAGES
from tests.harness.import_graph import circles, imported, imports_of_checkout, nodes_of, tree_of
from tests.harness.length import EACH
from tests.harness.package_tree import PACKAGES, lay_package_tree
from tests.house_figures import (
    OLD_MESSAGES,
    homonymous_classes,
    long_sentences,
    messages,
    private_messages,
    private_prose,
    private_words,
)

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(path for folder in (*PACKAGES, "penstock") for path in (ROOT / folder).rglob("*.py"))
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
MAX_FOLDER_FILES = 25
BANNED_FILES = {"utils", "util", "helpers", "common", "misc", "base"}
BANNED_WORDS = {
    r"\bNotImplementedError\b": "refuse at planning time with a sentence",
    r"\b(TODO|FIXME|XXX)\b": "finish it or file it",
    r"\b(pickle|cloudpickle|marshal|shelve|dill)\b": "no pickle anywhere",
    r"(?<![.\w])(eval|exec)\(": "no code from strings",
    r"\bshell=True\b": "no shells",
    r"\bimport_module\(|\b__import__\(": "no import by name",
}
WORD_EXEMPT = {
    "engine/operators/factory.py": "operators are imported by the names of its own table, which a test loads",
    "client/execution/python_modules.py": "CREATE FUNCTION names a Python object, and what it may name is checked there",
    "client/server/listeners.py": "listeners are imported by the names of its own table, which a test loads",
    "engine/deploy/worker/python_modules.py": "a worker finds Python functions by name, in the modules of the allow-list only",
}
CORE = [
    path for path in SOURCES if path.parts[len(ROOT.parts)] in ("engine", "planner", "optimizer", "catalog")
]
CLOCK_WORDS = re.compile(
    r"\btime\.(time|monotonic|perf_counter|sleep)(_ns)?\(|\bdatetime\.now\(|\brandom\.|(?<![.\w])hash\(|\buuid\.uuid|\burandom\("
)
# The files that touch the outside: all others are handed their clock, randomness and threads.
CLOCK_EXEMPT = {
    "engine/api/clock.py": "is the clock",
    "engine/job/failpoint_arming.py": "a delay asked for by a test",
    "engine/api/threads.py": "how long a program's end waits for them",
}
THREAD_EXEMPT = {
    "engine/api/threads.py": "makes the threads that a program's end waits for",
    "engine/task_manager/task_manager.py": "owns the slots; a slot is a thread",
    "engine/task_manager/interpreter_turns.py": "slots wait for their turn here",
    "engine/job/job_manager.py": "the thread a job master is driven by",
    "engine/storage/object_store.py": "its lock is renewed while another thread publishes",
    "engine/job/job.py": "the user's handle, waited on by any thread",
    "engine/job/savepoint_requests.py": "a request of the user, waited on by the thread that made it",
    "engine/connectors/in_process/result_channels.py": "hands rows from a slot to the client",
    "engine/connectors/in_process/materialized_views.py": "filled by slots, read by anyone",
    "engine/connectors/in_process/view_index.py": "asked by the threads of all queries",
    "engine/connectors/in_process/registered.py": "the program's tables, read by slots",
    "engine/bounded/duckdb.py": "its connection is interrupted by the thread that reads the rows",
    "engine/connectors/blocking_reader.py": "reads the program's iterables, which may block",
    "engine/connectors/postgres_cdc/background.py": "asks a server while its source is polled",
    "engine/connectors/postgres_cdc/socket_arrivals.py": "waits for a connection while nobody reads it",
    "engine/connectors/postgres_cdc/link.py": "closed by any thread while another waits in it",
    "engine/connectors/http/receiver.py": "waits between requests in the thread that reads, until it is closed",
    "engine/connectors/nats/client.py": "owns the thread of an asynchronous library",
    "engine/connectors/nats/source.py": "waits for a server in the thread that reads, until it is closed",
    "engine/connectors/mqtt/source.py": "waits for a broker in the thread that reads, until it is closed",
    "engine/connectors/redis/source.py": "waits for a server in the thread that reads, until it is closed",
    "engine/connectors/in_process/bad_records.py": "written by slots, read by anyone",
    "engine/connectors/in_process/late_rows.py": "written by slots, read by anyone",
    "engine/network/data_plane.py": "owns the listener and the thread that drives all connections",
    "engine/network/listener_options.py": "makes the listener",
    "engine/network/admission.py": "accepts at listeners, for any thread",
    "engine/network/tls_stream.py": "TLS that one thread reads and another writes",
    "engine/network/link_socket.py": "a socket that never waits",
    "engine/connectors/socket/source.py": "the connection its lines come from",
    "engine/connectors/lakehouse/commit_conflicts.py": "subtasks of one table commit one after the other",
    "engine/deploy/protocol/connection.py": "the socket between coordinator and worker",
    "engine/deploy/coordinator/coordinator_services.py": "sends the rows of bounded queries to workers",
    "engine/deploy/spark/hosting_session.py": "used by the threads of all Spark jobs",
    "engine/deploy/coordinator/launcher.py": "starts processes",
    "engine/bounded/spark_results/served_rows.py": "what a query serves is sent by the thread of the row listener",
    "engine/deploy/coordinator/job_workers.py": "hears of workers from their threads",
    "engine/deploy/coordinator/shared_storage_probe.py": "names its machine",
    "engine/deploy/spark/launcher.py": "a Spark job is a thread that waits for it",
    "engine/deploy/spark/worker.py": "connects from a process of Spark",
    "engine/deploy/worker/main.py": "is a process",
    "engine/deploy/coordinator/worker_pool.py": "listens for workers and watches them",
    "engine/deploy/worker/registration.py": "names its machine",
    "engine/deploy/coordinator/worker_handle.py": "is read by a thread of its own",
    "engine/deploy/worker/services_client.py": "filled by slots, credited by a connection",
    "engine/expressions/duckdb_fallback.py": "one database for the kernels of all slots",
    "engine/bounded/registry.py": "one backend of a kind a process, whoever asks first",
    "engine/bounded/backend.py": "hands rows from a backend to a source",
    "engine/connectors/database/duckdb.py": "waits for a file that another thread is closing",
    "engine/lookup/client.py": "asks a database while rows go on",
    "engine/bounded/spark/backend.py": "one Spark query, watched",
    "engine/bounded/spark/jvm_launcher.py": "starts the Java process",
    "engine/bounded/spark_results/result_rows.py": "filled by the listener's thread, read by a query's",
    "engine/bounded/spark_results/listener.py": "the sockets Spark's tasks push rows to",
    "engine/bounded/spark_results/push_task.py": "runs in a task of Spark and pushes to a socket",
    "engine/bounded/spark/connect_application.py": "asks whether a server listens",
    "engine/bounded/spark/watchdog.py": "calls that may never return",
    "engine/bounded/spark/keep_alive_daemon.py": "is a process",
    "engine/bounded/spark/keep_alive.py": "talks to the process that keeps a Spark alive",
    "engine/bounded/spark/sessions.py": "one session a process, shared",
}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module", autouse=True)
def trees_are_no_garbage() -> Iterator[None]:
    """Search no garbage among millions of nodes, and keep none of them for the tests behind these."""
    gc.disable()
    yield
    for kept in (tree_of, nodes_of, names_of):
        kept.cache_clear()
    gc.enable()


def parsed(path: Path) -> ast.Module:
    return tree_of(path.read_text(encoding="utf-8"))


def nodes(path: Path) -> tuple[ast.AST, ...]:
    return nodes_of(path.read_text(encoding="utf-8"))


def test_files_are_small() -> None:
    long = {
        relative(p): n
        for p in SOURCES
        if (n := len(p.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    }
    assert not long, f"files over {MAX_FILE_LINES} lines: {long}"


def test_folders_are_small() -> None:
    """Beside ``__init__``, which says what the folder is."""
    sizes = Counter(relative(path.parent) for path in SOURCES if path.name != "__init__.py")
    assert len(sizes) > 80
    large = {folder: files for folder, files in sizes.items() if files > MAX_FOLDER_FILES}
    assert not large, f"folders of more than {MAX_FOLDER_FILES} files: {large}"


def test_functions_fit_a_screen() -> None:
    long = []
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size > MAX_FUNCTION_LINES:
                    long.append(f"{relative(path)}:{node.lineno} {node.name} {size}")
    assert not long, f"functions over {MAX_FUNCTION_LINES} lines: {long}"


def test_no_files_without_a_noun() -> None:
    assert not [relative(p) for p in SOURCES if p.stem in BANNED_FILES]


@pytest.mark.parametrize("pattern", BANNED_WORDS)
def test_banned_words(pattern: str) -> None:
    found = []
    for path in SOURCES:
        if relative(path) in WORD_EXEMPT and "import" in pattern:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{relative(path)}:{number}")
    assert not found, f"{pattern} ({BANNED_WORDS[pattern]}): {found}"


def test_nobody_shares_duckdbs_default_connection() -> None:
    """A result that one test leaves half read on it refuses the next statement of every other."""
    shared = re.compile(r"\bduckdb\.(sql|execute|query|from_\w+|read_\w+|default_connection)\(")
    found = []
    for folder in (*PACKAGES, "penstock", "tests", "bench", "queries"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found += [f"{relative(path)}: {match.group()}" for match in shared.finditer(text)]
    assert not found, "open a connection: duckdb.connect()." + f" {found}"


def test_no_clock_and_no_chance_in_the_core() -> None:
    found = []
    for path in CORE:
        if relative(path) in CLOCK_EXEMPT:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if CLOCK_WORDS.search(line.split("#")[0]):
                found.append(f"{relative(path)}:{number} {line.strip()}")
    assert not found, "\n".join(found)


def test_only_named_files_use_threads() -> None:
    found = []
    for path in CORE:
        for node in nodes(path):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if any(
                name in ("threading", "concurrent.futures", "multiprocessing", "socket", "subprocess")
                for name in names
            ) and (relative(path) not in THREAD_EXEMPT):
                found.append(relative(path))
    assert not found, found


def test_init_files_have_no_logic() -> None:
    for path in SOURCES:
        if path.name == "__init__.py" and path.parent.name != "penstock":
            kinds = {type(node) for node in parsed(path).body}
            assert kinds <= {ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign}, relative(path)


def test_no_swallowed_errors() -> None:
    found = []
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or (
                    isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
                )
                silent = all(isinstance(child, ast.Pass) for child in node.body)
                if broad and silent:
                    found.append(f"{relative(path)}:{node.lineno}")
    assert not found, found


def test_nothing_names_another_place() -> None:
    found = [relative(p) for p in SOURCES if re.search(r"/work/|\.\./shared", p.read_text(encoding="utf-8"))]
    assert not found, found


def tool(*command: str, directory: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def test_ruff() -> None:
    tool(sys.executable, "-m", "ruff", "check", ".")


def test_format() -> None:
    tool(sys.executable, "-m", "ruff", "format", "--check", ".")


@pytest.fixture(scope="module")
def package_tree() -> Path:
    return lay_package_tree()


@pytest.mark.usefixtures("package_tree")
def test_types() -> None:
    # a sixth of its time is the search for garbage, which it has none of
    program = (
        "import gc; gc.disable(); gc.enable = int; from mypy.__main__ import console_entry; console_entry()"
    )
    tool(sys.executable, "-c", program)


def test_imports_go_down(package_tree: Path) -> None:
    tool(
        str(Path(sys.executable).with_name("lint-imports")),
        "--config",
        str(ROOT / "pyproject.toml"),
        directory=package_tree,
    )


def test_no_circle_of_files() -> None:
    """A file is read after those it imports, at its head or in a function: there must be an order."""
    found = circles(imports_of_checkout())
    assert not found, f"files that import each other: {[sorted(circle) for circle in found]}"


def test_circles_are_seen() -> None:
    modules = {"penstock", "penstock.a", "penstock.b", "penstock.c", "penstock.d"}
    code = {
        "penstock.a": "import penstock.b",
        "penstock.b": "def f():\n    from penstock import c",
        "penstock.c": "try:\n    from penstock.a import A\nexcept ImportError:\n    pass",
        "penstock.d": "if TYPE_CHECKING:\n    import penstock.d\nelse:\n    from penstock.a import A",
    }
    edges = {name: imported(ast.parse(text), dict.fromkeys(modules)) for name, text in code.items()}
    assert circles(edges) == [{"penstock.a", "penstock.b", "penstock.c"}]
    assert edges["penstock.d"] == {"penstock.a"}
    assert imported(ast.parse("TABLE = {int: 'penstock.b:B'}"), dict.fromkeys(modules)) == {"penstock.b"}
    edges["penstock.c"] = {"penstock.c"}
    assert circles(edges) == [{"penstock.c"}], "a file that imports itself"


def test_public_classes_have_one_meaning() -> None:
    assert not homonymous_classes(SOURCES)


def test_no_private_word_is_in_a_name() -> None:
    """Files, classes and functions have the field's words; the table in CONTRIBUTING.md says which."""
    used = private_words(SOURCES)
    assert not used, used


def test_private_words_are_found(tmp_path: Path) -> None:
    path = tmp_path / "told.py"
    path.write_text("class HeldRows:\n    def _give(self): ...\ndef untold(): ...\n", encoding="utf-8")
    assert {word: len(names) for word, names in private_words([path]).items()} == {
        "told": 1,
        "held": 1,
        "give": 1,
    }
    path.with_name("other.py").write_text("class HeldRows: ...\n", encoding="utf-8")
    assert list(homonymous_classes(sorted(tmp_path.glob("*.py")))) == ["HeldRows"]


def test_pages_have_short_sentences_and_plain_words() -> None:
    """What a newcomer reads: at most 25 words a sentence, and no word that only we use."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert len(pages) > 20
    texts = {relative(page): page.read_text(encoding="utf-8") for page in pages}
    long = {page: found for page, text in texts.items() if (found := long_sentences(text))}
    assert not long, f"sentences of more than 25 words: {long}"
    private = {page: found for page, text in texts.items() if (found := private_prose(text))}
    assert not private, f"lines with a word of house_figures.NOT_IN_PROSE: {private}"


def test_long_sentences_and_private_words_of_pages_are_found() -> None:
    long = "word " * 26
    assert len(long_sentences(f"# {long}\n\nShort. {long}.\n\n- {long}\n- short\n\n| {long} |\n")) == 2
    assert len(private_prose("A row is\ngiven.\n\n`given` rows\n\n| a | is told |\n\n```\ngiven\n```\n")) == 2
    assert not private_prose("| say | not |\n|---|---|\n| report | told |\n\nText.\n")


def test_messages_have_plain_words() -> None:
    """Errors, hints, notices and texts of the command line say retract, report, continue, as the field does."""
    texts = {relative(path): path.read_text(encoding="utf-8") for path in SOURCES}
    private = {name: found for name, text in texts.items() if (found := private_messages(text))}
    assert not private, f"literals with a word of house_figures.NOT_IN_MESSAGES: {private}"
    unused = OLD_MESSAGES - {message for text in texts.values() for message in messages(text)}
    assert not unused, f"house_figures.OLD_MESSAGES names literals that no file has: {unused}"


def test_private_words_of_messages_are_found() -> None:
    module = '"""It stands."""\nX = f"{1} goes on {2}"\n"""It is told."""\nfail("rows taken back", "held", "a row")\n'
    assert private_messages(module) == [" goes on ", "rows taken back"]
    assert not private_messages('state = "under way"\n')


def raised_codes(found: Collection[ast.AST]) -> Iterator[str]:
    """The error codes of a module: whole literals that are not only compared with, and error[..] in texts."""
    compared = {id(node) for test in found if isinstance(test, ast.Compare) for node in ast.walk(test)}
    for node in found:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in compared:
            yield from re.findall(r"^[A-Z]{3}-\d{4}$|(?<=error\[)[A-Z]{3}-\d{4}(?=\])", node.value)


def test_every_error_code_has_a_cause_and_a_cure() -> None:
    """penstock explain-error knows every code that is raised, and no other."""
    tables = ROOT / "catalog" / "error_codes"
    raised = {
        code
        for path in SOURCES
        if tables not in path.parents or path.stem == "registry"
        for code in raised_codes(nodes(path))
    }
    assert len(raised) > 350
    unknown, unused = raised - ERROR_CODES.keys(), ERROR_CODES.keys() - raised
    assert not unknown, f"add cause and cure to a file of catalog/error_codes: {sorted(unknown)}"
    assert not unused, f"no longer raised, remove from catalog/error_codes: {sorted(unused)}"


def test_reference_pages_are_up_to_date() -> None:
    """Functions, settings, connectors and errors: the pages are those that the registries make."""
    old = [
        name for name, page in PAGES.items() if (ROOT / "docs" / name).read_text(encoding="utf-8") != page()
    ]
    assert not old, f"run python -m penstock.catalog.reference docs: {old} are not up to date"


def test_codes_are_found() -> None:
    code = 'a = PenstockError("SQL-1001", f"see SQL-1002")\nif e.code == "SQL-1003":\n  print(f"error[CLI-6100]: {1}")'
    assert list(raised_codes(nodes_of(code))) == ["SQL-1001", "CLI-6100"]


def test_globs_of_cases_find_some() -> None:
    """A glob outside a function makes the cases of a test: by ``case_files``, which fails when it finds
    none.
    """
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    assert len(files) > 300
    bare = [f"{relative(path)}:{line}" for path in files for line in globs_at_import(parsed(path))]
    assert not bare, f"globs of cases without tests.harness.case_files: {bare}"
    code = "@mark(sorted(HERE.glob('*')))\ndef f(): HERE.glob('*')\nA = [HERE.rglob('*')]"
    assert list(globs_at_import(ast.parse(code))) == [1, 3]


def test_what_tests_and_benches_import_is_there() -> None:
    """No test runs what only a soak imports; this one sees that its names exist."""
    files = [path for top in ("tests", "bench") for path in (ROOT / top).rglob("*.py")]
    paths = {relative(path).removesuffix(".py").replace("/", "."): path for path in files}
    missing = [
        f"{module}: {node.module}.{alias.name}"
        for module, path in sorted(paths.items())
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module in paths
        for alias in node.names
        if alias.name not in names_of(paths[node.module]) and f"{node.module}.{alias.name}" not in paths
    ]
    assert not missing


@functools.cache
def names_of(path: Path) -> set[str]:
    """Return the names a module binds, at its top or in branches there."""
    module = nodes(path)
    names = {n.name for n in module if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    names |= {n.id for n in module if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    imports = (n for n in module if isinstance(n, ast.Import | ast.ImportFrom))
    return names | {alias.asname or alias.name for node in imports for alias in node.names}


def globs_at_import(tree: ast.AST) -> Iterator[int]:
    """Return the lines of calls of ``glob`` and ``rglob`` that run when a module is imported."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in child.decorator_list:
                yield from globs_at_import(ast.Expression(decorator))
            continue
        call = child.func if isinstance(child, ast.Call) else None
        if isinstance(call, ast.Attribute) and call.attr in ("glob", "rglob"):
            yield child.lineno
        yield from globs_at_import(child)


STARTS_PROGRAM = ("subprocess.run", "subprocess.Popen", "subprocess.check_output")
MIRRORED = ("engine/operators", "engine/state", "engine/connectors", "optimizer/rules")


def test_operators_rules_states_and_connectors_have_a_test_of_their_name() -> None:
    files = [path for path in SOURCES if relative(path).startswith(MIRRORED) and path.name != "__init__.py"]
    assert len(files) > 100
    missing = {
        relative(path)
        for path in files
        if not (ROOT / "tests/unit" / path.relative_to(ROOT).parent / f"test_{path.stem}.py").exists()
    }
    assert not missing, f"write tests/unit/<folder>/test_<name>.py for: {sorted(missing)}"


def test_modules_have_one_name() -> None:
    """In a checkout ``engine`` can be imported beside ``penstock.engine``: every class would be there
    twice.
    """
    places = [*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    pattern = re.compile(rf"^\s*(from|import) ({'|'.join(PACKAGES)})\b", re.MULTILINE)
    found = [
        f"{relative(path)}: {each[0].strip()}"
        for path in places
        for each in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found, found


def test_programs_of_tests_are_found_wherever_a_test_stands() -> None:
    """Tests change into directories of their own, where a program that imports ``tests`` finds none: only what
    is installed is found everywhere.
    """
    imports_tests = re.compile(r"^\s*(from|import) tests\b|^tests\.\w+[.\w]*$", re.MULTILINE)
    checked, found = 0, []
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path == Path(__file__) or "subprocess." not in text or "sys.executable" not in text:
            continue
        module = nodes(path)
        texts = [n.value for n in module if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        programs = [text for text in texts if imports_tests.search(text)]
        if not programs:
            continue
        calls = [n for n in module if isinstance(n, ast.Call) and ast.unparse(n.func) in STARTS_PROGRAM]
        checked += len(calls)
        found += [
            f"{relative(path)}:{call.lineno}"
            for call in calls
            if not {"cwd", "env"} & {keyword.arg for keyword in call.keywords}
            # a list names another program
            and not (isinstance(call.args[0], ast.List) and "sys.executable" not in ast.unparse(call.args[0]))
        ]
    assert checked > 5
    assert not found, f"start it in ROOT (cwd=), or with PYTHONPATH (env=): {found}"


def test_what_is_brief_in_make_test_is_there() -> None:
    """A test that has another name now would run in full, and unseen."""
    names = [name.partition("::") for name in EACH]
    gone = [
        name for file, _, name in names if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert not gone, f"harness/length.py names tests that no file has: {gone}"


def test_tests_of_one_group_share_a_process(request: pytest.FixtureRequest) -> None:
    """Or each process would start a Java of its own, and module fixtures would be made in both."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("tests are not dealt to processes")
    assert request.node.nodeid.endswith("@tests/test_house.py")
