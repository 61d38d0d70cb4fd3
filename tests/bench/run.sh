#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the benchmarks, one after the other, or only the one named.
#
#   run.sh NAME PROGRAM...      NAME may be empty: all of them
#
# A program is called bench_<name>. Each prints JSON lines, the one with "summary": true last.
# They never run side by side: they would measure each other. Status 1 if one of them failed,
# 2 if there is no benchmark of that name. HC_BENCH_ROUNDS sets the number of rounds.
set -u
name=${1-}
shift

known=
for p in "$@"; do
	b=$(basename "$p")
	known="$known ${b#bench_}"
done
if [ -n "$name" ] && [[ "$known " != *" $name "* ]]; then
	echo "bench: no benchmark is called '$name'; there are:${known:- none}" >&2
	exit 2
fi

# one place for all they leave, also when they are interrupted; short, since sockets lie there
work=$(mktemp -d "${TMPDIR:-/tmp}/hcb.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
export TMPDIR=$work
export HC_BENCH_SRC=${HC_BENCH_SRC:-$(cd "$(dirname "$0")" && pwd)}
status=0
for p in "$@"; do
	b=$(basename "$p")
	[ -z "$name" ] || [ "$b" = "bench_$name" ] || continue
	if ! "$p"; then
		echo "bench: ${b#bench_} failed" >&2
		status=1
	fi
done
exit $status
