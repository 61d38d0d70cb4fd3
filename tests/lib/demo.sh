#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job of hcomm from beginning to end, without root and without hardware.
#
#   O=build tests/lib/demo.sh          (make demo builds first)
#
# A daemon with eight simulated devices; a domain of eight ranks, each a process of its own, from
# a rank table; references on every rank; one rank killed, and all others told who it was; a
# second domain that is destroyed while operations run; jobs that compete for a link, by class and
# weight; one that is refused, comes again at the hint and is served; a rank table refused with its
# line; the daemon stopped. Each step prints a line with what it shows. The first thing that is not as it
# should be ends the script with a reason and status 1.
#
# It waits for conditions with a deadline, never for time. It signals only processes that it
# started, by their id. Everything it writes is in one fresh directory, which goes at the end;
# HC_KEEP=1 keeps it.
. "$(dirname "$0")/demolib.sh"

start_ranks() { # start_ranks NAME TABLE HOLD-MS
	local i
	pids=()
	outs=()
	for i in 0 1 2 3 4 5 6 7; do
		"$rank" "$HCOMM_SOCKET" "$2" "$i" "$3" >"$dir/out/$1.$i" 2>&1 &
		pids[i]=$!
		outs[i]=$dir/out/$1.$i
		started[$!]="rank $i of the $1 domain"
	done
}

write_table() { # write_table NAME
	local i
	{
		printf '{"version":"1.0","status":"completed","server_count":"1","server_list":[\n'
		printf ' {"server_id":"%s","device":[\n' "$1"
		for i in 0 1 2 3 4 5 6 7; do
			printf '  {"device_id":"%d","device_ip":"192.0.2.%d","rank_id":"%d"}%s\n' \
				"$i" $((i + 1)) "$i" "$([ "$i" = 7 ] || echo ,)"
		done
		printf ' ]}\n]}\n'
	} >"$dir/$1.json"
}

# ---- the daemon ----------------------------------------------------------------------------

for program in "$ctl" "$daemon" "$rank"; do
	[ -x "$program" ] || die "$program is not built"
done
{
	printf 'node_name = demo\nruntime_dir = %s/run\nstate_dir = %s/state\n' "$dir" "$dir"
	printf 'socket = %s\nsocket_group = %s\n' "$HCOMM_SOCKET" "$(id -gn)"
	printf 'key_file = %s/no.key\nmetrics_socket =\nlog_target = stderr\n' "$dir"
	printf 'sysfs_root = %s/sys\norphan_grace_s = 1\n' "$dir"
	for i in 0 1 2 3 4 5 6 7; do
		printf '[device %d]\nkind = npu\nsimulated = yes\n' "$i"
	done
	printf '[link any any]\ntype = shm\nbandwidth_mbps = 1000\n'
} >"$dir/hcommd.conf"
"$daemon" --config "$dir/hcommd.conf" 2>"$dir/hcommd.log" &
daemon_pid=$!
started[$daemon_pid]=hcommd
wait_for 10 "the daemon does not answer at $HCOMM_SOCKET" "$ctl" version
[ "$(cells SIMULATED device list | grep -c 1)" = 8 ] || die "there are no eight simulated devices"
say "hcommd answers on node demo, with eight devices that it calls simulated"

# ---- a domain of eight processes -----------------------------------------------------------

write_table first
"$ctl" ranktable check "$dir/first.json" >/dev/null || die "a good rank table is refused"
start_ranks first "$dir/first.json" 5
wait_for 15 "the eight ranks are not all in the domain" all_say "is in domain" "${outs[@]}"
id=$(cells ID domain list)
[ "$(cells STATE domain list)" = ACTIVE ] || die "the domain is not ACTIVE"
say "eight processes joined by an HCCL rank table: domain $id is ACTIVE"

first="has run its first operation"
wait_for 10 "not every rank took references" all_say "$first" "${outs[@]}"
say "every rank takes and returns references of operations:"
"$ctl" status | sed 's/^/    /'
"$ctl" domain show "$id" | sed 's/^/    /'

# ---- a death -------------------------------------------------------------------------------

victim=${pids[5]}
# without the shell's own words about it
{
	kill -KILL "$victim"
	wait "$victim"
} 2>/dev/null
unset "started[$victim]"
survivors=()
for i in 0 1 2 3 4 6 7; do
	survivors+=("${outs[i]}")
done
heard="heard: rank 5, pid $victim on node demo, exited"
wait_for 5 "not every rank learned that rank 5, pid $victim, died" all_say "$heard" "${survivors[@]}"
[ "$(cells STATE domain list)" = DAMAGED ] || die "the domain of a dead rank is not DAMAGED"
say "rank 5 was killed; all seven others say: $heard"
wait_for 5 "an operation is not refused in a damaged domain" all_say "HCOMM_E_DAMAGED" "${survivors[@]}"
say "the domain is DAMAGED, and operations are refused instead of hanging"

for i in 0 1 2 3 4 6 7; do
	kill -TERM "${pids[i]}"
done
for i in 0 1 2 3 4 6 7; do
	end_of "${pids[i]}"
	[ "$ended" = 0 ] || die "rank $i did not leave in order: $(tail -n 1 "${outs[i]}")"
done
no_domain() {
	! cells STATE domain list | grep -qvE 'DESTROYED|FAILED'
}
wait_for 10 "the domain is still there after its last rank left" no_domain
say "the seven left in order, and the domain without a living rank ended"

# ---- a domain destroyed while operations run ------------------------------------------------

write_table second
start_ranks second "$dir/second.json" 700
wait_for 15 "the second domain does not form" all_say "is in domain" "${outs[@]}"
id=$(cells ID,STATE domain list | awk '$2 == "ACTIVE" { print $1 }')
# whoever has run its first operation is in the second one, which takes 700 ms too
wait_for 10 "the ranks of the second domain run no operation" all_say "$first" "${outs[@]}"
"$ctl" domain destroy "$id" >"$dir/out/destroy" 2>&1 &
destroy=$!
started[$destroy]="hcommctl domain destroy"
is_draining() {
	cells STATE domain list | grep -q DRAINING
}
wait_for 5 "the domain does not drain" is_draining
say "the second domain drains: destroy waits for the operations that run"
end_of "$destroy"
[ "$ended" = 0 ] || die "destroy: $(cat "$dir/out/destroy")"
wait_for 5 "a rank does not learn that its domain is gone" all_say "HCOMM_E_GONE" "${outs[@]}"
for i in 0 1 2 3 4 5 6 7; do
	end_of "${pids[i]}"
	[ "$ended" = 0 ] || die "rank $i: $(tail -n 1 "${outs[i]}")"
done
counts=$(sed -n 's/.* ran \([0-9]*\) operations, then.*/\1/p' "${outs[@]}" | sort -u)
[ "$(wc -l <<<"$counts")" = 1 ] || die "the ranks stopped at different operations: ${counts//$'\n'/ }"
say "destroyed; all eight ranks ended operation $counts, and none began another"

# ---- jobs that compete for a link -----------------------------------------------------------

job() { # job NAME DEVICES OPTION...: hcommctl channel hold as that job
	local name=$1 devices=$2
	shift 2
	"$ctl" channel hold --name "$name" --devices "$devices" "$@" >"$dir/out/$name" 2>&1 &
	job_pid[$name]=$!
	started[$!]="job $name"
}
end_of_jobs() { # NAME...
	local name
	for name; do
		end_of "${job_pid[$name]}"
		[ "$ended" = 0 ] || die "job $name: status $ended: $(tail -n 1 "$dir/out/$name")"
	done
}
live_id() { # NAME: of the domain of that job that lives
	cells NAME,ID,STATE domain list | awk -v name="$1" '$1 == name && $3 == "ACTIVE" { print $2 }'
}
rows_are() { # COUNT VERB NAME...: so many rows of channel VERB --domain NAME
	[ "$(cells RANK channel "$2" --domain "$3" | wc -l)" = "$1" ]
}
shares_are() {
	rows_are 6 list train && rows_are 2 list eval
}
declare -A job_pid=()
job all 0,1 --bandwidth 800 --for 60
wait_for 10 "job all does not get the link" rows_are 1 list all
say "job all has what can be granted of the link shm (80 % of 1000 MB/s):"
"$ctl" link list -o NAME,BANDWIDTH,LIMIT,USED-AB,VCS-USED,WAITING | sed 's/^/    /'
round=$((patience * 4 / 10)).$((patience * 4 % 10)) # long enough to be looked at
job train 2,3 --bandwidth 100 --count 12 --for $round --weight 3 --wait
job eval 4,5 --bandwidth 100 --count 4 --for $round --weight 1 --wait
wait_for 10 "job train does not wait" rows_are 12 waiting train
wait_for 10 "job eval does not wait" rows_are 4 waiting eval
job urgent 6,7 --bandwidth 800 --for 60 --class 5 --wait
wait_for 10 "job urgent does not wait" rows_are 1 waiting urgent
[ "$(cells CLASS,PLACE channel waiting | head -n 1 | xargs)" = "5 0" ] ||
	die "class 5 is not the first who waits: $("$ctl" channel waiting)"
say "train (weight 3) and eval (weight 1) wait for 100 MB/s each; urgent, who came last, is first:"
"$ctl" channel waiting -o CLASS,DOMAIN,MBPS,PLACE,WAITED-MS,ESTIMATE-MS | head -n 5 | sed 's/^/    /'
train=$(live_id train) eval=$(live_id eval)
kill -TERM "${job_pid[all]}"
wait_for 10 "urgent is not served" all_say "channel " "$dir/out/urgent"
! grep -q "^channel " "$dir/out/train" "$dir/out/eval" || die "lower classes were served before urgent"
say "job all ended; urgent has the whole link, before anybody else"
kill -TERM "${job_pid[urgent]}"
wait_for 10 "the shares are not 6 to 2, but: $("$ctl" channel list)" shares_are
say "urgent ended; now the link is shared 3:1, by weight; the channels by domain:"
cells DOMAIN channel list | sort | uniq -c |
	sed -e "s/$train/& train/" -e "s/$eval/& eval/" -e 's/^/    /'
end_of_jobs all urgent train eval
say "all four had what they asked for, and gave it back"

# ---- a refusal, and the time that it names ----------------------------------------------------

job first 0,1 --bandwidth 800 --for "$patience"
wait_for 10 "job first does not get the link" rows_are 1 list first
job late 2,3 --bandwidth 400 --for 0.1 --retry
end_of_jobs late first
hint=$(sed -n 's/^refused: .*; asking again in \([0-9]*\) ms$/\1/p' "$dir/out/late")
after=$(sed -n 's/^channel .*; after \([0-9]*\) ms, at the second try$/\1/p' "$dir/out/late")
[ -n "$hint" ] || die "job late was not refused with a hint: $(cat "$dir/out/late")"
[ -n "$after" ] && [ "$after" -ge "$hint" ] || die "no grant at the hint: $(cat "$dir/out/late")"
say "job late does not wait, and is told who is in its way and when to come again:"
sed -n 's/^refused: /    /p' "$dir/out/late" | fold -s -w 96 | sed '2,$s/^/    /'
say "it came again after those $hint ms, and had its channel after $after ms"

# ---- two processes talk ------------------------------------------------------------------------

"$ctl" perf server >"$dir/out/server" 2>&1 &
server=$!
started[$server]="perf server"
"$ctl" perf client --sizes 8,4K,1M --iterations 500 >"$dir/out/client" 2>&1 ||
	die "perf client: $(cat "$dir/out/client")"
end_of "$server"
[ "$ended" = 0 ] || die "perf server: $(cat "$dir/out/server")"
say "two processes sent messages through a channel, without the daemon:"
sed 's/^/    /' "$dir/out/client"

# ---- a bad table ---------------------------------------------------------------------------

sed 's/"192.0.2.4"/"192.0.2.3"/' "$dir/first.json" >"$dir/bad.json"
"$ctl" ranktable check "$dir/bad.json" >"$dir/out/check" 2>&1
[ $? = 2 ] || die "a rank table with one address twice is not refused with status 2"
grep -q 'bad.json:6:' "$dir/out/check" || die "no line 6 in: $(cat "$dir/out/check")"
say "a bad rank table is refused: $(sed "s|$dir/||g" "$dir/out/check" | head -n 1)"

# ---- the end -------------------------------------------------------------------------------

kill -TERM "$daemon_pid"
end_of "$daemon_pid"
[ "$ended" = 0 ] || die "the daemon ended with status $ended"
daemon_pid=
[ ! -e "$HCOMM_SOCKET" ] || die "the socket is still there"
left=$(find "$dir/tmp" "$dir/state" \( -path "$dir/tmp/*" -o -name '*-wal' -o -name '*-shm' \))
[ -z "$left" ] || die "files are left: $left"
for cmdline in /proc/[0-9]*/cmdline; do
	pid=${cmdline#/proc/}
	pid=${pid%/cmdline}
	[ "$pid" != $$ ] && tr '\0' ' ' 2>/dev/null <"$cmdline" | grep -qF "$dir" || continue
	die "process $pid is left: $(tr '\0' ' ' 2>/dev/null <"$cmdline")"
done
[ ${#started[@]} = 0 ] || die "processes are left: ${!started[*]}"
say "the daemon stopped with status 0; no process, socket or temporary file is left"
