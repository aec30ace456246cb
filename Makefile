PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NEVER_IMPORTED := tests?|sympy|networkx|mpmath|moto|cfnlint|mypy|pip|setuptools
SOURCES := catalog client engine optimizer penstock planner repl tests
# a test that hangs shows where each of its threads waits, and ends its process and with it the run, which says what has
# failed: in place of such a process pytest-xdist begins another, and then may wait for ever for the tests that it had
ENDS_HANGING := -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true --max-worker-restart 0 --maxfail 25

# hundreds of processes are started: none compiles all modules anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-kafka demo-cdc demo-debezium test test-unit test-slow fuzz soak lint bench accept clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-13s %s\n", $$1, $$2}'

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --no-compile --disable-pip-version-check --editable '.[dev]'
	@-$(BIN)/python -m compileall -q -j 0 -x '/($(NEVER_IMPORTED))/' $(VENV)/lib >/dev/null  # on all cores; pip takes one
	@touch $@

demo: $(VENV)/.installed ## set up, then run a continuous query over a year of real flights, its tables read by Spark
	@rm -rf out/flights out/state
	@$(BIN)/penstock run --verbose --set bounded.backend=spark queries/flights.sql --state out/state

demo-kafka: $(VENV)/.installed ## a broker, flights in a topic, weekly windows into a Delta table
	@$(BIN)/python -m queries.pipelines.demo kafka

demo-cdc: $(VENV)/.installed ## PostgreSQL's changes joined with a topic, into a topic of upserts and a materialized view
	@$(BIN)/python -m queries.pipelines.demo cdc

demo-debezium: $(VENV)/.installed ## Debezium's changes of a topic, the busiest routes into PostgreSQL
	@$(BIN)/python -m queries.pipelines.demo debezium

test: $(VENV)/.installed ## set up, then run all tests and checks (nine to thirteen minutes on two quiet cores)
	@$(BIN)/python -m compileall -q -j 0 -x '/test_' $(SOURCES)  # once, not by each process
	@$(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder $(ENDS_HANGING)

test-unit: $(VENV)/.installed ## the tests of single parts, without Java: the inner loop
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m 'not spark' tests/unit

test-slow: $(VENV)/.installed ## the same tests pinned to one core, beside a busy loop on it (25 minutes and more): none may depend on speed
	@taskset -c 0 sh -c 'while :; do :; done & busy=$$!; $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder; ended=$$?; kill $$busy; exit $$ended'

# make test asks QUERIES=30 generated queries and Spark 3 of them; make fuzz asks FUZZ more, Spark 18, and tries every
# relation and machine more often
FUZZ ?= 2000
fuzz: $(VENV)/.installed ## many more generated queries than the tests have (FUZZ=2000), failures made small
	@$(BIN)/python -m tests.generated.queries.soak 150 $$((150 + $(FUZZ)))
	@AT_LENGTH=1 QUERIES=2000 RELATIONS=3 MACHINES=20 DISORDER=2000 $(BIN)/python -m pytest tests/generated/queries tests/state_machines

soak: $(VENV)/.installed ## the tests that are brief in make test and every experiment with faults, at length (hours)
	@AT_LENGTH=1 $(BIN)/python -m pytest -p no:xdist -m 'at_length or longer' && $(BIN)/python -m tests.fault_injection soak && $(BIN)/python -m tests.mutation

lint: $(VENV)/.installed ## ruff, mypy, the order of imports, the rules of the code
	@$(BIN)/python -m pytest -p no:xdist tests/test_house.py

bench: $(VENV)/.installed ## throughput beside DuckDB, scaling, cost per batch, start-up times
	@$(BIN)/python -m bench

accept: $(VENV)/.installed ## rewrite the expected output of golden tests with what comes out now (then read the diff)
	@ACCEPT=1 $(BIN)/python -m pytest -m 'not spark' tests -k golden

clean: ## remove the environment, caches and everything written by runs
	@rm -rf $(VENV) out build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
