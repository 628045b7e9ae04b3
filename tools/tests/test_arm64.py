# SPDX-License-Identifier: GPL-2.0
"""What is compiled for arm64: our own objects and those with our hooks."""

from rust_writeback.build import arm64


def test_nothing_is_forgotten() -> None:
    found = arm64.objects()
    assert {"fs/dontcache.o", "block/bio_task.o", "fs/ext4/inode.o", "mm/filemap.o", "fs/dontcache_twins_kunit.o"} <= set(found)
    assert len(found) == len(set(found)) and not [name for name in found if name.endswith("_micro.o")]
