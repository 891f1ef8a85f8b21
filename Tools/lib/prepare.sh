# What the scripts of this folder have in common: saying things, and the tools and libraries that building needs.
# To be sourced by bash.

say() { printf '==> %s\n' "$*" >&2; }

# Says what is missing and ends the script with status 2.
missing() {
    printf "Tools/$(basename "$0"): %s\n" "$@" >&2
    exit 2
}

has_library() { command -v pkg-config >/dev/null && pkg-config --exists "$1"; }

# Installs the system libraries that are missing, and the packages that are given, or says what to install.
install_packages() {
    local packages=("$@")
    if [ "$(uname)" = Darwin ]; then
        # SQLite is in the system's SDK.
        command -v pkg-config >/dev/null || packages+=(pkgconf)
        has_library lmdb || packages+=(lmdb)
        [ ${#packages[@]} -gt 0 ] || return 0
        command -v brew >/dev/null ||
            missing "these are missing: ${packages[*]}" "install Homebrew (https://brew.sh) and run: brew install ${packages[*]}"
        say "brew install ${packages[*]}"
        brew install --quiet "${packages[@]}" >&2 || missing "brew failed; install these yourself: ${packages[*]}"
        return 0
    fi

    command -v pkg-config >/dev/null || packages+=(pkg-config)
    has_library lmdb || packages+=(liblmdb-dev)
    has_library sqlite3 || packages+=(libsqlite3-dev)
    [ ${#packages[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        missing "these are missing, by their names in Debian: ${packages[*]}" "install what your system calls them"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
            missing "these are missing: ${packages[*]}" "run: sudo apt-get install ${packages[*]}"
        as_root=(sudo -n)
    fi
    say "apt-get install ${packages[*]}"
    local apt=(${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${packages[@]}"; } >&2 ||
        missing "apt-get failed; install these yourself: ${packages[*]}"
}

command -v swift >/dev/null || missing "there is no swift; install a toolchain of 6.2 or later: https://swift.org/install"
