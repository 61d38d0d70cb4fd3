#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run fuzzers, each for a while.
#
#   O=build run.sh SECONDS program...
#
# A program starts from tests/fuzz/corpus/<name>. New inputs go to $O/fuzz/found/<name>, never
# into the tree, and are used again by the next run. One line for each program; a finding
# names the file that reproduces it, and the status is 1.
set -u

seconds=${1-}
if ! [[ $seconds =~ ^[0-9]+$ ]] || [ "$seconds" -eq 0 ]; then
	echo "run.sh: '$seconds' is not a time; wanted: seconds, 1 or more" >&2
	exit 2
fi
shift
if [ $# -eq 0 ]; then
	echo "run.sh: no fuzzers given" >&2
	exit 2
fi

here=$(cd "$(dirname "$0")" && pwd)
failed=0

# fuzz PROGRAM
fuzz() {
	local program=$1 name=${1##*/} found log dict=() status
	found=$(dirname "$program")/found/$name
	log=$found.log
	mkdir -p "$found"
	[ -d "$here/corpus/$name" ] && cp -R "$here/corpus/$name/." "$found/"
	[ -f "$here/hcomm.dict" ] && dict=(-dict="$here/hcomm.dict")
	[ -f "$here/$name.dict" ] && dict=(-dict="$here/$name.dict")
	"$program" "${dict[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
		-max_len=65536 -print_final_stats=1 -artifact_prefix="$found-" "$found" >"$log" 2>&1
	status=$?
	if [ $status -eq 0 ]; then
		printf 'ok %-20s %s runs in %s s, %s inputs kept\n' "$name" \
			"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds" \
			"$(find "$found" -type f | wc -l)"
		return
	fi
	failed=1
	printf 'NOT OK %-20s status %s; reproduce: %s %s\n' "$name" "$status" "$program" \
		"$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)"
	grep -E 'ERROR|SUMMARY|runtime error|#[0-9]+ ' "$log" | head -20 | sed 's/^/    /'
}

for p in "$@"; do
	fuzz "$p"
done
exit $failed
