"""Each optimizer rule has a golden script and a test file of its name."""

from pathlib import Path

from penstock.optimizer import rules
from penstock.optimizer.optimizer import RULES
from tests.unit.optimizer.rules.around import SCRIPTS

HERE = Path(__file__).parent


def test_each_rule_has_a_golden_script() -> None:
    assert {rule.name for rule in RULES} == {script.stem for script in SCRIPTS.glob("*.sql")}


def test_each_rule_has_a_test_of_its_name() -> None:
    files = {path.stem for folder in rules.__path__ for path in Path(folder).glob("*.py")} - {"__init__"}
    assert files
    assert {name for name in files if not (HERE / f"test_{name}.py").exists()} == set()
