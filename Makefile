# Needs Node 20 or newer and npm; Bun comes from the npm registry, like everything else.
# Each target is one command; what it does is written in the file it calls.

BUN := node_modules/.bin/bun
SHELL := /bin/bash

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Install, build, and serve the sample fixtures (on another port: make run PORT=9000)
	@dist/postern serve --fixtures fixtures --sample-traffic $(if $(PORT),--port $(PORT))

.PHONY: build
build: dist/postern ## Build the executable dist/postern

dist/postern: node_modules/.installed package.json $(wildcard *.md) LICENSE $(shell find src fixtures docs deploy -type f)
	$(BUN) src/tools/build.ts $@

# Needs GNU tar. What machines cannot run here is built and no more, and the output says so.
.PHONY: release
release: install ## Build archives for Linux, macOS and Windows, with checksums, into dist/release
	$(BUN) src/tools/release.ts

##@ Develop

.PHONY: install
install: node_modules/.installed ## Install what the build and the tests need

# Not `npm ci`: it fails where a registry lacks a package for some other platform. Versions are the lockfile's all the
# same, and npm holds each package to the lockfile's digest. No install script runs (.npmrc): Bun's would download the
# runtime without a digest where its package is missing. The runtime is taken out of that package as it lies.
node_modules/.installed: package.json package-lock.json
	@ls node_modules/@oven/bun-*/bin/bun* >/dev/null 2>&1 || rm -rf node_modules/@oven node_modules/.package-lock.json
	npm install --no-save
	@for runtime in node_modules/@oven/bun-*/bin/bun; do \
	  "$$runtime" --version >/dev/null 2>&1 && ln -sf "../../$$runtime" $(BUN); \
	done; $(BUN) --version >/dev/null || { echo "npm has no Bun for this machine: $$(uname -sm)"; exit 1; }
	@touch $@

# The runner's workers do not read its timeout in bunfig.toml.
TIMEOUT := $(shell sed -n 's/^timeout = //p' bunfig.toml)
# What starts the executable or another process, or opens LMDB's files.
SLOWER := from .*(support/(executable|shared-server)|/lmdb/|/tools/)|Bun\.spawn

.PHONY: unit
unit: install ## Run the tests that need this process and memory alone: for every save
	$(BUN) test --parallel --timeout=$(TIMEOUT) --only-failures $$(grep -rLE "$(SLOWER)" --include='*.test.ts' test)

# Real clients that sign in; where they cannot be installed, their tests are skipped, and the last lines say so.
.PHONY: clients
clients:
	-@cd test/clients && npm install --no-save --loglevel=error

# What is missing on this machine is skipped; the last lines say why, and what failed.
.PHONY: test
test: install clients build ## Check types and style, run every test, on the executable too, and a short torture
	@$(BUN) test/results/run.ts

.PHONY: typecheck
typecheck: install
	node_modules/.bin/tsc --noEmit && node_modules/.bin/tsc --noEmit -p src/console

.PHONY: lint
lint: install
	node_modules/.bin/biome ci .

.PHONY: format
format: install ## Put the source in the house's format
	node_modules/.bin/biome check --write .

.PHONY: generated
generated: install ## Write the generated files again: tables of the documents, the JSON Schema of fixtures, the licences
	$(BUN) src/tools/generate.ts

# Needs Chromium, libfaketime and the font Inter, and names the packages that are missing.
.PHONY: screenshots
screenshots: install build ## Take the pictures of the console for the documents again (one minute)
	@$(BUN) test/screenshots/run.ts

.PHONY: messages
messages: install ## Print every message that a user can meet, with its place
	@$(BUN) src/tools/messages.ts

.PHONY: torture
torture: install build ## Put every promise to the test for about half an hour; `make test` does so for one minute
	$(BUN) test/torture/run.ts

.PHONY: mutants
mutants: install ## Change 300 things in the core, one at a time, and ask whether a fast test notices (15 minutes)
	$(BUN) test/mutants/run.ts $(COUNT) $(if $(SEED),--seed $(SEED)) $(if $(AT),--at $(AT))

.PHONY: bench
bench: install build ## Measure speed against peers in the same run (several minutes)
	cd test/bench && npm install --no-save --no-audit --no-fund --ignore-scripts --loglevel=error
	$(BUN) test/bench/run.ts $(CONNECTIONS) $(ROUNDS)

.PHONY: clean
clean: ## Remove what was built and installed
	rm -rf dist node_modules test/bench/node_modules
