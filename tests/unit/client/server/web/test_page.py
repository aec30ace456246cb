"""The page in a headless Chromium: what a reader sees, and that nothing leaves this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.session import Session
from tests.harness.browser import CHROMIUM, Browser
from tests.harness.patience import PATIENCE_S
from tests.harness.web_listener import WebServer, web_server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

# a name that is markup: shown as it is, and never run
NAME = "<img src=x onerror=document.title='run'>"
STREAM = (
    "WITH ('connector' = 'datagen', 'rows-per-second' = '200', 'fields.k.min' = '1', 'fields.k.max' = '5')"
)
SCRIPT = (
    f"CREATE TABLE bids (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) {STREAM}",
    "CREATE TABLE silent (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', "
    "'path' = '{silent}', 'format' = 'json', 'source.monitor-interval' = '1 s')",
    "CREATE TABLE hole (k BIGINT, c BIGINT) WITH ('connector' = 'blackhole')",
    "CREATE TABLE numbers (k INT) WITH ('connector' = 'blackhole')",
    "SET 'parallelism.default' = '2'",
    "SET 'pipeline.name' = 'counts'",
    "INSERT INTO hole SELECT k, COUNT(*) FROM bids GROUP BY k",
    "SET 'parallelism.default' = '1'",
    "SET 'pipeline.name' = 'joined'",
    "INSERT INTO hole SELECT b.k, COUNT(*) FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' SECOND) b JOIN "
    "TUMBLE(TABLE silent, DESCRIPTOR(ts), INTERVAL '1' SECOND) s ON b.k = s.k AND b.window_start = s.window_start "
    "AND b.window_end = s.window_end GROUP BY b.k, b.window_start, b.window_end",
    f"SET 'pipeline.name' = '{NAME.replace(chr(39), chr(39) * 2)}'",
    "INSERT INTO numbers SELECT CAST(CONCAT('<b>', CAST(k AS STRING)) AS INT) FROM bids",
)

# holds the next question for the status, and lets it go; the round trip behind it ends after the page has its answer
HOLD = (
    "window.held = []; window.ask = window.fetch; window.fetch = (...given) => given[0].endsWith('/status') && "
    "!held.length ? new Promise((done) => held.push(done)).then(() => window.ask(...given)) : "
    "window.ask(...given); undefined"
)
RELEASE = (
    "window.released = new Promise((done) => { const ask = window.ask; window.ask = (...given) => { "
    "const asked = ask(...given); asked.then(() => done()); window.ask = ask; return asked; }; }); held[0](); "
    "window.released.then(() => window.ask('/health')).then((answer) => answer.text())"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    silent = tmp_path_factory.mktemp("silent")
    settings = {"execution.runtime-mode": "streaming", "execution.checkpointing.interval": "200 ms"}
    with web_server(Session({**settings, "table.dml-sync": "false"})) as made:
        for statement in SCRIPT:
            made.session.execute(statement.replace("{silent}", str(silent)))
        yield made


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    made.size(1280, 900)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_leaves(server: WebServer, browser: Browser) -> Iterator[None]:
    """No request of a test goes elsewhere, and the console has no error: also none of the content policy."""
    browser.messages.clear()
    browser.requests.clear()
    yield
    assert not browser.messages
    elsewhere = [url for url in browser.requests if not url.startswith((server.url, "data:", "about:"))]
    assert not elsewhere


def go(server: WebServer, browser: Browser, path: str) -> None:
    browser.open(f"{server.url}/#{path}")
    browser.until("document.querySelector('main')?.childElementCount")


def job_named(server: WebServer, name: str) -> str:
    return next(job.job_id for job in server.session.jobs() if job.name == name)


def seen(browser: Browser, text: str, where: str = "main") -> None:
    browser.until(f"document.querySelector({json.dumps(where)})?.textContent.includes({json.dumps(text)})")


def test_jobs_are_listed_and_names_are_texts(server: WebServer, browser: Browser) -> None:
    go(server, browser, "/")
    for text in ("counts", "joined", NAME, "failed"):
        seen(browser, text)
    assert browser.ask("document.title") == "Jobs · penstock"
    assert browser.ask("document.querySelectorAll('main img').length") == 0


def test_the_graph_moves(server: WebServer, browser: Browser) -> None:
    go(server, browser, f"/jobs/{job_named(server, 'counts')}")
    seen(browser, "source bids", ".graph")
    seen(browser, "partition by k", ".graph")
    # two chains, with an edge on which rows flow
    browser.until("document.querySelectorAll('.graph .chain').length === 2")
    browser.until("document.querySelector('.graph .edge.flows')")
    # the same elements are filled anew from event to event
    browser.ask("window.first = document.querySelector('.graph .row .lag')")
    before = browser.ask("window.first.textContent")
    browser.until(f"window.first.textContent !== {json.dumps(before)} && window.first.isConnected")


def test_an_operator_is_chosen_by_key(server: WebServer, browser: Browser) -> None:
    go(server, browser, f"/jobs/{job_named(server, 'counts')}")
    browser.until("document.querySelector('.graph .row')")
    browser.ask("document.querySelector('[data-tab=Settings]').click()")
    seen(browser, "pipeline.name", "[role=tabpanel]")
    browser.ask("document.querySelectorAll('.graph .row')[1].focus()")
    browser.press("Enter")
    browser.until("document.querySelector('[data-tab=Operators]').getAttribute('aria-selected') === 'true'")
    browser.until("document.querySelectorAll('[role=tabpanel] tr.mark').length === 1")
    browser.ask("document.querySelector('[data-tab=Operators]').focus()")
    browser.press("ArrowRight")
    browser.until("document.activeElement.dataset.tab === 'Splits'")


def test_a_stuck_watermark_is_named(server: WebServer, browser: Browser) -> None:
    go(server, browser, f"/jobs/{job_named(server, 'joined')}")
    seen(browser, "The watermark does not advance: source silent has emitted no row yet.", "#watermark")
    browser.until("document.querySelector('.graph .row.stuck')")
    seen(browser, "No output yet.")


def test_a_failed_job_shows_its_error(server: WebServer, browser: Browser) -> None:
    go(server, browser, f"/jobs/{job_named(server, NAME)}")
    seen(browser, "The job has failed. RUN-2003: cannot cast '<b>", ".notice.bad")
    assert browser.ask("document.querySelector('h1').textContent") == NAME
    assert browser.ask("document.querySelectorAll('main img, main b').length") == 0
    assert browser.ask("document.querySelector('.actions').hidden")
    browser.ask("document.querySelector('[data-tab=Events]').click()")
    seen(browser, "failed", "[role=tabpanel]")


def test_the_query_box_draws_changes_in_place(server: WebServer, browser: Browser) -> None:
    go(server, browser, "/query")
    browser.until("document.activeElement.tagName === 'TEXTAREA'")
    browser.ask("document.querySelector('textarea').value = ''")
    browser.type("SELECT k, COUNT(*) AS c FROM bids GROUP BY k")
    browser.ask("document.querySelector('button.main').click()")
    browser.until("document.querySelectorAll('tbody tr').length === 5")
    browser.ask("window.row = document.querySelector('tbody tr')")
    before = browser.ask("window.row.textContent")
    browser.until(f"window.row.textContent !== {json.dumps(before)} && window.row.isConnected")
    running = [job for job in server.session.jobs() if job.name == NAME and not job.state.terminal]
    assert len(running) == 1
    browser.ask("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Stop').click()")
    # the query ends in the server too
    assert running[0].wait(PATIENCE_S)
    seen(browser, "stopped;", ".state")


def test_the_query_box_shows_plans_rows_and_errors(server: WebServer, browser: Browser) -> None:
    go(server, browser, "/query")
    browser.until("document.querySelector('textarea')")

    def run(sql: str, button: str) -> None:
        browser.ask(f"document.querySelector('textarea').value = {json.dumps(sql)}")
        browser.ask(
            f"[...document.querySelectorAll('button')].find((one) => one.textContent === '{button}').click()"
        )

    run("SELECT '<i>text</i>' AS t, CAST(NULL AS INT) AS n", "Run")
    seen(browser, "<i>text</i>", "tbody")
    seen(browser, "NULL", "tbody")
    assert browser.ask("document.querySelectorAll('main i').length") == 0
    run("SELECT k FROM bids WHERE k > 1", "Plan")
    seen(browser, "bids", "pre.plan")
    run("SELECT '<u>' || nothing FROM bids", "Run")
    seen(browser, "SQL-1042", ".notice.bad")
    assert browser.ask("document.querySelectorAll('main u').length") == 0


def test_an_action_is_confirmed(server: WebServer, browser: Browser, tmp_path: Path) -> None:
    job = next(job for job in server.session.jobs() if job.name == "counts")
    go(server, browser, f"/jobs/{job.job_id}")
    browser.until("document.querySelector('.actions button')")
    press = (
        "[...document.querySelectorAll('.actions button')].find((one) => one.textContent === '{}').click()"
    )
    browser.until("document.querySelector('h1').textContent === 'counts'")
    browser.ask(press.format("Cancel…"))
    browser.until("document.querySelector('dialog[open]')")
    # the harmless choice has the focus; Escape leaves all as it is
    assert browser.ask("document.activeElement.textContent") == "Keep it as it is"
    browser.press("Escape")
    browser.until("!document.querySelector('dialog')")
    assert not job.state.terminal
    browser.ask(press.format("Rescale…"))
    browser.until("document.querySelector('dialog[open] input')")
    browser.ask("document.querySelector('dialog input').value = 3")
    browser.ask("document.querySelector('dialog button.main').click()")
    seen(browser, "at parallelism 3", "#toast")
    assert job.parallelism == 3
    # a savepoint into a directory that is typed; the job continues
    browser.ask(press.format("Savepoint…"))
    browser.until("document.querySelector('dialog[open] input')")
    browser.ask(f"document.querySelector('dialog input').value = {json.dumps(str(tmp_path / 'saved'))}")
    browser.ask("document.querySelector('dialog button.main').click()")
    seen(browser, "saved", "#toast")
    assert any((tmp_path / "saved").iterdir()) and not job.state.terminal


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", ["/", "job", "/query"])
def test_a_phone_shows_a_page_without_scrolling_sideways(
    server: WebServer, browser: Browser, page: str, dark: bool
) -> None:
    browser.size(390, 844, phone=True, dark=dark)
    path = f"/jobs/{job_named(server, 'joined')}" if page == "job" else page
    go(server, browser, path)
    browser.until("document.querySelector('main h1')")
    if page == "job":
        browser.until("document.querySelector('.graph .chain')")
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    # what is pressed is large enough for a thumb
    small = "[...document.querySelectorAll('main button')].filter((one) => one.offsetHeight && one.offsetHeight < 34).length"
    assert browser.ask(small) == 0
    browser.size(1280, 900)


def test_a_page_that_was_left_replaces_nothing(server: WebServer, browser: Browser) -> None:
    go(server, browser, "/query")
    browser.until("document.querySelector('textarea')")
    # the list of jobs waits for its answer, until the query box is open again
    browser.ask(HOLD)
    browser.ask("location.hash = '#/'")
    browser.until("window.held.length === 1")
    browser.ask("window.box = document.querySelector('textarea'); location.hash = '#/query'")
    browser.until("document.querySelector('textarea') && document.querySelector('textarea') !== window.box")
    browser.ask("document.querySelector('textarea').value = ''; document.querySelector('textarea').focus()")
    browser.type("SELECT 1")
    browser.ask(RELEASE)
    assert browser.ask("document.querySelector('textarea')?.value") == "SELECT 1"
    # and what is typed is there again after a look at another page
    browser.ask("location.hash = '#/sessions'")
    seen(browser, "Open sessions")
    browser.ask("location.hash = '#/query'")
    browser.until("document.querySelector('textarea')?.value === 'SELECT 1'")


def test_a_browser_signs_in_and_out(browser: Browser) -> None:
    with web_server(Session(), authenticated=True) as other:
        browser.open(f"{other.url}/")
        # not a comparison of two elements: a page that is being loaded has neither, and null is null
        browser.until("document.activeElement?.name === 'user'")
        browser.type("ann")
        # a link is followed before the sign-in: what is typed stays
        browser.ask(HOLD)
        browser.ask("location.hash = '#/query'")
        browser.until("window.held.length === 1")
        browser.ask(RELEASE)
        assert browser.ask("document.querySelector('[name=user]').value") == "ann"
        browser.ask("location.hash = '#/'")
        browser.ask("document.querySelector('[name=password]').focus()")
        browser.type("wrong")
        browser.press("Enter")
        seen(browser, "CLI-6210", ".notice.bad")
        browser.ask("document.querySelector('[name=password]').value = ''")
        browser.type("open sesame")
        browser.press("Enter")
        seen(browser, "ann, read", "#who")
        seen(browser, "No job has been started yet.")
        # no script can read what signs the browser in
        assert browser.ask("document.cookie") == ""
        browser.ask("document.querySelector('#who a').click()")
        browser.until("document.querySelector('input[name=user]')")
        # the three refusals, each of which the browser writes down
        assert all("401" in message for message in browser.messages)
        assert all(url.startswith((other.url, "data:", "about:")) for url in browser.requests)
        browser.messages.clear()
        browser.requests.clear()
        browser.open("about:blank")
