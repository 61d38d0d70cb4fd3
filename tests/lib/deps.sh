#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Install the Debian packages that are missing, and only those.
#
#   deps.sh build    what `make` and `make check` need
#   deps.sh ci       the same plus compilers and tools of `make fuzz`, `make lint` and .ci/run
#   deps.sh bench    the peers that `make bench` compares with
#   deps.sh bigendian  compiler and emulator of `make check-bigendian`
#
# Nothing missing: says nothing, asks no network and needs no rights. Something missing: as
# root, or with a sudo that asks no password, apt-get installs it; else the one command to run
# is printed and the exit status is 2. No service is started by an installation: a
# policy-rc.d that refuses is put there for that time, unless the machine has its own.
set -u

policy=${HC_POLICY_RC_D:-/usr/sbin/policy-rc.d}

build="gcc make pkg-config libc6-dev libevent-dev libibverbs-dev libssl-dev libsqlite3-dev
	libjansson-dev libinih-dev libsystemd-dev libmnl-dev libsmartcols-dev libncurses-dev check mandoc iproute2"
ci="$build clang clang-format libclang-rt-14-dev"
bench="redis-server libopenmpi-dev openmpi-bin mpich libmpich-dev libqb-dev strace
	frr nftables python3-torch"
bigendian="gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static"

die() {
	echo "deps.sh: $1" >&2
	exit "${2:-1}"
}

case ${1-} in
build) wanted=$build ;;
ci) wanted=$ci ;;
bench) wanted=$bench ;;
bigendian) wanted=$bigendian ;;
*) die "'${1-}' is not a list of packages; wanted: build, ci, bench or bigendian" 2 ;;
esac

command -v dpkg-query >/dev/null ||
	die "no dpkg-query here; install by hand: $(echo $wanted)" 2

missing_of() {
	local have p
	# dpkg-query fails when it does not know one of the names; the others are still listed
	have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null)
	for p in "$@"; do
		grep -qxF "$p installed" <<<"$have" || echo "$p"
	done
}

missing=$(missing_of $wanted | tr '\n' ' ')
missing=${missing% }
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends $missing"
if [ "$(id -u)" = 0 ]; then
	root=""
elif sudo -n true 2>/dev/null; then
	root="sudo -n"
else
	echo "deps.sh: packages are missing and this user may not install them; run:" >&2
	echo "sudo $line"
	exit 2
fi
command -v apt-get >/dev/null || die "no apt-get here to install: $missing" 2

mine=
cleanup() {
	[ -z "$mine" ] || $root rm -f "$policy"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
if [ ! -e "$policy" ] && [ ! -L "$policy" ]; then
	mine=1
	printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null && $root chmod 755 "$policy" ||
		die "cannot write $policy, which keeps services from being started"
fi

apt() {
	$root env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >&2
}
echo "deps.sh: installing $missing" >&2
# lists that are empty or old show in a dry run, or in a fetch that finds no file
updated=
if ! apt install -s --no-install-recommends $missing >/dev/null 2>&1; then
	updated=1
	apt update || die "apt-get update failed"
fi
if ! apt install -y --no-install-recommends $missing; then
	[ -z "$updated" ] && apt update && apt install -y --no-install-recommends $missing ||
		die "apt-get could not install: $missing"
fi
missing=$(missing_of $wanted | tr '\n' ' ')
[ -z "$missing" ] || die "still missing after apt-get: $missing"
