import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from penstock.repl.launch.config import Config
from penstock.repl.launch.script_parts import is_finished
from penstock.repl.meta_commands.registry import COMMAND_HELP
from penstock.repl.shell.completion import SqlCompleter
from penstock.repl.shell.editor import Editor, styled_lines, styled_pieces


def typed(keys, tmp_path, default=""):
    drawn = []
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        editor = Editor(
            Config(history=tmp_path / "deep" / "history"),
            SqlCompleter(lambda: None, COMMAND_HELP),
            lambda: "",
            lambda: drawn.append(1),
            input=pipe,
            output=DummyOutput(),
        )
        text = editor.read(default)
    assert drawn == [1]
    return text, editor


def test_enter_runs_a_complete_statement(tmp_path):
    assert typed("SELECT 1;\r", tmp_path)[0] == "SELECT 1;"


def test_enter_goes_on_until_the_semicolon(tmp_path):
    assert typed("SELECT ';'\r-- ;\r, 2;\r", tmp_path)[0] == "SELECT ';'\n-- ;\n, 2;"


def test_a_statement_set_is_one_statement(tmp_path):
    text = "EXECUTE STATEMENT SET BEGIN\rINSERT INTO a SELECT 1;\rINSERT INTO b SELECT 2;\rEND;\r"
    assert typed(text, tmp_path)[0].count("\n") == 3


def test_enter_runs_commands_and_nothing(tmp_path):
    assert typed("\\dt\r", tmp_path)[0] == "\\dt"
    assert typed("\r", tmp_path)[0] == ""
    assert typed("quit\r", tmp_path)[0] == "quit"


def test_control_j_runs_now_and_alt_enter_never(tmp_path):
    assert typed("SELECT 1\n", tmp_path)[0] == "SELECT 1"
    assert typed("SELECT 1;\x1b\r\n", tmp_path)[0] == "SELECT 1;\n"


def test_control_c_and_d(tmp_path):
    # on text it drops the text; on an empty line the shell says how to leave
    assert typed("SELECT\x03", tmp_path)[0] == ""
    with pytest.raises(KeyboardInterrupt):
        typed("\x03", tmp_path)
    with pytest.raises(EOFError):
        typed("\x04", tmp_path)


def test_history_keeps_whole_statements(tmp_path):
    typed("SELECT\r1;\r", tmp_path)
    text, _ = typed("\x1b[A\r", tmp_path)
    assert text == "SELECT\n1;"


def test_an_unwritable_history_is_said_not_raised(tmp_path):
    (tmp_path / "deep").write_text("a file where a directory should be")
    text, editor = typed("SELECT 1;\r", tmp_path)
    assert text == "SELECT 1;"
    assert "history is not saved" in editor.history_note


def test_function_keys(tmp_path):
    _, editor = typed("\x1b[15~\x1bORSELECT 1\r", tmp_path)  # F5, F3: explain mode on, one line
    assert editor.explain_mode
    assert not editor.multi_line
    assert "explain: on" in editor._bar()


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("", True),
        ("\\d", True),
        ("select 1", False),
        ("select 1;", True),
        ("select ';", False),
        ("help", True),
        ("\\", True),
        # a command ends its line: \\g runs the statement before it, others leave it unfinished
        ("select 1 \\g", True),
        ("select 1\n\\watch 2", True),
        ("select 1;\n\\x", True),
        ("select\n\\x", False),
        ("\\x\nselect 1", False),
        ("select '\\g", False),
    ],
)
def test_finished(text, done):
    assert is_finished(text) is done


def test_highlighting_gives_back_the_text():
    text = "SELECT count(*) AS n -- note\nFROM t /* x\ny */ WHERE a = 'it''s' AND b > 1.5 AND c = 'open"
    assert "".join(piece for _, piece in styled_pieces(text)) == text
    assert len(styled_lines(text)) == 3
    styles = {piece: style for style, piece in styled_pieces(text)}
    assert styles["SELECT"] == "class:keyword"
    assert styles["count"] == "class:function"
    assert styles["1.5"] == "class:number"
    assert styles["'it''s'"] == "class:string"
    assert styles["'open"] == "class:open"
    commands = "SELECT 1 \\g out\n\\timing on"
    assert [piece for style, piece in styled_pieces(commands) if style == "class:command"] == [
        "\\g out",
        "\\timing on",
    ]
    assert "".join(piece for _, piece in styled_pieces(commands)) == commands
    assert any(style == "class:comment" and "note" in piece for style, piece in styled_pieces(text))


def completions(text, session=None):
    completer = SqlCompleter(lambda: session, COMMAND_HELP, lambda: ["cheap"])
    return [completion.text for completion in completer.get_completions(Document(text), CompleteEvent())]


def test_keywords_follow_the_case_of_typing():
    assert "SELECT" in completions("SEL")
    assert "select" in completions("sel")


def test_commands_complete_after_a_backslash():
    assert completions("\\d") == ["\\d", "\\d+", "\\dt", "\\dv", "\\df", "\\dc", "\\dj", "\\dj+"]
    assert completions("SELECT 1\n\\g") == ["\\g", "\\gx"]


def test_arguments_of_commands_complete(tmp_path):
    (tmp_path / "job.sql").write_text("")
    (tmp_path / "jobs").mkdir()
    assert completions("\\timing o") == ["on", "off"]
    assert completions("\\mode js") == ["json", "jsonl"]
    assert completions(f"\\i {tmp_path}/jo") == [f"{tmp_path}/job.sql", f"{tmp_path}/jobs/"]
    assert completions("\\i /nonexistent/directory/x") == []
    assert completions("\\n ch") == ["cheap"]
    assert completions("\\q ") == []


def test_settings_and_options_complete_in_quotes():
    assert completions("SET 'parallelism") == ["parallelism.default"]
    assert "filesystem" in completions("CREATE TABLE t (a INT) WITH ('connector' = '")
    assert "path" in completions("CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', '")


def test_tables_and_columns_come_from_the_catalog():
    import pyarrow as pa

    from penstock.catalog.catalog import Catalog
    from penstock.client.table_registration import register
    from penstock.engine.connectors.in_process.registered import RegisteredTables

    class Held:
        catalog = Catalog()

    register(Held.catalog, RegisteredTables(), "flights", pa.table({"carrier": ["AA"], "delay": [1]}))
    assert completions("SELECT * FROM fl", Held) == ["flights"]
    assert "carrier" in completions("SELECT flights.", Held)
    Held.jobs = staticmethod(list)
    assert completions("\\d fl", Held) == completions("\\tail fl", Held) == ["flights"]
    assert "print" in completions("\\dc pr", Held)
    assert completions("\\df upp", Held) == ["upper"]
    assert "read_csv" in completions("SELECT * FROM x, read", Held)
