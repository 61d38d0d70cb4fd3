#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three nodes with two rails, in network namespaces: a job over all three, and what is told of a
# fault of the network.
#
#   O=build tests/lib/demo-netns.sh    (make demo-netns builds first; needs root)
#
# Rails are two bridges, a switch for each. A cable is pulled out of a switch, so that nobody's
# port says anything; packets are lost in one direction only; a port gets another MTU while beats
# run. Each time the lines shown are those that the daemons themselves have to say: which node,
# which link, which direction, why; and nobody loses a node, for the other rail is there.
# Six ranks, two on each node, form one domain before, and run through all of it. Then a node loses
# both rails: the domain is suspended, and goes on by itself when they are back.
#
# Everything is in namespaces that begin with this script and end with it, however it ends; the
# machine's own network is not touched.
if [ "$(id -u)" != 0 ]; then
	echo "demo-netns: it makes network namespaces, which needs root; make demo needs none" >&2
	exit 2
fi
if [ -z "${HC_DEMO_INSIDE-}" ]; then
	HC_DEMO_INSIDE=1 exec timeout --kill-after=5 $((120 * ${HC_SLOW:-1})) \
		unshare --net --mount --propagation private "$0" "$@"
fi
# names of namespaces, in a place of their own
mount -t tmpfs tmpfs /run || exit 2
. "$(dirname "$0")/demolib.sh"

declare -A pid_of=() number=([a]=1 [b]=2 [c]=3)

net() { # net ARGUMENTS OF ip
	ip "$@" || die "ip $*"
}

build_network() {
	local rail node
	net link set lo up
	for rail in 0 1; do
		net link add "switch$rail" mtu 9000 type bridge
		net link set "switch$rail" up
	done
	for node in a b c; do
		net netns add "$node"
		net -n "$node" link set lo up
		for rail in 0 1; do
			net link add "$node$rail" mtu 9000 type veth \
				peer name "rail$rail" mtu 9000 netns "$node"
			net link set "$node$rail" master "switch$rail" up
			net -n "$node" addr add "10.71.$rail.${number[$node]}/24" dev "rail$rail"
			net -n "$node" link set "rail$rail" up
		done
	done
}

write_conf() { # write_conf NODE
	local other
	mkdir -p "$dir/$1"
	{
		printf 'node_name = %s\nruntime_dir = %s/%s/run\nstate_dir = %s/%s/state\n' \
			"$1" "$dir" "$1" "$dir" "$1"
		printf 'socket = %s/%s/sock\nsocket_group = %s\nmetrics_socket =\n' "$dir" "$1" "$(id -gn)"
		printf 'key_file = %s/cluster.key\nlog_target = stderr\nsysfs_root = %s/sys\n' "$dir" "$dir"
		printf '[device %d]\nkind = npu\nsimulated = yes\n' 0 1
		for other in a b c; do
			[ "$other" = "$1" ] || printf '[node %s]\naddress = 10.71.0.%s,10.71.1.%s\n' \
				"$other" "${number[$other]}" "${number[$other]}"
		done
	} >"$dir/$1/hcommd.conf"
}

start() { # start NODE
	write_conf "$1"
	ip netns exec "$1" "$daemon" --config "$dir/$1/hcommd.conf" 2>>"$dir/$1.log" &
	pid_of[$1]=$!
	started[$!]="daemon $1"
	wait_for 10 "the daemon $1 does not answer" "$ctl" --socket "$dir/$1/sock" version
}

rows() { # rows NODE COLUMNS NOUN VERB...: as that node's daemon has them
	local node=$1 columns=$2
	shift 2
	"$ctl" --socket "$dir/$node/sock" --no-headings -o "$columns" "$@" | sed 's/  */ /g; s/ $//'
}

show() { # the same for the reader
	local node=$1 columns=$2
	shift 2
	"$ctl" --socket "$dir/$node/sock" -o "$columns" "$@" | sed 's/^/    /'
}

all_are() { # all_are COUNT VALUE NODE COLUMN NOUN VERB: so many rows, all with this value
	local count=$1 value=$2
	shift 2
	[ "$(rows "$@" | sort | uniq -c | sed 's/^ *//')" = "$count $value" ]
}

path_is() { # path_is NODE PEER RAIL STATE [CAUSE]
	rows "$1" NODE,PORT,STATE,CAUSE path list | grep -q "^$2 rail$3 $4 .*${5-}"
}

events() { # events NODE PATTERN: what it told since `mark`, at most four lines
	rows "$1" SEQ,EVENT,TEXT event list |
		while read -r seq code text; do
			[ "$seq" -gt "${mark[$1]}" ] && grep -Eq "$2" <<<"$code $text" &&
				printf '    %s says: %s: %s\n' "$1" "$code" "$text"
		done | head -n 4
}

declare -A mark=([a]=0 [b]=0 [c]=0)
mark_all() {
	local node
	for node in a b c; do
		mark[$node]=$(rows $node SEQ event list | sort -n | tail -n 1)
	done
}

has_event() { # has_event NODE PATTERN
	[ -n "$(events "$1" "$2")" ]
}

all_good() {
	local node
	for node in a b c; do
		wait_for 20 "not all paths of $node are normal" all_are 4 normal $node STATE path list
		wait_for 20 "not all nodes are up for $node" all_are 2 up $node STATE node list
	done
}

write_table() { # write_table FILE: ranks 0 and 1 on a, 2 and 3 on b, 4 and 5 on c
	local i
	{
		printf '{"version":"1.0","status":"completed","server_count":"3","server_list":['
		for i in 0 1 2; do
			[ $i = 0 ] || printf ','
			printf '{"server_id":"%s","device":[' "${names[$i]}"
			printf '{"device_id":"0","device_ip":"192.0.2.%d","rank_id":"%d"},' \
				$((2 * i + 1)) $((2 * i))
			printf '{"device_id":"1","device_ip":"192.0.2.%d","rank_id":"%d"}]}' \
				$((2 * i + 2)) $((2 * i + 1))
		done
		printf ']}\n'
	} >"$1"
}

names=(a b c)
declare -A rank_pid=()
start_rank() { # start_rank RANK
	local node=${names[$1 / 2]}
	"$rank" "$dir/$node/sock" "$dir/table.json" "$1" 10 >"$dir/out/$1" 2>"$dir/out/$1.err" &
	rank_pid[$1]=$!
	started[$!]="rank $1 on $node"
}

all_ran() {
	all_say "has run its first operation" "$dir"/out/[0-5]
}

domain_is() { # domain_is STATE: all three nodes show the one domain so
	local node
	for node in a b c; do
		[ "$(rows $node STATE domain list)" = "$1" ] || return 1
	done
}

first_missing() {
	[ "$(rows b ARRIVED domain list)" = 3 ]
}

state_of() { # state_of NODE: of the domain, and why
	rows "$1" STATE,CAUSE domain list
}

nobody_lost() {
	local node
	for node in a b c; do
		all_are 2 up $node STATE node list || die "$node lost a node, though the other rail is there"
		! has_event $node '^(node-unreachable|daemon-down)' || die "$node accuses a node"
	done
}

"$ctl" key generate "$dir/cluster.key" >/dev/null || die "no key is made"
build_network
for node in a b c; do
	start $node
done
all_good
say "three nodes met over two rails; as a sees it:"
show a NODE,STATE,ADDRESS,PATHS,GOOD,INTERVAL-MS node list
show a NODE,PORT,LOCAL,REMOTE,STATE,MTU-USED,RTT-P50,MISSED path list

write_table "$dir/table.json"
for i in 2 3 4; do
	start_rank $i
done
wait_for 10 "the home does not say who is missing" first_missing
say "three of six ranks have been started, none of them on a; meanwhile b says who is missing:"
"$ctl" --socket "$dir/b/sock" domain show "$(rows b ID domain list)" | grep '^missing' | sed 's/^/    /'
for i in 0 1 5; do
	start_rank $i
done
wait_for 20 "the six ranks form no domain" all_ran
wait_for 5 "not all nodes show the domain" domain_is ACTIVE
say "the others came: a domain of six ranks over three nodes. As its home, a, has it:"
"$ctl" --socket "$dir/a/sock" -o RANK,STATE,NODE,DEVICE,PID domain show \
	"$(rows a ID domain list)" | sed 's/^/    /'

mark_all
net link set b0 nomaster
for node in a c; do
	wait_for 5 "$node does not miss b on rail 0" path_is $node b 0 down "no beat"
done
wait_for 5 "b does not miss a on rail 0" path_is b a 0 down "no beat"
path_is a c 0 normal || die "a takes the path to c for bad, too"
nobody_lost
say "the cable of b was pulled out of the switch of rail 0; no port says a word, the beats do:"
for node in a b c; do
	events $node '^path-(unstable|down)'
done
show a NODE,STATE,PATHS,GOOD,CAUSE node list
net link set b0 master switch0
all_good
say "the cable is back: all paths are normal"

mark_all
net -n a neigh replace 10.71.0.2 lladdr 02:00:00:00:00:99 nud permanent dev rail0
wait_for 5 "b does not notice that nothing comes from a" path_is b a 0 '\(unstable\|down\)' "no beat"
wait_for 5 "a is not told that b hears nothing" path_is a b 0 '\(unstable\|down\)' "has not heard us"
nobody_lost
say "what a sends to b on rail 0 is lost, the other direction works; both ends know, and which:"
events a '^path-(unstable|down)'
events b '^path-(unstable|down)'
net -n a neigh del 10.71.0.2 dev rail0
all_good
say "it passes again: all paths are normal"

mark_all
net -n b link set rail1 mtu 1400
for node in a c; do
	wait_for 10 "$node does not see the new MTU of b" has_event $node '^mtu-mismatch .*to b over rail1'
done
wait_for 10 "b does not see the MTU of a" has_event b '^mtu-mismatch .*to a over rail1'
nobody_lost
say "rail 1 of b got an MTU of 1400 while beats run; named with both values:"
for node in a b c; do
	events $node '^mtu-mismatch'
done
show a NODE,PORT,STATE,MTU-LOCAL,MTU-PEER,MTU-USED path list
net -n b link set rail1 mtu 9000
domain_is ACTIVE || die "the domain suffered, though the other rail was there: $(state_of a)"
! grep -q heard "$dir"/out/[0-5] || die "ranks were told of what did not concern them"
all_good
say "through all of that the domain was ACTIVE, and its ranks heard of nothing: a path was left"

net link set c0 nomaster
net link set c1 nomaster
wait_for 10 "the domain is not suspended" domain_is SUSPENDED
say "c lost both rails; each node says of the domain what it sees:"
for node in a b c; do
	say "    $node: $(state_of $node)"
done
net link set c0 master switch0
net link set c1 master switch1
all_good
wait_for 10 "the domain is not ACTIVE again" domain_is ACTIVE
say "the rails are back: the domain is ACTIVE again, with the same ranks"
for i in 0 1 2 3 4 5; do
	kill -TERM "${rank_pid[$i]}" 2>/dev/null # once one leaves, all soon do
	end_of "${rank_pid[$i]}"
	[ "$ended" = 0 ] || die "rank $i does not leave in order: $(tail -n 1 "$dir/out/$i")"
done
say "all ranks leave in order; the first of them: $(tail -n 1 "$dir/out/0")"

for node in a b c; do
	kill -TERM "${pid_of[$node]}"
	end_of "${pid_of[$node]}"
	[ "$ended" = 0 ] || die "$node ended with status $ended"
done
[ ${#started[@]} = 0 ] || die "processes are left: ${!started[*]}"
say "all ended with status 0"
