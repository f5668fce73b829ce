#!/bin/sh
# Puts the locked packages and this clone into a virtual environment: setup.sh VENV LOCK [PYTHON]
set -eu

venv=$1
lock=$2
wanted=$3

# A name that answers may still be unfit: too old, a shim with nothing behind it, or (Debian) without venv.
fit() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    # Those that CI runs come first: every locked package has a wheel for them.
    for name in ${wanted:-python3.13 python3.12 python3.11 python3.14 python3}; do
        if fit "$name"; then
            echo "$name"
            return
        fi
    done
    echo "Tocsin needs Python 3.11 or newer with its venv module; tried: ${wanted:-python3.13 to 3.11, python3}." >&2
    echo "Install one (Debian and Ubuntu: apt install python3-venv) or name it: make PYTHON=/path/to/python3 …" >&2
    exit 1
}

# Settings of the user's pip that would put packages elsewhere or refuse them.
export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

if ! "$venv/bin/python" -c '' 2>/dev/null; then
    python=$(find_python)
    echo "setup: $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
elif ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$venv/bin/python" -m ensurepip >/dev/null
fi

echo "setup: packages of $lock"
if ! "$venv/bin/python" -m pip install --quiet --require-hashes --only-binary :all: -r "$lock"; then
    echo "setup: a locked package could not be installed. If it has no wheel for $("$venv/bin/python" --version)," >&2
    echo "setup: remove $venv and name another interpreter: make PYTHON=python3.13 …" >&2
    exit 1
fi
# hatchling is among the locked packages, so nothing is fetched here.
"$venv/bin/python" -m pip install --quiet --no-index --no-deps --no-build-isolation --editable .
