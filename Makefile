# SPDX-License-Identifier: GPL-2.0
#
# `make help` says what there is. All work is done inside the build root, which
# tools/enter makes when it is missing.

.DEFAULT_GOAL := help
# --only */nfs is for the benchmark, whatever files there are.
.SHELLFLAGS := -fc

# Only what stands on make's command line counts: an environment variable of the same name is somebody
# else's. $(call quoted,NAME) is its value as one word of the shell, whatever is in it.
given = $(filter command,$(firstword $(origin $(1))))
quoted = '$(subst ','\'',$($(1)))'
option = $(if $(call given,$(1)),--$(2)=$(call quoted,$(1)))
ARGUMENTS = $(if $(call given,ARGS),$(ARGS))

# What a kernel is built and booted for.
PLATFORM = $(call option,ARCH,arch) $(call option,PAGES,pages)

# What would be ignored is refused: $(call refuse,NAMES,why).
named = $(strip $(foreach name,$(1),$(if $(call given,$(name)),$(name))))
refuse = $(if $(call named,$(1)),echo 'error: $(call named,$(1)): $(2)' >&2; exit 2)

# Options that people give as if they were make's.
options_of_args = $(call refuse,ONLY VARIANTS PAIRS MEM DRIVE REPORT CORE,make does not know it; options are given like $(1))

## run: build what is missing, compare the two cores, write build/report/
run:
	@tools/enter --install python3 -m rust_writeback $@

## test: everything that CI runs: host tests, lint, KUnit, guest tests
## test SANITIZE=kasan: the guest tests on a kernel with kasan, kcsan, kmemleak, lockdep or ubsan
## test RT=1: some guest tests and promises on a PREEMPT_RT kernel with lockdep
## test ARCH=arm64: KUnit, guest tests and promises on an emulated arm64; PAGES=16k or 64k for larger pages
test:
	@$(if $(filter-out 1,$(if $(call given,RT),$(RT))),echo 'error: RT=$(RT): give RT=1 or leave it out' >&2; exit 2)
	@tools/enter --install python3 -m rust_writeback $@ $(call option,SANITIZE,sanitize) $(if $(filter 1,$(if $(call given,RT),$(RT))),--sanitize rt) $(PLATFORM)

## kernel: build/bzImage and build/.config
## kernel ARCH=arm64: build/Image-arm64-4k; PAGES=16k or 64k for larger pages
kernel:
	@tools/enter python3 -m rust_writeback $@ $(PLATFORM)

## arm64: compile our objects for arm64, with pages of 4 and of 64 KiB
## lint: rustfmt, clippy, checkpatch, shellcheck, mypy
## audit: every use of unsafe with its reason, and the C functions that safe functions call
## litmus: check the memory orders that we rely on with the kernel's memory model
## lines: lines of C and of Rust for each mechanism
arm64 lint audit litmus lines:
	@tools/enter python3 -m rust_writeback $@

## kunit: the KUnit suites under user-mode Linux
## kunit ARCH=arm64: on an emulated arm64; PAGES=16k or 64k for larger pages
kunit:
	@tools/enter python3 -m rust_writeback $@ $(PLATFORM)

## micro: instructions per operation, C beside Rust
## micro ARCH=arm64: the same on an emulated arm64
micro:
	@$(call refuse,PAGES,instructions are counted with pages of 4 KiB; leave it out)
	@tools/enter python3 -m rust_writeback $@ $(call option,ARCH,arch)

## price: kernel instructions per MiB until it is durable, C beside Rust; 8 minutes
## price A=CELL B=CELL: the functions that differ most between two cells of the last make price
## price CPUS=4: cache lines that move between 2, 4 or 8 CPUs
price:
	@$(call refuse,ARCH PAGES,instructions are counted on x86; leave it out)
	@tools/enter python3 -m rust_writeback $@ $(call option,CPUS,cpus) $(call option,A,a) $(call option,B,b)

## series: our changes as patches to apply and to mail, in build/series/
## series CHECK=1: build after each patch, with and without the core; an hour
series:
	@tools/enter python3 -m rust_writeback $@ $(if $(call given,CHECK),--check)

## conformance: try to break the promises of DONTCACHE on both cores; ARGS=--help has more
conformance:
	@$(call options_of_args,ARGS="--only no_oops_*")
	@tools/enter python3 -m rust_writeback $@ $(ARGUMENTS)

## mutants: try a broken core for each row of conformance that C passes; ARGS=--help has more
mutants:
	@$(call options_of_args,ARGS="--only kick_*")
	@tools/enter python3 -m rust_writeback $@ $(ARGUMENTS)

## bench: every load on both cores, DONTCACHE beside buffered; ARGS=--help has more
## bench NATIVE=1: the same in user-mode Linux, at the speed of the real CPU
## bench SIM=1: the same, counted in instructions: repeats to the digit; QUICK=1 for a few loads
# With TARGET=/mnt/point or /dev/..., on this machine itself: SIZE=8 and DESTRUCTIVE=1 are for that.

bench:
	@$(call options_of_args,ARGS="--pairs 3")
ifneq ($(call given,TARGET),)
	@$(call refuse,SIM NATIVE QUICK,a TARGET is measured as it is; give one or the other)
	@tools/enter --target $(call quoted,TARGET) python3 -m rust_writeback bench-target $(call option,SIZE,size) \
		$(call option,DESTRUCTIVE,destructive) $(ARGUMENTS)
else
	@$(call refuse,SIZE DESTRUCTIVE,only for real hardware; give a TARGET or leave it out)
	@tools/enter python3 -m rust_writeback $@ $(call option,SIM,sim) $(call option,NATIVE,native) \
		$(call option,QUICK,quick) $(ARGUMENTS)
endif

## compare: two results side by side: A=build/bench B=build/report
compare:
	@tools/enter python3 -m rust_writeback $@ $(if $(call given,A),$(call quoted,A)) $(if $(call given,B),$(call quoted,B))

## results: write the last measurements to tools/results/ and the README
results:
	@tools/enter python3 -m rust_writeback $@ $(ARGUMENTS)

## vm: a shell in the virtual machine
vm:
	@tools/vm

## clean: remove what was built; the cache folder stays
clean:
	rm -rf build

help:
	@sed -n 's/^## \([^:]*\): \(.*\)/make \1\t\2/p' Makefile | expand -t 20

.PHONY: run test bench compare conformance mutants kernel kunit arm64 lint audit litmus lines micro price results series vm clean help
