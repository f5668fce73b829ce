# Set-up needs Python 3.11 or newer and make; the first command makes its own environment.
# PYTHON=… picks the interpreter, VENV=… another directory, WORKERS=… the parallel test processes.
VENV ?= .venv
PYTHON ?=
WORKERS ?= 2
UV ?= uv

BIN := $(VENV)/bin
RUN := $(VENV)/.ready-run
TEST := $(VENV)/.ready-test
LOCK := $(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint format map bench lock upgrade clean FORCE

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) ## start everything, send real mail, a live inbox message and a batch of 10,000
	@$(BIN)/tocsin demo

test: $(TEST) ## run the tests; ARGS=… goes to pytest
	@$(BIN)/python -m pytest -q -n $(WORKERS) $(ARGS)

lint: $(TEST) ## everything that CI checks besides the tests
	@sh scripts/lint.sh "$(BIN)"

format: $(TEST) ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

map: $(TEST) ## print the module captions into docs/ARCHITECTURE.md
	@$(BIN)/python -m tests.tidy.map

bench: $(TEST) ## measure; ARGS="drain --jobs 100000" picks what
	@$(BIN)/tocsin bench $(ARGS)

lock: ## pin what pyproject.toml and requirements/*.in ask for (needs uv)
	@$(LOCK) --extra dev pyproject.toml requirements/run.in -o requirements/run.txt
	@$(LOCK) requirements/run.txt requirements/test.in -o requirements/test.txt

upgrade: ## the same with the newest versions
	@$(MAKE) --no-print-directory lock LOCK='$(LOCK) --upgrade'

clean: ## remove the environment and all caches
	@rm -rf "$(VENV)" .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made anew when its interpreter is gone, however fresh the stamps are.
ifneq ($(shell test -x "$(BIN)/python" && echo there),there)
$(RUN) $(TEST): FORCE
endif

$(RUN) $(TEST): $(VENV)/.ready-%: requirements/%.txt pyproject.toml src/tocsin/__init__.py scripts/setup.sh
	@sh scripts/setup.sh "$(VENV)" "requirements/$*.txt" "$(PYTHON)"
	@touch "$@"

FORCE:
