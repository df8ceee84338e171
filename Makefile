# Two commands matter: `make run` starts the server, `make test` runs every check that CI runs.
# The chores themselves are written in Rust and live in xtask/.

.DEFAULT_GOAL := help
.PHONY: help run build package install test test-long setup format lint tidy deny unit unit-long foreign docs docs-check fuzz
.PHONY: bpf h2spec simulate package-check readme-test package-test fuzz-live torture upstream-torture operations-long stream-long stall \
	tunnels-long dokuwiki otel acme grpc kubernetes websockets tls-judges clients express-long http3-long files-long fuzz-long fuzz-live-long choices-long bench lab clean
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
XTASK := $(CARGO) xtask
# Where cargo puts what it builds.
BUILT := $(or $(CARGO_TARGET_DIR),target)/release
NO_CARGO := there is no $(CARGO): install Rust 1.95 or later with rustup (https://rustup.rs), then open a new shell

help: ## Show these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: cargo-is-here
cargo-is-here:
	@command -v $(CARGO) > /dev/null || { echo "$(NO_CARGO)" >&2; exit 1; }

run: cargo-is-here ## Install what the build needs, build, serve http://127.0.0.1:8080
	@CARGO_INCREMENTAL=0 $(XTASK) setup build # what is built once needs no 150 MB for the next time
	@$(MAKE) build
	exec $(BUILT)/turnpike

build: cargo-is-here ## Build the server, optimised
	$(CARGO) build --release --locked --package turnpike-server --package turnpike-tools \
		--package turnpike-view

package: ## Debian packages, an RPM package and a tarball, under target/package
	$(XTASK) setup build package
	$(XTASK) package

.PHONY: container
container: ## A container image without a base image, under target/package
	$(XTASK) setup build package
	$(XTASK) container

install: build ## Install under PREFIX (/usr/local), below DESTDIR
	$(XTASK) install --destdir "$(DESTDIR)" --prefix "$(PREFIX)"

test: cargo-is-here ## Every check that CI runs, the same way; prints how long each takes
	$(XTASK) suites setup format lint tidy deny portability unit simulate foreign h2spec fuzz-live \
		docs-check bpf fuzz package-check

test-long: ## The checks that take too long for every push: about an hour
	$(XTASK) suites setup unit-long choices-long tunnels-long torture operations-long stream-long \
		upstream-torture stall hoarding-long dokuwiki \
		otel acme grpc websockets kubernetes peers tls-judges clients http2-clients http3-clients express-long http3-long files-long fuzz-live-long fuzz-long accessibility \
		readme-test package-test package-cross-test

setup: ## Install the Debian packages that the tests need
	$(XTASK) setup build test
	$(XTASK) h2spec --install

format: ## Check the format with rustfmt
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fmt --manifest-path xtask/loads-rust/Cargo.toml --check

lint: ## Run clippy and deny warnings
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --features turnpike-simulate/simulation --locked \
		--bin simulate --test seeds --test message -- -D warnings

tidy: ## House rules: import table, cycles, ceilings, unsafe, dead files
	$(XTASK) tidy

deny: ## Licences and sources of every dependency
	$(XTASK) deny

.PHONY: portability
portability: ## The oldest Rust that is stated, wasm32 and Miri, as far as they are installed
	$(XTASK) portability

unit: ## Unit and integration tests with servers in a sandbox, and as an ordinary user without
	$(XTASK) unit

unit-long: ## The same tests as root without a sandbox, and as an ordinary user in one
	$(XTASK) unit --other-ways

simulate: ## Ten thousand lanes with a virtual clock and scripted peers, each decided by its seed
	$(XTASK) simulate

foreign: ## wrk and ab against the published configurations, reloads, and a minute of torture
	$(XTASK) studies --debug --seconds 2
	$(XTASK) reload-torture --debug --reloads 20 --without-nginx
	$(XTASK) torture --debug --seconds 60
	$(XTASK) upstream-torture --debug --seconds 15

h2spec: ## h2spec's strict tests against our HTTP/2, with TLS and without
	$(XTASK) h2spec --debug

docs: docs-check ## The documentation as a site with search, under target/book
	$(XTASK) docs --site

docs-check: ## Check that the generated pages are current and that links lead somewhere
	$(XTASK) docs --check

bpf: ## Check that the objects of the programs in the kernel are what clang makes of their sources
	$(XTASK) bpf --check

fuzz: ## Each fuzz target, five seconds
	$(XTASK) fuzz

fuzz-live: ## Fuzz Turnpike and nginx with mutated requests, answers and HTTP/2 connections: a minute
	$(XTASK) fuzz-live --debug --minutes 1.25 --seed 20

torture: ## Ten minutes of reloads, upgrades, stalls and kills under load, and a counted run of them
	$(XTASK) torture --debug --minutes 10
	$(XTASK) torture --debug --acts reload=100,lanes=20,upgrade=10,stall=1,kill=5,kill-master=5

operations-long: ## A hundred reloads, twenty changes of lanes and ten of the binary under HTTPS load
	TURNPIKE_TEST_ROUNDS=10 $(CARGO) test --workspace --locked --test it -- operations::secure --nocapture
	$(CARGO) test --workspace --locked --test it -- operations::lanes --ignored

stream-long: ## Reloads and changes of the binary under TCP relays and UDP flows, and 600 silent clients
	TURNPIKE_TEST_ROUNDS=10 $(CARGO) test --workspace --locked --test it -- stream::relays stream::udp
	$(CARGO) test --workspace --locked --test it -- stream::places --ignored --nocapture

upstream-torture: ## Kill and restart two upstream servers for five minutes
	$(XTASK) upstream-torture --debug --seconds 300

.PHONY: hoarding-long
hoarding-long: ## Clients hoard HTTP/2 requests for three minutes beside nginx; 10,000 idle HTTP/2 connections
	$(CARGO) test --workspace --locked --test it -- hoarding --ignored --nocapture
	$(CARGO) test --locked --package turnpike-http --lib -- http2 --ignored --nocapture

stall: ## Stop a lane for two seconds, compared with nginx
	$(XTASK) stall --debug

express-long: ## A million damaged packets, the corpus by sockets and raw packets, 200 turns on and off
	$(CARGO) test --locked --package turnpike-express -- --ignored
	TURNPIKE_TEST_ROUNDS=10 $(CARGO) test --workspace --locked --test it -- express:: \
		--include-ignored

http3-long: ## A million datagrams of QUIC that no client sends, beside a client that is served
	TURNPIKE_TEST_ROUNDS=50 $(CARGO) test --workspace --locked --test it -- http3::bad_input::

fuzz-live-long: ## Ten minutes of fuzz-live, each time with another seed
	$(XTASK) fuzz-live --debug --minutes 10 --seed "$$(date +%s)"

files-long: ## Three minutes of clients that copy FIFOs and fill a zone of locks, and 1,000 tests (-t) under load
	$(CARGO) test --workspace --locked --test it -- fifos:: command_line::trial:: --ignored --nocapture

choices-long: ## 10,000 server blocks, 2,000 cached locations, 20,000 paths and 2,000 hosts beside nginx
	$(CARGO) test --workspace --locked --test comparisons -- choices cache_content paths --ignored
	$(CARGO) test --workspace --locked --test it -- http1::host --ignored

tunnels-long: ## 2,000 random upgrades by HTTP/1 and HTTP/2 beside nginx: none opens a tunnel of HTTP/2
	TURNPIKE_TEST_ROUNDS=10 $(CARGO) test --workspace --locked --test it -- http2::tunnels

dokuwiki: ## Debian's DokuWiki under php-fpm behind us: pages, login, edit, upload
	$(XTASK) setup applications
	$(XTASK) dokuwiki --debug

grpc: ## A gRPC service behind us and its client, both of gRPC's own library, plain and over TLS
	$(XTASK) setup applications
	$(XTASK) grpc --debug

kubernetes: ## The controller in a cluster of Kubernetes' own API server, and Gateway API's conformance suite
	$(XTASK) setup kubernetes
	$(XTASK) kubernetes

websockets: ## WebSockets over TLS, by HTTP/1.1 and HTTP/2, judged by foreign libraries
	$(XTASK) websockets --debug

.PHONY: peers
peers: ## Flask under uWSGI and SCGI, PostgreSQL and QUIC, each used through us by a foreign client
	$(XTASK) setup peers
	$(XTASK) peers --debug

tls-judges: ## testssl.sh and sslyze against our TLS: no finding, Mozilla's rules kept
	$(XTASK) setup tls
	$(XTASK) tls-judges --debug

clients: ## curl, Python, Go, Chromium and OpenSSL use our TLS, by HTTP/1.1 and HTTP/2: a matrix
	$(XTASK) setup tls
	$(XTASK) clients --debug

.PHONY: http2-clients
http2-clients: ## Ten HTTP/2 clients at full speed for three minutes: downloads, streams, uploads, cancellations
	$(XTASK) setup http2
	$(XTASK) http2-clients --debug --minutes 3

.PHONY: http3-clients
http3-clients: ## curl, quic-go, Chromium and the interop client of aioquic use our HTTP/3: two matrices
	$(XTASK) setup tls
	$(XTASK) http3-clients --debug

otel: ## Spans to a collector of gRPC's and OpenTelemetry's own code
	$(XTASK) setup applications
	$(XTASK) otel --debug

acme: ## Certificates of Pebble, a foreign ACME server: order, renewal, refusal
	$(XTASK) acme --debug

package-check: ## The files of the packages: the list, pages, completions, settings
	$(XTASK) package-check

.PHONY: accessibility
accessibility: ## The live page in use, and every page judged by axe-core in Chromium, dark and light
	$(XTASK) setup accessibility
	$(XTASK) accessibility --debug

readme-test: ## What the README says, in a fresh Debian; prints how long it takes
	$(XTASK) setup package
	$(XTASK) readme-test

package-test: ## The packages in a fresh Debian, the RPM package, the container image
	$(XTASK) setup package
	$(XTASK) package-test

.PHONY: package-cross-test
package-cross-test: ## The Debian package for arm64, cross-compiled
	$(XTASK) setup build cross
	$(XTASK) package-cross-test --target aarch64-unknown-linux-gnu --debug

fuzz-long: ## Each fuzz target, two minutes
	$(XTASK) fuzz --seconds 120

bench: ## Paired runs of Turnpike and nginx; rewrites the README's table
	$(XTASK) setup build test
	$(XTASK) bench

lab: ## A quick run of study S5, accept modes; its report is under results/
	$(XTASK) setup build bench
	@$(MAKE) build
	$(BUILT)/turnpike lab run s5-accept-modes --quick

clean: ## Remove everything that was built
	$(CARGO) clean
