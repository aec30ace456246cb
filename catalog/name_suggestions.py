"""Nearest names: what the user probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def damerau_distance(a: str, b: str) -> int:
    """Return the optimal string alignment distance (insert, delete, substitute, swap of neighbours)
    between two words.
    """
    # Rows of the distance matrix: current is row i, previous row i - 1, before row i - 2.
    previous: list[int] = []
    current = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, previous = previous, current
        current = [i]
        for j, right in enumerate(b, 1):
            # Delete from a, insert into a, substitute.
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (left != right))
            # Two neighbours swapped: slect for selct is one edit.
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
    return current[-1]


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate closest to ``name``, or ``None`` when none is within a third of its length (at
    least one edit).
    """
    folded = name.lower()
    # With more edits than a third of the letters the hint would be a guess.
    limit = max(1, len(folded) // 3)
    best: tuple[int, str] | None = None
    for candidate in candidates:
        # Each edit changes the length by one at most, so the distance is larger than the limit.
        if abs(len(candidate) - len(folded)) > limit:
            continue
        distance = damerau_distance(folded, candidate.lower())
        # Not every letter may be replaced. Ties go to the first name, so that the hint is always the same.
        if distance <= limit and distance < len(folded) and (best is None or (distance, candidate) < best):
            best = (distance, candidate)
    return best[1] if best else None


def did_you_mean_file(name: str, candidates: Iterable[str]) -> str | None:
    """Return a hint naming the nearest file; the part before the dot must be near by itself, or all
    files of one suffix were.
    """
    files = sorted(candidates)
    # prices, where prices.csv is, and prices.csv, where prices.csv.gz is: more files may be named like it
    begun = next((file for file in files if file.startswith(f"{name}.")), None)
    if begun is not None:
        return f'did you mean "{begun}"?'
    match = nearest(name, files)
    stem = name.rpartition(".")[0] or name
    if match is None or damerau_distance(stem.lower(), (match.rpartition(".")[0] or match).lower()) > max(
        1, len(stem) // 3
    ):
        return None
    return f'did you mean "{match}"?'


def did_you_mean(name: str, candidates: Iterable[str], *, others: bool = False) -> str | None:
    """Return a hint sentence naming the nearest candidate, or up to eight candidates when ``others`` is
    set, or ``None``.
    """
    # Sorted, so that the list in the hint is the same in each run. Names with $ are the binder's own.
    known = sorted(name for name in set(candidates) if not name.startswith("$"))
    match = nearest(name, known)
    if match is not None:
        return f'did you mean "{match}"?'
    if others and known:
        more = "" if len(known) <= 8 else f" and {len(known) - 8} more"
        return f"there is {', '.join(known[:8])}{more}"
    return None
