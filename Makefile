# make demo   compile a kernel and run it on the weights
# make test   run every test
# make lint   ruff and pyright
# make fuzz   2,000 random kernels, the strength of such kernels, and 10,000 mutated inputs
# make bench  every measurement, into docs/benchmarks.md: an hour
# make soak   the engine against the reference on many launches, TOKENS tokens in all, into docs/benchmarks.md
# make changes   CHANGES random changes of one weight: which show in a token, and which of those are found: hours
# make clean  remove what the others made
#
# PYTHON=python3.12   the Python that the virtual environment is made with (3.11 or later)
# TORCH_INDEX=URL     take torch, and only torch, from this index: its default build for Linux brings CUDA along
PYTHON ?= python3
TORCH_INDEX ?=
TEST_WORKERS ?= 2
KERNELS ?= 2000
TOKENS ?= 10000000
CHANGES ?= 1000

BIN := .venv/bin
INSTALLED := .venv/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check

# One thread per process: the tests run in $(TEST_WORKERS) processes.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.PHONY: demo test lint fuzz bench soak changes clean
.DEFAULT_GOAL := demo

demo: $(INSTALLED)
	$(BIN)/qgpu run examples/dot.cu --grid 1 --block 3 \
	  --arg 'i32[]:1,2,3' --arg 'i32[]:4,5,6' --arg 'i32[1]' --arg i32:3 \
	  --backend weights --check --trace

test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(TEST_WORKERS) tests

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright -p .links

fuzz: $(INSTALLED)
	cd tests && ../$(BIN)/python -m fuzzing run --kernels $(KERNELS) --jobs $(TEST_WORKERS)
	cd tests && ../$(BIN)/python -m fuzzing model
	cd tests && ../$(BIN)/python -m fuzzing strength
	cd tests && ../$(BIN)/python -m fuzzing mutate --jobs $(TEST_WORKERS)

bench: $(INSTALLED)
	$(BIN)/qgpu bench --kernels --memory --problem --agreement --write docs/benchmarks.md --plot docs/benchmarks.svg

soak: $(INSTALLED)
	cd tests && PYTHONPATH=../examples ../$(BIN)/python -m soak --tokens $(TOKENS) --write ../docs/benchmarks.md

changes: $(INSTALLED)
	cd tests && PYTHONPATH=../examples ../$(BIN)/python -m changes --changes $(CHANGES) --prove

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last: an install that was cut short starts over.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(if $(TORCH_INDEX),$(PIP) install --quiet --no-deps -c constraints.txt --index-url '$(TORCH_INDEX)' torch)
	$(PIP) install --quiet -c constraints.txt -e '.[test]'
	touch $@
