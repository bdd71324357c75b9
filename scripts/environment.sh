# Sourced by scripts/demo and scripts/test: make_environment makes a virtual environment with nothing but Python there,
# and announce reports long steps.

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

# usage: is_running PROCESS  (not so what was killed, and whose parent waits for all that writes to the same pipe)
is_running() {
    kill -0 "$1" 2>/dev/null && case "$(ps -o stat= -p "$1" 2>/dev/null)" in Z*) false ;; esac
}

# usage: announce TITLE [FILE]
# Says on standard error what begins, and until `quieten` every few seconds how long it has taken, and FILE's last line.
announce() {
    local title="$1" file="${2:-}" every=30 began=$SECONDS
    [ -t 2 ] && every=8
    say "$title …"
    (
        # Sleeping holds no file of ours open.
        while sleep "$every" </dev/null >/dev/null 2>&1 && is_running "$$"; do
            say "    $((SECONDS - began)) s so far. $(grep -v ^WARNING "$file" 2>/dev/null | tail -n 1 | cut -c 1-90)"
        done
    ) &
    announcer=$!
}

# usage: quieten  (ends what announce began)
quieten() {
    kill "$announcer" 2>/dev/null || true
    wait "$announcer" 2>/dev/null || true
}

# usage: step TITLE LOG COMMAND...
# Runs a command that writes to the file LOG, and announces it; if it fails, shows what is in LOG.
step() {
    local title="$1" log="$2" code=0
    shift 2
    announce "$title" "$log"
    "$@" >>"$log" 2>&1 || code=$?
    quieten
    [ "$code" = 0 ] || cat "$log" >&2
    return "$code"
}

# usage: make_environment ROOT NAME REQUIREMENTS [SENTENCE]
# Makes ROOT/NAME hold exactly what ROOT/REQUIREMENTS pins, and the project itself, editable. An environment whose stamp
# still fits is used as it is; the stamp is written last, so an installation that was interrupted is done again.
# SENTENCE says how long it takes.
make_environment() {
    local root="$1" environment="$1/$2" requirements="$1/$3" log="$1/$2/installation.log" python stamp
    # The folder is in the stamp because an environment cannot be moved.
    stamp="$root $(cat "$root"/requirements*.txt "$root/pyproject.toml" "$root/scripts/environment.sh" | cksum)"
    if [ "$(cat "$environment/stamp" 2>/dev/null)" = "$stamp" ] && "$environment/bin/python" -c '' 2>/dev/null; then
        return 0
    fi
    python="$(pick_python)" || return 1
    say "Setting up $environment with $("$python" --version 2>&1), once.${4:+ $4}"
    rm -rf "$environment"
    mkdir -p "$environment" || return 1
    step "Making the virtual environment" "$log" "$python" -m venv "$environment" || return 1
    local pip=("$environment/bin/python" -m pip --disable-pip-version-check install --progress-bar off)
    step "Installing what $3 names" "$log" "${pip[@]}" --require-hashes --requirement "$requirements" || return 1
    step "Installing Cairn" "$log" "${pip[@]}" --no-deps --no-build-isolation --editable "$root" || return 1
    # What is compiled for this processor, here and not while somebody waits.
    say "Compiling for this processor …"
    (cd "$root" && "$environment/bin/python" -m retrieval.library.compiled) || return 1
    printf '%s\n' "$stamp" >"$environment/stamp"
}
