SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BUILD    := .build
BIN      := $(BUILD)/bin
EMULATOR := $(BUILD)/emulator
PIN      := integration/emulator

# Settings that may be given on the command line, as in: make test TESTFLAGS='-run Fence ./lockclient'
TESTFLAGS  ?= ./...
CASESFLAGS ?=
FUZZTIME   ?= 10s

# An endpoint of the environment replaces the local emulator; then Node and npm are not needed.
GIVEN := $(firstword $(AWS_ENDPOINT_URL_DYNAMODB) $(AWS_ENDPOINT_URL) $(LOCKSTREAM_EMULATOR))

# The main packages that become commands in .build/bin; tools below internal are run with go run.
COMMANDS = go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./... | grep -v /internal/ || true

need = @command -v $(1) >/dev/null || { echo "make $@: $(1) is missing: install $(2)" >&2; exit 1; }
need_go = $(call need,go,Go 1.26 or later)

.PHONY: help
help: ## List the targets
	@echo "Lockstream: make targets"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  %-13s %s\n' "$$name" "$$text"; done

.PHONY: setup
setup: ## Install the local DynamoDB emulator into .build (needs Node with npm)
	$(need_go)
ifneq ($(GIVEN),)
	@echo "setup: using $(GIVEN), no emulator is installed"
else
	@if $(MAKE) -q $(EMULATOR)/installed; then echo "setup: up to date"; else $(MAKE) $(EMULATOR)/installed; fi
endif

$(EMULATOR)/installed: $(PIN)/package.json $(PIN)/package-lock.json
	$(call need,node,Node 20 or later (or set AWS_ENDPOINT_URL_DYNAMODB to a DynamoDB endpoint))
	$(call need,npm,npm which comes with Node (or set AWS_ENDPOINT_URL_DYNAMODB to a DynamoDB endpoint))
	@echo "setup: installing the local DynamoDB emulator into $(EMULATOR)"
	@mkdir -p $(EMULATOR)
	@cp $(PIN)/package.json $(PIN)/package-lock.json $(EMULATOR)/
	@cd $(EMULATOR) && npm ci --silent --no-audit --no-fund --no-update-notifier \
		|| { echo "setup: npm ci failed in $(EMULATOR); run it there to see why" >&2; exit 1; }
	@shopt -s nullglob; found=($(EMULATOR)/node_modules/@dynoxide/*/dynoxide); \
	if [ $${#found[@]} -eq 0 ]; then \
		echo "setup: there is no emulator package for $$(uname -sm): set AWS_ENDPOINT_URL_DYNAMODB to a DynamoDB endpoint" >&2; exit 1; \
	fi; \
	version=$$("$${found[0]}" --version) || { echo "setup: $${found[0]} does not run on this machine" >&2; exit 1; }; \
	echo "setup: $$version is ready"
	@touch $@

.PHONY: build
build: ## Build all packages, and the commands into .build/bin
	$(need_go)
	@go build ./...
	@mkdir -p $(BIN)
	@commands=$$($(COMMANDS)); if [ -n "$$commands" ]; then go build -o $(BIN)/ $$commands; fi

.PHONY: demo
demo: setup build ## Run the fleet of contending processes on the local emulator (40 s)
	@$(BIN)/fleet

.PHONY: test
test: setup ## Run all tests with the race detector (TESTFLAGS='-run X ./pkg')
	$(call need,$(firstword $(shell go env CC 2>/dev/null) cc),a C compiler: the race detector needs it)
	@go test -race -vet=off -timeout 5m $(TESTFLAGS)
	@if [ -f infra/go.mod ] && [ "$(TESTFLAGS)" = ./... ]; then cd infra && go test -race -vet=off -timeout 5m ./...; fi

.PHONY: lint
lint: ## Check formatting (gofumpt), go vet and staticcheck
	$(need_go)
	@unformatted=$$(go tool gofumpt -l .); \
	if [ -n "$$unformatted" ]; then echo "lint: not formatted, run go tool gofumpt -w on:" >&2; echo "$$unformatted" >&2; exit 1; fi
	@go vet ./...
	@go tool staticcheck ./...
	@if [ -f infra/go.mod ]; then staticcheck=$$(go tool -n staticcheck); cd infra && go vet ./... && "$$staticcheck" ./...; fi
	@echo "lint: clean"

.PHONY: cases
cases: ## Check that every case a finished part owes is named by a test
	$(need_go)
	@go run ./internal/cases $(CASESFLAGS)

.PHONY: fuzz
fuzz: ## Run each fuzz test for a short time (FUZZTIME=10s)
	$(need_go)
	@{ grep -rHoE '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' . || true; } | sed 's/:func /:/' | \
	while IFS=: read -r file name; do \
		echo "fuzz: $$name in $$(dirname "$$file")"; \
		go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done

.PHONY: cover
cover: setup ## Run the tests for their coverage and print the total
	@mkdir -p $(BUILD)
	@go test -vet=off -timeout 5m -coverpkg=./... -coverprofile=$(BUILD)/cover.out ./...
	@go tool cover -func=$(BUILD)/cover.out | tail -n 1

.PHONY: clean
clean: ## Remove everything that was built or installed
	@rm -rf $(BUILD)

.PHONY: bench-leases
bench-leases: ## Measure what leases and waiters cost (a minute and a half)
	$(need_go)
	@mkdir -p $(BUILD)
	@go test -c -o $(BUILD)/bench-leases ./internal/bench/leases
	@$(BUILD)/bench-leases -figures

.PHONY: bench-watch
bench-watch: setup ## Measure wake-ups and requests of the stream watcher (two minutes)
	@mkdir -p $(BIN)
	@go build -o $(BUILD)/bench-watch ./internal/bench/watch
	@$(BUILD)/bench-watch

SCHEDULES ?= 100000

.PHONY: proof
proof: ## Play random schedules against the stream watcher (a quarter of an hour; SCHEDULES=1000)
	$(need_go)
	@mkdir -p $(BUILD)
	@go test -c -o $(BUILD)/proof ./streamwatcher
	@$(BUILD)/proof -test.timeout 60m -test.run '^TestNoLostWakeUp$$' -plain -schedules $(SCHEDULES) >$(BUILD)/proof.log || { cat $(BUILD)/proof.log; exit 1; }
	@grep -v '^RESULT' $(BUILD)/proof.log; grep '^RESULT' $(BUILD)/proof.log
