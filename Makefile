# Everything a developer does here. `make run` and `make test` set up whatever they need on a fresh Debian machine.
#
# Stamp files under .venv and build/ make second runs instant. Works in any clone, without a terminal, as root or with sudo.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled modules: each of the many processes that tests start would compile hundreds of files otherwise.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet
# Tests wait for processes most of their time: more workers than CPUs.
JOBS ?= 4
# Clusters of the cluster suite that run side by side.
WORLDS ?= 2
# What the engine is linked with: the system's OpenSSL, or EDGEFAST_TLS=aws-lc (csrc/libraries/build.py).
TLS := $(or $(EDGEFAST_TLS),system)
TLS_PACKAGES := $(if $(filter aws-lc,$(TLS)),cargo cmake g++ make,libssl-dev)
HTTP2_PACKAGES := libnghttp2-dev

FILE ?= examples/quickstart.yaml
ARGS ?=
SECONDS_PER_TARGET ?= 60

C_FILES := $(wildcard csrc/*.[ch] csrc/*/*.[ch] bench/native/*.[ch] tests/cluster/world/native/*.[ch])
NATIVE := setup.py $(wildcard csrc/libraries/*.py csrc/libraries/*/* csrc/tls/* csrc/*.c csrc/*.h csrc/internal/*.h $(foreach kind,pyx pxd pxi,edgefast/core/*.$(kind) edgefast/core/*/*.$(kind))) \
          edgefast/table/csrc_build.py
TEST_PACKAGES := chromium clang clang-format curl dnsmasq-base faketime fish haproxy iproute2 libclang-rt-dev nghttp2-client nghttp2-server nginx-light npm openssl prometheus redis-server skopeo wrk zsh
BENCH_PACKAGES := cargo cmake debootstrap haproxy libnginx-mod-stream nginx-light nghttp2-client nghttp2-proxy protobuf-compiler redis-server wrk

RELEASE_PACKAGES := binutils cargo cmake debootstrap g++ make systemd-container

CLUSTER_PACKAGES := curl etcd-server gcc iproute2 libc6-dev nftables python3 redis-server util-linux
# Pods see the checkout, and cannot write to it: each would compile hundreds of modules for itself.
COMPILED = $(BIN)/python -m compileall -q edgefast controller
# Network namespaces are made by root alone.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env)

.PHONY: help setup run test test-cluster test-conformance test-aws-lc lint heavy debug bench bench-cluster bench-gateways bench-convert fuzz wheel wheels deb image clean
.DELETE_ON_ERROR:

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

run: $(VENV)/.run build/.native ## the gateway on FILE=examples/quickstart.yaml, with its origins beside it
	@exec $(BIN)/python examples/origin.py $(FILE) --run -- edgefast run -f $(FILE) $(ARGS)

setup: $(VENV)/.dev build/.native build/.test-packages build/.cluster-packages ## what all suites need; each of them does its part by itself

test: $(VENV)/.dev build/.native build/.test-packages lint ## every check and every test
	@$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS) </dev/null

lint: $(VENV)/.dev ## formatting, types, import contracts, C warnings
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@.ci/packages clang-format
	@clang-format --dry-run -Werror $(C_FILES)
	@$(CC) -fsyntax-only -std=c11 -Wall -Wextra -Wconversion -Wshadow -Werror $(wildcard csrc/*.c csrc/tls/*.c)

test-cluster: $(VENV)/.dev build/.native build/.cluster-packages ## the tests on a real Kubernetes control plane (root; Go 1.26 the first time)
	@PYTHONPATH=tests $(BIN)/python -m cluster.tools
	@$(COMPILED)
	@$(AS_ROOT) $(BIN)/pytest -m "cluster and not heavy" -n $(WORLDS) --dist loadfile $(ARGS) </dev/null

test-conformance: $(VENV)/.dev build/.native build/.cluster-packages ## the Gateway API's own suite on that control plane, in both modes (root)
	@PYTHONPATH=tests $(BIN)/python -m cluster.tools
	@$(COMPILED)
	@$(AS_ROOT) env PYTHONPATH=tests $(BIN)/python -m cluster.conformance $(ARGS)

test-aws-lc: $(VENV)/.dev build/.test-packages ## the TLS tests on an engine with AWS-LC, built beside the checkout
	@.ci/packages cargo cmake g++ make
	@.ci/aws-lc $(JOBS) $(ARGS)

heavy: $(VENV)/.dev build/.native build/.test-packages ## the tests that take minutes
	@$(BIN)/pytest -n $(JOBS) -m "heavy and not cluster" $(ARGS) </dev/null

debug: $(VENV)/.dev build/.test-packages ## the suite on a build with bounds checks, asserts, ASan and UBSan
	@.ci/debug $(JOBS) $(ARGS)

bench: $(VENV)/.bench build/.native build/.bench-packages build/.bench-newest ## one alternating run beside the peers, printed as a table
	@$(BIN)/python -m bench $(ARGS)

bench-cluster: $(VENV)/.dev build/.native build/.cluster-packages ## propagation, memory and CPU of the controller in a cluster (root)
	@PYTHONPATH=tests $(BIN)/python -m cluster.tools
	@PYTHONPATH=tests $(AS_ROOT) $(BIN)/python -m bench.cluster $(ARGS)

bench-gateways: $(VENV)/.bench build/.native build/.cluster-packages build/.bench-packages ## the tests of gateway-api-bench, beside Envoy Gateway (root); ARGS="--scale 0.1" is quick
	@PYTHONPATH=tests $(BIN)/python -m cluster.tools
	@PYTHONPATH=tests $(BIN)/python -m cluster.tools envoy-gateway
	@$(COMPILED)
	@PYTHONPATH=tests $(AS_ROOT) $(BIN)/python -m bench.gateway $(ARGS)

bench-convert: $(VENV)/.dev build/.native ## wrong answers of converted Ingresses, beside ingress2gateway of PATH
	@PYTHONPATH=tests $(BIN)/python -m ingress.comparison $(ARGS)

fuzz: $(VENV)/.dev build/.native build/.test-packages ## every fuzz target for SECONDS_PER_TARGET=60
	@$(MAKE) -C csrc -j $(JOBS) --output-sync=target fuzz SECONDS_PER_TARGET=$(SECONDS_PER_TARGET)
	@cd tests && PYTHONPATH=.:.. ../$(BIN)/python -m core.h2.sessionfuzz $(SECONDS_PER_TARGET)

wheel: $(VENV)/.run ## dist/*.whl
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

wheels: $(VENV)/.release build/.release-packages ## dist/: manylinux wheels for each supported Python, with bills of materials
	@$(BIN)/python -m release.wheels $(ARGS)

deb: $(VENV)/.release ## dist/: Debian packages of the wheels
	@$(BIN)/python -m release.deb $(ARGS)

image: $(VENV)/.run ## both container images as build/image/*.tar, without a container engine
	@.ci/image

clean: ## what the build made; not the virtual environment
	@rm -rf build dist *.egg-info edgefast/_csrc*.so edgefast/core/*.so edgefast/core/*/*.so

# --- set-up ---------------------------------------------------------------------------------------------------------

$(VENV)/.python:
	@.ci/packages gcc libc6-dev libssl-dev
	@python=$$(.ci/python) && echo "python: virtual environment $(VENV) from $$python" && "$$python" -m venv $(VENV)
	@touch $@

# The package is built against the environment it runs in, so that one Cython and one cffi serve every later build.
$(VENV)/.run: pyproject.toml | $(VENV)/.python build/.tls-$(TLS)
	@$(BIN)/python .ci/requires.py build | .ci/progress "1 of 2: installing what edgefast is built with" 15 xargs -d '\n' $(PIP)
	@.ci/progress "2 of 2: building edgefast, installing what it runs on" 60 $(PIP) --no-build-isolation --editable .
	@$(BIN)/python .ci/requires.py examples | xargs -d '\n' $(PIP)
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(BIN)/python .ci/requires.py dev | .ci/progress "python: installing the development tools" 20 xargs -d '\n' $(PIP)
	@touch $@

$(VENV)/.release: $(VENV)/.run
	@$(BIN)/python .ci/requires.py release | xargs -d '\n' $(PIP)
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	@$(BIN)/python .ci/requires.py bench | xargs -d '\n' $(PIP)
	@touch $@

# Another library is another build.
build/.tls-$(TLS):
	@.ci/packages $(TLS_PACKAGES) $(HTTP2_PACKAGES)
	@mkdir -p build && rm -f build/.tls-* && touch $@

build/.native: $(NATIVE) build/.tls-$(TLS) | $(VENV)/.run
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@mkdir -p build && touch $@

build/.release-packages: Makefile
	@.ci/packages $(RELEASE_PACKAGES)
	@mkdir -p build && touch $@

build/.test-packages: Makefile
	@.ci/packages $(TEST_PACKAGES)
	@mkdir -p build && touch $@

build/.cluster-packages: Makefile
	@.ci/packages $(CLUSTER_PACKAGES)
	@mkdir -p build && touch $@

build/.bench-packages: Makefile
	@.ci/packages $(BENCH_PACKAGES)
	@mkdir -p build && touch $@

build/.bench-newest: bench/newest.py $(wildcard bench/native/pingora/Cargo.* bench/native/pingora/src/*) | $(VENV)/.bench build/.bench-packages
	@.ci/progress "the newest nginx, haproxy, nghttpx, Pingora and Sozu" 900 $(BIN)/python -m bench.newest
	@mkdir -p build && touch $@
