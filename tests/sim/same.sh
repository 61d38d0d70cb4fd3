#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same seeds give the same runs, whatever compiler built them and whatever it checks: what the
# core decides hangs on nothing but its events. Built twice, by gcc with -O2 and by clang with its
# sanitizers; both must end with the same hash. SEEDS and the shape as for `make sim`.
set -u
cd "$(dirname "$0")/../.." || exit 1

O=${O:-build}
args=(--seed "${SEED:-1}" --seeds "${SEEDS:-20}" --nodes "${NODES:-8}")
jobs=-j$(nproc)

make -s "$jobs" CC=gcc O="$O" "$O/sim" >/dev/null || exit 1
make -s "$jobs" CC=clang O="$O/clang" SAN=asan "$O/clang/asan/sim" >/dev/null || exit 1
first=$("$O/sim" "${args[@]}" 2>/dev/null) || { echo "$first"; exit 1; }
second=$("$O/clang/asan/sim" "${args[@]}") || { echo "$second"; exit 1; }
if [ "$first" != "$second" ]; then
	printf 'the same seeds, but not the same runs:\n  gcc:   %s\n  clang: %s\n' "$first" "$second"
	exit 1
fi
echo "$first"
