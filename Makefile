# Short verbs. `make quickstart` and `make test` do all set-up themselves, on a machine with python3 and make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One known PyTorch for the extra [explain]; set TORCH=torch==2.x+cu12x (and PIP_INDEX_URL) for another build.
TORCH  ?= torch==2.13.0
AXE    ?= axe-core@4.14.1
JOBS   ?= 2
SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

.PHONY: help quickstart test unit quick slow lint types bench bench-inference matrix \
        docs browser latex screenshots pictures clean
.DEFAULT_GOAL := help

help:
	@echo "make quickstart     install, build the bundled samples and the metrics into hub/, load and score them"
	@echo "make test           install what the tests need and run them all"
	@echo "make unit           the tests that need neither torch, transformers, datasets nor evaluate (under a minute)"
	@echo "make quick          all tests but those marked slow (minutes)"
	@echo "make slow           those marked slow: installations of the wheel, pages as typed, browsers, Ray"
	@echo "make lint types     ruff, the schemas of workflows; mypy --strict, pyright: what CI asks for before the tests"
	@echo "make bench          side-by-side measurements, printed as ratios (long); writes benchmarks/RESULTS.md"
	@echo "make bench-inference  how often tests call equal systems different, and intervals hold the truth (a minute)"
	@echo "make docs           the documentation site, strictly, into site/"
	@echo "make screenshots    pictures of every page, for looking at (build/screenshots) and for the cards"
	@echo "make pictures       the pictures of README.md and docs/, anew"
	@echo "make matrix         the wheel on every Python at hand (PYTHONS), with the newest and the oldest dependencies"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(BIN)/python setup.cfg pyproject.toml eraser_hub/version.py
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# torch comes first and by its exact version, so that no other requirement draws in another build of it
$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[explain,llm,plots,apps,ray,test,lint,docs]"
	@touch $@

quickstart: $(VENV)/.installed
	$(BIN)/eraser-hub quickstart --out hub

# The tests that compile LaTeX need pdflatex; where it cannot be installed they are skipped and say so.
latex:
	@command -v pdflatex >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  texlive-latex-base texlive-latex-recommended >/dev/null; } || \
	echo "no pdflatex: LaTeX will not be compiled (Debian: apt-get install texlive-latex-base texlive-latex-recommended)"

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
	$(BIN)/python -m tools.pictures build/screenshots

# docs/images: the pictures of README.md and of the pages
pictures: $(VENV)/.installed-test browser
	$(BIN)/python -m tools.pictures documents

# Two passes, so that the few long tests (installations, Ray, browsers) do not stand behind one another at the end.
test: quick slow

unit: $(VENV)/.installed-test
	$(PYTEST) -m "unit and not slow and not browser"

quick: $(VENV)/.installed-test browser
	$(PYTEST) -m "not slow"

slow: $(VENV)/.installed-test browser latex
	$(PYTEST) -m slow

# PYTHONS: the oldest first, which is tried with the oldest dependencies too
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
matrix: $(VENV)/.installed-test
	ERASER_PYTHONS="$(PYTHONS)" $(BIN)/python -m pytest tests/test_wheel.py -q -rs -m slow

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks

bench-inference: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks inference

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

# NO_MKDOCS_2_WARNING: a notice of the theme's authors, of another program
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/*_*.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.citation-file-format --force-filetype yaml CITATION.cff

types: $(VENV)/.installed-test
	$(BIN)/mypy -p eraser_hub
	$(BIN)/basedpyright

clean:
	rm -rf build dist hub report site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
