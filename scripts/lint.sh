#!/bin/sh
# Every check that is not a test, all of them even after one failed: lint.sh BIN
set -u

bin=$1
failed=

check() {
    name=$1
    shift
    printf 'lint: %s\n' "$name"
    "$@" || failed="$failed $name"
}

check ruff "$bin/ruff" check --quiet .
check format "$bin/ruff" format --quiet --check .
check mypy "$bin/mypy" --no-error-summary
check layers "$bin/lint-imports" --no-logo
check deptry "$bin/deptry" src bench
check squawk "$bin/squawk" src/tocsin/store/migrations/*.sql

if [ -n "$failed" ]; then
    echo "lint: failed:$failed" >&2
    exit 1
fi
echo "lint: clean"
