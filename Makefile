# Needs python3 (3.11 or newer), git and make; everything else goes into .venv, pinned.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
SHELL := /bin/sh

PYTHON  ?= python3
NAME    ?= race_day
ARGS    ?=
HARNESS ?=
STORE   ?= sqlite
SECONDS ?=

ifndef SEED
SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif

VENV := .venv
BIN  := $(VENV)/bin
CODE := $(wildcard src storekit tests benchmarks examples tools hatch_build.py)
UI   := $(shell find ui -name node_modules -prune -o -type f -print)
PAGES := src/rota/web/pages/index.html

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pyright: the node of its own wheel and the version pinned with it, and no word about newer ones.
export PYRIGHT_PYTHON_GLOBAL_NODE := 0
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: $(VENV)/.ready-run $(PAGES) ## start the demo with the control room
	@$(BIN)/rota demo $(ARGS)

.PHONY: example
example: $(if $(wildcard examples/$(NAME)/requirements.txt),$(VENV)/.ready-dev,$(VENV)/.ready-run) ## play an example of examples/ (NAME=race_day)
	@test -f examples/$(NAME)/__main__.py || \
	  { echo "make example knows no $(NAME); there are: $(sort $(notdir $(patsubst %/__main__.py,%,$(wildcard examples/*/__main__.py))))"; exit 1; }
	@$(BIN)/python -m examples.$(NAME) $(ARGS)

.PHONY: test
test: $(VENV)/.ready-dev $(PAGES) ## run the tests on all cores (ARGS="-k cron" to choose)
	@PYTHONHASHSEED=0 $(BIN)/python -m pytest -n auto --dist worksteal -m "not soak" $(ARGS)
	@$(if $(ARGS),true,$(MAKE) test-django)

.PHONY: test-django
test-django: $(VENV)/.ready-dev ## run the tests of rota.django with Django 6.1 (ARGS=--every: 5.2, 6.0, 6.1 with every Python)
	@PYTHONHASHSEED=0 $(BIN)/python -m tools.django_versions $(ARGS)

.PHONY: lint
lint: $(VENV)/.ready-dev ## check format, style, types, imports, the page of requirements and the messages of commits
	@echo "ruff format"  && $(BIN)/ruff format --quiet --check --output-format concise $(CODE) || { echo "Some files are not formatted: make format"; exit 1; }
	@echo "ruff check"   && $(BIN)/ruff check --quiet $(CODE)
	@echo "mypy"         && $(BIN)/mypy --no-error-summary $(CODE)
	@echo "pyright"      && $(BIN)/pyright --pythonpath $(BIN)/python $(CODE)
	@echo "tsc"          && $(BIN)/python -m tools.ui --check
	@echo "lint-imports" && $(BIN)/lint-imports --no-logo
	@echo "requirements" && $(BIN)/python -m tools.requirements --check
	@echo "commits"      && $(BIN)/python -m tools.commits

.PHONY: check
check: lint test ## lint, then test

.PHONY: format
format: $(VENV)/.ready-dev ## format the code, mend what ruff can mend, write docs/requirements.md
	@$(BIN)/ruff check --quiet --fix-only $(CODE)
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/python -m tools.requirements

.PHONY: ui
ui: $(PAGES) ## build the pages of the control room, from ui/

.PHONY: screenshots
screenshots: $(VENV)/.ready-dev $(PAGES) ## take the pictures of the control room for the docs
	@$(BIN)/python -m tools.screenshots $(ARGS)

.PHONY: bench
bench: $(VENV)/.ready-dev ## measure rota (HARNESS=path: with that harness)
	@$(BIN)/python -m benchmarks $(if $(HARNESS),--harness "$(HARNESS)") $(ARGS)

.PHONY: soak
soak: $(VENV)/.ready-dev ## run the long tests that `make test` leaves out (SEED= SECONDS=)
	@PYTHONHASHSEED=$(SEED) $(BIN)/python -m pytest -n 2 -m soak --timeout 3600 --hypothesis-profile soak \
	  --hypothesis-seed $(SEED) --search-seconds $(or $(SECONDS),600) tests $(ARGS)

.PHONY: chaos
chaos: $(VENV)/.ready-dev ## kill, freeze and cut for a while, then check every promise (STORE= SECONDS= SEED=)
	@$(BIN)/python -m tests.chaos --store $(STORE) --seconds $(or $(SECONDS),150) --seed $(SEED) $(ARGS)

.PHONY: check-deploy
check-deploy: $(VENV)/.ready-deploy ## check deploy/: rules, board, image, compose, units, manifests
	@$(BIN)/python -m tools.check_deploy

.PHONY: dist
dist: $(VENV)/.ready-dist ## build wheel and sdist into dist/, and try the wheel on every Python found here
	@$(BIN)/python -m tools.dist $(ARGS)

.PHONY: clean
clean: ## remove .venv, caches and build output
	@rm -rf $(VENV) $(VENV)-django61 .cache build dist ui/node_modules $(dir $(PAGES))
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two stamps, so that `make run` fetches only what running needs. dev.txt holds all of run.txt.
$(VENV)/.ready-run: requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "Installing rota and what it runs on into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --no-deps -r requirements/run.txt
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.ready-dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "Installing rota, its tests and its checks into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --no-deps -r requirements/dev.txt
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check > $(VENV)/pip-check.log || { cat $(VENV)/pip-check.log; exit 1; }
	@touch $(VENV)/.ready-run $@

$(PAGES): $(UI) tools/ui.py | $(VENV)/.ready-run
	@echo "Building the control room ..."
	@$(BIN)/python -m tools.ui

$(VENV)/.ready-dist: requirements/dist.txt $(VENV)/.ready-dev
	@echo "Installing what checks a release into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --no-deps -r requirements/dist.txt
	@$(BIN)/python -m pip check > $(VENV)/pip-check.log || { cat $(VENV)/pip-check.log; exit 1; }
	@touch $@

$(VENV)/.ready-deploy: requirements/deploy.txt $(VENV)/.ready-dev
	@echo "Installing what checks deploy/ into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --no-deps -r requirements/deploy.txt
	@$(BIN)/python -m pip check > $(VENV)/pip-check.log || { cat $(VENV)/pip-check.log; exit 1; }
	@touch $@

$(BIN)/python:
	@command -v "$(PYTHON)" > /dev/null || \
	  { echo "rota needs Python 3.11 or newer, but $(PYTHON) was not found: make PYTHON=/path/to/python3.11"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rota needs Python 3.11 or newer, but $(PYTHON) is $$("$(PYTHON)" -V 2>&1): make PYTHON=/path/to/python3.11"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || \
	  { echo "$(PYTHON) has no venv module; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
