# SPDX-License-Identifier: Apache-2.0
# What the demos share: a directory of their own, waiting with a deadline, processes by their id.
# Sourced. The demo says how a step went with `say`, and `die` ends it with the reason.
set -u

O=${O:-build}
case $O in /*) ;; *) O=$PWD/$O ;; esac
ctl=$O/hcommctl daemon=$O/hcommd rank=$O/examples/rank
patience=${HC_SLOW:-1}
began=${EPOCHREALTIME/[.,]/}

dir=$(mktemp -d "${TMPDIR:-/tmp}/hcomm-demo.XXXXXX") || exit 1
export HCOMM_SOCKET=$dir/run/hcommd.sock TMPDIR=$dir/tmp
unset HCOMM_JOB_ID HCOMM_DISABLE HCOMM_TIMEOUT_SEC
mkdir "$dir/run" "$dir/state" "$dir/sys" "$dir/tmp" "$dir/out"
declare -A started=() # pid -> what it is
daemon_pid=
stopping="the daemon does not stop"

cleanup() {
	local pid
	for pid in "${!started[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	[ -n "${HC_KEEP-}" ] || rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

say() {
	local us=$((${EPOCHREALTIME/[.,]/} - began))
	printf '[%5d.%01d s] %s\n' $((us / 1000000)) $((us / 100000 % 10)) "$*"
}

die() {
	local log
	say "NOT AS PROMISED: $*"
	for log in "$dir"/*.log; do
		[ -s "$log" ] && { echo "--- ${log##*/}"; tail -n 40 "$log"; }
	done
	exit 1
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds
wait_for() {
	local limit=$1 what=$2 end
	shift 2
	end=$((${EPOCHREALTIME/[.,]/} + limit * patience * 1000000))
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/[.,]/}" -lt "$end" ] || die "$what, after $limit s of waiting"
		[ -n "$daemon_pid" ] && [ -n "${started[$daemon_pid]-}" ] && is_gone "$daemon_pid" && [ "$what" != "$stopping" ] &&
			die "$what: the daemon has ended by itself"
		sleep 0.02
	done
}

is_gone() {
	# a child that ended and was not waited for yet has no command line
	[ ! -e "/proc/$1" ] || [ -z "$(tr -d '\0' 2>/dev/null <"/proc/$1/cmdline")" ]
}

# end_of PID: its exit status, once it has ended
end_of() {
	local what="${started[$1]} (pid $1) does not end"
	[ "$1" = "$daemon_pid" ] && what=$stopping
	wait_for 20 "$what" is_gone "$1"
	wait "$1"
	ended=$?
	unset "started[$1]"
}

all_say() { # all_say TEXT FILE...: every file has a line with the text
	local text=$1
	shift
	[ "$(grep -lF -- "$text" "$@" | wc -l)" = $# ]
}

cells() { # cells COLUMNS NOUN VERB...: a table without its headings
	"$ctl" --no-headings -o "$@"
}
