# TideSched: `make help` lists the commands.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
DATA_DIR ?= .data
export HOST PORT DATA_DIR

BOOTSTRAP := $(PYTHON) tidesched_web/embedded/bootstrap.py
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help up down test test-cluster test-volcano kube-begin check bench crew proof-audit proof-rest proof-pages proof-kernels clean lock docs

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  Variables of \`make up\`: HOST, PORT, DATA_DIR, ADMIN_PASSWORD, DATABASE_URL, REDIS_URL, DEMO, DEMO_SIZE (docs/operations.md)"

up: ## run TideSched in the foreground; Ctrl-C stops it
	@exec $(BOOTSTRAP) run -m tidesched_web.embedded up

down: ## stop what runs on DATA_DIR
	@exec $(BIN)/python -m tidesched_web.embedded down

# Each worker has servers of its own; the order of the files matters (tests/conftest.py). Many tests wait for servers,
# so there is one worker more than processors.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# The servers that tests start find the engine's compiled code there, instead of making it again in each data folder.
test: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
test: kube-begin check ## everything that must hold: the checks and all suites
	$(BIN)/python manage.py prepare --build-only
	$(BIN)/python -m pytest -m "not kubernetes and not volcano" -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder
	@if [ "$$CI" = true ]; then $(BIN)/python -m tests.kube build; fi
	$(BIN)/python -m pytest -m kubernetes -n $(WORKERS) --maxprocesses 2 --dist loadfile tests/cluster tests/kube

test-cluster: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
test-cluster: ## the suites against a real kube-apiserver and etcd, which are built where there are none
	@$(BOOTSTRAP) dev
	$(BIN)/python -m tests.kube build
	$(BIN)/python -m pytest -m kubernetes -n $(WORKERS) --maxprocesses 2 --dist loadfile tests/cluster tests/kube

test-volcano: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
test-volcano: ## the suite against Volcano's own programs beside the API server, which are built where there are none
	@$(BOOTSTRAP) dev
	$(BIN)/python -m tests.kube build
	$(BIN)/python -m tests.volcano.build
	$(BIN)/python -m pytest -m volcano tests/volcano

# Both are built while everything else runs, where they have to be there in the end.
kube-begin:
	@$(BOOTSTRAP) dev
	@if [ "$$CI" = true ]; then nice -n 15 $(BIN)/python -m tests.kube build & fi

check: ## formatting, lint, imports, types, migrations, generated files
	@$(BOOTSTRAP) dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --cache-dir .cache/import-linter
	$(BIN)/mypy
	$(BIN)/python -m tests.checks

docs: ## write the generated files again: openapi.yaml and the reference pages
	@$(BOOTSTRAP) dev
	$(BIN)/python -m tests.checks --write

bench: ## the benchmarks of bench/, with their targets
	@$(BOOTSTRAP) dev
	$(BIN)/python -m bench

# RUN: calm, faults or size (all by default); MINUTES: instead of the run's own time.
crew: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
crew: ## scripted people on a running installation, all at once: calm, with faults, with 10,000 pods (docs/crew.md)
	@$(BOOTSTRAP) dev
	$(BIN)/python manage.py prepare --build-only
	$(BIN)/python -m tests.crew $(RUN) $(if $(MINUTES),--minutes $(MINUTES))

proof-audit: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
proof-audit: ## the tamperings with the audit log, and a thousand copies that nobody touched
	@$(BOOTSTRAP) dev
	AUDIT_COPIES=1000 $(BIN)/python -m pytest -q --show-capture=no tests/web/test_audit_tampering.py

proof-rest: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
proof-rest: ## Schemathesis with all checks and phases on all operations (REST_EXAMPLES=50, REST_SEED=1, REST_RESULTS=folder)
	@$(BOOTSTRAP) dev
	REST_EXAMPLES=$${REST_EXAMPLES:-50} $(BIN)/python -m pytest -q -s --show-capture=no tests/api/test_conformance.py tests/api/test_hostile_bodies.py tests/api/test_hostile_forms.py

proof-pages: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
proof-pages: ## every page in both themes at both widths; the other suites see each theme and each width once
	@$(BOOTSTRAP) dev
	LOOKS=all $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 4 --dist loadfile tests/browser

proof-kernels: export NUMBA_CACHE_DIR := $(CURDIR)/.cache/kernels
proof-kernels: ## decisions with an empty cache of compiled code and with a warm one, byte for byte
	@$(BOOTSTRAP) dev
	EMPTY_CACHE=1 $(BIN)/python -m pytest -q tests/properties/test_paths.py

lock: ## resolve requirements/*.in anew, for all platforms, with hashes
	@$(BOOTSTRAP) dev
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' requirements/base.in -o requirements/base.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' requirements/dev.in -o requirements/dev.txt

clean: ## remove what was made here, except the data of DATA_DIR
	rm -rf .venv .cache node_modules static/vendor staticfiles staticfiles.stamp .pytest_cache .mypy_cache .ruff_cache .hypothesis test-results
	find . -name __pycache__ -prune -exec rm -rf {} +
	find locale -name '*.mo' -delete 2>/dev/null || true
