"""Figures of the code's shape, for this checkout or another: ``python -m tests.house_figures [FOLDER]``."""

from __future__ import annotations

import ast
import math
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.harness.import_graph import circles, imported, nodes_of, tree_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("catalog", "planner", "optimizer", "engine", "client", "repl", "penstock")
LONG_LINE = 110
LONG_SENTENCE = 25
NOT_IN_NAMES = [
    "told",
    "news",
    "take_back",
    "let_go",
    "held",
    "under_way",
    "waiting",
    "site",
    "road",
    "laid",
    "meaning",
    "room",
    "house",
    "floor",
    "door",
    "layer",
    "layers",
    "tell",
    "give",
    "gives",
    "given",
    "go_on",
    "going_on",
    "place",
    "placed",
    "passed_time",
    "reached_time",
    "in_flight",
    "way",
    "hurry",
    "wish",
    "in_time",
    "on_time",
    "feed",
    "kept",
    "taken",
    "found",
]
"""Words that a reader cannot guess, as parts of names; the table in CONTRIBUTING.md says what to write."""
NOT_IN_PROSE = re.compile(
    r"\b(roads?|rooms?|told|given|tak(e|es|en|ing) back|held|laid|stands?|stood|lives|houses?|go(es)? on|gone on)\b",
    re.IGNORECASE,
)
"""Words that mean something else to a reader than to us; code between backticks is not searched."""

NOT_IN_MESSAGES = re.compile(
    r"\b(roads?|rooms?|told|tells|tak(e|es|en|ing) (rows? )?back|lets? go|held|laid|stands?|stood|lives|houses?"
    r"|go(es)? on|gone on|going on|under way|asked again)\b",
    re.IGNORECASE,
)
"""Words of which a user of a message cannot guess the meaning; the table in CONTRIBUTING.md says what to write."""
OLD_MESSAGES = frozenset(
    {
        # the name of a state in checkpoints
        "under way",
    }
)
"""Literals that cannot change: checkpoints have them."""

_NAMED = {
    "operator (MATCH_RECOGNIZE)": r"\bMatchRecognize\w*|match_recognize\b",
    "window kind (CUMULATE)": r"\b(?i:cumulate)\w*",
    "connector (nexmark)": r"\b(?i:nexmark)\w*",
}


def product_files(root: Path) -> list[Path]:
    """Return the source files that are installed."""
    return sorted(
        [path for folder in PACKAGES for path in (root / folder).rglob("*.py")] + [*root.glob("penstock.py")]
    )


def homonymous_classes(files: Iterable[Path]) -> dict[str, list[str]]:
    """Return the public classes that two modules define, with the files that do."""
    defined: dict[str, list[str]] = defaultdict(list)
    for path in files:
        for node in tree_of(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(path.as_posix())
    return {name: places for name, places in defined.items() if len(places) > 1}


def private_words(files: Iterable[Path]) -> dict[str, list[str]]:
    """Return by word of ``NOT_IN_NAMES`` the files, classes and functions named with it."""
    used: dict[str, list[str]] = defaultdict(list)
    for path in files:
        names = [(path.stem, 1)]
        for node in nodes_of(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.append((node.name, node.lineno))
        for name, line in names:
            parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
            for word in NOT_IN_NAMES:
                if f"_{word}_" in f"_{parts}_":
                    used[word].append(f"{path.as_posix()}:{line} {name}")
    return used


def long_sentences(text: str) -> list[str]:
    """Return the sentences of a page that have more than 25 words; code, tables and headings aside."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = "\n".join("" if line.startswith(("#", "|")) else line for line in prose.splitlines())
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose)
    sentences = (part for block in blocks for part in re.split(r"(?<=[.!?])\s+", block))
    return [sentence for sentence in sentences if len(sentence.split()) > LONG_SENTENCE]


def private_prose(text: str) -> list[str]:
    """Return the lines of a page that have a word of ``NOT_IN_PROSE``, in tables and headings too; code and
    the table of words themselves aside.
    """
    prose = re.sub(r"^```.*?^```$|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^\| say \| not \|\n(\|.*\n)*", "", prose, flags=re.MULTILINE)
    return [line for line in prose.splitlines() if NOT_IN_PROSE.search(line)]


def docstrings(text: str) -> Iterable[str]:
    """Return the docstrings of a module, its classes and functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in nodes_of(text):
        if isinstance(node, kinds) and (doc := ast.get_docstring(node)) is not None:
            yield doc


def messages(text: str) -> Iterable[str]:
    """Return the string literals of a module that may be sentences: those with a blank, docstrings aside. An
    f-string is one literal for each part between its values.
    """
    nodes = nodes_of(text)
    # a docstring, also that below a constant, is an expression statement of its own
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if not isinstance(node, ast.Constant) or id(node) in documents:
            continue
        if isinstance(node.value, str) and " " in node.value:
            yield node.value


def private_messages(text: str) -> list[str]:
    """Return the literals of a module that have a word of ``NOT_IN_MESSAGES``, those that cannot change aside."""
    return [one for one in messages(text) if NOT_IN_MESSAGES.search(one) and one not in OLD_MESSAGES]


def circles_of(root: Path, files: Iterable[Path]) -> list[set[str]]:
    """Return the circles of files of a checkout, with the package ``penstock`` or without."""
    prefix = ["penstock"] if (root / "penstock").is_dir() else []
    modules = {}
    for path in files:
        parts = list(path.relative_to(root).with_suffix("").parts)
        parts = parts if parts[0] == "penstock" else prefix + parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return circles(
        {name: imported(tree_of(path.read_text("utf-8")), modules) for name, path in modules.items()}
    )


def _lines_a_comment(folder: Path) -> int:
    lines = [line for path in folder.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    return len(lines) // max(1, sum(line.lstrip().startswith("#") for line in lines))


def _code_lines(texts: Iterable[str]) -> int:
    """Return how many lines are neither blank nor a comment nor part of a docstring."""
    count = 0
    for text in texts:
        documents = set()
        for node in nodes_of(text):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                documents.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        count += sum(
            bool(line.strip()) and not line.lstrip().startswith("#") and number not in documents
            for number, line in enumerate(text.splitlines(), 1)
        )
    return count


def figures(root: Path) -> dict[str, str]:
    """Return each figure by its name."""
    files = product_files(root)
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    plain = {path: text for path, text in texts.items() if path.name != "__init__.py"}
    sizes = sorted(len(text.splitlines()) for text in plain.values())
    folders = Counter(path.parent for path in plain)
    largest, count = folders.most_common(1)[0]
    lines = [line for text in texts.values() for line in text.splitlines()]
    pages = [root / "README.md", *(root / "docs").glob("*.md")]
    rounds = circles_of(root, files)
    settings = (root / "pyproject.toml").read_text(encoding="utf-8")
    comments = max(1, sum(line.lstrip().startswith("#") for line in lines))
    made = {
        "files (without `__init__.py`)": f"{len(plain)}",
        "folders with files": f"{len(folders)}",
        "largest folder": f"{largest.relative_to(root).as_posix() or '.'}: {count}",
        "lines of a file, median": f"{statistics.median(sizes):.0f}",
        "lines of a file, 9 of 10 at most": f"{sizes[math.ceil(len(sizes) * 0.9) - 1]}",
        "lines": f"{len(lines):,}",
        "lines that are a comment": f"{comments:,}",
        "lines of code (no blank, docstring or comment) to one of comment": f"{_code_lines(texts.values()) / comments:.0f}",
        "lines over 110 columns": f"{sum(len(line) > LONG_LINE for line in lines):,}",
        "circles of files (files in them)": f"{len(rounds)} ({sum(map(len, rounds))})",
        "exceptions from the order of folders": str(
            len(re.findall(r'^ *"[\w.]+ -> ', settings, re.MULTILINE))
        ),
        "public classes of one name": f"{len(homonymous_classes(files))}",
        "names with a private word": f"{sum(map(len, private_words(files).values()))}",
    }
    # code and docstrings: a comment that shows an example adds no work to a change
    uncommented = [re.sub(r"^ *#.*$", "", text, flags=re.MULTILINE) for text in texts.values()]
    for what, pattern in _NAMED.items():
        made[f"files that name one {what}"] = str(sum(bool(re.search(pattern, t)) for t in uncommented))
    made["sentences over 25 words in README and docs"] = str(
        sum(len(long_sentences(page.read_text(encoding="utf-8"))) for page in pages)
    )
    documented = [doc for text in texts.values() for doc in docstrings(text)]
    made["sentences over 25 words in docstrings"] = f"{sum(len(long_sentences(doc)) for doc in documented):,}"
    made["docstrings with a private word"] = f"{sum(bool(private_prose(doc)) for doc in documented):,}"
    made["messages with a private word"] = f"{sum(len(private_messages(text)) for text in texts.values()):,}"
    made["lines a comment, by package"] = ", ".join(
        f"{package} 1 in {_lines_a_comment(root / package)}" for package in PACKAGES
    )
    return made


def main() -> None:
    """Print a table: one row a figure, one column a checkout."""
    roots = [Path(name).resolve() for name in sys.argv[1:]] or [ROOT]
    columns = [figures(root) for root in roots]
    for name in columns[0]:
        print("|", name, "|", " | ".join(column[name] for column in columns), "|")


if __name__ == "__main__":
    main()
