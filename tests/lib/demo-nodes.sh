#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two nodes of one cluster, without root: daemons on two loopback addresses.
#
#   O=build tests/lib/demo-nodes.sh    (make demo runs it behind the main job)
#
# They meet with a key, find the path between them, and beat. One is stopped, killed, restarted and
# ended in order, and the other tells each of these apart. A third with another key is turned away.
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
	"$ctl" --socket "$dir/$name/sock" --no-headings -o "$columns" "$@"
}

is() { # is VALUE NAME COLUMNS NOUN VERB: every row is that
	local value=$1
	shift
	[ "$(ask "$@" | sort -u | xargs)" = "$value" ]
}

says() { # says NAME CODE: its journal has that
	ask "$1" EVENT event list | grep -qx "$2"
}

port=$((20000 + $$ % 10000))
"$ctl" key generate "$dir/cluster.key" >/dev/null || die "no key is made"
"$ctl" key generate "$dir/other.key" >/dev/null || die "no second key is made"
write_conf left 127.0.0.1 right 127.0.0.2 "$dir/cluster.key"
write_conf right 127.0.0.2 left 127.0.0.1 "$dir/cluster.key"
start left
wait_for 5 "left does not say that right is not there" is connecting left STATE node list
say "left is alone: $(ask left CAUSE node list | xargs)"
start right
for node in left right; do
	wait_for 10 "$node does not see the other" is up $node STATE node list
	wait_for 10 "the path of $node is not normal" is normal $node STATE path list
done
say "right came: they met over TLS with the cluster's key, and beats prove the path both ways:"
"$ctl" --socket "$dir/left/sock" node list -o NODE,STATE,ADDRESS,PATHS,GOOD,INTERVAL-MS | sed 's/^/    /'
"$ctl" --socket "$dir/left/sock" path list -o NODE,LOCAL,REMOTE,STATE,MTU-USED,RTT-P50,MISSED |
	sed 's/^/    /'

kill -STOP "${pid_of[right]}"
wait_for 5 "left does not notice that right stands still" is unreachable left STATE node list
say "right was stopped (SIGSTOP): $(ask left CAUSE node list | xargs)"
kill -CONT "${pid_of[right]}"
for node in left right; do
	wait_for 10 "$node does not recover" is normal $node STATE path list
	wait_for 10 "$node does not see the other again" is up $node STATE node list
done
says right not-scheduled || die "right does not say that it stood still"
! says right path-unstable || die "right accuses left, though it stood still itself"
say "it goes on: right says that it was not scheduled itself, and accuses nobody"

kill -KILL "${pid_of[right]}"
{ wait "${pid_of[right]}"; } 2>/dev/null
unset "started[${pid_of[right]}]"
wait_for 5 "left does not call the daemon down" is daemon-down left STATE node list
say "right was killed: $(ask left CAUSE node list | xargs)"
start right
wait_for 10 "left does not see right again" is up left STATE node list
says left node-restarted || die "left does not know that right was restarted"
say "it was started again: $(ask left TEXT event list | grep -m1 restarted | xargs)"

kill -TERM "${pid_of[right]}"
end_of "${pid_of[right]}"
[ "$ended" = 0 ] || die "right ended with status $ended"
wait_for 5 "left was not told of the stop" is restarting left STATE node list
say "it was stopped in order: $(ask left CAUSE node list | xargs)"

write_conf right 127.0.0.2 left 127.0.0.1 "$dir/other.key"
start right
wait_for 10 "right does not learn that the keys differ" grep -q "keys differ" "$dir/right.log"
wait_for 10 "left does not learn that the keys differ" grep -q "keys differ" "$dir/left.log"
say "with another key it is turned away, and both say why: $(grep -m1 'keys differ' "$dir/left.log" | xargs)"

for node in left right; do
	kill -TERM "${pid_of[$node]}"
	end_of "${pid_of[$node]}"
	[ "$ended" = 0 ] || die "$node ended with status $ended"
done
[ ${#started[@]} = 0 ] || die "processes are left: ${!started[*]}"
say "both stopped with status 0"
