# SPDX-License-Identifier: GPL-2.0
"""xfs and ext4 with blocks of 1 to 64 KiB, and with features that change how data gets to its blocks."""

from lib.dontcache import KIB
from lib.formats import plain, wrong_with_all
from lib.row import main, of_each

FORMATS = {
    **{f"xfs {size}k": plain("xfs", "-b", f"size={size}k") for size in (1, 2, 4, 8, 16, 64)},
    **{f"ext4 {size}k": plain("ext4", "-b", str(size * KIB)) for size in (1, 2, 4, 16, 64)},
    "xfs extents of 64k": plain("xfs", "-d", "extszinherit=16"),
    "ext4 bigalloc": plain("ext4", "-O", "bigalloc", "-C", str(64 * KIB)),
    "ext4 inline_data": plain("ext4", "-O", "inline_data"),
    "ext4 inline_data, nodelalloc": plain("ext4", "-O", "inline_data", mode="nodelalloc"),
    "ext4 no journal": plain("ext4", "-O", "^has_journal"),
    "ext4 data=journal": plain("ext4", mode="data=journal"),
    "ext4 no extents": plain("ext4", "-O", "^extents,^64bit"),
}


main(lambda: of_each(wrong_with_all(FORMATS)), breaks_c=True)
