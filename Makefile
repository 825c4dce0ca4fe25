# Each target does the set-up that it needs; nothing has to be installed by hand but Python.
# The system's own, unless it is too old and a newer one stands beside it.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$python && exit; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
# Else each worker compiles all tests in each run: 20 s of processor.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: why test thorough test-fresh test-oldest test-system plane test-cluster test-slurm slurm-churn slurm-campaign manifests cluster-scale cluster-soak cluster-scenarios cluster-campaign actor-campaign guard-nodes guard-pairs last-gasp rescue-campaign chain marks campaign power-cuts faults fuzz check bench bench-guards lock docs pictures dist clean

# Seawall itself needs nothing but Python: the environment is a link to the sources.
$(VENV)/seawall.ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "seawall needs Python 3.10 or later, %s is %s" % (sys.executable, sys.version.split()[0]))'
	$(PYTHON) -m venv --without-pip $(VENV)
	echo "$(CURDIR)/src" > $$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')/seawall.pth
	touch $@

$(VENV)/dev.ready: requirements-dev.lock $(VENV)/seawall.ready
	$(BIN)/python -m ensurepip >/dev/null || { echo "needs python3-venv: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

$(VENV)/dist.ready: requirements-dist.lock $(VENV)/dev.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dist.lock
	touch $@

# Nothing where its markers name another Python or machine: no wheel of atheris is for those.
$(VENV)/fuzz.ready: requirements-fuzz.lock $(VENV)/dev.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
	  -r requirements-fuzz.lock
	touch $@

# The main job, on this very machine.
why: $(VENV)/seawall.ready
	@$(BIN)/python -m seawall why

# Compiled first: most of the time goes into starting the verbs.  TESTS: some folders or files only.
test: $(VENV)/dev.ready
	$(BIN)/python -m compileall -q src
	tests/second_run "make test" $(BIN)/python -m "not system and not campaign and not cluster" -n 3 --dist loadfile $(TESTS)

# Every seed of the films, and of each property many more examples than `make test` draws.
thorough: $(VENV)/dev.ready
	$(BIN)/python -m pytest -m "(campaign or hypothesis) and not system" --hypothesis-profile=thorough -n 2 --dist loadfile \
	  --timeout=1200

# As on a machine with git, make and Python alone, in an empty Debian root, as an ordinary user: a
# fresh clone of what is committed, `make why`, and `make test` of what may depend on a machine.
test-fresh:
	tests/fresh_root || [ $$? = 75 ]

# What may depend on the version of Python, on 3.10, where one is found.
test-oldest:
	tests/oldest_python || [ $$? = 75 ]

# What needs root and Debian packages (installs them, says what it skips and why).
test-system: $(VENV)/dev.ready
	tests/install_system_packages
	$(BIN)/python -m compileall -q src
	tests/system_tests $(BIN)/python

# A real Kubernetes control plane for tests, from Go modules, into ~/.cache/seawall; without Go it
# says so.  KUBERNETES: 1.37 if none is given, or 1.34, which has no MutatingAdmissionPolicy.
plane: $(VENV)/dev.ready
	@SEAWALL_KUBERNETES=$(KUBERNETES) $(BIN)/python -m tests.cluster.plane_build || [ $$? = 75 ]
	@$(BIN)/python -m tests.cluster.helm_build || [ $$? = 75 ]

# CLUSTER_TESTS: some files only.
test-cluster: plane
	SEAWALL_KUBERNETES=$(KUBERNETES) tests/second_run cluster $(BIN)/python -m cluster -rsP --durations=20 --durations-min=5 \
	  $(or $(CLUSTER_TESTS),tests/cluster)

# A real Slurm of the distribution with four nodes on this machine: a part of `make test-system`.
test-slurm: $(VENV)/dev.ready
	tests/install_system_packages
	tests/second_run slurm $(BIN)/python -m system -rs tests/slurm

# Two thousand jobs come and go within an hour while every node checks itself and may drain.
slurm-churn: $(VENV)/dev.ready
	tests/install_system_packages
	$(BIN)/python -m tests.slurm.drain_churn --ends 2000 --rate 0.6 --seconds 3600 --journal slurm-churn.jsonl

# An array of 200 tasks that kills nodes among other users' jobs, RUNS times in one real Slurm, about
# two minutes each.
slurm-campaign: $(VENV)/dev.ready
	tests/install_system_packages
	$(BIN)/python -m tests.slurm.judge_campaign $(or $(RUNS),20) slurm-judge.jsonl $(if $(RECORDS),records) || [ $$? = 75 ]

# packaging/kubernetes/cluster, from the chart; needs Go once, for helm.
manifests: $(VENV)/dev.ready
	$(BIN)/python -m tests.cluster.rendered_manifests

# All scenarios of whole clusters, of which `make test-cluster` plays four, and what befalls an actor
# midway.  SEAWALL_ACTOR=1: an actor plays along in each, and may touch no innocent.
cluster-scenarios: plane
	SEAWALL_KUBERNETES=$(KUBERNETES) SEAWALL_SCENARIOS=1 $(BIN)/python -m pytest -m cluster -rsP \
	  tests/cluster/test_cluster_observer.py tests/cluster/test_culprits.py tests/cluster/test_innocents.py \
	  tests/cluster/test_actor_midway.py tests/cluster/test_helm_midway.py

# The same scenarios again and again with other seeds: RUNS each with a culprit, three without.
RUNS ?= 20
cluster-campaign: plane
	SEAWALL_KUBERNETES=$(KUBERNETES) $(BIN)/python -m tests.cluster.scenario_campaign --runs $(RUNS) \
	  --journal cluster-campaign.jsonl

# With an actor that may do what it can, and scenarios 1 and 2 by the same seeds with nothing of ours.
actor-campaign: plane
	SEAWALL_KUBERNETES=$(KUBERNETES) $(BIN)/python -m tests.cluster.scenario_campaign --act --runs $(RUNS) \
	  --innocent-runs $(RUNS) --journal actor-campaign.jsonl 1 2 8 9 13 14
	SEAWALL_KUBERNETES=$(KUBERNETES) $(BIN)/python -m tests.cluster.scenario_campaign --free --runs $(RUNS) \
	  --journal actor-campaign.jsonl

# 10,000 nodes: some minutes, 3 GiB.
cluster-scale: plane
	SEAWALL_KUBERNETES=$(KUBERNETES) SEAWALL_CLUSTER_NODES=10000 $(BIN)/python -m pytest -m cluster -rsP \
	  tests/cluster/test_many_nodes.py

# One observer in a cluster that never stands still: two hours.
cluster-soak: plane
	SEAWALL_KUBERNETES=$(KUBERNETES) $(BIN)/python -m tests.cluster.observer_soak --seconds $(or $(SOAK_SECONDS),7200) \
	  --journal observer-soak.jsonl

# The 23 whole nodes of which `make test-system` runs seven: some twelve minutes.
guard-nodes: $(VENV)/dev.ready
	tests/install_system_packages
	SEAWALL_NODES=all $(BIN)/python -m pytest -m system -rP tests/kernels/test_guard_nodes.py

# The marks that depend on the luck of an emulated node, asserted.
marks: $(VENV)/dev.ready
	tests/install_system_packages
	SEAWALL_MARKS=1 $(BIN)/python -m pytest -m system -rP tests/kernels/test_guard_nodes.py \
	  tests/kernels/test_pins_61.py tests/kernels/test_power_cut.py tests/release \
	  tests/containers/test_release_image.py

# Hundreds of emulated nodes that run out of memory, drawn by chance: some hours.
campaign: $(VENV)/dev.ready
	tests/install_system_packages
	$(BIN)/python -m tests.kernels.guard_campaign --runs 300 --journal guard-campaign.jsonl
	$(BIN)/python -m tests.kernels.guard_campaign --quiet 240
	$(BIN)/python -m tests.films.campaign --films 100000

# Two and three culprits at once on emulated nodes, with the guard and without: two hours.
guard-pairs: $(VENV)/dev.ready
	$(BIN)/python -m tests.kernels.guard_pairs --journal guard-pairs.jsonl

# How often the agent is heard from an emulated node that dies: an hour or two; needs Go once.
last-gasp: plane
	tests/install_system_packages
	$(BIN)/python -m tests.kernels.last_gasp --journal last-gasp.jsonl

# How many silent nodes a rescue order brings back, and how soon: an hour or two; needs Go once.
rescue-campaign: plane
	tests/install_system_packages
	$(BIN)/python -m tests.kernels.rescue_campaign --journal rescue-campaign.jsonl

# The incident on real kubelets in QEMU, without Seawall and with it: an hour and a half, 8 GiB; needs
# Go once.  PHASES: some only.
chain: plane
	tests/install_system_packages
	SEAWALL_VM_NICE=5 $(BIN)/python -m tests.chain $(if $(PHASES),--phases $(PHASES)) --journal chain.jsonl --records chain

# The black box on a disk that loses its cache: some twenty minutes.
power-cuts: $(VENV)/dev.ready
	tests/install_system_packages
	$(BIN)/python -m tests.kernels.power_cut --cuts 100 --guard-cuts 20 --journal power-cuts.jsonl

# The guard's hands, killed, stopped or failed at each system call of an act: some twenty minutes.
faults: $(VENV)/dev.ready
	tests/install_system_packages
	SEAWALL_FAULTS=all $(BIN)/python -m pytest -m system -rP tests/faults

# The parsers most exposed to hostile bytes, guided by coverage: so many seconds of all together.
SECONDS ?= $(or $(SECONDS_OF_FUZZING),600)
fuzz: $(VENV)/fuzz.ready
	$(BIN)/python -m tests.fuzz $(SECONDS)

check: $(VENV)/dev.ready
	$(BIN)/ruff check src tests bench release
	$(BIN)/ruff format --check src tests bench release
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.generate_docs --check

bench: $(VENV)/dev.ready
	$(BIN)/python -m bench

# The guard beside other guards and none, on the same emulated nodes: a day, or by --scenario.
bench-guards: $(VENV)/dev.ready
	tests/install_system_packages
	$(BIN)/python -m bench.guards

# What people download, into dist/ (docs/install.md); `make dist ONLY=pyz`: one of them.
dist: $(VENV)/dist.ready
	$(BIN)/python -m release $(ONLY)

# The screens in README and docs, from real runs here: root, tmux, cgroup v1.
pictures: $(VENV)/dev.ready
	$(BIN)/python -m tests.make_pictures

docs: $(VENV)/dev.ready
	$(BIN)/python -m tests.generate_docs

# Hashes for every platform, no addresses.
lock: $(VENV)/dev.ready
	$(BIN)/python -m pip install --quiet uv
	for group in dev dist fuzz; do $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header \
	  --group pyproject.toml:$$group -o requirements-$$group.lock || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
