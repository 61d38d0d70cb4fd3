#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the compiler does not check: `make lint`.
#
#   O=build CC=gcc lint.sh        from the top of the tree, after `make all build/gen`
#
# Each fault is one line: where, what was found, what is wanted. The status is 1 when there was
# one; else the last line is "lint: ok (N files)". A tool that is missing is a fault too, so that
# nothing passes unseen; systemd-analyze alone is used only where there is one.
set -u

O=${O:-build}
CC=${CC:-gcc}
LC_ALL=C
export LC_ALL
lines_max=800
faults=0
work=$O/lint
rm -rf "$work"
mkdir -p "$work" || exit 2

fault() {
	echo "lint: $*"
	faults=$((faults + 1))
}

have() {
	command -v "$1" >/dev/null && return
	fault "$1 is not installed; run: tests/lib/deps.sh ci"
	return 1
}

folders=()
for d in include proto conf daemon libclient hcommctl systemd doc tests .ci; do
	[ -d "$d" ] && folders+=("$d")
done
mapfile -t c_files < <(find "${folders[@]}" -name '*.[ch]' -type f | sort)
mapfile -t scripts < <(find "${folders[@]}" -type f \( -name '*.sh' -o -path '*.ci/run' \) | sort)
mapfile -t manuals < <(find doc -name '*.[1-8]' -type f 2>/dev/null | sort)
mapfile -t units < <(find systemd -type f \( -name '*.service' -o -name '*.socket' \) 2>/dev/null | sort)

# ---- text ----------------------------------------------------------------------------------

check_format() {
	local file line
	have clang-format || return
	while IFS=: read -r file line _; do
		fault "$file:$line: not as .clang-format wants it; run: clang-format -i $file"
	done < <(clang-format --dry-run "${c_files[@]}" 2>&1 |
		grep -E '^[^ :]+:[0-9]+:[0-9]+: (warning|error)' | sort -t: -u -k1,1)
}

check_spdx() {
	local f
	for f in "${c_files[@]}" "${scripts[@]}" "${manuals[@]}" "${units[@]}" Makefile; do
		head -3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
			fault "$f:1: no line 'SPDX-License-Identifier: Apache-2.0' among the first three"
	done
}

check_length() {
	local f n
	for f in "${c_files[@]}" "${scripts[@]}"; do
		case $f in
		*.tbl.h | include/hcomm/views.h) continue ;;
		esac
		n=$(wc -l <"$f")
		[ "$n" -le $lines_max ] || fault "$f: $n lines; at most $lines_max are wanted, split it"
	done
}

check_scripts() {
	local f why
	for f in "${scripts[@]}"; do
		why=$(bash -n "$f" 2>&1) || fault "${why%%$'\n'*}"
		[ -x "$f" ] || fault "$f: not executable; run: chmod +x $f"
	done
}

check_manuals() {
	local why
	[ ${#manuals[@]} -gt 0 ] || return
	have mandoc || return
	while read -r why; do
		fault "${why#mandoc: }"
	done < <(mandoc -Tlint -Wwarning "${manuals[@]}" 2>&1)
}

check_units() {
	local f why
	[ ${#units[@]} -gt 0 ] && command -v systemd-analyze >/dev/null || return
	mkdir -p "$work/units"
	for f in "${units[@]}"; do # programs where they were built, not where they will be installed
		sed -E "s#^(Exec[A-Za-z]*=[-@:+!]*)(/[^ ]*/)?(hcommd|hcommctl)#\1$(realpath "$O")/\3#" "$f" \
			>"$work/units/${f##*/}"
	done
	while read -r why; do
		why=${why##*/units/} # other units of this machine are none of our business
		for f in "${units[@]}"; do
			[[ $why == "${f##*/}":* ]] && fault "$f:${why#*:}"
		done
	done < <(systemd-analyze verify --man=no "$work"/units/* 2>&1)
}

# ---- generated files -----------------------------------------------------------------------

check_generated() {
	local why
	if [ ! -x "$O/gen" ]; then
		fault "$O/gen is not built; run: make $O/gen"
		return
	fi
	while read -r why; do
		fault "${why#gen: }"
	done < <("$O/gen" --check . 2>&1)
}

# ---- what core and proto may need ----------------------------------------------------------

# No clock, file, allocation or output; of str* and mem* those that allocate or keep state are out.
allowed='^(mem(cpy|move|set|cmp|chr|rchr|mem)|str(n?len|n?cmp|n?casecmp|r?chr|chrnul|str|c?spn|pbrk|n?cpy|n?cat)|snprintf|__stack_chk_fail|hc_panic)$'

# check_pure NAME FOLDER...: compiled plainly, linked into one object
check_pure() {
	local name=$1 folder f o objects=() s size
	shift
	for folder in "$@"; do
		for f in "$folder"/*.c; do
			[ -e "$f" ] && [ "$f" != proto/gen.c ] || continue
			o=$work/$f.o
			mkdir -p "${o%/*}"
			if ! "$CC" -std=c11 -D_GNU_SOURCE -DHC_VERSION='"lint"' -O1 -fno-pic -fno-pie \
				-fno-stack-protector -fno-common -w -Iinclude -Iproto -I"$folder" -c -o "$o" "$f" \
				2>"$work/cc.log"; then
				fault "$f: does not compile plainly: $(grep -m1 error "$work/cc.log")"
				return
			fi
			objects+=("$o")
		done
	done
	[ ${#objects[@]} -gt 0 ] || return
	if ! ld -r -o "$work/$name.o" "${objects[@]}" 2>"$work/ld.log"; then
		fault "$name: does not link into one object: $(head -1 "$work/ld.log")"
		return
	fi
	while read -r s; do
		fault "$name: needs $s ($(nm -A -u "${objects[@]}" | sed -n "s#^$work/\(.*\)\.o: *U $s\$#\1#p" |
			paste -sd ' ')); it may need only mem*, str*, snprintf and hc_panic"
	done < <(nm -u "$work/$name.o" | sed 's/^ *[Uw] //' | grep -vE "$allowed")
	while read -r s size; do
		fault "$name: $size bytes in $s ($(nm -A "$work/$name.o" | grep -iE ' [bdc] ' | sed 's/.* //' |
			head -3 | paste -sd ' ')); it may have no state of its own"
	done < <(size -A "$work/$name.o" | awk '$1 ~ /^\.t?(data|bss)/ && $2 > 0 { print $1, $2 }')
}

# ---- the library ---------------------------------------------------------------------------

# Calls of hcomm.h, "call" or "call later". A comment with the word "later" speaks for what
# follows it up to an empty line or the next comment; a section's title for the whole section.
public_calls() {
	awk '
	/^\/\* ----/ { section = /later/; one = 0; next }
	/^[ \t]*$/ { one = 0; next }
	/^\/\*/ { one = / later \*\// || /[.] later/ || /^\/\* later/ }
	/^[a-z]/ && match($0, /hcomm_[a-z0-9_]+\(/) && !/typedef/ {
		print substr($0, RSTART, RLENGTH - 1) (section || one ? " later" : "")
	}' include/hcomm/hcomm.h
}

check_library() {
	local lib=$O/libhcomm.so.1 s exported call
	if [ ! -e "$lib" ]; then
		fault "$lib is not built; run: make"
		return
	fi
	while read -r s; do
		fault "$lib: needs $s; it is loaded into foreign processes and may need libc.so.6 alone"
	done < <(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|ld-linux.*)$')
	exported=$(nm -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')
	while read -r s; do
		[ -n "$s" ] && fault "$lib: exports $s; only hcomm_* is wanted"
	done < <(grep -v '^hcomm_' <<<"$exported")
	while read -r call _; do
		grep -qx "$call" <<<"$exported" || fault "$lib: does not export $call of hcomm.h"
	done < <(public_calls)
	while read -r s; do
		[ -z "$s" ] || public_calls | grep -qE "^$s( |\$)" ||
			fault "$lib: exports $s, which hcomm.h does not declare"
	done < <(grep '^hcomm_' <<<"$exported")
}

# A call of this version has its file in tests/api, named after it, with or without hcomm_.
check_api_tests() {
	local call later
	while read -r call later; do
		[ -n "$later" ] || [ -e "tests/api/$call.c" ] || [ -e "tests/api/${call#hcomm_}.c" ] ||
			echo "lint: warning: $call has no tests/api/${call#hcomm_}.c"
	done < <(public_calls)
}

# The mutants have to be of this core: each has its line, and its patch applies.
check_mutants() {
	local f name
	for f in tests/sim/mutants/*.patch; do
		name=$(basename "$f" .patch)
		grep -q "^$name " tests/sim/mutants/list || fault "$f: not in tests/sim/mutants/list"
		patch -p1 -f -s --dry-run <"$f" >/dev/null 2>&1 ||
			fault "$f: does not apply any more; make it anew"
	done
	while read -r name _; do
		case $name in '#'* | '') continue ;; esac
		[ -e "tests/sim/mutants/$name.patch" ] || fault "tests/sim/mutants/list: $name has no patch"
	done <tests/sim/mutants/list
}

# The scripts that install and judge have tests of their own.
check_script_tests() {
	local t out
	for t in tests/lib/*_test.sh; do
		out=$("$t" 2>&1) || fault "$t: $out"
	done
}

check_format
check_spdx
check_length
check_scripts
check_manuals
check_units
check_generated
check_pure proto proto
check_pure core proto daemon/core
check_library
check_api_tests
check_mutants
check_script_tests

if [ "$faults" -gt 0 ]; then
	echo "lint: $faults faults"
	exit 1
fi
echo "lint: ok (${#c_files[@]} files)"
