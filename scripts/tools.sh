# The cargo tools of this project, each at a pinned version, in target/tools.
# Other scripts source this file with the root of the repository as the working directory.

TOOLS_DIR=$PWD/target/tools

pinned_version() {
    case $1 in
        cargo-deny) echo 0.20.2 ;;
        cargo-mutants) echo 27.1.0 ;;
        *) echo "scripts/tools.sh has no version of $1; add it to pinned_version" >&2; return 1 ;;
    esac
}

# Prints the path of the tool at its pinned version, or fails.
tool_path() {
    local name=$1 version candidate
    version=$(pinned_version "$name") || return 1
    for candidate in "$TOOLS_DIR/bin/$name" "$(command -v "$name")"; do
        [ -x "$candidate" ] || continue
        if [ "$("$candidate" "${name#cargo-}" --version 2>/dev/null)" = "$name $version" ]; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# Builds the tool into target/tools, unless its pinned version is there or on PATH.
# Without optimization, which makes the build take several times as long and does not help short runs.
install_tool() {
    local name=$1 version
    version=$(pinned_version "$name") || return 1
    if tool_path "$name"; then
        return 0
    fi
    CARGO_TARGET_DIR=$TOOLS_DIR/build CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install --locked --force --root "$TOOLS_DIR" --version "=$version" "$name" || return 1
    rm -rf "$TOOLS_DIR/build"
    tool_path "$name"
}
