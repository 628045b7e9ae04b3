// SPDX-License-Identifier: GPL-2.0

//! What a write does to the buffers of its folio, before and after its data is copied.
//!
//! [`begin`] prepares the buffers in the range: it has them mapped, and brought up to date where
//! the range leaves out bytes of a block. [`commit`] makes them dirty. Neither has any business
//! with a buffer outside the range, but for one: in a folio that is not up to date,
//! [`commit_and_discover`] looks at all of them, for the folio becomes up to date with the last of
//! its buffers.
//!
//! # Why buffers outside the range may be left alone
//!
//! The C walks the whole folio, or from its beginning to the end of the range if the folio was up
//! to date on entry. In a folio that is not up to date, [`begin`] and the C do nothing outside the
//! range, and [`commit_and_discover`] does what the C does. In a folio that is up to date, the C
//! may change one flag of a buffer that it passes outside the range, in either walk:
//!
//! - **`BH_Uptodate` is set** by the walk before the write. It is set already, for a folio becomes
//!   up to date with its buffers, and buffers that are made for a folio that is up to date are,
//!   too. The exception is a buffer whose write-back failed: it loses the flag while its folio
//!   keeps its own. The data is in the folio still, and the folio's flag is what readers go by.
//!   The flag comes back when the buffer itself is written, here or by write-back that succeeds.
//!   (Who reads a block device buffer by buffer, `__bread()`, reads a lost one again from the
//!   device. The C lets that happen, too, unless somebody wrote elsewhere in the folio meanwhile.)
//! - **`BH_New` is cleared** by the walk after the write. It is not set: a file system sets it on a
//!   buffer that it maps in [`begin`], and the same holder of the folio's lock clears it, in
//!   [`commit`] where data was copied, and by `folio_zero_new_buffers()` where it was not.

use super::block_range::BlockRange;
use core::ops::Range;

/// A buffer of a locked folio. C counterpart: `struct buffer_head`.
pub trait Buffer: Copy {
    /// Whether it is mapped, up to date and not new: nothing to do before a write. Of these flags
    /// none changes by itself while the folio is locked, but for an error of write-back.
    fn is_ready(self) -> bool;

    /// Whether its data is valid (`BH_Uptodate`). Reads of the data are ordered after.
    fn is_uptodate(self) -> bool;

    /// Sets `BH_Uptodate`. Writes of the data are ordered before.
    fn set_uptodate(self);

    /// Whether it has a block on the device (`BH_Mapped`).
    fn is_mapped(self) -> bool;

    /// Whether its block was found or allocated by this write (`BH_New`).
    fn is_new(self) -> bool;

    /// Clears `BH_New`.
    fn clear_new(self);

    /// Whether its block on the device has its data: it is neither delayed nor unwritten.
    fn is_on_device(self) -> bool;

    /// Makes it and its folio dirty.
    fn mark_dirty(self);

    /// Sleeps until nobody has it locked for I/O.
    fn wait(self);
}

/// The buffers of a locked folio.
pub trait Ring {
    /// One of them.
    type Buffer: Buffer;

    /// The buffers of these blocks, in order.
    fn buffers(&self, blocks: Range<usize>) -> impl Iterator<Item = Self::Buffer>;
}

/// What a file system does for [`begin`].
pub trait FileSystem<B> {
    /// Why a buffer could not be prepared.
    type Error;

    /// A buffer in the range was new before the walk came to it.
    fn found_new(&self, buffer: B);

    /// Gives `buffer`, the folio's `block`, a block on the device.
    fn map(&self, buffer: B, block: usize) -> Result<(), Self::Error>;

    /// [`map`](Self::map) made `buffer` new, in a folio that is up to date.
    fn new_in_uptodate(&self, buffer: B);

    /// Zeroes the bytes of the folio's `block` that lie outside the range.
    fn zero_outside(&self, block: usize);

    /// Begins to read `buffer`.
    fn read(&self, buffer: B);

    /// The error of a read that failed.
    fn read_error(&self) -> Self::Error;

    /// Cleans up: what is new in the range and was not up to date becomes zeroes.
    fn abort(&self);
}

/// Whether all buffers in `range` are ready for a write: [`begin`] has nothing to do.
///
/// So it is with most writes to what is cached.
#[inline(always)]
pub fn is_ready<R: Ring>(ring: &R, range: &BlockRange) -> bool {
    ring.buffers(range.touched()).all(Buffer::is_ready)
}

/// What is left to do for a buffer once it was prepared.
enum Prepared {
    Ready,
    Reading,
}

/// Prepares the buffers of `ring` for a write of `range`. `uptodate` says what the folio was when
/// its lock was taken.
///
/// # Errors
///
/// The first error of [`FileSystem::map`], with the buffers after it left alone, or that of a read;
/// [`FileSystem::abort`] was called.
///
/// C counterparts: `__block_write_begin_int()`, `ext4_block_write_begin()`.
pub fn begin<R: Ring, F: FileSystem<R::Buffer>>(
    ring: &R,
    range: &BlockRange,
    uptodate: bool,
    fs: &F,
) -> Result<(), F::Error> {
    let touched = range.touched();
    let mut result = Ok(());
    // A block is partial at the beginning of the range or at its end: two reads at most.
    let mut reads = (None, None);
    for (block, buffer) in touched.clone().zip(ring.buffers(touched)) {
        if buffer.is_ready() {
            continue;
        }
        match prepare(buffer, block, range, uptodate, fs) {
            Ok(Prepared::Ready) => {}
            Ok(Prepared::Reading) => reads = (Some(buffer), reads.0),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    for buffer in reads.0.into_iter().chain(reads.1) {
        buffer.wait();
        if !buffer.is_uptodate() {
            result = Err(fs.read_error());
        }
    }
    if result.is_err() {
        fs.abort();
    }
    result
}

/// Prepares one buffer, the folio's `block`, which is in the range.
fn prepare<B: Buffer, F: FileSystem<B>>(
    buffer: B,
    block: usize,
    range: &BlockRange,
    uptodate: bool,
    fs: &F,
) -> Result<Prepared, F::Error> {
    if buffer.is_new() {
        fs.found_new(buffer);
        buffer.clear_new();
    }
    if !buffer.is_mapped() {
        fs.map(buffer, block)?;
        if buffer.is_new() {
            if uptodate {
                fs.new_in_uptodate(buffer);
            } else if range.is_partial(block) {
                fs.zero_outside(block);
            }
            return Ok(Prepared::Ready);
        }
    }
    if uptodate {
        buffer.set_uptodate();
        return Ok(Prepared::Ready);
    }
    if range.is_partial(block) && !buffer.is_uptodate() && buffer.is_on_device() {
        fs.read(buffer);
        return Ok(Prepared::Reading);
    }
    Ok(Prepared::Ready)
}

/// Makes the buffers of `ring` that are in `range` up to date and dirty, in a folio that was up to
/// date when its lock was taken.
///
/// C counterpart: `block_commit_write()`.
#[inline(always)]
pub fn commit<R: Ring>(ring: &R, range: &BlockRange) {
    for buffer in ring.buffers(range.touched()) {
        written(buffer);
    }
}

/// The same in a folio that was not up to date. Returns whether all its buffers are now: the caller
/// marks the folio then.
///
/// C counterpart: `block_commit_write()`.
pub fn commit_and_discover<R: Ring>(ring: &R, range: &BlockRange) -> bool {
    let (blocks, touched) = (0..range.blocks(), range.touched());
    let mut complete = true;
    for (block, buffer) in blocks.clone().zip(ring.buffers(blocks)) {
        if touched.contains(&block) {
            written(buffer);
            continue;
        }
        complete &= buffer.is_uptodate();
        if buffer.is_new() {
            buffer.clear_new();
        }
    }
    complete
}

/// The data of `buffer` was written.
#[inline(always)]
fn written<B: Buffer>(buffer: B) {
    buffer.set_uptodate();
    buffer.mark_dirty();
    if buffer.is_new() {
        buffer.clear_new();
    }
}
