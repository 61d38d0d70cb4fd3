#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Put what was built where it belongs; `make install` calls it with everything set:
#
#   O DESTDIR PREFIX LIBDIR SYSCONFDIR UNITDIR VERSION
#
# DESTDIR is put in front of every path and appears in no file. A configuration that is there
# stays as it is. At the end the installed hcommctl is run once from where it now is: it must find
# the installed library and no other. No user is made and no service is touched; the last lines
# say how, when this was no staging for a package.
set -eu

: "${O:?}" "${PREFIX:?}" "${LIBDIR:?}" "${SYSCONFDIR:?}" "${UNITDIR:?}" "${VERSION:?}"
root=${DESTDIR-}
umask 022

put() { # put MODE FILE DIRECTORY [NAME]
	install -D -m "$1" "$2" "$root$3/${4:-${2##*/}}"
}

# fill FILE.in DIRECTORY NAME: with @paths@ and the daemon's path in place
fill() {
	mkdir -p "$root$2"
	sed -e "s|@prefix@|$PREFIX|g; s|@PREFIX@|$PREFIX|g; s|@libdir@|$LIBDIR|g; s|@LIBDIR@|$LIBDIR|g" \
		-e "s|@includedir@|$PREFIX/include|g; s|@INCLUDEDIR@|$PREFIX/include|g" \
		-e "s|@version@|$VERSION|g; s|@VERSION@|$VERSION|g" \
		-e "s|/usr/sbin/hcommd|$PREFIX/sbin/hcommd|g" \
		-e "s|/usr/bin/hcommctl|$PREFIX/bin/hcommctl|g" "$1" >"$root$2/$3"
	chmod 644 "$root$2/$3"
}

put 755 "$O/hcommd" "$PREFIX/sbin"
put 755 "$O/install/hcommctl" "$PREFIX/bin"
put 644 "$O/libhcomm.so.1" "$LIBDIR"
ln -sf libhcomm.so.1 "$root$LIBDIR/libhcomm.so"
for header in include/hcomm/*.h; do
	put 644 "$header" "$PREFIX/include/hcomm"
done
fill libclient/libhcomm.pc.in "$LIBDIR/pkgconfig" hcomm.pc
fill systemd/hcommd.service "$UNITDIR/system" hcommd.service
put 644 systemd/hcommd.socket "$UNITDIR/system"
put 644 systemd/hcomm.sysusers "${UNITDIR%/systemd}/sysusers.d" hcomm.conf
put 644 systemd/hcomm.tmpfiles "${UNITDIR%/systemd}/tmpfiles.d" hcomm.conf
mkdir -p "$root$SYSCONFDIR/hcomm/conf.d"
[ -e "$root$SYSCONFDIR/hcomm/hcommd.conf" ] ||
	put 644 conf/hcommd.conf "$SYSCONFDIR/hcomm"
put 644 conf/hcommd.conf "$PREFIX/share/doc/hcomm" hcommd.conf.sample
put 644 LICENSE "$PREFIX/share/doc/hcomm"
put 644 README.md "$PREFIX/share/doc/hcomm"
put 644 NEWS.md "$PREFIX/share/doc/hcomm"
put 644 doc/examples/rank.c "$PREFIX/share/doc/hcomm/examples"
for page in doc/*.[1-8]; do
	put 644 "$page" "$PREFIX/share/man/man${page##*.}"
done

found=$(env -u LD_LIBRARY_PATH ldd "$root$PREFIX/bin/hcommctl" | sed -n 's/.*libhcomm.so.1 => \(.*\) (.*/\1/p')
case $(realpath "${found:-/none}") in
"$(realpath "$root$LIBDIR/libhcomm.so.1")") ;;
*)
	echo "install.sh: the installed hcommctl finds '$found'; wanted: $root$LIBDIR/libhcomm.so.1" >&2
	exit 1
	;;
esac
env -u LD_LIBRARY_PATH "$root$PREFIX/bin/hcommctl" --version >/dev/null

[ -z "$root" ] || exit 0
cat <<END
Installed. To run it as a service:
  systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload
  systemctl enable --now hcommd.socket hcommd.service
END
