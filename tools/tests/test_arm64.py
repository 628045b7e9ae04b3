# SPDX-License-Identifier: GPL-2.0
"""What is compiled for arm64: our own objects and those with our hooks, with each size of pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from rust_writeback import steps
from rust_writeback.arch import ARM64
from rust_writeback.build import arm64, config, kernel, wiring
from rust_writeback.errors import Failure

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
    assert {"fs/dontcache.o", "block/bio_task.o", "mm/dontcache_counter.o", "fs/fs-writeback.o"} <= set(found)
    assert {"fs/buffer.o", "fs/ext4/inode.o", "mm/filemap.o", "mm/page-writeback.o", "block/bio.o"} <= set(found)
    assert {"fs/dontcache_twins_kunit.o", "block/bio_task_kunit.o"} <= set(found)


def test_each_size_of_pages_is_asked_for() -> None:
    assert ARM64.pages == ("4k", "16k", "64k") and arm64.SIZES == ("4k", "64k")
    for pages in ARM64.pages:
        asked = config.merge(arm64.fragments_for(pages))
        assert asked[f"CONFIG_ARM64_{pages.upper()}_PAGES"] == asked["CONFIG_RUST_WRITEBACK_KUNIT_TEST"] == "y"


def test_make_is_told_of_another_architecture_only() -> None:
    assert "ARCH=arm64" in kernel.make("prepare", arch=ARM64)
    assert not [word for word in kernel.make("prepare") if word.startswith("ARCH=")]


def test_what_does_not_compile_is_no_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(steps, "need_room", lambda *_: None)
    monkeypatch.setattr(arm64.paths, "BUILD", tmp_path)
    monkeypatch.setattr(kernel, "TOOLCHAIN", kernel.COMPILER)
    monkeypatch.setattr(kernel, "prepare", lambda: "tree")

    def fail(*_: object) -> None:
        raise Failure("it does not compile")

    monkeypatch.setattr(arm64, "must", fail)
    with pytest.raises(Failure, match="does not compile"):
        arm64.run()
    assert not (tmp_path / "arm64-4k" / "done").exists()
