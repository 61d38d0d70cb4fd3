#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two nodes of one cluster, without root: daemons on two loopback addresses.
#
#   O=build tests/lib/demo-nodes.sh    (make demo runs it behind the main job)
#
# They meet with a key, find the path between them, and beat. Eight ranks, four on each, form one
# domain by a rank table; one is killed, and all others of both nodes hear who it was. Then a daemon
# is stopped, killed, restarted and ended in order, and the other tells each of these apart. One
# with another key is turned away.
. "$(dirname "$0")/demolib.sh"

declare -A pid_of=()

write_conf() { # write_conf NAME ADDRESS PEER PEER-ADDRESS KEY
	mkdir -p "$dir/$1"
	{
		printf 'node_name = %s\nruntime_dir = %s/%s/run\nstate_dir = %s/%s/state\n' \
			"$1" "$dir" "$1" "$dir" "$1"
		printf 'socket = %s/%s/sock\nsocket_group = %s\nmetrics_socket =\n' "$dir" "$1" "$(id -gn)"
		printf 'key_file = %s\nlog_target = stderr\nsysfs_root = %s/sys\n' "$5" "$dir"
		printf 'listen_address = %s\nlisten_port = %s\n' "$2" "$port"
		printf '[node %s]\naddress = %s\n' "$3" "$4"
		printf '[device %d]\nkind = npu\nsimulated = yes\n' 0 1 2 3
	} >"$dir/$1/hcommd.conf"
}

start() { # start NAME
	"$daemon" --config "$dir/$1/hcommd.conf" 2>>"$dir/$1.log" &
	pid_of[$1]=$!
	started[$!]="daemon $1"
	wait_for 10 "the daemon $1 does not answer" "$ctl" --socket "$dir/$1/sock" version
}

ask() { # ask NAME COLUMNS NOUN VERB: rows as that daemon has them
	local name=$1 columns=$2
	shift 2
	"$ctl" --socket "$dir/$name/sock" --no-headings -o "$columns" "$@" | sed 's/^ *//; s/ *$//'
}

show() { # show NAME COLUMNS NOUN VERB: a table for the reader
	local name=$1 columns=$2
	shift 2
	"$ctl" --socket "$dir/$name/sock" -o "$columns" "$@" | sed 's/^/    /'
}

is() { # is VALUE NAME COLUMNS NOUN VERB: every row is that, and there is one
	local value=$1
	shift
	[ "$(ask "$@" | sort -u)" = "$value" ]
}

says() { # says NAME CODE [TEXT]: its journal has that
	ask "$1" EVENT,TEXT event list | grep -q "^$2 .*${3-}"
}

told() { # told NAME CODE: the last event of that kind, in words
	ask "$1" EVENT,TEXT event list | grep "^$2 " | tail -n 1 | sed 's/^[^ ]* *//'
}

logged() { # logged NAME TEXT: the last such line of its log, without its time
	grep "$2" "$dir/$1.log" | tail -n 1 | sed 's/^.*hcommd\[[0-9]*\] //'
}

gone() { # gone NAME: it ended on SIGTERM with 0
	kill -TERM "${pid_of[$1]}"
	end_of "${pid_of[$1]}"
	[ "$ended" = 0 ] || die "$1 ended with status $ended"
}

knows_mtu() {
	! is 0 "$1" MTU-USED path list
}

meet() {
	local node
	for node in left right; do
		wait_for 10 "$node does not see the other" is up $node STATE node list
		wait_for 10 "the path of $node is not normal" is normal $node STATE path list
		wait_for 10 "the MTU to the other is not known to $node" knows_mtu $node
	done
}

make_key() {
	"$ctl" key generate "$1" >/dev/null || die "no key is made"
}

write_table() { # write_table FILE: ranks 0 to 3 on left, 4 to 7 on right
	local i device
	{
		printf '{"version":"1.0","status":"completed","server_count":"2","server_list":['
		for i in 0 1 2 3 4 5 6 7; do
			[ $i = 0 ] && printf '{"server_id":"left","device":['
			[ $i = 4 ] && printf ']},{"server_id":"right","device":['
			device=$((i % 4))
			[ $device = 0 ] || printf ','
			printf '{"device_id":"%d","device_ip":"192.0.2.%d","rank_id":"%d"}' $device $((i + 1)) $i
		done
		printf ']}]}\n'
	} >"$1"
}

start_rank() { # start_rank NODE RANK
	"$rank" "$dir/$1/sock" "$dir/table.json" "$2" >"$dir/out/$2" 2>"$dir/out/$2.err" &
	rank_pid[$2]=$!
	started[$!]="rank $2 on $1"
}

has_said() { # has_said TEXT RANK...: each of these ranks has printed that
	local text=$1 i
	shift
	for i in "$@"; do
		grep -q "$text" "$dir/out/$i" || return 1
	done
}

declare -A rank_pid=()
across() { # a domain over both nodes; rank 6, on right, is killed
	local i pid others="0 1 2 3 4 5 7"
	write_table "$dir/table.json"
	for i in 7 6 5 4; do
		start_rank right $i
	done
	for i in 3 2 1 0; do
		start_rank left $i
	done
	wait_for 20 "the eight ranks form no domain" has_said "has run its first operation" $others 6
	say "eight ranks, four on each node, have formed one domain: $(head -n 1 "$dir/out/4")"
	"$ctl" --socket "$dir/left/sock" -o RANK,STATE,NODE,DEVICE,PID domain show \
		"$(ask left ID domain list)" | sed 's/^/    /'
	pid=${rank_pid[6]}
	unset "started[$pid]"
	{ kill -KILL "$pid" && wait "$pid"; } 2>/dev/null
	wait_for 10 "not every rank hears who died" \
		has_said "heard: rank 6, pid $pid on node right, exited" $others
	say "rank 6 on right was killed; each of the other seven, on both nodes, heard it:"
	for i in 0 7; do
		say "    $(grep "heard: rank 6" "$dir/out/$i")"
	done
	for i in $others; do
		kill -TERM "${rank_pid[$i]}" 2>/dev/null
		end_of "${rank_pid[$i]}"
		[ "$ended" = 0 ] || die "rank $i does not leave in order: $(tail -n 1 "$dir/out/$i")"
	done
}

port=$((20000 + $$ % 10000))
make_key "$dir/cluster.key"
make_key "$dir/other.key"
write_conf left 127.0.0.1 right 127.0.0.2 "$dir/cluster.key"
write_conf right 127.0.0.2 left 127.0.0.1 "$dir/cluster.key"
start left
wait_for 5 "left does not say that right is not there" is connecting left STATE node list
say "left is alone: $(ask left CAUSE node list)"
start right
meet
say "right came: they met over TLS with the cluster's key, and beats prove the path both ways:"
show left NODE,STATE,ADDRESS,PATHS,GOOD,INTERVAL-MS node list
show left NODE,LOCAL,REMOTE,STATE,MTU-USED,RTT-P50,MISSED path list

across

kill -STOP "${pid_of[right]}"
wait_for 5 "left does not notice that right stands still" is unreachable left STATE node list
! says left daemon-down || die "left takes a daemon that stands still for one that is gone"
say "right was stopped (SIGSTOP): $(told left node-unreachable)"
kill -CONT "${pid_of[right]}"
meet
wait_for 5 "right does not say that it stood still" says right not-scheduled
! says right node-unreachable || die "right accuses left, though it stood still itself"
say "it goes on: it was right itself that was $(told right not-scheduled), and it accuses nobody"

unset "started[${pid_of[right]}]"
{ kill -KILL "${pid_of[right]}" && wait "${pid_of[right]}"; } 2>/dev/null
wait_for 5 "left does not call the daemon down" is daemon-down left STATE node list
is normal left STATE path list || die "left judges the path, though only the daemon is gone"
say "right was killed, its kernel says so: $(told left daemon-down)"
start right
meet
wait_for 5 "left does not know that right was restarted" says left node-restarted "state intact"
say "it was started again: $(told left node-restarted)"

gone right
wait_for 5 "left was not told of the stop" is restarting left STATE node list
say "it was ended in order: $(told left node-hold)"

start right
meet
unset "started[${pid_of[right]}]"
{ kill -KILL "${pid_of[right]}" && wait "${pid_of[right]}"; } 2>/dev/null
rm -f "$dir"/right/state/*.db*
start right
meet
wait_for 5 "left takes a new beginning for the old state" says left node-reborn
say "it comes back without its database: $(told left node-reborn)"

gone right
write_conf right 127.0.0.2 left 127.0.0.1 "$dir/other.key"
start right
for node in left right; do
	wait_for 10 "$node does not learn that the keys differ" grep -q "keys differ" "$dir/$node.log"
done
say "with another key it is turned away, and both say why:"
say "    left: $(logged left 'keys differ')"
say "    right: $(logged right 'keys differ')"

gone left
gone right
[ ${#started[@]} = 0 ] || die "processes are left: ${!started[*]}"
say "both ended with status 0"
