# SPDX-License-Identifier: GPL-2.0
#
# `make help` says what there is. All work is done inside the build root, which
# tools/enter makes when it is missing.

.DEFAULT_GOAL := help

## run: build what is missing, compare the two cores, write build/report/
run:
	@tools/enter --install python3 -m rust_writeback $@

## test: all that CI runs: host tests, lint, KUnit, guest tests
## test SANITIZE=kasan: the guest tests on a kernel with kasan, kcsan, kmemleak, lockdep or ubsan
test:
	@tools/enter --install python3 -m rust_writeback $@ $(if $(SANITIZE),--sanitize '$(SANITIZE)')

## kernel: build/bzImage and build/.config
## kunit: the KUnit suites under user-mode Linux
## lint: rustfmt, clippy, checkpatch, shellcheck, mypy
## audit: every use of unsafe, why it is sound, and the C that safe functions call
## micro: instructions per operation, C beside Rust
kernel kunit lint audit micro:
	@tools/enter python3 -m rust_writeback $@

## conformance: what DONTCACHE promises, tried on both cores; ARGS=--help has more
conformance:
	@tools/enter python3 -m rust_writeback $@ $(ARGS)

## bench: every scenario on both cores until the intervals are narrow; ARGS=--help has more
## bench SIM=1: the same, counted in instructions: repeats to the digit; QUICK=1 for a few loads
# With TARGET=/mnt/point or /dev/..., on this machine itself: SIZE=8 and DESTRUCTIVE=1 are for that.
# What would be ignored is refused: $(call refuse,NAMES,why).
given = $(strip $(foreach name,$(1),$(if $($(name)),$(name))))
refuse = $(if $(call given,$(1)),echo 'error: $(call given,$(1)): $(2)' >&2; exit 2)

bench:
	@$(call refuse,ONLY VARIANTS PAIRS MEM BPS REPORT,make does not know it; options are given like ARGS="--pairs 3")
ifneq ($(origin TARGET),undefined)
	@$(call refuse,SIM QUICK,a TARGET is measured as it is; give one or the other)
	@tools/enter --target '$(TARGET)' python3 -m rust_writeback bench-target $(SIZE:%=--size '%') \
		$(DESTRUCTIVE:%=--destructive='%') $(ARGS)
else
	@$(call refuse,SIZE DESTRUCTIVE,only for real hardware; give a TARGET or leave it out)
	@tools/enter python3 -m rust_writeback $@ $(SIM:%=--sim='%') $(QUICK:%=--quick='%') $(ARGS)
endif

## compare: two results side by side: A=build/bench B=build/report
compare:
	@tools/enter python3 -m rust_writeback $@ $(A) $(B)

## vm: a shell in the virtual machine
vm:
	@tools/vm

## clean: remove what was built; the cache folder stays
clean:
	rm -rf build

help:
	@sed -n 's/^## \([^:]*\): \(.*\)/make \1\t\2/p' Makefile | expand -t 20

.PHONY: run test bench compare conformance kernel kunit lint audit micro vm clean help
