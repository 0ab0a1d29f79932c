# Everything a developer does, by one name each. `make help` lists the names.

# Which Python a new environment is made with (python3); one that is there keeps its own. JOBS: tests at a time,
# more than there are processors, since many of them wait for processes most of the time; those of Kubernetes have servers of their own.
PYTHON ?=
JOBS ?= 4
KUBERNETES_JOBS ?= 2
# The version of Kubernetes that is tested with; empty: the usual one (tests/testbed/kubernetes).
KUBERNETES ?=

VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements-dev.lock
# Written last, with the folder that the environment was made for: no file, or another folder, means "not ready".
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
# Written when the files of the tests have been read once: what pytest makes of them is kept then. Before, each of JOBS
# processes would do it for all of them.
TESTS_READ := $(VENV)/.tests-read
# A second environment, with the wheel of which the part that decides is compiled (docs/compiled.md).
COMPILED := build/compiled
COMPILED_READY := $(COMPILED)/.ready
PYTEST_ARGS ?=
# `make courses` takes the random courses FROM to COURSES - 1 under each rule; how many processes at a time.
COURSES ?= 10000
FROM ?= 0
COURSE_JOBS ?= 1
SOAK_ARGS ?=
DAMAGE_ARGS ?=
SEEDS ?= 1000
STATES ?= 1000
WORKLOADS ?= 40
STEPS ?= 1000000
SECONDS ?= 60
TARGET ?=
FUZZ := build/fuzz
FAULTS ?=
SEED ?=
LOAD_ARGS ?=

# The tests start the command and the service some 500 times: compiled once, not each time, wherever the shell that
# calls says otherwise.
unexport PYTHONDONTWRITEBYTECODE

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
$(READY): not-ready
endif
ifneq ($(shell cat $(COMPILED_READY) 2>/dev/null),$(CURDIR))
$(COMPILED_READY): not-ready
endif

.PHONY: help
help:  ## List what can be made
	@awk -F ':.*## ' '/^[.a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: $(READY)  ## Start the service with a sample workload and show it live; Ctrl-C ends it
	@$(BIN)/fairlead demo

.PHONY: test
test: $(READY)  ## Lint, types, import rules and the quick tests (PYTEST_ARGS="..." to narrow)
	$(MAKE) -j 2 --output-sync=target types lint imports $(TESTS_READ)
	$(PYTEST) -n $(JOBS) --dist worksteal -m "not slow and not thorough and not kubernetes" $(PYTEST_ARGS)

$(TESTS_READ): | $(READY)
	@$(PYTEST) --collect-only -qq >/dev/null 2>&1 && touch $@ || true # what cannot be read the tests say

.PHONY: test-thorough
test-thorough: $(READY)  ## The tests that take seconds each and that `make test` leaves out: whole services, killed, flooded and replaced
	$(PYTEST) -n $(JOBS) --dist worksteal -m "thorough and not slow" $(PYTEST_ARGS)

.PHONY: test-long
test-long: $(READY)  ## Every test, the slow ones and ten times the random steps included
	$(PYTEST) -n $(JOBS) --dist worksteal --hypothesis-profile long --timeout 1800 -m "not kubernetes" $(PYTEST_ARGS)

.PHONY: test-kubernetes
test-kubernetes: export FAIRLEAD_BED_KUBERNETES := $(KUBERNETES)
test-kubernetes: $(READY)  ## Test on a real Kubernetes API server with fake nodes; needs Go, once, to build it (KUBERNETES=1.33: another version)
	PYTHONPATH=tests $(BIN)/python -m testbed.binaries
	$(PYTEST) tests/kubernetes -n $(KUBERNETES_JOBS) --dist worksteal -m kubernetes --timeout 900 $(PYTEST_ARGS)

.PHONY: test-kubernetes-versions
test-kubernetes-versions:  ## The same with each version of Kubernetes that there is a module for, the usual one last
	for version in $(patsubst tests/testbed/kubernetes-%,%,$(wildcard tests/testbed/kubernetes-*)) ""; do \
		$(MAKE) test-kubernetes KUBERNETES=$$version || exit 1; \
	done

.PHONY: test-pages
test-pages: $(READY)  ## Walk every page in a real Chromium (Debian: apt-get install chromium)
	$(PYTEST) tests/web --timeout 300 $(PYTEST_ARGS)

.PHONY: pictures
pictures: $(READY)  ## Take pictures of every page into build/pictures (PICTURES="forty" for some; empty, forty, large)
	PYTHONPATH=tests:. $(BIN)/python -m web.pictures build/pictures $(PICTURES)

.PHONY: breaks
breaks: $(READY)  ## Break the scheduler on purpose, one way at a time, and see that some test finds it (BREAKS="'NAME'")
	$(BIN)/python tests/properties/breaks.py $(BREAKS)

.PHONY: courses
courses: $(READY)  ## Watch the laws of rank in the random courses FROM=0 to COURSES=10000 under each rule (COURSE_JOBS=1)
	$(BIN)/python tests/properties/courses.py $(COURSES) --first $(FROM) --jobs $(COURSE_JOBS)

.PHONY: deep-courses
deep-courses: $(READY)  ## The same in courses with three levels of queues and gangs of several groups
	for rule in guarantee priority both; do $(BIN)/python tests/properties/deep_courses.py $$rule $(FROM) $(COURSES) || exit 1; done

.PHONY: told-otherwise
told-otherwise: $(READY)  ## Tell both kinds of courses in other words (all amounts seven times, a selector that every node meets): the same is decided
	for rule in guarantee priority both; do $(BIN)/python tests/properties/told_otherwise.py $$rule $(FROM) $(COURSES) || exit 1; done

.PHONY: crowds
crowds: $(READY)  ## Hold decisions with what is remembered against those without, and watch the laws, in crowded courses FROM=0 to COURSES=10000
	PYTHONPATH=src $(BIN)/python tests/properties/crowd_memory.py $(FROM) $(COURSES)
	for rule in guarantee priority both; do PYTHONPATH=src $(BIN)/python tests/properties/crowd_laws.py $$rule $(FROM) $(COURSES) || exit 1; done

.PHONY: brute-force
brute-force: $(READY)  ## Hold answers to why against brute force in every dimension (STATES=1000 random states, half an hour)
	PYTHONPATH=tests:src $(BIN)/python tests/properties/brute_force.py $(STATES)

.PHONY: compare-simulators
compare-simulators: $(READY)  ## Hold the simulator against one that shares no code with it: every start, end and eviction (WORKLOADS=40 FIRST=0)
	PYTHONPATH=tests:src $(BIN)/python tests/reference/compared_simulators.py $(WORKLOADS) $(if $(FIRST),--first $(FIRST))

.PHONY: compare-futures
compare-futures: $(READY)  ## Hold forecasts with all run times known against what then happens, to the millisecond (WORKLOADS=40 FIRST=0)
	PYTHONPATH=tests:src $(BIN)/python tests/reference/compared_futures.py $(WORKLOADS) $(if $(FIRST),--first $(FIRST))

.PHONY: bench-kubernetes
bench-kubernetes: $(READY)  ## Measure it there, beside kube-scheduler (BENCH_ARGS="--large" for 5,000 nodes)
	PYTHONPATH=tests:src $(BIN)/python tests/kubernetes/bench.py $(BENCH_ARGS)

.PHONY: bench-arrivals
bench-arrivals: $(READY)  ## What pods cost that come and go at a full cluster, without one (BENCH_ARGS="--rate 500 --seconds 60")
	PYTHONPATH=tests:tests/kubernetes:src $(BIN)/python tests/kubernetes/arrivals_bench.py $(BENCH_ARGS)

.PHONY: compiled
compiled: $(COMPILED_READY)  ## Compile what decides and what moves virtual time; build/compiled/bin/fairlead is then the command

$(COMPILED_READY): $(READY) $(shell find src -name '*.py') scripts/compiled_wheel.py scripts/make-compiled
	@scripts/make-compiled $(VENV) $(COMPILED) $(COMPILED_READY)

.PHONY: test-compiled
test-compiled: $(COMPILED_READY)  ## Compile, run the tests of what decides on that, and compare it with the plain one, byte by byte
	$(COMPILED)/bin/python -m pytest -o pythonpath=tests -n $(JOBS) --dist worksteal -m "not slow and not plain" \
		tests/unit/core tests/unit/policy tests/unit/insight tests/unit/library tests/scenarios tests/properties \
		$(patsubst %,tests/unit/sim/test_%.py,engine figures forecasting periods scenario) $(PYTEST_ARGS)
	FAIRLEAD_TEST_COMPILED=required $(PYTEST) tests/compiled -n $(JOBS) --dist worksteal --timeout 600 $(PYTEST_ARGS)

.PHONY: bench-compiled
bench-compiled: $(COMPILED_READY)  ## Measure the compiled one, to be compared with `make bench`
	@$(COMPILED)/bin/fairlead bench

.PHONY: lint
lint: $(READY)  ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: format
format: $(READY)  ## Put style and formatting right where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: types
types: $(READY)  ## Check the types, strictly
	$(BIN)/mypy

.PHONY: imports
imports: $(READY)  ## Check that imports point one way
	$(BIN)/lint-imports --no-logo

.PHONY: bench-commands
bench-commands: $(READY)  ## Measure what ls, show and submit cost, 200 submissions, and reads while 5,000 jobs come
	@$(BIN)/python -m benchmarks.commands $(BENCH_ARGS)

.PHONY: bench-questions
bench-questions: $(READY)  ## Measure how long answers to why and what-if take on a large state
	@$(BIN)/python -m benchmarks.questions $(BENCH_ARGS)

.PHONY: bench-retention
bench-retention: $(READY)  ## Measure how large the state of a machine stays that ran many jobs (BENCH_ARGS=JOBS)
	@$(BIN)/python -m benchmarks.retention $(BENCH_ARGS)

.PHONY: bench-journal
bench-journal: $(READY)  ## Measure what writing asks and decisions down costs
	@$(BIN)/python -m benchmarks.journal $(BENCH_ARGS)

.PHONY: bench-forecasts
bench-forecasts: $(READY)  ## Measure how often forecasts come true (BENCH_ARGS="--workload FILE" for your own)
	@$(BIN)/fairlead sim forecast $(BENCH_ARGS)

.PHONY: bench-simulation
bench-simulation: $(READY)  ## Measure what an event costs early and late in a long simulation (BENCH_ARGS="--workload FILE")
	@$(BIN)/python -m benchmarks.pace $(BENCH_ARGS)

.PHONY: bench-scale
bench-scale: $(COMPILED_READY)  ## Measure CPU time and memory of a million tasks, and of a log with gangs, compiled (BENCH_ARGS="--openb DIR")
	@$(COMPILED)/bin/python -m benchmarks.scale $(BENCH_ARGS)

.PHONY: bench-growth
bench-growth: $(READY)  ## Measure what a turn costs with more that waits, more nodes, more queues
	@$(BIN)/python -m benchmarks.growth

.PHONY: bench-calls
bench-calls: $(READY)  ## Measure the longest call where much work of many sizes waits (CALLS="'a full department'")
	@$(BIN)/python -m benchmarks.longest_call $(CALLS)

.PHONY: bench-reads
bench-reads: $(READY)  ## Measure how long others wait while one request submits many jobs (BENCH_ARGS=JOBS)
	@$(BIN)/python -m benchmarks.reads $(BENCH_ARGS)

.PHONY: damage
damage: $(READY)  ## Flip a bit at every 64th byte of a live state: found or harmless? (DAMAGE_ARGS="--part 0/10" for a part)
	@PYTHONPATH=tests:src $(BIN)/python tests/damage/sweep.py $(DAMAGE_ARGS)

.PHONY: crash-everywhere
crash-everywhere: $(READY)  ## kill -9 and errors at the n-th system call of supervisors and service (SEEDS=1000 FROM=0), by strace
	@PYTHONPATH=tests:src $(BIN)/python tests/crashes/supervisors.py --seeds $(SEEDS) --first $(FROM)
	@PYTHONPATH=tests:src $(BIN)/python tests/crashes/services.py --seeds $(SEEDS) --first $(FROM)

.PHONY: simulate-service
simulate-service: $(READY)  ## The whole service in virtual time, STEPS=1000000 in courses of 4000 from seed FROM=0 on, or one: SEED=N
	@PYTHONPATH=tests:src $(BIN)/python tests/simulation/service.py --steps $(STEPS) --first $(FROM) $(if $(SEED),--seed $(SEED))

# No wheel for this Python: said, and done without.
$(FUZZ)/.tried: requirements-fuzz.lock | $(READY)
	@mkdir -p $(FUZZ)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
		--target $(FUZZ)/atheris -r $< || echo "no atheris for this Python: inputs are changed at random, without coverage"
	@touch $@

.PHONY: fuzz
fuzz: $(FUZZ)/.tried  ## Fuzz what reads: all targets or TARGET=api, each for SECONDS=60; what is found is in build/fuzz/found
	@PYTHONPATH=tests:src:$(FUZZ)/atheris $(BIN)/python -m fuzz.run --seconds $(SECONDS) --target "$(TARGET)" --first $(FROM)

.PHONY: faults
faults: $(READY)  ## What version 0.1 let through, tried on its tree (it shows) and on this one (it does not) (FAULTS=PART; FROM=N: one)
	@PYTHONPATH=tests:src $(BIN)/python -m faults.scenarios "$(FAULTS)" $(if $(filter-out 0,$(FROM)),--one $(FROM))

.PHONY: linear
linear: $(READY)  ## Does twice the input take at most 2.3 times the work? Each reader, each route (BENCH_ARGS=PART)
	@$(BIN)/python -m benchmarks.linear $(BENCH_ARGS)

.PHONY: loop
loop: $(READY)  ## Is any piece of work on the service's event loop above 20 ms? Each route, with 10,000 jobs (BENCH_ARGS=PART)
	@$(BIN)/python -m benchmarks.loop $(BENCH_ARGS)

.PHONY: bench-sharding
bench-sharding: $(READY)  ## Measure what it costs to split one cluster into several that are scheduled apart, by the simulator
	@$(BIN)/python -m benchmarks.sharding $(BENCH_ARGS)

.PHONY: sbom
sbom:  ## Write down what the dependencies are, as CycloneDX: build/sbom.json
	@PYTHON="$(or $(PYTHON),python3)" scripts/supply sbom $(LOCK) build/sbom.json

.PHONY: audit
audit:  ## Ask a database of known flaws about every pinned dependency; needs the network
	@PYTHON="$(or $(PYTHON),python3)" scripts/supply audit $(LOCK)

.PHONY: bench-pages
bench-pages: $(READY)  ## Measure what 20 open pages cost on 5,000 nodes with 50,000 asks (BENCH_ARGS="NODES ASKS PAGES")
	@$(BIN)/python -m benchmarks.pages $(BENCH_ARGS)

.PHONY: soak
soak: $(READY)  ## Six users, kills, a full disk for 30 minutes (3 where CI is set): all flat, others served? (SOAK_ARGS=MINUTES)
	@$(BIN)/python -m benchmarks.soak $(SOAK_ARGS)

.PHONY: load
load: $(READY)  ## How long do others wait while one user floods each route, one after the other? (LOAD_ARGS="SECONDS PART")
	@$(BIN)/python -m benchmarks.load $(LOAD_ARGS)

.PHONY: bench
bench: $(READY)  ## Measure how fast it schedules on this machine
	@$(BIN)/fairlead bench

.PHONY: .venv
.venv: $(READY)  ## Make or renew the environment alone; `.venv/bin/fairlead` is the command

$(READY): $(LOCK) pyproject.toml scripts/make-venv
	@PYTHON="$(PYTHON)" scripts/make-venv $(VENV) $(LOCK) $(READY)

.PHONY: not-ready
not-ready:

.PHONY: manifests
manifests: $(READY)  ## Make the plain manifests of deploy/kubernetes from the Helm chart; needs Go, once, to build Helm
	PYTHONPATH=tests $(BIN)/python scripts/make_manifests.py

.PHONY: lock
lock:  ## Resolve the dependencies anew and pin them with their hashes
	@PYTHON="$(PYTHON)" scripts/make-lock $(LOCK)

.PHONY: clean
clean:  ## Remove the environment and everything made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
