# make run   the tour: every pillar once, with a report (about five minutes on two CPU cores, after installation)
# make test  lint, format check and the whole test suite
# make docs  the documentation as a site, build/docs/index.html; it can be read without a network
# make owntour  the tour of docs/own-data.md, about ten minutes: own pictures, a model, its export, its evaluation
# make fuzz  hostile command lines, results folders and damaged runs; make mutants: faults in the source
# make soak  half an hour of kills, stops and full disks; make lock: checksums of all packages, their licences
PYTHON ?= python3
VENV ?= .venv
OUT ?= out
READY = $(VENV)/.ready
LOCKED = --quiet --disable-pip-version-check --require-hashes --no-deps

.PHONY: run test slowtest clustertest owntour fuzz mutants soak lock audit types docs readme notebooks clean

run: $(READY)
	$(VENV)/bin/recombine run tour --scale laptop --out $(OUT)

test: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

slowtest: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -m slow --numprocesses 2

clustertest: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -m cluster tests/test_engines.py

owntour: $(VENV)/.bridge
	$(VENV)/bin/python scripts/own_tour.py $(OUT)/own-tour

fuzz: $(READY)
	OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/fuzz_commands.py 1000
	OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/fuzz_folders.py 500
	OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/faults.py 200

mutants: $(READY)
	OMP_NUM_THREADS=1 nice -n 15 $(VENV)/bin/python scripts/mutants.py --named
	OMP_NUM_THREADS=1 nice -n 15 $(VENV)/bin/python scripts/mutants.py
	OMP_NUM_THREADS=1 nice -n 15 $(VENV)/bin/python scripts/mutants.py --over 150

soak: $(READY)
	OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/soak.py 30

lock: $(VENV)/.docs
	$(VENV)/bin/python scripts/lock_hashes.py
	$(VENV)/bin/python scripts/licences.py

audit: $(READY)
	$(PYTHON) scripts/audit.py

readme: $(READY)
	$(VENV)/bin/python scripts/readme.py
	$(VENV)/bin/python scripts/claim_tables.py
	$(VENV)/bin/python scripts/study_pages.py
	$(VENV)/bin/python scripts/concept_pictures.py

types: $(VENV)/.docs
	$(VENV)/bin/mypy

docs: $(VENV)/.docs
	$(VENV)/bin/python scripts/docs_site.py
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict
	$(VENV)/bin/python scripts/docs_site.py --check
	@echo build/docs/index.html

$(READY): requirements.lock requirements-torch.lock pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else 'recombine needs Python 3.11 to 3.13; set PYTHON=...')"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install $(LOCKED) --requirement requirements.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-torch.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(READY)

notebooks: $(VENV)/.docs
	$(VENV)/bin/python scripts/notebooks.py

$(VENV)/.docs: $(READY) requirements-docs.lock
	$(VENV)/bin/python -m pip install $(LOCKED) --requirement requirements-docs.lock
	touch $@

$(VENV)/.bridge: $(READY) requirements-bridge.lock
	$(VENV)/bin/python -m pip install $(LOCKED) --requirement requirements-bridge.lock
	touch $@

clean:
	rm -rf $(VENV) $(OUT) build
