"""Meta commands in -c, -f, ``run`` and pipes: their order, their errors, what they change."""

import io
import sys

import pytest

from penstock.repl.cli import main
from penstock.repl.meta_commands.registry import COMMANDS


@pytest.fixture
def penstock(monkeypatch, tmp_path):
    """Return a function that runs a command line in a directory of its own; it returns the exit code,
    stdout and stderr.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CONFIG", "/nonexistent")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PENSTOCK_NAMED_QUERIES", str(tmp_path / "home" / "named.toml"))

    def run(*words, stdin=""):
        out, err, source = (
            io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", write_through=True)
            for text in (b"", b"", stdin.encode())
        )
        for name, stream in (("stdout", out), ("stderr", err), ("stdin", source)):
            monkeypatch.setattr(sys, name, stream)
        code = main(list(words))
        return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()

    return run


def test_commands_and_statements_take_turns(penstock):
    code, out, err = penstock(
        "--csv",
        "-c",
        r"\timing on",
        "-c",
        "SELECT 1 AS a; \\mode tsv\nSELECT 2 AS b, 3 AS c",
        "-c",
        r"\timing off",
    )
    assert (code, out) == (0, "a\n1\nb\tc\n2\t3\n"), err
    assert err.count("1 row in") == 2
    code, out, err = penstock("--csv", stdin="\\dt nothing\nSELECT 1 AS a;\n\\q\nSELECT 2;")
    assert (code, out.splitlines()[-2:]) == (0, ["a", "1"]), err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            r"\dtx",
            'job.sql:2:1: error[CLI-6140]: there is no command \\dtx\n  2 | \\dtx\n    | ^^^^\nhint: did you mean "\\dt"?',
        ),
        (
            r"\d nosuch",
            'job.sql:2:1: error[SQL-1041]: table "nosuch" does not exist\n  2 | \\d nosuch\n    | ^^^^^^^^^',
        ),
        (r"\timing maybe", r"job.sql:2:1: error[CLI-6141]: \timing takes on or off, not maybe"),
        (r"\i nosuch.sql", "job.sql:2:1: error[CLI-6131]: cannot read nosuch.sql"),
        (r"\i job.sql", "job.sql:2:1: error[CLI-6147]: job.sql would be included in itself"),
        (r"\i", r"job.sql:2:1: error[CLI-6141]: \i takes a file"),
        (r"\e", r"job.sql:2:1: error[CLI-6146]: \e needs a prompt"),
        (r"\last", "job.sql:2:1: error[CLI-6145]: there is no result to show again"),
    ],
)
def test_errors_have_a_place_and_the_exit_code_of_sql(penstock, tmp_path, line, said):
    (tmp_path / "job.sql").write_text(f"SET 'pipeline.name' = 'x';\n{line}\nSELECT 1;\n")
    code, out, err = penstock("-f", "job.sql")
    assert (code, out) == (1, "")
    assert said in err


def test_a_wrong_name_is_found_before_anything_runs(penstock):
    code, out, _ = penstock("-c", "SELECT 1 AS a;\n\\nosuch")
    assert (code, out) == (1, "")


def test_g_without_a_statement(penstock):
    code, _, err = penstock("-c", r"\g")
    assert code == 1
    assert "error[CLI-6143]: there is no statement that \\g could run" in err


def test_an_included_script_includes_its_neighbour(penstock, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "outer.sql").write_text("\\ir inner.sql\nSELECT a FROM v;\n")
    (tmp_path / "sub" / "inner.sql").write_text(
        "CREATE TEMPORARY VIEW v AS SELECT '${day}' AS a;\n\\q\nSELECT 9;\n"
    )
    code, out, err = penstock("run", "sub/outer.sql", "--csv", "--var", "day=Monday")
    assert (code, out) == (0, "a\nMonday\n"), err
    assert penstock("run", "--check", "sub/outer.sql", "--var", "day=Monday")[0] == 0


def test_check_finds_the_errors_of_commands_and_included_scripts(penstock, tmp_path):
    (tmp_path / "outer.sql").write_text(
        "SELECT 1;\n\\nosuch\n\\i inner.sql\n\\ir gone.sql\nSELECT b FROM v;\n"
    )
    (tmp_path / "inner.sql").write_text("CREATE TEMPORARY VIEW v AS SELECT 1 AS a;\nSELEC;\n\\i outer.sql\n")
    code, out, err = penstock("run", "--check", "outer.sql")
    assert (code, out) == (1, "")
    assert [line.split(" ")[0] + line.split(" ")[1] for line in err.splitlines() if "error[" in line] == [
        "outer.sql:2:1:error[CLI-6140]:",
        "inner.sql:2:1:error[SQL-1001]:",
        "inner.sql:3:1:error[CLI-6147]:",
        "outer.sql:4:1:error[CLI-6131]:",
        "outer.sql:5:8:error[SQL-1042]:",
    ]


def test_rows_go_to_a_file_or_a_command(penstock, tmp_path):
    text = "SELECT 1 AS a \\g a.csv\n\\g | cat > b.csv\n\\o c.csv\nSELECT 2 AS b;\n\\o\nSELECT 3 AS c;\n"
    code, out, err = penstock("--csv", "-c", text)
    assert (code, out) == (0, "c\n3\n"), err
    assert [(tmp_path / f"{name}.csv").read_text() for name in "abc"] == ["a\n1\n", "a\n1\n", "b\n2\n"]
    code, _, err = penstock("-c", "SELECT 1 \\g none/a.csv")
    assert code == 1
    assert "cannot write none/a.csv: no such file or directory" in err


def test_a_command_that_has_read_enough_ends_no_script(penstock):
    code, out, err = penstock(
        "--csv",
        "-c",
        "SELECT * FROM range(20000) \\g | head -1 > /dev/null\nSELECT 1 AS a; SELECT 2 AS b \\g | exit 3",
    )
    assert (code, out) == (0, "a\n1\n"), err
    assert "exit 3 ended with exit code 3" in err


def test_the_last_result_again(penstock):
    rows = ", ".join(f"({n})" for n in range(1, 13))
    text = f"SELECT x FROM (VALUES {rows}) AS t(x) \\g /dev/null\n\\dt\n\\mode csv\n\\tail 2\n\\tail\n\\last"
    code, out, err = penstock("-c", text)
    assert code == 0, err
    assert out.split("x\n")[1:] == [
        "11\n12\n",
        "".join(f"{n}\n" for n in range(3, 13)),
        "".join(f"{n}\n" for n in range(1, 13)),
    ]


def test_named_queries(penstock, tmp_path):
    saved = "SELECT * FROM (VALUES (1, 'it''s'), (2, 'b')) AS t(n, s) WHERE n >= ? AND s <> ?"
    code, out, err = penstock("--csv", "-c", f"\\ns these {saved}\nSELECT 1 AS a;\n\\ns one")
    assert (code, out) == (0, "a\n1\n"), err
    assert "these saved in" in err
    assert (tmp_path / "home" / "named.toml").stat().st_mode & 0o777 == 0o600
    # another session has them
    code, out, err = penstock("--csv", "-c", "\\n these 1 'it''s'\n\\n one\n\\n these 0.5 b\n\\nd one\n\\n")
    assert (code, out.splitlines()) == (
        0,
        ["n,s", "2,b", "a", "1", "n,s", "1,it's", "name,query", f'these,"{saved}"'],
    ), err
    for text, said in [
        (
            r"\n thes",
            'error[CLI-6148]: there is no named query thes\n  1 | \\n thes\n    | ^^^^^^^\nhint: did you mean "these"?',
        ),
        (r"\nd one", "error[CLI-6148]: there is no named query one"),
        (r"\ns", r"error[CLI-6141]: \ns takes a name and a query"),
        (r"\ns bad SELEC 1", "error[SQL-10"),
    ]:
        code, out, err = penstock("-c", text)
        assert (code, out) == (1, ""), text
        assert said in err


def test_the_newest_rows_of_a_table(penstock):
    declared = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '30', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '30');"
    code, out, err = penstock("--csv", "-c", f"{declared}\n\\tail t 3")
    assert (code, out) == (0, "a\n28\n29\n30\n"), err
    code, out, err = penstock("-c", "CREATE VIEW v AS SELECT 1 AS a;\n\\tail v")
    assert (code, out) == (1, "")
    assert "2 | \\tail v" in err and "v is a view, whose rows nobody writes" in err
    code, out, err = penstock("-c", "CREATE TABLE b (a INT) WITH ('connector' = 'blackhole');\n\\tail b")
    assert "its connector blackhole is a sink only" in err


def test_a_statement_is_watched_so_many_times(penstock):
    code, out, err = penstock("--csv", "-c", "SELECT 1 AS a \\watch 0 c=2\n\\watch i=0.1 c=1")
    assert (code, out) == (0, "a\n1\n" * 3), err
    code, out, err = penstock("-c", "SELECT 1 AS a \\watch often")
    assert (code, out) == (1, "")
    assert r"error[CLI-6141]: \watch takes seconds, not often" in err


def test_the_list_of_commands_has_all(penstock):
    code, out, err = penstock("--csv", "-c", r"\?")
    assert code == 0, err
    assert all(f"  {command.name} " in out for command in COMMANDS)


def test_why_a_shown_row_is_there(penstock, tmp_path):
    (tmp_path / "sales.csv").write_text("1,2\n1,3\n2,5\n")
    table = (
        "CREATE TABLE sales (k INT, v INT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
        f"'path' = '{tmp_path}/sales.csv', 'csv.header' = 'false');"
    )
    query = "SELECT k, SUM(v) AS s FROM sales GROUP BY k ORDER BY k"
    code, out, err = penstock("--csv", "-c", f"{table}\n{query};\n\\why 1\n\\why\n\\why 9")
    assert "EXPLAIN WHY ROW (`k` = 1, `s` = 5) FOR SELECT k" in err
    shown = [line.split(",", 1)[1] for line in out.splitlines() if line.startswith("sales,")]
    assert [f"row {n}" in line for n, line in enumerate(shown)] == [True, True, True]
    # the result of the query stays the last one, so the second asks for its last row
    assert '""k"":2' in shown[2]
    assert code != 0
    assert "there is no row 9" in err
