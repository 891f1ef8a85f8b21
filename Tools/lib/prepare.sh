# What the scripts in Tools share: a toolchain, system libraries, quiet builds. Sourced by bash, with `set -eu`.

say() { printf '==> %s\n' "$*" >&2; }

# Arguments for the compiler where the environment variable CI is set: no debug information, which saves a sixth of a
# build's work; and lld, which links in a third of the time.
lean=()
if [ -n "${CI:-}" ]; then
    lean=(-Xswiftc -gnone -Xcc -g0)
    if [ "$(uname)" = Linux ] && ld.lld --version >/dev/null 2>&1; then lean+=(-Xswiftc -use-ld=lld); fi
fi

# Something is missing that cannot be installed from here.
missing() {
    local line
    for line in "$@"; do printf 'Tools/%s: %s\n' "$(basename "$0")" "$line" >&2; done
    exit 2
}

python_fits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# The first Python that is new enough for Tests/Server/requirements.txt and can make virtual environments.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && python_fits "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

# Makes the Python of the servers that are not ours, in the project's folder, and says where it is in
# LARDER_TEST_PYTHON. Fails where the packages cannot be had.
test_python() {
    local environment=.venv-test requirements=(Tests/Server/requirements*.txt) python
    python=$(find_python) || missing "there is no Python of 3.11 or later that can make virtual environments"
    if ! cat "${requirements[@]}" | cmp -s - "$environment/installed.txt" ||
        ! "$environment/bin/python" -c '' 2>/dev/null; then
        say "making $environment"
        rm -rf "$environment"
        "$python" -m venv "$environment" || return
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
            "${requirements[@]/#/-r}" || return
        cat "${requirements[@]}" >"$environment/installed.txt"
    fi
    LARDER_TEST_PYTHON="$PWD/$environment/bin/python"
}

has_library() { command -v pkg-config >/dev/null && pkg-config --exists "$1"; }

# Sees to it that there is all that building needs; with the argument `python`, that there is a Python for tests, too.
prepare() {
    command -v swift >/dev/null ||
        missing "there is no swift; install a toolchain of 6.2 or later: https://swift.org/install"
    local packages=() needs_python=
    [ "${1:-}" != python ] || find_python >/dev/null || needs_python=yes
    if [ "$(uname)" = Darwin ]; then
        # SQLite is in the system's SDK.
        command -v pkg-config >/dev/null || packages+=(pkgconf)
        has_library lmdb || packages+=(lmdb)
        [ -z "$needs_python" ] || packages+=(python@3.13)
        [ ${#packages[@]} -eq 0 ] || install_by_brew "${packages[@]}"
    else
        command -v pkg-config >/dev/null || packages+=(pkg-config)
        has_library lmdb || packages+=(liblmdb-dev)
        has_library sqlite3 || packages+=(libsqlite3-dev)
        [ -z "$needs_python" ] || packages+=(python3-venv)
        [ ${#packages[@]} -eq 0 ] || install_by_apt "${packages[@]}"
    fi
}

install_by_brew() {
    command -v brew >/dev/null ||
        missing "these are missing: $*" "install Homebrew (https://brew.sh) and run: brew install $*"
    say "brew install $*"
    brew install --quiet "$@" >&2 || missing "brew failed; install these yourself: $*"
}

install_by_apt() {
    command -v apt-get >/dev/null ||
        missing "these are missing, by their names in Debian: $*" "install what your system calls them"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
            missing "these are missing: $*" "run: sudo apt-get install $*"
        as_root=(sudo -n)
    fi
    say "apt-get install $*"
    local apt=(${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; } >&2 ||
        missing "apt-get failed; install these yourself: $*"
}

# Shows the errors of a failed build, from its log.
show_build_errors() {
    grep -E -A 8 '(^|: )error:' "$1" >&2 || tail -n 40 "$1" >&2
    say "the build failed"
}

# Builds one product in release mode, which may take minutes, and says nothing but a word while it does; on a terminal
# also how far it is. Ends the script with 1 where it cannot be built.
build_release() {
    local product=$1 status=0
    build_log=$(mktemp "${TMPDIR:-/tmp}/larder-build.XXXXXX")
    build_progress=
    trap 'end_build' EXIT
    say "building $product (some minutes the first time)"
    if [ -t 2 ]; then
        # SwiftPM counts what it compiles: [12/345].
        while sleep 1; do
            printf '\r    %-24s' "$(grep -Eo '^\[[0-9]+/[0-9]+\]' "$build_log" | tail -n 1)" >&2
        done &
        build_progress=$!
    fi
    swift build -c release --product "$product" >"$build_log" 2>&1 || status=$?
    end_build_progress
    [ "$status" -eq 0 ] || show_build_errors "$build_log"
    end_build
    trap - EXIT
    [ "$status" -eq 0 ] || exit 1
}

end_build_progress() {
    [ -n "$build_progress" ] || return 0
    kill "$build_progress" 2>/dev/null || true
    wait "$build_progress" 2>/dev/null || true
    build_progress=
    printf '\r%-30s\r' '' >&2
}

end_build() {
    end_build_progress
    rm -f "$build_log"
}
