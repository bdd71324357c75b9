# Sourced by scripts/demo and scripts/test: one function that makes a virtual environment with nothing but Python there.

# The Pythons to try, in this order; CAIRN_PYTHON names the one to take instead.
CAIRN_PYTHONS=(python3 python3.14 python3.13 python3.12 python3.11 python)
if [ -n "${CAIRN_PYTHON:-}" ]; then
    CAIRN_PYTHONS=("$CAIRN_PYTHON")
fi

# usage: say SENTENCE...  (to standard error: standard output belongs to the command that follows)
say() {
    printf '%s\n' "$*" >&2
}

# usage: pick_python  (prints the first Python that is new enough and can make environments)
pick_python() {
    local candidate bare=""
    for candidate in "${CAIRN_PYTHONS[@]}"; do
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
        if "$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return 0
        fi
        bare="${bare:-$candidate}"
    done
    if [ -n "$bare" ]; then
        say "$bare cannot make virtual environments: install its venv module (Debian and Ubuntu: apt-get install python3-venv) and run this again."
    else
        say "Cairn needs Python 3.11 or newer and found none (tried: ${CAIRN_PYTHONS[*]}): install one, or name it in CAIRN_PYTHON, and run this again."
    fi
    return 1
}

# usage: make_environment ROOT NAME REQUIREMENTS
# Makes ROOT/NAME hold exactly what ROOT/REQUIREMENTS pins, and the project itself, editable. An environment whose stamp
# still fits is used as it is; the stamp is written last, so an installation that was interrupted is done again.
make_environment() {
    local root="$1" environment="$1/$2" requirements="$1/$3" python stamp
    # The folder is in the stamp because an environment cannot be moved.
    stamp="$root $(cat "$root"/requirements*.txt "$root/pyproject.toml" "$root/scripts/environment.sh" | cksum)"
    if [ "$(cat "$environment/stamp" 2>/dev/null)" = "$stamp" ] && "$environment/bin/python" -c '' 2>/dev/null; then
        return 0
    fi
    python="$(pick_python)" || return 1
    say "Setting up $environment with $("$python" --version 2>&1); this takes a minute or two, once."
    rm -rf "$environment"
    "$python" -m venv "$environment" || return 1
    local pip=("$environment/bin/python" -m pip --disable-pip-version-check install --quiet)
    "${pip[@]}" --requirement "$requirements" || return 1
    "${pip[@]}" --no-deps --no-build-isolation --editable "$root" || return 1
    # What is compiled for this processor, here and not while somebody waits.
    (cd "$root" && "$environment/bin/python" -m retrieval.library.compiled) || return 1
    printf '%s\n' "$stamp" >"$environment/stamp"
}
