# TideSched: `make help` lists the commands.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
DATA_DIR ?= .data
export HOST PORT DATA_DIR
# Packages come without bytecode: what a process has compiled is kept for those that start after it.
unexport PYTHONDONTWRITEBYTECODE

BOOTSTRAP := $(PYTHON) tidesched_web/embedded/bootstrap.py
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help up down test proof check bench clean lock docs

help: ## show this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  Variables of \`make up\`: HOST, PORT, DATA_DIR, ADMIN_PASSWORD, DATABASE_URL, REDIS_URL, DEMO, DEMO_SIZE (docs/operations.md)"

up: ## run TideSched in the foreground; Ctrl-C stops it
	@exec $(BOOTSTRAP) run -m tidesched_web.embedded up

down: ## stop what runs on DATA_DIR
	@exec $(BIN)/python -m tidesched_web.embedded down

# Each worker has servers of its own. Many tests wait for servers, so there are two workers more than processors.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, 2 + (os.cpu_count() or 1)))')
# The servers that tests start find the engine's compiled code there, instead of making it again in each data folder.
test proof proof-%: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
GATE := $(BIN)/python -m pytest -m "not browser and not proof and not kubernetes and not volcano" $(addprefix --ignore tests/,architecture browser volcano)
test: ## the gate: the checks, all suites but the proofs, the browser suite
	@$(BOOTSTRAP) dev
	@mkdir -p test-results
# Beside the checks: the engine and the pages' files; and the tests as pytest compiles them, once instead of in each worker.
	@$(BIN)/python manage.py prepare --build-only > test-results/prepare.log 2>&1 & prepared=$$!; \
	$(GATE) --collect-only -q > test-results/collect.log 2>&1 & collected=$$!; \
	$(MAKE) --no-print-directory check || { kill $$prepared $$collected; exit 1; }; \
	wait $$prepared || { cat test-results/prepare.log; exit 1; }; \
	wait $$collected || { tail -n 60 test-results/collect.log; exit 1; }; \
	status=0; \
	$(GATE) -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=40 --junitxml test-results/tests.xml || status=1; \
	$(BIN)/python -m pytest -m "browser and not proof" tests/browser -n 3 --dist loadfile --no-loadscope-reorder --reruns 1 --durations=40 --junitxml test-results/browser.xml || status=1; \
	exit $$status

proof: ## all proofs: what takes too long for the gate (CONTRIBUTING.md)
	@$(BOOTSTRAP) dev
	$(BIN)/python manage.py prepare --build-only
	$(BIN)/python -m tests.proofs

proof-%: ## one proof; RUN and MINUTES: of proof-crew
	@$(BOOTSTRAP) dev
	$(BIN)/python manage.py prepare --build-only
	$(BIN)/python -m tests.proofs $*

check: ## formatting, lint, imports, types, migrations, generated files, rules of tests/architecture
	@$(BOOTSTRAP) dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --cache-dir .cache/import-linter
	$(BIN)/mypy
	$(BIN)/python -m tests.checks
	$(BIN)/python -m pytest -q tests/architecture

docs: ## write the generated files again: openapi.yaml and the reference pages
	@$(BOOTSTRAP) dev
	$(BIN)/python -m tests.checks --write

bench: ## the benchmarks of bench/, with their targets
	@$(BOOTSTRAP) dev
	$(BIN)/python -m bench

lock: ## resolve requirements/*.in anew, for all platforms, with hashes
	@$(BOOTSTRAP) dev
	set -e; for name in uv base dev; do $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' requirements/$$name.in -o requirements/$$name.txt; done

clean: ## remove what was made here, except the data of DATA_DIR
	rm -rf .venv .cache node_modules static/vendor staticfiles staticfiles.stamp .pytest_cache .mypy_cache .ruff_cache .hypothesis test-results
	find . -name __pycache__ -prune -exec rm -rf {} +
	find locale -name '*.mo' -delete 2>/dev/null || true
