# SPDX-License-Identifier: GPL-2.0
#
# `make help` says what there is. All work is done inside the build root, which
# tools/enter makes when it is missing.

.DEFAULT_GOAL := help
# -f: the shell must not expand a pattern in ARGS, such as --only */nfs.
.SHELLFLAGS := -fc

# Only what stands on make's command line counts: an environment variable of the same name is somebody
# else's. $(call quoted,NAME) is its value as one word of the shell, whatever is in it.
given = $(filter command,$(firstword $(origin $(1))))
quoted = '$(subst ','\'',$($(1)))'
option = $(if $(call given,$(1)),--$(2)=$(call quoted,$(1)))
ARGUMENTS = $(if $(call given,ARGS),$(ARGS))

# What a kernel is built and booted for.
PLATFORM = $(call option,ARCH,arch) $(call option,PAGES,pages)

# The variables that a target takes. Other variables are refused: make would ignore them without a word.
takes_check := ONLY
takes_guest := ONLY
takes_test := SANITIZE RT ARCH PAGES
takes_kernel := ARCH PAGES
takes_kunit := ARCH PAGES
takes_micro := ARCH
takes_price := CPUS A B
takes_series := CHECK
takes_conformance := ARGS
takes_mutants := ARGS
takes_bench := $(if $(call given,TARGET),TARGET SIZE DESTRUCTIVE,NATIVE) ARGS
takes_compare := A B
takes_results := ARGS

# Their names. In this list, a value has a backslash before each of its spaces and tabs.
comma := ,
space := $(subst ,, )
tab := $(subst ,,	)
overrides = $(subst \$(tab),_,$(subst \$(space),_,$(MAKEOVERRIDES)))
names = $(foreach word,$(overrides),$(firstword $(subst =, ,$(word))))
goals = $(or $(MAKECMDGOALS),help)
refused := $(filter-out $(foreach goal,$(goals),$(takes_$(goal))),$(names))

ifneq ($(refused),)
.PHONY: $(goals)
$(goals):
	@echo 'error: make $@$(if $(call given,TARGET), TARGET=) does not take $(refused); it takes $(or $(takes_$@),nothing)$(if $(findstring ARGS,$(takes_$@)),$(comma) like ARGS="--help")' >&2; exit 2
else

# First:
## run: build, compare the two cores, write build/report/; 17 to 31 minutes
run:
	@tools/enter --install python3 -m rust_writeback $@

# To change code:
## kernel: build/bzImage and build/.config; a minute after a change, else 12
## kernel ARCH=arm64: build/Image-arm64-4k; PAGES=16k or 64k for larger pages; 13 to 24 minutes
kernel:
	@tools/enter python3 -m rust_writeback $@ $(PLATFORM)

## check: before a commit: host tests, lint, KUnit, some guest tests; 5 minutes
## check ONLY=PATTERN: the same with these guest tests; minutes
## guest ONLY=PATTERN: guest tests on both cores, as ONLY='buffer_walk*'; 1 minute, all in 6
## host: tests of the core and tools, models; boots a kernel if built; 6 minutes
check guest host:
	@tools/enter python3 -m rust_writeback test --part=$@ $(call option,ONLY,only)

## lint: rustfmt, clippy, checkpatch, shellcheck, mypy, pyflakes; 1 minute
## lines: lines of C and of Rust for each mechanism; a second
## litmus: check our memory orders with the kernel's memory model; seconds
## arm64: compile our objects for arm64, with pages of 4 and of 64 KiB; 3 minutes
lint lines litmus arm64:
	@tools/enter python3 -m rust_writeback $@

## kunit: the KUnit suites under user-mode Linux; 1 minute
## kunit ARCH=arm64: on an emulated arm64; PAGES=16k or 64k for larger pages; 6 minutes
kunit:
	@tools/enter python3 -m rust_writeback $@ $(PLATFORM)

## vm: a shell in the virtual machine; it boots in 2 seconds
vm:
	@tools/vm

# All tests:
## test: everything that CI runs; 40 to 90 minutes
## nightly: the rest: sanitizers, PREEMPT_RT, arm64, eight CPUs, all promises; hours
## test SANITIZE=NAME: guest tests, rows with kasan, kcsan, kmemleak, lockdep, ubsan; 17 minutes
## test RT=1: KUnit, guest tests and promises on PREEMPT_RT with lockdep; an hour
## test ARCH=arm64: KUnit, guest tests and promises on an emulated arm64; 52 minutes
test:
	@tools/enter --install python3 -m rust_writeback $@ $(call option,SANITIZE,sanitize) $(call option,RT,rt) $(PLATFORM)

nightly:
	@tools/enter --install python3 -m rust_writeback test --part=$@

## conformance: try to break the promises on both cores; 80 minutes; ARGS=--help
conformance:
	@tools/enter python3 -m rust_writeback $@ $(ARGUMENTS)

## mutants: a broken core for each promise that C keeps; 25 minutes; ARGS=--help
mutants:
	@tools/enter python3 -m rust_writeback $@ $(ARGUMENTS)

# Measurements:
## price: kernel instructions per MiB until it is durable, C beside Rust; 9 minutes
## price A=CELL B=CELL: functions that differ most between two cells of the last one; a second
## price CPUS=4: cache lines that move between 2, 4 or 8 CPUs; 3 to 11 minutes
price:
	@tools/enter python3 -m rust_writeback $@ $(call option,CPUS,cpus) $(call option,A,a) $(call option,B,b)

## micro: instructions per operation, C beside Rust; 3 minutes
## micro ARCH=arm64: the same on an emulated arm64; minutes
micro:
	@tools/enter python3 -m rust_writeback $@ $(call option,ARCH,arch)

## bench: loads, DONTCACHE beside buffered; hours; ARGS="--only tree/* --pairs 3"
## bench NATIVE=1: the same in user-mode Linux, at the speed of the real CPU; hours
## bench TARGET=PLACE: here, in a folder, or DESTRUCTIVE=1 on a device; SIZE=FACTOR; minutes
bench:
ifneq ($(call given,TARGET),)
	@tools/enter --target $(call quoted,TARGET) python3 -m rust_writeback bench-target $(call option,SIZE,size) \
		$(call option,DESTRUCTIVE,destructive) $(ARGUMENTS)
else
	@tools/enter python3 -m rust_writeback $@ $(call option,NATIVE,native) $(ARGUMENTS)
endif

## compare: two results side by side: A=build/bench B=build/report; seconds
compare:
	@tools/enter python3 -m rust_writeback $@ $(if $(call given,A),$(call quoted,A)) $(if $(call given,B),$(call quoted,B))

## results: render tools/results/ and README, with ARGS=load the last loads; seconds
results:
	@tools/enter python3 -m rust_writeback $@ $(ARGUMENTS)

# The rest:
## series: our changes as patches to apply and to mail, in build/series/; seconds
## series CHECK=1: build after each patch, with and without the core; an hour
series:
	@tools/enter python3 -m rust_writeback $@ $(call option,CHECK,check)

## clean: remove what was built; the cache folder stays; seconds
clean:
	rm -rf build

help:
	@sed -n -e 's/^# \([A-Z][a-z ]*:\)$$/\n\1/p' -e 's/^## \([^:]*\): \(.*\)/  make \1\t\2/p' Makefile | expand -t 27 | sed 1d

.PHONY: run check guest host test nightly bench compare conformance mutants kernel kunit arm64 lint litmus lines micro price results series vm clean help
endif
