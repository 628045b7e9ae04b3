// SPDX-License-Identifier: GPL-2.0

//! The blocks of a folio, and what a write of some of its bytes has to do with each.
//!
//! A folio of a file system with buffers is a row of blocks of one size. A write of the bytes
//! `from..to` divides the row in three:
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
//! between two blocks has no block in it, and an empty range inside a block has that block, as
//! callers of `block_commit_write()` rely on.

use core::ops::Range;

/// The smallest block: a sector.
pub const MIN_BLOCK_SIZE: usize = 512;

/// Why there is no such range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// The block size is not a power of two, below a sector, or does not divide the folio.
    BlockSize,
    /// The range ends before it begins.
    Reversed,
    /// The range ends beyond the folio.
    BeyondFolio,
}

/// Where a block lies, as seen from the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The block ends before the range begins, or where it begins.
    Before,
    /// The range has bytes of the block, or lies empty inside it.
    In {
        /// The block has bytes before the range.
        before: bool,
        /// The block has bytes after the range.
        after: bool,
    },
    /// The block begins where the range ends, or later.
    After,
}

/// The bytes `from..to` of a folio that is divided into blocks. Offsets and sizes are in bytes,
/// blocks are counted from the folio's beginning.
///
/// # Invariants
///
/// - `1 << shift` is at least [`MIN_BLOCK_SIZE`], and `blocks << shift` is the folio's size;
/// - `from <= to <= blocks << shift`.
///
/// # Examples
///
/// ```
/// use kernel::writeback::block_range::{BlockRange, Position, RangeError};
///
/// // 700 bytes at 4000, in a folio of 64 KiB with blocks of 4 KiB.
/// let range = BlockRange::new(64 << 10, 4 << 10, 4000, 4700);
/// assert_eq!(range.map(|range| range.touched()), Ok(0..2));
/// let first = Position::In { before: true, after: false };
/// assert_eq!(range.map(|range| range.position(0)), Ok(first));
/// assert_eq!(BlockRange::new(64 << 10, 4 << 10, 4700, 4000), Err(RangeError::Reversed));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    from: usize,
    to: usize,
    shift: u32,
    blocks: usize,
}

impl BlockRange {
    /// The bytes `from..to` of a folio of `folio_size` bytes in blocks of `block_size` bytes.
    ///
    /// # Errors
    ///
    /// Any nonsense is a [`RangeError`], whatever the numbers are.
    #[inline(always)]
    pub const fn new(
        folio_size: usize,
        block_size: usize,
        from: usize,
        to: usize,
    ) -> Result<Self, RangeError> {
        // Not `is_power_of_two()`: it counts bits, in 20 instructions where there is none for it.
        let shift = block_size.trailing_zeros();
        if block_size.wrapping_shr(shift) != 1 || block_size < MIN_BLOCK_SIZE {
            return Err(RangeError::BlockSize);
        }
        if folio_size < block_size || folio_size & block_size.wrapping_sub(1) != 0 {
            return Err(RangeError::BlockSize);
        }
        if from > to {
            return Err(RangeError::Reversed);
        }
        if to > folio_size {
            return Err(RangeError::BeyondFolio);
        }
        // INVARIANT: Checked above; `block_size` is `1 << shift` and divides `folio_size`.
        Ok(Self {
            from,
            to,
            shift,
            blocks: folio_size.wrapping_shr(shift),
        })
    }

    /// The first byte of the range.
    #[inline(always)]
    pub const fn from(&self) -> usize {
        self.from
    }

    /// The byte after the range.
    #[inline(always)]
    pub const fn to(&self) -> usize {
        self.to
    }

    /// The logarithm of the block size, to base two.
    #[inline(always)]
    pub const fn block_bits(&self) -> u32 {
        self.shift
    }

    /// How many blocks the folio has.
    #[inline(always)]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// The bytes of `block`, which is one of the folio's.
    #[inline(always)]
    pub const fn bytes(&self, block: usize) -> Range<usize> {
        // A block of the folio ends within it; beyond, the numbers wrap and do not panic.
        let start = block.wrapping_shl(self.shift);
        start..start.wrapping_add(1usize.wrapping_shl(self.shift))
    }

    /// The blocks in the range. Those below `start` are before it, the others after it.
    ///
    /// A walk that has no business outside the range begins at `start` and stops at `end`.
    #[inline(always)]
    pub const fn touched(&self) -> Range<usize> {
        let first = self.from.wrapping_shr(self.shift);
        let mask = 1usize.wrapping_shl(self.shift).wrapping_sub(1);
        // Rounded up. The sum is below the folio's size and a block, which is no number that wraps.
        let end = self.to.wrapping_add(mask).wrapping_shr(self.shift);
        first..end
    }

    /// Where `block` lies.
    #[inline(always)]
    pub const fn position(&self, block: usize) -> Position {
        let touched = self.touched();
        if block < touched.start {
            Position::Before
        } else if block >= touched.end {
            Position::After
        } else {
            let (before, after) = self.left_out(block);
            Position::In { before, after }
        }
    }

    /// Whether the range leaves out bytes of `block`, which is in it.
    #[inline(always)]
    pub const fn is_partial(&self, block: usize) -> bool {
        let (before, after) = self.left_out(block);
        before || after
    }

    /// Whether the range leaves out bytes of `block` before it, and behind it.
    #[inline(always)]
    const fn left_out(&self, block: usize) -> (bool, bool) {
        let bytes = self.bytes(block);
        (bytes.start < self.from, bytes.end > self.to)
    }
}
