"""Secrets: which words name them, where they are in a text, and how a text is shown without them. Errors call
this module when they are constructed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote, unquote

MASK = "******"
# Of forms, the oldest dropped first: each text that is redacted is searched for all of them.
REMEMBERED_MOST = 1_000
_SHORTEST = 4
"""A shorter value is not looked for in texts it was not found in by its name: it would be found in half of
all words.
"""
_SEEN_PART = 16
"""So much of a longer secret is enough to know it by: texts are cut."""
# Parts of a key that make its value a secret: sasl.jaas.config, aws.secret_access_key, x-api-key. A header, or a
# setting of a store or a catalog, may be one whatever its name is.
_NAMED = re.compile(
    r"\A(headers|storage|catalog)\.|passw|pwd|passphrase|secret|token|credential|jaas|signature|user-?info|key\.pem|(api|access|private|account|encryption|sas|ssh)[-_.]?key",
    re.IGNORECASE,
)
# Words that a misspelt key is compared with: an error must not print the value of 'pasword'.
_WORDS = ("password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "credentials")
# Misspelt names: pasword is 0.93 like password.
_ALIKE = 0.8
# Blanks and comments between a key, its sign and its value.
_GAP = r"(?:\s|/\*.*?\*/|--[^\n]*\n)*"
# A quoted text, also one that never ends, or a word: a statement with a syntax error has secrets too.
_VALUE = r"""'[^']*(?:''[^']*)*(?:'|\Z)|"[^"]*(?:""[^"]*)*(?:"|\Z)|`[^`]*(?:`|\Z)|[^\s,;()'"`]{1,2000}"""
# 'key' = 'value', key => value, SET key value. The value is looked ahead at: it may be the next key.
_PAIR = re.compile(
    rf"""(?:(?P<quote>['"`])(?P<key>[A-Za-z_][\w.\- ]{{0,200}})(?P=quote)|(?<![\w.'"`-])(?P<bare>[A-Za-z_][\w.-]{{0,200}})(?![\w'"`]))"""
    rf"""(?={_GAP}(?P<sign>=>|==|=|:=|:|){_GAP}(?P<value>{_VALUE}))""",
    re.DOTALL,
)
# The lookbehind and the bounded repetition keep the search linear in a long word without ://.
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_URL_END = re.compile(r"""[\s'"]""")
_WITHIN = re.compile(  # of a URL's query, and words such as password=..
    r"""[?&][^=&\s'"]{0,100}(?:key|token|secret|passw|pwd|sig)[^=&\s'"]{0,100}=(?P<query>[^&\s'"]*)"""
    r"""|(?<![\w?&.-])[\w.-]{0,100}(?:passw|pwd|passphrase|secret|token)[\w.-]{0,100}["']?\s*=\s*"""
    r"""(?P<word>''(?:[^'\\]|\\.)*(?:''|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|[^\s'"&;,]+)""",
    re.IGNORECASE,
)
# SET key = value without quotes: the only statement where a bare word is an option.
_SET = re.compile(r"\bSET\s+\Z", re.IGNORECASE)
_KEY = re.compile(r"[\w-]*key", re.IGNORECASE)
"""Of an option that no connector has: a name without dots that ends so may be a secret's."""
# Values of headers.*, storage.* and catalog.* that are no secrets, and words of half of all messages: a switch,
# a region, an address without a user and a query.
_HARMLESS = re.compile(r"true|false|[a-z]{2}(?:-[a-z]+)+-\d|\w+://[^@?\s]*", re.IGNORECASE)
# A cheap test first: most texts have no word or sign of a secret.
_MAYBE = re.compile(
    r"""['"`]\s*(?:=|:|'|/|-)|://|pass|pwd|secret|token|\bSET\b|credential|jaas|key""", re.IGNORECASE
)


# Keys repeat from statement to statement, and the comparison with misspelt words is slow.
@lru_cache(maxsize=4096)
def names_secret(key: str) -> bool:
    """Return whether a key is that of a secret by its name, also when it is misspelt."""
    if _NAMED.search(key):
        return True
    # Each word of the key is compared, if it is no shorter than a misspelt token.
    parts = [part for part in re.split(r"[^a-z0-9]+", key.lower()) if len(part) >= len("tokn")]
    return any(
        difflib.SequenceMatcher(None, part, word).ratio() >= _ALIKE
        for part in parts
        for word in _WORDS
        # A short word must begin alike: one letter is a large part of it.
        if part[0] == word[0] or len(word) > 6
    )


def _secrets_in(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the positions of secrets in a text, their quotes left out, and whether each is an option's.
    Others are, for example, compared with a column.
    """
    # Most errors quote no secret: this one search is all they cost.
    if not _MAYBE.search(text):
        return
    # Starts of values that are compared with a column, such as WHERE password = 'x': hidden, but not learned.
    compared: set[int] = set()
    for found in _PAIR.finditer(text):
        key, sign, value = found["key"] or found["bare"], found["sign"], found["value"]
        quoted = value[0] in "'\"`"
        after_set = (
            # Only the 12 characters before are searched: SET and its blanks.
            found["key"] is None and _SET.search(text, max(0, found.start() - 12), found.start()) is not None
        )
        # other quotes are of names: a column is compared with something, or an option misspelt
        option = found["quote"] == "'" or after_set
        named = (
            names_secret(key) or (quoted and bool(sign) and _KEY.fullmatch(key))
            if option
            else _NAMED.search(key)
        )
        # token = x without quotes is no option here; _within hides the word behind it.
        if not named or not (quoted or after_set or (sign and option)):
            continue
        # Without the quotes, of which the closing one may be missing.
        start, end = found.span("value")
        if quoted:
            end -= len(value) > 1 and value[-1] == value[0]
            start += 1
        compared |= set() if option else {start}
        yield start, end, option
    # Secrets inside a value whose key is harmless: 'url' = 'postgresql://me:pw@host/db'.
    for start, end in _within(text):
        yield start, end, start not in compared


def _within(text: str) -> Iterator[tuple[int, int]]:
    """Yield, in order, where a URL has a user and password, or a value of its query, or a word such as
    password=.. is a secret.
    """
    # A value of a query may be inside the user and password of a URL: spans may overlap.
    spans = sorted((*_of_urls(text), *(found.span(found.lastgroup or 0) for found in _WITHIN.finditer(text))))
    # The end of what was yielded: of overlapping spans only the part behind it is new.
    at = 0
    for first, last in spans:
        start, end = first, last
        # The quotes of a word stay. '' comes first: inside a SQL text a quote is written twice.
        for mark in ("''", "'", '"'):
            if text.startswith(mark, first, last):
                start, end = (
                    first + len(mark),
                    last - len(mark) * text.endswith(mark, first + len(mark), last),
                )
                break
        if end > max(at, start):
            yield max(at, start), end
            at = end


def _of_urls(text: str) -> Iterator[tuple[int, int]]:
    """Yield the users and passwords of URLs. The last @ ends a password, which may have slashes too;
    without a colon there is a user at most.
    """
    at = 0
    while (found := _URL.search(text, at)) is not None:
        start = found.end()
        ended = _URL_END.search(text, start)
        stop = ended.start() if ended is not None else len(text)
        # user:pass@host, and host/path@version: without a colon a slash ends the part before the @.
        slash, colon = text.find("/", start, stop), text.find(":", start, stop)
        has_colon = colon >= 0 and (slash < 0 or colon < slash)
        end = text.rfind("@", start, stop if has_colon or slash < 0 else slash)
        if end >= 0:
            yield start, end
        # Always forward: end is -1 where the URL has no @.
        at = max(end, stop if has_colon else start)


def masked(text: str) -> str:
    """Return a text of the same length and lines with a ``*`` for every letter of a secret in it. Positions
    in one are positions in the other.
    """
    letters = None
    for start, end, _ in _secrets_in(text):
        letters = letters or list(text)
        # One * a letter, and line ends stay: lines and columns of errors are right.
        letters[start:end] = ["\n" if letter == "\n" else "*" for letter in letters[start:end]]
    return text if letters is None else "".join(letters)


def holds_secrets(text: str) -> bool:
    """Return whether options in a text are secrets."""
    return any(option and end > start for start, end, option in _secrets_in(text))


def redact_url(text: str) -> str:
    """Return a text with users and passwords of URLs, secret values of their queries and words such as
    ``password=..`` replaced.
    """
    out, at = [], 0
    for start, end in _within(text):
        out += [text[at:start], MASK]
        at = end
    return text if not out else "".join([*out, text[at:]])


class KnownSecrets:
    """The secrets of this process's statements and settings: texts of others, such as a
    driver's, may repeat them.

    For any thread: each step is one of a dictionary, which are whole.
    """

    def __init__(self) -> None:
        self._forms: dict[str, None] = {}

    def learn(self, text: str) -> None:
        """Remember the secrets among the options of a statement."""
        for start, end, option in _secrets_in(text):
            if option and not _HARMLESS.fullmatch(text, start, end):
                self.remember(text[start:end])

    def remember(self, value: str) -> None:
        """Remember one secret, in the forms in which texts may have it; of a URL's user and password the
        password.
        """
        # The value as the statement means it, the quote no longer doubled.
        plain = value.replace("''", "'")
        password = plain.partition(":")[2]
        # user:password of a URL: a driver's message repeats the password alone.
        words = {plain, value, unquote(plain), *((password, unquote(password)) if ":" in plain else ())}
        forms = {
            form
            for word in words
            for form in (
                word,
                # As drivers print it: in SQL, in a URL, in JSON, in Python.
                word.replace("'", "''"),
                quote(word, safe=""),
                json.dumps(word)[1:-1],
                repr(word)[1:-1],
            )
        }
        for form in forms:
            # Removed and added again: the forms that were remembered first are dropped first.
            if len(form) >= _SHORTEST:
                self._forms.pop(form, None)
                self._forms[form] = None
        # list() copies the keys in one step: another thread may add one meanwhile.
        for oldest in list(self._forms)[:-REMEMBERED_MOST]:
            self._forms.pop(oldest, None)

    def redacted(self, text: str) -> str:
        """Return a text without what was remembered, and without the secrets of URLs in it."""
        text = redact_url(text)
        if self._forms:
            # The longest first: a shorter form may be a part of it, and would leave the other part readable.
            for form in sorted(self._forms, key=len, reverse=True):
                text = _replaced(text, form)
        return text


def _replaced(text: str, form: str) -> str:
    """Return a text without a secret, also where it was cut off; a word that only begins like a short one
    stays.
    """
    part = form[:_SEEN_PART]
    at = text.find(part)
    while at >= 0:
        end = at + len(part)
        # As far as the text agrees with the secret: it may be cut off at any letter.
        while end < len(text) and end - at < len(form) and text[end] == form[end - at]:
            end += 1
        # A short secret is hidden as a whole word only: "test" must not hide a part of "latest".
        alone = not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())
        if alone or len(form) >= _SEEN_PART // 2:
            text, end = f"{text[:at]}{MASK}{text[end:]}", at + len(MASK)
        at = text.find(part, end)
    return text


# One for the process: a job's error may quote the secret of any session's statement.
KNOWN = KnownSecrets()
