import pytest

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.config import load_config, with_flags


def test_flag_over_environment_over_project_over_user(tmp_path):
    user, project = tmp_path / "config.toml", tmp_path / "here"
    project.mkdir()
    user.write_text(
        'format = "csv"\nnull = "-"\ntiming = false\n[settings]\nparallelism.default = 2\n"table.dml-sync" = true\n'
    )
    (project / "penstock.toml").write_text('format = "json"\n[settings]\n"parallelism.default" = 3\n')
    config = load_config({"PENSTOCK_CONFIG": str(user)}, project)
    assert (config.format, config.null, config.timing) == ("json", "-", False)
    assert config.settings == {"parallelism.default": "3", "table.dml-sync": "true"}
    config = load_config({"PENSTOCK_CONFIG": str(user), "PENSTOCK_FORMAT": "tsv"}, project)
    assert config.format == "tsv"
    assert config.origin["format"] == "$PENSTOCK_FORMAT"
    config = with_flags(config, url=None, format="jsonl", settings={"parallelism.default": "4"})
    assert (config.format, config.settings["parallelism.default"]) == ("jsonl", "4")
    assert config.origin["settings.parallelism.default"] == "flag"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("formt = 'csv'", 'did you mean "format"?'),
        ("format = 'cvs'", 'did you mean "csv"?'),
        ("timing = 3", "timing takes a bool"),
        ("format = ", "cannot read"),
        ("settings = 3", "settings is a table"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_name(tmp_path, text, said):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(PenstockError) as caught:
        load_config({"PENSTOCK_CONFIG": str(path)}, tmp_path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_no_file_is_fine(tmp_path):
    assert load_config({"PENSTOCK_CONFIG": str(tmp_path / "none")}, tmp_path).format == "table"
