#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh against a made-up dpkg-query, apt-get, id and sudo found first in PATH, so no package
# of this machine is touched. What is wanted: a quiet success when all is there; only the
# missing packages installed; services kept down meanwhile and the policy gone afterwards; old
# package lists refreshed once; a user without rights told the line to run, with status 2.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/hc-deps.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"
failed=0

cat >"$dir/bin/dpkg-query" <<'FAKE'
#!/bin/bash
shift 3
r=0
for p in "$@"; do
	if grep -qxF "$p" "$FAKE/absent"; then r=1; else echo "$p installed"; fi
done
exit $r
FAKE
cat >"$dir/bin/apt-get" <<'FAKE'
#!/bin/bash
echo "$*" >>"$FAKE/calls"
case " $* " in
*" update "*) rm -f "$FAKE/stale" ;;
*" -s "*) [ ! -e "$FAKE/stale" ] ;;
*" install "*)
	[ -x "$HC_POLICY_RC_D" ] && "$HC_POLICY_RC_D" x start
	echo "policy $?" >>"$FAKE/calls"
	: >"$FAKE/absent"
	;;
esac
FAKE
printf '#!/bin/bash\necho "${FAKE_UID:-0}"\n' >"$dir/bin/id"
printf '#!/bin/bash\nexit 1\n' >"$dir/bin/sudo"
chmod +x "$dir/bin/"*
export FAKE=$dir HC_POLICY_RC_D=$dir/policy-rc.d PATH=$dir/bin:$PATH

run() { # LIST ABSENT...
	local list=$1
	shift
	: >"$dir/calls"
	printf '%s\n' "$@" >"$dir/absent"
	"$here/deps.sh" "$list" >"$dir/out" 2>"$dir/err"
	status=$?
}
want() { # WHAT CONDITION...
	local what=$1
	shift
	"$@" && return
	echo "deps_test.sh: not so: $what" >&2
	sed 's/^/    /' "$dir/calls" "$dir/out" "$dir/err" >&2
	failed=1
}

run build
want "nothing missing succeeds" [ $status = 0 ]
want "nothing missing is silent" [ ! -s "$dir/out" -a ! -s "$dir/err" ]
want "nothing missing calls no apt-get" [ ! -s "$dir/calls" ]

run build libsqlite3-dev check
want "missing ones are installed" [ $status = 0 ]
want "only those, and without recommendations" \
	grep -qx -- '-q install -y --no-install-recommends libsqlite3-dev check' "$dir/calls"
want "lists that are good are not fetched" eval '! grep -q update "$dir/calls"'
want "services are refused meanwhile" grep -qx 'policy 101' "$dir/calls"
want "the policy is gone afterwards" [ ! -e "$HC_POLICY_RC_D" ]

touch "$dir/stale"
run bench redis-server
want "old lists are refreshed" grep -qx -- '-q update' "$dir/calls"
want "and then it installs" [ $status = 0 ]

printf '#!/bin/sh\nexit 104\n' >"$HC_POLICY_RC_D"
chmod +x "$HC_POLICY_RC_D"
run bench redis-server
want "a policy of the machine is used as it is" grep -qx 'policy 104' "$dir/calls"
want "and is still there afterwards" [ -e "$HC_POLICY_RC_D" ]
rm -f "$HC_POLICY_RC_D"

FAKE_UID=1000 run ci clang-format
want "a user without rights gets status 2" [ $status = 2 ]
want "and the line to run" \
	grep -qx 'sudo apt-get install -y --no-install-recommends clang-format' "$dir/out"
want "and nothing is tried" [ ! -s "$dir/calls" ]

run everything
want "an unknown list is refused" [ $status = 2 ]
want "by name" grep -q "'everything'" "$dir/err"

[ $failed = 0 ] && echo "deps_test.sh: ok"
exit $failed
