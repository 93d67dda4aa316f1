#!/usr/bin/env bash
# The stages of scripts/test, one function each: `bash scripts/stages.sh <stage>` runs one.
# A stage fails by its exit code. A line `stage-note: ...` is shown in the stage's line of scripts/test: a stage that could not check everything
# says so there. Every cargo call uses --locked, and none changes RUSTFLAGS, so that the stages share their builds.
set -eu -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/tools.sh

note() { echo "stage-note: $*"; }
fail() { echo "error: $*" >&2; return 1; }

stage_tools() {
    local part
    check_room
    for part in fmt clippy; do
        cargo "$part" --version || install_component "$part"
    done
    python3 -c 'import tomllib' || fail "python3 of at least 3.11 is needed by check-house and check-msrv"
    install_tool cargo-deny
    command -v curl || install_package curl
}

# A full disk would fail every later stage in a different way.
check_room() {
    local needed=10 room
    mkdir -p target
    room=$((($(df -Pk target | awk 'NR == 2 { print $4 }') + $(du -sk target | cut -f 1)) / 1024 / 1024))
    [ "$room" -ge "$needed" ] ||
        fail "a full run needs ${needed} GiB for target, and ${room} are free; free some space, or set CARGO_TARGET_DIR"
}

# A test pastes the requests that the sample of the service prints into a shell.
install_package() {
    command -v apt-get || fail "$1 is missing and there is no apt-get to add it; install $1"
    apt-get install -y "$1" || { apt-get update && apt-get install -y "$1"; }
}

install_component() {
    local component=${1/fmt/rustfmt}
    command -v rustup || fail "cargo $1 is missing and there is no rustup to add it; install $component"
    rustup component add "$component"
}

stage_fmt() {
    cargo fmt --all --check
}

stage_clippy() {
    cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
    local features
    for features in '' limit metrics trace; do
        cargo clippy --locked -p fleetwright --lib --no-default-features --features "$features" -- -D warnings
    done
}

# With private items, links in private docs are checked too. A public link to a private item is still an error.
stage_rustdoc() {
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --all-features --document-private-items
}

stage_tests() {
    python3 scripts/run-tests
}

stage_doctests() {
    cargo test --locked --workspace --all-features --no-fail-fast --doc
}

# Each line: what the last line of output must contain, then the arguments of cargo, as in the README.
# The example compute is run only by its own tests: here it would build EC2's SDK again, with other features.
stage_examples() {
    run_example 'nothing left' run --locked
    run_example 'nothing left' run --locked --bin direct
    run_example '0 machines are still in use' run --locked --bin custom
    run_example 'nothing left' run --locked -p layers
    # Alone, as people install it: in the workspace, other crates enable features of its dependencies.
    run_example 'fleetwright 0.' run --locked -p fleetwright-cli -- --version
}

run_example() {
    local ending=$1 output last
    shift
    echo "\$ cargo $*"
    output=$(cargo "$@") || { echo "$output"; fail "cargo $* failed"; return 1; }
    echo "$output"
    last=$(printf '%s\n' "$output" | sed '/^[[:space:]]*$/d' | tail -n 1)
    [ -n "$last" ] || { fail "cargo $* printed nothing"; return 1; }
    [[ $last == *"$ending"* ]] || fail "cargo $* must end with a line containing '$ending', not with: $last"
}

# Where moto differs from EC2, the provider's tests/moto-waivers.toml has a waiver for one version of moto.
stage_moto() {
    python3 emulators/peers/run moto
}

stage_peers() {
    local output
    output=$(mktemp)
    python3 emulators/peers/run | tee "$output" || { rm -f "$output"; return 1; }
    note "$(tail -n 1 "$output")"
    rm -f "$output"
}

stage_console() {
    local output
    output=$(mktemp)
    python3 scripts/check-console | tee "$output" || { rm -f "$output"; return 1; }
    note "$(tail -n 1 "$output")"
    rm -f "$output"
}

# It uses the program that the tests have built: the same packages and features.
stage_schemathesis() {
    local output
    output=$(mktemp)
    cargo test --locked --workspace --all-features --lib --bins --tests --examples --no-run
    python3 facade/server/schemathesis/run --program "${CARGO_TARGET_DIR:-target}/debug/fleetwright-server" | tee "$output" || { rm -f "$output"; return 1; }
    note "$(tail -n 1 "$output")"
    rm -f "$output"
}

stage_cloudinit() {
    local output
    output=$(mktemp)
    python3 scripts/check-cloud-init | tee "$output" || { rm -f "$output"; return 1; }
    note "$(tail -n 1 "$output")"
    rm -f "$output"
}

stage_house() {
    python3 scripts/check-house --self-test
    python3 scripts/check-house
    python3 scripts/simulation-mistakes --check
}

stage_msrv() {
    python3 scripts/check-msrv
}

stage_deny() {
    local deny
    deny=$(tool_path cargo-deny) || { fail "cargo-deny $(pinned_version cargo-deny) is missing; run scripts/test tools"; return 1; }
    "$deny" deny --locked --workspace check bans licenses sources
    if timeout 60 "$deny" deny --locked fetch db; then
        "$deny" deny --locked --workspace check advisories
        note "advisories: checked"
    else
        note "advisories: no database reachable, not checked"
    fi
}

stage=${1:?usage: bash scripts/stages.sh <stage>}
declare -F "stage_$stage" >/dev/null || { fail "no stage is called '$stage'"; exit 2; }
"stage_$stage"
