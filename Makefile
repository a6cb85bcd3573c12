# Thin wrappers: every target runs a command that works without make.
.PHONY: help demo test check lint fuzz bench

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: ## lose a response, kill the gateway, retry 81 times, count one effect
	go run ./cmd/deed demo

test: ## install what the tests need and run them all
	scripts/test

check: ## format, vet and the fast tests, before a commit
	scripts/check

lint: ## golangci-lint with the project's own settings
	scripts/lint

fuzz: ## look for inputs that break a reader, ten seconds each
	scripts/fuzz

bench: ## deed beside raw limits, as ratios
	go run ./bench
