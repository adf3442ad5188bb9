# Short verbs. `make quickstart` and `make test` do all set-up themselves, on a machine with python3 and make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One known PyTorch for the extra [explain]; set TORCH=torch==2.x+cu12x (and PIP_INDEX_URL) for another build.
TORCH  ?= torch==2.13.0
AXE    ?= axe-core@4.14.1
JOBS   ?= 2
PACKAGES := eraser_hub metrics papers records conversion datasets_scripts publishing scoring explain asking experiments reports samples

.PHONY: help quickstart test test-fast bench bench-inference matrix lint explain-table reference browser screenshots attack clean
.DEFAULT_GOAL := help

help:
	@echo "make quickstart     install, build the bundled samples and the metrics into hub/, load and score them"
	@echo "make test           install what the tests need and run them all"
	@echo "make test-fast      the same without the tests marked slow"
	@echo "make bench          side-by-side measurements, printed as ratios (long); writes benchmarks/RESULTS.md"
	@echo "make bench-inference  how often tests call equal systems different, and intervals hold the truth (five minutes)"
	@echo "make explain-table  train and explain on movies: the table of docs/results.md (needs real corpora, ERASER_CORPORA)"
	@echo "make reference      docs/reference.md out of the docstrings"
	@echo "make screenshots    pictures of every page, for looking at (build/screenshots) and for the cards"
	@echo "make matrix         the wheel on every Python at hand (PYTHONS), with the newest and the oldest dependencies"
	@echo "make lint           ruff and mypy"
	@echo "make attack N=5000  hostile input for every verb and module, kills, requests to serve; findings in attack.md"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(BIN)/python setup.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# torch comes first and by its exact version, so that no other requirement draws in another build of it
$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[explain,llm,plots,apps,ray,croissant,test,lint]"
	@touch $@

quickstart: $(VENV)/.installed
	$(BIN)/eraser-hub quickstart --out hub

# The browser tests need Debian's packages, the accessibility tests axe-core from npm; where they cannot be installed those tests
# are skipped and say so.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	echo "no chromium: the browser tests will be skipped (Debian: apt-get install chromium chromium-driver)"
	@test -f build/axe/node_modules/axe-core/axe.min.js || \
	npm install --silent --no-audit --no-fund --no-package-lock --prefix build/axe "$(AXE)" >/dev/null 2>&1 || \
	echo "no axe-core: the accessibility tests will be skipped (npm install --prefix build/axe $(AXE))"

# build/screenshots: report, board and Spaces at 1280 and 390 pixels, light and dark; the cards' own pictures are taken anew
screenshots: $(VENV)/.installed-test browser
	$(BIN)/python docs/pictures.py build/screenshots

# Two passes, so that the few long tests (installations, Ray, browsers) do not stand behind one another at the end.
test: $(VENV)/.installed-test browser
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" -q
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m slow -q

test-fast: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" -q

# PYTHONS: the oldest first, which is tried with the oldest dependencies too
PYTHONS ?= python3.10 python3.11 python3.12 python3.13 python3.14
matrix: $(VENV)/.installed-test
	ERASER_PYTHONS="$(PYTHONS)" $(BIN)/python -m pytest tests/publishing/test_wheel.py -q -rs -m slow

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks

bench-inference: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks inference

explain-table: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.explain_table

reference: $(VENV)/.installed-test
	$(BIN)/python docs/reference.py

# mypy sees the folders as the package that they are: build/typing/eraser_hub/X -> X
lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@rm -rf build/typing && mkdir -p build/typing/eraser_hub
	@for file in $(CURDIR)/eraser_hub/*; do ln -s $$file build/typing/eraser_hub/; done
	@for name in $(filter-out eraser_hub,$(PACKAGES)); do ln -s $(CURDIR)/$$name build/typing/eraser_hub/$$name; done
	MYPYPATH=build/typing $(BIN)/mypy -p eraser_hub

clean:
	rm -rf build dist hub report *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Hostile input, judged by the input policy: N cases, KILLS of each verb that writes, REQUESTS to serve; the same for the same SEED.
N        ?= 5000
KILLS    ?= 10
REQUESTS ?= 200
SEED     ?= 0
attack: $(VENV)/.installed-test
	$(BIN)/python -m tests.attack --cases $(N) --kills $(KILLS) --requests $(REQUESTS) --seed $(SEED) --findings attack.md
