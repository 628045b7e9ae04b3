# SPDX-License-Identifier: GPL-2.0
#
# `make help` says what there is. All work is done inside the build root, which
# tools/enter makes when it is missing.

.DEFAULT_GOAL := help

## kernel: build/bzImage and build/.config
kernel:
	@tools/enter python3 -m rust_writeback $@

## clean: remove what was built; the cache folder stays
clean:
	rm -rf build

help:
	@sed -n 's/^## \(.*\): \(.*\)/make \1\t\2/p' Makefile | expand -t 20

.PHONY: kernel clean help
