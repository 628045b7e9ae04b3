// SPDX-License-Identifier: GPL-2.0

//! What a write does to the buffers of its folio, before and after its data is copied.
//!
//! [`begin`] prepares the buffers in the range: it has them mapped, and brought up to date if the
//! range omits bytes of a block. [`commit`] makes them dirty. Both visit only the buffers in the
//! range, with one exception: in a folio that is not up to date, [`commit`] visits all buffers,
//! because the folio becomes up to date with the last of them.
//!
//! # Why buffers outside the range need no visit
//!
//! The C code walks the whole folio, or from its beginning to the end of the range if the folio was
//! up to date on entry. In a folio that is not up to date, [`begin`] and the C code do nothing
//! outside the range, and [`commit`] does what the C code does. In a folio that is up to date,
//! either walk of the C code may change one flag of a buffer that it passes outside the range:
//!
//! - **`BH_Uptodate` is set** by the walk before the write. It is set already: a folio becomes up
//!   to date with its buffers, and buffers made for an up-to-date folio are up to date, too. The
//!   exception is a buffer whose write-back failed: it loses the flag while its folio keeps its
//!   own. The folio still has the data, and readers check the folio's flag. The buffer's flag comes
//!   back when the buffer is written, here or by write-back that succeeds. (A reader of single
//!   blocks, `__bread()`, reads a buffer without the flag from the device again. In C this happens,
//!   too, unless a write elsewhere in the folio came before.)
//! - **`BH_New` is cleared** by the walk after the write. It is not set: a file system sets it on a
//!   buffer that it maps in [`begin`]. The same holder of the folio's lock clears it: [`commit`]
//!   where data was copied, and `folio_zero_new_buffers()` where it was not.

use super::block_range::BlockRange;
use core::ops::Range;

/// A buffer of a locked folio. Flags are read one by one and unordered, unless noted. I/O on the
/// buffer changes some of them at any time; the others change under the folio's lock.
///
/// C counterparts: `struct buffer_head`, `buffer_uptodate()` and its like.
pub trait Buffer: Copy {
    /// Whether the buffer is mapped, up to date and not new: nothing to do before a write. While
    /// the folio is locked, only an error of write-back changes one of these flags by itself.
    fn is_ready(self) -> bool;

    /// Whether the buffer's data is valid (`BH_Uptodate`). Later reads of the data are ordered
    /// after.
    fn is_uptodate(self) -> bool;

    /// Sets `BH_Uptodate`. Earlier writes of the data are ordered before.
    fn set_uptodate(self);

    /// Whether the buffer has a block on the device (`BH_Mapped`).
    fn is_mapped(self) -> bool;

    /// Whether this write found or allocated the block (`BH_New`).
    fn is_new(self) -> bool;

    /// Clears `BH_New`.
    fn clear_new(self);

    /// Whether the block on the device has the data: it is neither delayed nor unwritten.
    fn is_on_device(self) -> bool;

    /// Makes the buffer, its folio and its inode dirty. The buffer must be up to date, or C warns.
    /// Takes the locks of the inode and of the page cache; does not sleep.
    fn mark_dirty(self);

    /// Sleeps until no I/O holds the buffer.
    fn wait(self);
}

/// The buffers of a locked folio.
pub trait Ring {
    /// A buffer.
    type Buffer: Buffer;

    /// The buffers of `blocks`, in order.
    fn buffers(&self, blocks: Range<usize>) -> impl Iterator<Item = Self::Buffer>;
}

/// What a file system does for [`begin`].
pub trait FileSystem<B> {
    /// Why a buffer could not be prepared.
    type Error;

    /// A buffer in the range was new before the walk reached it.
    fn found_new(&self);

    /// Maps `buffer`, the folio's `block`, to a block on the device.
    fn map(&self, buffer: B, block: usize) -> Result<(), Self::Error>;

    /// [`map`](Self::map) made `buffer` new, in a folio that is up to date.
    fn new_in_uptodate(&self, buffer: B);

    /// Zeroes the bytes of the folio's `block` that lie outside the range.
    fn zero_outside(&self, block: usize);

    /// Starts to read `buffer`.
    fn read(&self, buffer: B);

    /// The error of a read that failed.
    fn read_error(&self) -> Self::Error;

    /// Cleans up: new blocks in the range that were not up to date are zeroed.
    fn abort(&self);
}

/// Whether all buffers in `range` are ready for a write: [`begin`] has nothing to do.
///
/// True for most writes to cached data.
#[inline]
pub fn is_ready<R: Ring>(ring: &R, range: &BlockRange) -> bool {
    ring.buffers(range.touched()).all(Buffer::is_ready)
}

/// Prepares the buffers of `ring` for a write of `range`. `uptodate` is the folio's state when its
/// lock was taken.
///
/// # Errors
///
/// The first error of [`FileSystem::map`], without touching the buffers after it, or the error of a
/// read; [`FileSystem::abort`] was called.
///
/// C counterparts: `__block_write_begin_int()`, `ext4_block_write_begin()`.
#[inline]
pub fn begin<R: Ring, F: FileSystem<R::Buffer>>(
    ring: &R,
    range: &BlockRange,
    uptodate: bool,
    fs: &F,
) -> Result<(), F::Error> {
    let result = if range.is_whole() {
        begin_whole(ring, range, uptodate, fs)
    } else {
        begin_part(ring, range, uptodate, fs)
    };
    if result.is_err() {
        fs.abort();
    }
    result
}

/// [`begin`] for the whole folio: no block is partial, so nothing is read.
#[inline]
fn begin_whole<R: Ring, F: FileSystem<R::Buffer>>(
    ring: &R,
    range: &BlockRange,
    uptodate: bool,
    fs: &F,
) -> Result<(), F::Error> {
    let mut block = 0;
    for buffer in ring.buffers(0..range.blocks()) {
        prepare(buffer, block, || false, uptodate, fs)?;
        block = block.wrapping_add(1);
    }
    Ok(())
}

/// [`begin`] for a part of the folio.
fn begin_part<R: Ring, F: FileSystem<R::Buffer>>(
    ring: &R,
    range: &BlockRange,
    uptodate: bool,
    fs: &F,
) -> Result<(), F::Error> {
    let touched = range.touched();
    let mut block = touched.start;
    let mut result = Ok(());
    // Only the first and the last block of the range may be partial: at most two reads.
    let mut reads = (None, None);
    for buffer in ring.buffers(touched) {
        match prepare(buffer, block, || range.is_partial(block), uptodate, fs) {
            Ok(true) => reads = (Some(buffer), reads.0),
            Ok(false) => {}
            Err(error) => {
                result = Err(error);
                break;
            }
        }
        block = block.wrapping_add(1);
    }
    for buffer in reads.0.into_iter().chain(reads.1) {
        buffer.wait();
        if !buffer.is_uptodate() {
            result = Err(fs.read_error());
        }
    }
    result
}

/// Prepares one buffer, the folio's `block`, which is in the range. Returns whether a read was
/// started.
#[inline]
fn prepare<B: Buffer, F: FileSystem<B>>(
    buffer: B,
    block: usize,
    is_partial: impl Fn() -> bool,
    uptodate: bool,
    fs: &F,
) -> Result<bool, F::Error> {
    if buffer.is_new() {
        fs.found_new();
        buffer.clear_new();
    }
    if !buffer.is_mapped() {
        fs.map(buffer, block)?;
        if buffer.is_new() {
            if uptodate {
                fs.new_in_uptodate(buffer);
            } else if is_partial() {
                fs.zero_outside(block);
            }
            return Ok(false);
        }
    }
    if uptodate {
        buffer.set_uptodate();
        return Ok(false);
    }
    let reads = is_partial() && !buffer.is_uptodate() && buffer.is_on_device();
    if reads {
        fs.read(buffer);
    }
    Ok(reads)
}

/// Makes the buffers of `ring` that are in `range` up to date and dirty. `uptodate` is the folio's
/// state when its lock was taken. Returns true if the folio was not up to date and is up to date
/// now: then the caller marks the folio.
///
/// C counterpart: `block_commit_write()`.
#[inline]
pub fn commit<R: Ring>(ring: &R, range: &BlockRange, uptodate: bool) -> bool {
    if range.is_whole() {
        ring.buffers(0..range.blocks()).for_each(written);
    } else if uptodate {
        ring.buffers(range.touched()).for_each(written);
    } else {
        return commit_and_discover(ring, range);
    }
    !uptodate
}

/// [`commit`] to a part of a folio that was not up to date.
fn commit_and_discover<R: Ring>(ring: &R, range: &BlockRange) -> bool {
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

/// Marks `buffer` after its data was written.
#[inline]
fn written<B: Buffer>(buffer: B) {
    buffer.set_uptodate();
    buffer.mark_dirty();
    if buffer.is_new() {
        buffer.clear_new();
    }
}
