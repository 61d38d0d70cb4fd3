#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What run.sh says of programs that pass, fail, fail once, hang and are found by a sanitizer.
set -u

here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/tests/unit"

program() { # program NAME LINE...
	printf '%s\n' '#!/bin/bash' "${@:2}" >"$dir/tests/unit/$1"
	chmod +x "$dir/tests/unit/$1"
}

fail() {
	echo "run_test: $1"
	sed 's/^/    /' "$dir/out"
	exit 1
}

run() { # run NAME...: output and status
	env -u SAN "$here/run.sh" quick "" "${@/#/$dir/tests/unit/}" >"$dir/out" 2>&1
	status=$?
}

has() { # has STATUS TEXT...: the status, and lines that contain these texts
	local text
	[ "$status" = "$1" ] || fail "status $status, wanted: $1"
	for text in "${@:2}"; do
		grep -qF -- "$text" "$dir/out" || fail "no line says: $text"
	done
}

good="echo '100%: Checks: 3, Failures: 0, Errors: 0'"
bad="echo '66%: Checks: 3, Failures: 1, Errors: 0'; echo 'a.c:1:F:x:y:0: it broke'"
program good "$good"
program bad "$bad" 'exit 1'
program once "[ -e $dir/once ] && { $good; exit 0; }" "touch $dir/once" "$bad" 'exit 1'
program found "[ -e $dir/found ] && { $good; exit 0; }" "touch $dir/found" "$bad" \
	"echo 'WARNING: ThreadSanitizer: data race'" 'exit 1'
program crash "[ -e $dir/crash ] && { $good; exit 0; }" "touch $dir/crash" "$bad" \
	"echo 'a.c:1:E:x:y:0: (after this point) Received signal 11 (Segmentation fault)'" 'exit 1'
program mute 'exit 0'

run good
has 0 'ok unit/good' '3 passed, 0 failed, 0 skipped'

run good bad
has 1 'NOT OK unit/bad' 'FAILED unit/bad' 'it broke' '5 passed, 1 failed, 0 skipped'
[ "$(tail -n 1 "$dir/out")" = '5 passed, 1 failed, 0 skipped' ] || fail "the sum is not last"

run good once
has 0 'AGAIN unit/once' 'UNSTEADY unit/once' 'it broke' '6 passed, 0 failed, 0 skipped'

rm -f "$dir/once"
HC_AGAIN=0 run good once
has 1 'FAILED unit/once' '5 passed, 1 failed, 0 skipped'

run good found
has 1 'FAILED unit/found' 'data race' '5 passed, 1 failed, 0 skipped'

run good crash
has 1 'FAILED unit/crash' 'Received signal 11' '5 passed, 1 failed, 0 skipped'

run mute
has 1 'no result (status 0)' '0 passed, 1 failed, 0 skipped'

echo "run_test: ok"
