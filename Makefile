# make run    start Basalt on this machine          make demo   the same, with a stream of sample jobs
# make test   every check and test                  make bench  the measurements, printed as tables
# Options of `manage.py run` go into ARGS:  make run ARGS="--port 8080 --fleet none"

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run demo install test check test-services bench clean

run: install
	exec $(BIN)/python manage.py run $(ARGS)

demo: install
	exec $(BIN)/python manage.py run --workload sample $(ARGS)

install: $(VENV)/.installed node_modules/.installed $(VENV)/.translated

$(VENV)/.installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Basalt needs Python 3.11 or newer; found $$($(PYTHON) --version). Name one with make PYTHON=…"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.txt
	touch $@

$(VENV)/.installed-dev: requirements-dev.txt cli/pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $@

node_modules/.installed: package-lock.json
	@node -e 'process.exit(+(parseInt(process.versions.node) < 20))' || { echo "Basalt needs Node.js 20 or newer for the browser's libraries."; exit 1; }
	npm ci --silent
	touch $@

# Babel compiles the translations, so that no gettext is needed on the machine.
$(VENV)/.translated: $(wildcard locale/*/LC_MESSAGES/*.po) $(VENV)/.installed
	@for catalog in $(wildcard locale/*/LC_MESSAGES/*.po); do $(BIN)/pybabel --quiet compile -i $$catalog -o $${catalog%.po}.mo || exit 1; done
	touch $@

check: install $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not browser" tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m browser tests

# The data and live layers once more on PostgreSQL and Redis: DATABASE_URL and REDIS_URL say where.
test-services: install $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m services tests

bench: install $(VENV)/.installed-dev
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) node_modules var
