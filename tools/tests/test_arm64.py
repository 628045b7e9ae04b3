# SPDX-License-Identifier: GPL-2.0
"""What is compiled for arm64: our own objects and those with our hooks, with each size of pages."""

from rust_writeback.build import arm64, wiring

PATCH = """--- a/fs/buffer.c
+++ b/fs/buffer.c
@@ -1 +1,2 @@
+#include <linux/rust_buffer_walk.h>
--- a/fs/Makefile
+++ b/fs/Makefile
@@ -1 +1,3 @@
 obj-y += old.o
+obj-$(CONFIG_RUST_WRITEBACK)	+= dontcache.o buffer_walk.o
+obj-$(CONFIG_RUST_WRITEBACK_MICRO) += dontcache_micro.o
--- a/include/linux/fs.h
+++ b/include/linux/fs.h
--- a/rust/helpers/helpers.c
+++ b/rust/helpers/helpers.c
"""


def test_ours_and_the_hooked_are_compiled_once() -> None:
    assert arm64.objects([PATCH, PATCH]) == ["fs/buffer.o", "fs/dontcache.o", "fs/buffer_walk.o"]


def test_nothing_is_forgotten() -> None:
    found = arm64.objects([path.read_text() for path in wiring.patches()])
    assert {"fs/dontcache.o", "block/bio_task.o", "fs/ext4/inode.o", "mm/filemap.o", "fs/dontcache_twins_kunit.o"} <= set(found)
