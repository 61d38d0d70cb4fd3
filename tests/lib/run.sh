#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run test programs and add up what they say.
#
#   O=build [SAN=asan|tsan] run.sh quick|long FILTER program...
#
# FILTER empty: all programs; else those whose name contains it. A program may hold
# several suites; each prints check's line "NN%: Checks: N, Failures: F, Errors: E". A line
# "SKIP: reason" turns one passed check into a skipped one. A program that prints no such line,
# ends badly without a failure of its own, or runs over its limit, counts as one failure.
# The last line is exactly "N passed, N failed, N skipped"; the status is 1 when a check failed
# or none passed. Before it each failure is told once more, so that the end of a long output says
# what is wrong. Nothing is left running: each program has a session, which ends with it.
#
# A machine that is shared may stand still for seconds, which fails a test that waits for a real
# process. So a program that fails beside others is run once more, alone, at the end. It counts as
# what it is then, and is named as UNSTEADY with its first output above: a finding to look into,
# not a reason to stop. What a sanitizer reports, and what crashes, fails at once. HC_AGAIN=0:
# nothing runs twice.
#
# Three kinds of programs. Those of unit compute: one takes a processor. Most others wait for the
# processes that they start, so two of them share one; each has directories, sockets and a daemon of
# its own. Those that judge times tightly, and those that want a process number of their own, run
# alone, after the rest.
set -u

mode=${1-} filter=${2-}
case $mode in
quick) limit=120 ;;
long) limit=900 ;;
*)
	echo "run.sh: mode is '$mode'; wanted: quick or long" >&2
	exit 2
	;;
esac
shift 2

chosen=()
for p in "$@"; do
	name=${p##*/}
	[[ $name == *"$filter"* ]] && chosen+=("$p")
done
if [ ${#chosen[@]} -eq 0 ]; then
	echo "run.sh: no test has '$filter' in its name; there are:" >&2
	printf '  %s\n' "${@##*/}" >&2
	exit 1
fi

# A test that hangs is ended by this, and no figure is judged by it: so it is generous. Sanitized
# programs are slow besides: their deadlines are stretched.
export CK_DEFAULT_TIMEOUT=20 CK_TIMEOUT_MULTIPLIER=3
[ -n "${SAN-}" ] && export HC_SLOW="${HC_SLOW:-5}" && limit=$((limit * 5))
case ${SAN-} in
asan)
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}halt_on_error=1:detect_leaks=1:abort_on_error=0"
	export UBSAN_OPTIONS="${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}halt_on_error=1:print_stacktrace=1"
	;;
tsan)
	export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}halt_on_error=1:second_deadlock_stack=1"
	;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/hcomm-check.XXXXXX") || exit 2
chmod 711 "$work" # tests that change their user pass through

# end_session ID: check gives each test a process group, so the session is what they share
end_session() {
	local stat rest
	for stat in /proc/[0-9]*/stat; do
		{ read -r rest <"$stat"; } 2>/dev/null || continue
		set -- "$1" ${rest##*) }
		[ "$5" = "$1" ] && stat=${stat#/proc/} && kill -KILL "${stat%/stat}" 2>/dev/null
	done
}

cleanup() {
	local f
	for f in "$work"/*.pid; do
		[ -s "$f" ] && end_session "$(cat "$f")"
	done
	wait
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# run_one NUMBER PROGRAM: output, status and milliseconds below $work
run_one() {
	local n=$1 p=$2 begun pid status
	begun=$(date +%s%3N)
	mkdir -p "$work/$n.tmp"
	# a session of its own, so that what a killed test leaves behind can be ended
	TMPDIR=$work/$n.tmp setsid timeout --kill-after=10 "$limit" "$p" >"$work/$n.out" 2>&1 </dev/null &
	pid=$!
	echo "$pid" >"$work/$n.pid"
	wait "$pid"
	status=$?
	end_session "$pid"
	: >"$work/$n.pid"
	rm -rf "$work/$n.tmp" 2>/dev/null
	echo "$status $(($(date +%s%3N) - begun))" >"$work/$n.end"
}

passed=0 failed=0 skipped=0
again=() unsteady=()
declare -A twice=()

# may_pass NUMBER: it failed for a reason that may be the machine's, and has run but once
may_pass() {
	[ "${HC_AGAIN-1}" != 0 ] && [ ${#chosen[@]} -gt 1 ] && [ -z "${twice[$1]-}" ] &&
		! grep -qE 'Sanitizer|runtime error:|panic:|Received signal' "$work/$1.out"
}

# report NUMBER PROGRAM: one line, the whole output of a failure, and the sums
report() {
	local n=$1 p=$2 out=$work/$1.out name status ms checks=0 bad=0 lines=0 skip why= c f e word=ok
	name=${p##*/tests/}
	read -r status ms <"$work/$n.end"
	while read -r c f e; do
		lines=$((lines + 1)) checks=$((checks + c)) bad=$((bad + f + e))
	done < <(sed -nE 's/^[0-9]+%: Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+)$/\1 \2 \3/p' "$out")
	skip=$(grep -c '^SKIP: ' "$out")
	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
		why=", not over after $limit s"
	elif [ "$lines" -eq 0 ]; then
		why=", no result (status $status)"
	elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
		why=", status $status"
	fi
	if [ -n "$why" ]; then
		bad=$((bad + 1)) checks=$((checks + 1))
	fi
	[ "$skip" -gt $((checks - bad)) ] && skip=$((checks - bad))
	if [ "$bad" -gt 0 ] && may_pass "$n"; then
		word=AGAIN again+=("$n")
	else
		[ "$bad" -gt 0 ] && word='NOT OK' && cp "$out" "$work/$n.failure"
		[ "$bad" -eq 0 ] && [ -n "${twice[$n]-}" ] && unsteady+=("$name")
		passed=$((passed + checks - bad - skip)) failed=$((failed + bad))
		skipped=$((skipped + skip))
	fi
	printf '%s %-36s %3d passed' "$word" "$name" $((checks - bad - skip))
	[ "$bad" -gt 0 ] && printf ', %d failed' "$bad"
	[ "$skip" -gt 0 ] && printf ', %d skipped' "$skip"
	printf '%s (%d.%03d s)\n' "$why" $((ms / 1000)) $((ms % 1000))
	if [ "$bad" -gt 0 ]; then
		sed 's/^/    /' "$out"
	elif [ "$skip" -gt 0 ]; then
		grep '^SKIP: ' "$out" | sort | uniq -c | sed -E 's/^ *1 (SKIP)/\1/; s/^ */    /'
	fi
}

# kind PROGRAM: computes, waits or alone
kind() {
	case ${1##*/tests/} in
	# answers, deaths and wake-ups are timed in milliseconds, or their shares in percent
	cases/case_040_* | cases/case_041_* | cases/case_056_* | cases/case_067_* | cases/case_074_* | sys/test_death | sys/test_hostile) echo alone ;;
	sys/test_kill_channels | sys/test_reconnect | sys/test_scale | sys/test_storm_channels) echo alone ;;
	sys/test_sync) echo alone ;;
	# gives a process the number of one that has gone
	cases/case_082_*) echo alone ;;
	unit/*) echo computes ;;
	*) echo waits ;;
	esac
}

computes=() waits=() alone=()
for n in "${!chosen[@]}"; do
	case $(kind "${chosen[$n]}") in
	computes) computes+=("$n") ;;
	waits) waits+=("$n") ;;
	alone) alone+=("$n") ;;
	esac
done

# halves of processors: all of them, and what the programs that run now take
room=$((2 * $(nproc))) used=0 waiting=0
declare -A runs=()

# start NUMBER HALVES
start() {
	run_one "$1" "${chosen[$1]}" 2>/dev/null &
	runs[$1]=$2
	used=$((used + $2))
	[ "$2" -eq 1 ] && waiting=$((waiting + 1))
}

# reap: wait for one of them at least, and report all that are over
reap() {
	local n
	wait -n
	for n in "${!runs[@]}"; do
		[ -s "$work/$n.end" ] || continue
		report "$n" "${chosen[$n]}"
		used=$((used - runs[$n]))
		[ "${runs[$n]}" -eq 1 ] && waiting=$((waiting - 1))
		unset "runs[$n]"
	done
}

# Half of the machine is for each kind, and all of it for the one that is left.
while [ ${#computes[@]} -gt 0 ] || [ ${#waits[@]} -gt 0 ]; do
	if [ ${#waits[@]} -gt 0 ] && [ "$used" -lt $room ] &&
		{ [ $waiting -lt $((room / 2)) ] || [ ${#computes[@]} -eq 0 ]; }; then
		start "${waits[0]}" 1
		waits=("${waits[@]:1}")
	elif [ ${#computes[@]} -gt 0 ] && [ $((used + 2)) -le $room ]; then
		start "${computes[0]}" 2
		computes=("${computes[@]:1}")
	else
		reap
	fi
done
# what runs is over and reported; wait -n may return for one that was reported with another
all_over() {
	while [ ${#runs[@]} -gt 0 ]; do
		reap
	done
}
all_over
for n in "${alone[@]}"; do
	start "$n" 0
	all_over
done
for n in "${again[@]}"; do
	twice[$n]=1
	rm -f "$work/$n.end"
	start "$n" 0
	all_over
done

for name in "${unsteady[@]}"; do
	echo "UNSTEADY $name: failed beside others, passed alone; the first output is above"
done
for n in "${!chosen[@]}"; do
	[ -s "$work/$n.failure" ] && [ ${#chosen[@]} -gt 1 ] || continue
	echo "FAILED ${chosen[$n]##*/tests/}"
	tail -n 30 "$work/$n.failure" | sed 's/^/    /'
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
