# SPDX-License-Identifier: Apache-2.0
# One non-recursive Makefile. Everything built goes below $(O) (default: build).
#
#   make              the daemon, the library and the command line
#   make help         all targets in a line each
#
# Each folder is compiled with only the -I paths that it may use; that is how the
# layering of doc/design.md is enforced.

SHELL   := /bin/bash
V       ?=
Q       := $(if $(V),,@)
say      = $(if $(V),,@echo '  $(1)' $(patsubst $(O)/%,%,$@))
O       ?= build
CC      ?= gcc
ifeq ($(origin CC),default)
CC      := gcc
endif
PREFIX  ?= /usr
LIBDIR  ?= $(PREFIX)/lib/$(shell $(CC) -print-multiarch 2>/dev/null)
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd
VERSION := 0.1.0
T       ?=
B       ?=
SAN     ?=

WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
        -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wno-format-nonliteral \
        -Wimplicit-fallthrough
WERROR ?= -Werror
OPT    ?= -O2 -g

ifeq ($(SAN),asan)
override O := $(O)/asan
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SAN),tsan)
override O := $(O)/tsan
SANFLAGS := -fsanitize=thread -fno-omit-frame-pointer
else ifneq ($(SAN),)
$(error SAN is '$(SAN)'; wanted: asan or tsan)
endif

BASE := -std=c11 -D_GNU_SOURCE -DHC_VERSION='"$(VERSION)"' $(OPT) $(WARN) $(WERROR) $(SANFLAGS) \
        -fno-common -fstack-protector-strong -MMD -MP $(CFLAGS)

# pkg-config is asked only once its answer is needed, so that `make deps` runs without it
pc = $(shell pkg-config --cflags $(1) 2>/dev/null)
pl = $(shell pkg-config --libs $(1) 2>/dev/null)

inc-proto     := -Iinclude -Iproto
inc-file      := $(inc-proto) -Iproto/file
inc-conf      := $(inc-proto) -Iconf
inc-core      := $(inc-proto) -Idaemon/core
inc-shell     := $(inc-proto) -Iproto/file -Iconf -Idaemon/core -Idaemon/shell
inc-libclient := $(inc-proto) -Ilibclient
inc-ctl       := $(inc-proto) -Iproto/file -Iconf -Ihcommctl
inc-tests     := $(inc-proto) -Iproto/file -Iconf -Idaemon/core -Idaemon/shell -Ilibclient -Ihcommctl -Itests/lib -Itests/sim

src-proto     := $(filter-out proto/gen.c,$(wildcard proto/*.c))
src-file      := $(wildcard proto/file/*.c)
src-conf      := $(filter-out conf/gen.c,$(wildcard conf/*.c))
src-core      := $(wildcard daemon/core/*.c)
src-shell     := $(wildcard daemon/shell/*.c)
src-libclient := $(wildcard libclient/*.c)
src-ctl       := $(wildcard hcommctl/*.c)
src-tlib      := $(wildcard tests/lib/*.c) $(filter-out tests/sim/main.c,$(wildcard tests/sim/*.c))

obj = $(patsubst %.c,$(O)/obj/%.o,$(1))
pic = $(patsubst %.c,$(O)/pic/%.o,$(1))

# libevent_openssl.pc asks for all of libevent, of which libevent_core is what is needed
libs-hcommd = $(filter-out -levent,$(call pl,libevent_core libevent_openssl libevent_pthreads libssl libcrypto sqlite3 jansson inih libsystemd libmnl))
libs-ctl    = $(call pl,smartcols jansson inih)
# what a forked process asserts: tests/lib/forked.c
libs-check  = -Wl,--wrap=_mark_point,--wrap=_ck_assert_failed $(call pl,check)

.PHONY: all help deps deps-bench demo demo-netns sim sim-same mutants check check-built check-long check-long-built check-bigendian bench fuzz lint gen install clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:

examples := $(patsubst doc/examples/%.c,$(O)/examples/%,$(wildcard doc/examples/*.c))

all: $(O)/hcommd $(O)/hcommctl $(O)/libhcomm.so.1 $(examples)

help:
	@sed -n 's/^#: //p' Makefile

#: make                    build hcommd, hcommctl and libhcomm.so.1 into build/
#: make deps               install the Debian packages that are missing (only if some are)
#: make demo               the main job, end to end, without root
#: make demo-netns         three nodes and faults of the network between them (root)
#: make check [T=name] [SAN=asan|tsan]   the tests
#: make check-long         the long tests
#: make check-bigendian    tests of bytes and of the core for s390x, emulated
#: make sim SEED= SEEDS= NODES= MINUTES=   clusters under faults, in simulated time; SIM=--paths or
#:                         --jobs: peers and paths, or domains, alone
#: make sim-same           the same seeds, built by gcc and by clang with sanitizers: one hash
#: make mutants [M=name]   do the tests notice faults that are put into the core? (long)
#: make bench [B=name]     the benchmarks, JSON lines
#: make deps-bench         packages of the peers that the benchmarks compare with
#: make fuzz [T=seconds]   the fuzzers, T seconds each
#: make lint               format, layering, generated files, symbols
#: make gen                write the generated files anew
#: make install DESTDIR= PREFIX=
#: make clean

deps:
	@tests/lib/deps.sh build
deps-bench:
	@tests/lib/deps.sh bench

# ---- objects -------------------------------------------------------------------------------

define folder
$(O)/obj/$(2)/%.o: $(2)/%.c
	@mkdir -p $$(@D)
	$$(call say,cc)
	$$(Q)$(CC) $(BASE) $(inc-$(1)) $(3) -c -o $$@ $$<
endef
# programs that wait for others: what they cost is their compilation
test-opt := $(if $(filter -O2,$(OPT)),-O1)
$(eval $(call folder,proto,proto))
$(eval $(call folder,file,proto/file))
$(eval $(call folder,conf,conf))
$(eval $(call folder,core,daemon/core))
$(eval $(call folder,shell,daemon/shell))
$(eval $(call folder,ctl,hcommctl))
$(eval $(call folder,tests,tests/lib))
$(eval $(call folder,tests,tests/sim))
$(eval $(call folder,tests,tests/unit))
$(eval $(call folder,tests,tests/api,$(test-opt)))
$(eval $(call folder,tests,tests/sys,$(test-opt)))
$(eval $(call folder,tests,tests/cases,$(test-opt)))
$(eval $(call folder,tests,tests/bench,-Itests/bench -Itests/bench/floor))
$(eval $(call folder,tests,tests/bench/floor,-Itests/bench -Itests/bench/floor))

$(O)/pic/proto/%.o: proto/%.c
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) -fPIC -fvisibility=hidden $(inc-proto) -c -o $@ $<
$(O)/pic/libclient/%.o: libclient/%.c
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) -fPIC -fvisibility=hidden $(inc-libclient) -c -o $@ $<

# ---- archives and programs -----------------------------------------------------------------

$(O)/libhcproto.a: $(call obj,$(src-proto))
$(O)/libhcfile.a:  $(call obj,$(src-file))
$(O)/libhcconf.a:  $(call obj,$(src-conf))
$(O)/libhccore.a:  $(call obj,$(src-core))
$(O)/libhcshell.a: $(call obj,$(filter-out daemon/shell/main.c,$(src-shell)))
$(O)/libhctest.a:  $(call obj,$(src-tlib))
$(O)/%.a:
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/hcommd: $(call obj,daemon/shell/main.c) $(O)/libhcshell.a $(O)/libhccore.a $(O)/libhcconf.a $(O)/libhcfile.a $(O)/libhcproto.a
	$(call say,cc)
	$(Q)$(CC) $(BASE) -pthread -o $@ $^ $(LDFLAGS) $(libs-hcommd)

$(O)/libhcomm.so.1: $(call pic,$(src-libclient)) $(call pic,$(src-proto)) libclient/libhcomm.map
	$(call say,cc)
	$(Q)$(CC) $(BASE) -shared -Wl,-soname,libhcomm.so.1 -Wl,--version-script=libclient/libhcomm.map \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(filter %.o,$^) $(LDFLAGS)
	@ln -sf libhcomm.so.1 $(O)/libhcomm.so

$(O)/hcommctl: $(call obj,$(src-ctl)) $(O)/libhcconf.a $(O)/libhcfile.a $(O)/libhcproto.a $(O)/libhcomm.so.1
	$(call say,cc)
	$(Q)$(CC) $(BASE) -pthread -o $@ $(filter-out %.so.1,$^) -L$(O) -lhcomm -Wl,-rpath,'$$ORIGIN' $(LDFLAGS) $(libs-ctl)

# the generator sees tables of two folders; it links no print.o, which needs what it writes
$(O)/obj/proto/gen.o: proto/gen.c
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) $(inc-proto) -Iconf -c -o $@ $<
# as a user's program would be built: the public header and the library alone
$(O)/examples/%: doc/examples/%.c $(O)/libhcomm.so.1
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) -Iinclude -o $@ $< -L$(O) -lhcomm -Wl,-rpath,'$$ORIGIN/..' $(LDFLAGS)

$(O)/gen: $(call obj,proto/gen.c proto/codec.c proto/words.c) $(O)/libhcconf.a
	$(call say,cc)
	$(Q)$(CC) $(BASE) -o $@ $^ $(call pl,inih)

# ---- tests ---------------------------------------------------------------------------------

tests-unit  := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/unit/test_*.c))
tests-api   := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/api/*.c))
tests-sys   := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/sys/test_*.c))
tests-cases := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/cases/*.c))
tests-all   := $(tests-unit) $(tests-api) $(tests-sys) $(tests-cases)

# unit tests see the insides; the others go through the shared library alone
$(O)/tests/unit/%: $(O)/obj/tests/unit/%.o $(O)/libhctest.a $(O)/libhcshell.a $(O)/libhccore.a $(O)/libhcconf.a $(O)/libhcfile.a $(O)/libhcproto.a $(O)/libhcclient.a
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) -pthread -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS) $(libs-check) $(libs-hcommd)
$(O)/libhcclient.a: $(call pic,$(src-libclient))

define sotest
$(O)/tests/$(1)/%: $(O)/obj/tests/$(1)/%.o $(O)/libhctest.a $(O)/libhcproto.a $(O)/libhcomm.so.1
	@mkdir -p $$(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) -pthread -o $$@ $$< $(O)/libhctest.a $(O)/libhcproto.a -L$(O) -lhcomm -Wl,-rpath,'$$$$ORIGIN/../..' $(LDFLAGS) $(libs-check) $(if $(filter sys cases,$(1)),$$(call pl,jansson sqlite3))
endef
$(eval $(call sotest,api))
$(eval $(call sotest,sys))
$(eval $(call sotest,cases))

# preloaded into the daemon by a test; not sanitized, since they come before its runtime
preloads := $(patsubst tests/preload/%.c,$(O)/tests/preload/%.so,$(wildcard tests/preload/*.c))
$(O)/tests/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(OPT) $(WARN) $(WERROR) -MMD -MP -fPIC -shared -o $@ $< -ldl

# packages first, in a make of their own: what they bring is asked for while the next one runs;
# the programs are built on all processors, unless the caller says how many
check check-long:
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc)) $@-built
check-built: all $(tests-all) $(preloads)
	@O=$(O) SAN=$(SAN) tests/lib/run.sh quick "$(T)" $(tests-all)
check-long-built: all $(tests-all) $(preloads)
	@O=$(O) SAN=$(SAN) HC_LONG=1 tests/lib/run.sh long "$(T)" $(tests-all)

# Clusters of cores on one virtual clock; the same seed, the same run, whatever built it.
$(O)/sim: $(O)/obj/tests/sim/main.o $(O)/libhctest.a $(O)/libhccore.a $(O)/libhcproto.a $(O)/libhcshell.a
	$(call say,cc)
	$(Q)$(CC) $(BASE) -o $@ $< -Wl,--start-group $(O)/libhctest.a $(O)/libhccore.a $(O)/libhcproto.a -Wl,--end-group $(call obj,daemon/shell/panic.c) $(LDFLAGS)
sim: $(O)/sim
	@$(O)/sim $(SIM) $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(NODES),--nodes $(NODES)) $(if $(MINUTES),--minutes $(MINUTES))
sim-same:
	@O=$(O) SEED=$(SEED) SEEDS=$(SEEDS) NODES=$(NODES) tests/sim/same.sh
mutants:
	@M=$(M) tests/sim/mutants.sh

# Bytes are the same on either kind of machine, and so is what the core decides: its tests and those
# of proto, for s390x, under an emulator. With a header in place of libcheck, so that no library of
# that machine is needed but libc.
BE_CC  ?= s390x-linux-gnu-gcc
BE_RUN ?= qemu-s390x-static -L /usr/s390x-linux-gnu
be-tests := $(patsubst tests/unit/%.c,$(O)/bigendian/%,$(wildcard $(addprefix tests/unit/test_,codec.c frame.c hash.c words.c core_*.c)))
be-src   := $(src-proto) $(src-core) daemon/shell/panic.c $(wildcard tests/lib/world*.c) $(filter-out tests/sim/main.c,$(wildcard tests/sim/*.c)) tests/lib/harness.c tests/lib/spawn.c
$(O)/bigendian/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(BE_CC) -std=c11 -D_GNU_SOURCE -DHC_VERSION='"$(VERSION)"' -O1 -g -MMD -MP $(inc-tests) -Itests/bigendian -c -o $@ $<
$(O)/libhcbigendian.a: $(patsubst %.c,$(O)/bigendian/obj/%.o,$(be-src))
$(O)/bigendian/test_%: $(O)/bigendian/obj/tests/unit/test_%.o $(O)/libhcbigendian.a
	$(call say,cc)
	$(Q)$(BE_CC) -o $@ $^
check-bigendian:
	@tests/lib/deps.sh bigendian
	@$(MAKE) --no-print-directory $(be-tests)
	@for t in $(be-tests); do $(BE_RUN) $$t || exit 1; done

demo:
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory all
	@O=$(O) tests/lib/demo.sh
	@O=$(O) tests/lib/demo-nodes.sh
demo-netns:
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory all
	@O=$(O) tests/lib/demo-netns.sh

# ---- benchmarks ----------------------------------------------------------------------------

bench-progs := $(patsubst tests/bench/%.c,$(O)/bench/%,$(wildcard tests/bench/bench_*.c))
floor-objs  := $(call obj,$(wildcard tests/bench/floor/*.c) $(filter-out $(wildcard tests/bench/bench_*.c),$(wildcard tests/bench/*.c)))
$(O)/libhcbench.a: $(floor-objs)
$(O)/bench/%: $(O)/obj/tests/bench/%.o $(O)/libhcbench.a $(O)/libhctest.a $(O)/libhcproto.a $(O)/libhcomm.so.1
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) -pthread -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -L$(O) -lhcomm -Wl,-rpath,'$$ORIGIN/..' $(LDFLAGS) $(call pl,sqlite3)
# its floor is itself, executed anew: with the libraries that the daemon has to load
$(O)/bench/bench_restart_10k: LDFLAGS += -Wl,--no-as-needed $(libs-hcommd)
# the store by itself, as the daemon links it
$(O)/bench/bench_commit: $(O)/libhcshell.a $(O)/libhccore.a $(O)/libhcconf.a $(O)/libhcfile.a
$(O)/bench/bench_commit: LDFLAGS += $(libs-hcommd)
# admission by itself
$(O)/bench/bench_admission: $(O)/libhcshell.a $(O)/libhccore.a $(O)/libhcconf.a $(O)/libhcfile.a
$(O)/bench/bench_admission: LDFLAGS += $(libs-hcommd)
# the crowd speaks as a daemon does
$(O)/bench/bench_beats $(O)/bench/bench_detect_old $(O)/bench/bench_false_alarms: $(O)/libhcshell.a $(O)/libhccore.a $(O)/libhcconf.a $(O)/libhcfile.a
$(O)/bench/bench_beats $(O)/bench/bench_detect_old $(O)/bench/bench_false_alarms: LDFLAGS += $(libs-hcommd)
# its floor uses the daemon's TLS
$(O)/bench/bench_domain_create: $(O)/libhcshell.a $(O)/libhccore.a $(O)/libhcconf.a $(O)/libhcfile.a
$(O)/bench/bench_domain_create: LDFLAGS += $(libs-hcommd)
bench: all $(bench-progs)
	@O=$(O) tests/bench/run.sh "$(B)" $(bench-progs)

# ---- fuzzers -------------------------------------------------------------------------------

FUZZ_CC ?= clang
fuzz-progs := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz-flags := -std=c11 -D_GNU_SOURCE -DHC_VERSION='"$(VERSION)"' -O1 -g -MMD -MP -fno-sanitize-recover=undefined
$(O)/fuzzobj/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(fuzz-flags) -fsanitize=fuzzer-no-link,address,undefined $(inc-tests) -c -o $@ $<
$(O)/libhcfuzz.a: $(patsubst %.c,$(O)/fuzzobj/%.o,$(src-proto) $(src-file) $(src-conf) $(src-core) daemon/shell/panic.c $(wildcard tests/lib/world*.c))
$(O)/fuzz/%: $(O)/fuzzobj/tests/fuzz/%.o $(O)/libhcfuzz.a
	@mkdir -p $(@D)
	$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(call pl,jansson inih)
fuzz: $(fuzz-progs)
	@O=$(O) tests/fuzz/run.sh "$(or $(T),10)" $(fuzz-progs)

# ---- the house -----------------------------------------------------------------------------

gen: $(O)/gen
	@$(O)/gen .
lint: all $(O)/gen
	@O=$(O) CC=$(CC) tests/lib/lint.sh

# an installed hcommctl finds the library by its place relative to itself, also below DESTDIR
$(O)/install/hcommctl: $(O)/hcommctl FORCE
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(CC) $(BASE) -pthread -o $@ $(call obj,$(src-ctl)) $(O)/libhcconf.a $(O)/libhcfile.a $(O)/libhcproto.a -L$(O) -lhcomm \
		-Wl,-rpath,'$$ORIGIN/$(shell realpath -m --relative-to=$(PREFIX)/bin $(LIBDIR))' $(LDFLAGS) $(libs-ctl)
FORCE:

install: all $(O)/install/hcommctl
	@O=$(O) DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) SYSCONFDIR=$(SYSCONFDIR) \
		UNITDIR=$(UNITDIR) VERSION=$(VERSION) tests/lib/install.sh

clean:
	rm -rf $(O)

-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
