// SPDX-License-Identifier: GPL-2.0

//! The blocks of a folio that a write touches.
//!
//! A folio of a file system with buffers is a row of blocks of one size. A write of the bytes
//! `from..to` divides the row into three parts:
//!
//! ```text
//!     0        1        2        3        4        5
//!     |--------|--------|--------|--------|--------|
//!                    [from ... to)
//!      before   in        in      after    after
//!               (bytes    (bytes
//!               before)   after)
//! ```
//!
//! A block is in the range if it ends after `from` and begins before `to`. So an empty range
//! between two blocks contains no block. An empty range inside a block contains that block; callers
//! of `block_commit_write()` rely on that.

use core::ops::Range;

/// The bytes `from..to` of a folio that is divided into blocks. Offsets and sizes are in bytes,
/// blocks are counted from the folio's beginning.
///
/// # Invariants
///
/// `from <= to <= folio_size`.
///
/// # Examples
///
/// ```
/// use kernel::writeback::block_range::BlockRange;
///
/// // 700 bytes at 4000, in a folio of 64 KiB with blocks of 4 KiB.
/// let range = BlockRange::new(64 << 10, 12, 4000, 4700);
/// assert_eq!(range.map(|range| range.touched()), Some(0..2));
/// assert_eq!(range.map(|range| range.is_partial(0)), Some(true));
/// assert_eq!(BlockRange::new(64 << 10, 12, 4700, 4000), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    folio_size: usize,
    shift: u32,
    from: usize,
    to: usize,
}

impl BlockRange {
    /// The bytes `from..to` of a folio of `folio_size` bytes in blocks of `1 << block_bits` bytes.
    /// None if the folio cannot have these bytes.
    #[inline]
    pub const fn new(folio_size: usize, block_bits: u32, from: usize, to: usize) -> Option<Self> {
        if from > to || to > folio_size {
            return None;
        }
        // INVARIANT: Both conditions were checked above.
        Some(Self {
            folio_size,
            shift: block_bits,
            from,
            to,
        })
    }

    /// The first byte of the range.
    #[inline]
    pub const fn from(&self) -> usize {
        self.from
    }

    /// The byte after the range.
    #[inline]
    pub const fn to(&self) -> usize {
        self.to
    }

    /// How many blocks the folio has.
    #[inline]
    pub const fn blocks(&self) -> usize {
        self.folio_size.wrapping_shr(self.shift)
    }

    /// Whether the range is the whole folio.
    #[inline]
    pub const fn is_whole(&self) -> bool {
        self.from == 0 && self.to == self.folio_size
    }

    /// The bytes of `block`, which is in the folio.
    #[inline]
    pub const fn bytes(&self, block: usize) -> Range<usize> {
        // A block of the folio ends within it. For other blocks the numbers wrap instead of a
        // panic.
        let start = block.wrapping_shl(self.shift);
        start..start.wrapping_add(1usize.wrapping_shl(self.shift))
    }

    /// The blocks in the range. Blocks below `start` are before it, the others after it.
    ///
    /// A walk that needs only the range begins at `start` and stops at `end`.
    #[inline]
    pub const fn touched(&self) -> Range<usize> {
        let first = self.from.wrapping_shr(self.shift);
        let mask = 1usize.wrapping_shl(self.shift).wrapping_sub(1);
        // Rounded up. The sum is less than the folio's size plus a block, so it does not wrap.
        let end = self.to.wrapping_add(mask).wrapping_shr(self.shift);
        first..end
    }

    /// Whether the range omits bytes of `block`, which is in it.
    #[inline]
    pub const fn is_partial(&self, block: usize) -> bool {
        let bytes = self.bytes(block);
        bytes.start < self.from || bytes.end > self.to
    }
}
