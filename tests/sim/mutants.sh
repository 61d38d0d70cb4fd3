#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice? Each patch of tests/sim/mutants puts a fault into a copy of the core; what its
# line in the list names is then built and run until one fails. M=NAME: that mutant alone. A line for
# each, killed (by whom) or ALIVE; exit status 1 when one lives or a patch does not apply.
set -u
cd "$(dirname "$0")/../.." || exit 1

list=tests/sim/mutants/list
only=${M:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/mutants.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
jobs=-j$(nproc)
alive=0 count=0

here=$PWD
tar cf - --exclude=./build --exclude=./.git . | tar xf - -C "$work" || exit 1
cd "$work" || exit 1
make -s "$jobs" O=build build/sim >build.log 2>&1 || { cat build.log; exit 1; }

# killed NAME KILLER: does this one fail?
killed() {
	case $2 in
	--*)
		make -s "$jobs" O=build build/sim >build.log 2>&1 || return 2
		timeout 120 build/sim "$2" --nodes 8 --seeds 60 >run.log 2>&1 && return 1
		;;
	*)
		make -s "$jobs" O=build "build/tests/unit/test_$2" >build.log 2>&1 || return 2
		timeout 120 "build/tests/unit/test_$2" >run.log 2>&1 && return 1
		;;
	esac
	return 0
}

try() {
	local name=$1 k r
	shift
	if ! patch -s -p1 <"tests/sim/mutants/$name.patch"; then
		echo "$name: the patch does not apply"
		return 1
	fi
	for k in "$@"; do
		killed "$name" "$k"
		r=$?
		[ $r = 2 ] && { echo "$name: does not build"; cat build.log; return 1; }
		[ $r = 0 ] && { echo "$name: killed by $k"; return 0; }
	done
	echo "$name: ALIVE ($*)"
	return 1
}

while read -r name rest; do
	case $name in '#'* | '') continue ;; esac
	[ -z "$only" ] || [ "$only" = "$name" ] || continue
	# killers are words of core_ and admit_, or options; the rest of the line is for people
	killers=()
	for word in $rest; do
		case $word in --jobs | --paths | core_* | admit_*) killers+=("$word") ;; *) break ;; esac
	done
	count=$((count + 1))
	try "$name" "${killers[@]}" || alive=$((alive + 1))
	# put back whole: a patch that was moved a little is not always taken out where it went in;
	# its clock says so to make
	grep '^+++ b/' "tests/sim/mutants/$name.patch" | cut -c7- |
		while read -r file; do cp "$here/$file" "$file"; done
done <"$list"
echo "$((count - alive)) of $count mutants killed"
[ $alive = 0 ]
