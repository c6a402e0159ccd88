# make run   the tour: every pillar once, with a report (about five minutes on two CPU cores, after installation)
# make test  lint, format check and the whole test suite
# make docs  the documentation as a site, build/docs/index.html; it can be read without a network
# make fuzz  hostile command lines, results folders and damaged runs; make mutants: faults in the source
PYTHON ?= python3
VENV ?= .venv
OUT ?= out
READY = $(VENV)/.ready

.PHONY: run test fuzz mutants types docs readme notebooks clean

run: $(READY)
	$(VENV)/bin/recombine run tour --scale laptop --out $(OUT)

test: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest --numprocesses 2 --dist loadfile

fuzz: $(READY)
	OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/fuzz_commands.py 1000
	OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/fuzz_folders.py 500
	OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/faults.py 200

mutants: $(READY)
	OMP_NUM_THREADS=1 nice -n 15 $(VENV)/bin/python scripts/mutants.py --named
	OMP_NUM_THREADS=1 nice -n 15 $(VENV)/bin/python scripts/mutants.py

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
	@echo build/docs/index.html

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else 'recombine needs Python 3.11 to 3.13; set PYTHON=...')"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(READY)

notebooks: $(VENV)/.docs
	$(VENV)/bin/python scripts/notebooks.py

$(VENV)/.docs: $(READY) requirements-docs.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-docs.lock
	touch $@

clean:
	rm -rf $(VENV) $(OUT) build
