// SPDX-License-Identifier: GPL-2.0

//! The buffer walks: what `fs/buffer.c` and file systems call.

use core::ptr::NonNull;
use kernel::{
    bindings,
    buffer_head::{
        self,
        BufferRing, //
    },
    error::code::EINVAL,
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    folio::LockedFolio,
    fs::{
        AddressSpace,
        WriteBegin, //
    },
    prelude::*,
    warn_on,
    writeback::{
        block_range::{
            BlockRange,
            RangeError, //
        },
        buffer_walk::{
            begin,
            commit,
            is_ready, //
        }, //
    }, //
};

/// The bytes `from..to` of the folio that has the buffers `ring`. An invalid range triggers a
/// warning.
#[inline(always)]
fn range_of(ring: &BufferRing<'_>, from: usize, to: usize) -> Result<BlockRange, RangeError> {
    let range = BlockRange::new(ring.folio_size(), ring.block_bits(), from, to);
    warn_on!(range.is_err());
    range
}

/// The same, without what is beyond the folio: what was copied is not to be lost.
#[inline(always)]
fn range_within(ring: &BufferRing<'_>, from: usize, to: usize) -> Result<BlockRange, RangeError> {
    match range_of(ring, from, to) {
        Err(RangeError::BeyondFolio) => range_of(ring, from, ring.folio_size()),
        range => range,
    }
}

/// The `len` bytes at `pos` of the file, in the folio that has the buffers `ring`.
#[inline(always)]
fn range_at(
    ring: &BufferRing<'_>,
    pos: bindings::loff_t,
    len: c_uint,
) -> Result<BlockRange, RangeError> {
    let from = ring.offset_of(pos);
    range_of(ring, from, from.wrapping_add(len as usize))
}

/// Makes the bytes `from..to` of `folio`, which were copied, up to date and dirty.
///
/// Nothing to do for a folio without buffers. A range that the folio cannot have triggers a
/// warning; of one that goes beyond the folio, what is in the folio is committed.
///
/// # Safety
///
/// `folio` must point at a folio that the caller has locked, in a page cache whose folios have
/// buffers or no private data.
#[export]
pub unsafe extern "C" fn rust_block_commit_write(
    folio: *mut bindings::folio,
    from: usize,
    to: usize,
) {
    // SAFETY: The caller promises the lock.
    let folio = unsafe { LockedFolio::assume_locked(folio) };
    // SAFETY: The caller promises buffers or nothing.
    let Some(ring) = (unsafe { BufferRing::of(folio) }) else {
        return;
    };
    let Ok(range) = range_within(&ring, from, to) else {
        return;
    };
    if commit(&ring, &range, folio.test_uptodate()) {
        folio.mark_uptodate();
    }
}

/// Prepares the buffers of `folio` for a write of `len` bytes at `pos` of its file, with the help
/// of the file system's `ops`, and makes the buffers first if there are none.
///
/// Returns zero or a negative error number. A range that the folio cannot have triggers a warning,
/// and is `EINVAL`.
///
/// # Safety
///
/// - `folio` must point at a folio that the caller has locked, in the page cache of an inode whose
///   folios have buffers or no private data;
/// - `ops` must point at valid operations of that inode's file system that take `get_block` and
///   `private`.
#[export]
pub unsafe extern "C" fn rust_write_begin(
    folio: *mut bindings::folio,
    pos: bindings::loff_t,
    len: c_uint,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: *const bindings::rust_write_begin_ops,
) -> c_int {
    // SAFETY: The caller promises the lock.
    let folio = unsafe { LockedFolio::assume_locked(folio) };
    // SAFETY: The caller promises buffers or nothing, and what `prepare()` asks for.
    unsafe {
        match BufferRing::of(folio) {
            Some(_) => prepare_cached(folio, pos, len, get_block, private, ops),
            None => prepare(folio, pos, len, get_block, private, ops),
        }
    }
}

/// The preparation of a folio that has buffers already: often nothing is to do.
///
/// # Safety
///
/// As [`rust_write_begin`].
#[inline(never)]
unsafe fn prepare_cached(
    folio: &LockedFolio,
    pos: bindings::loff_t,
    len: c_uint,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: *const bindings::rust_write_begin_ops,
) -> c_int {
    // SAFETY: The caller promises buffers or nothing.
    if let Some(ring) = unsafe { BufferRing::of(folio) } {
        let Ok(range) = range_at(&ring, pos, len) else {
            return EINVAL.to_errno();
        };
        if is_ready(&ring, &range) {
            return 0;
        }
    }
    // SAFETY: The caller promises the same.
    unsafe { prepare(folio, pos, len, get_block, private, ops) }
}

/// The preparation that has something to do: apart, to keep the common case short.
///
/// # Safety
///
/// As [`rust_write_begin`].
#[inline(never)]
unsafe fn prepare(
    folio: &LockedFolio,
    pos: bindings::loff_t,
    len: c_uint,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: *const bindings::rust_write_begin_ops,
) -> c_int {
    // The C asserts the lock, too. Where there is nothing to prepare, nothing is asserted.
    if warn_on!(!folio.test_locked()) {
        return EINVAL.to_errno();
    }
    // SAFETY: The caller promises an inode's page cache, and the lock keeps the folio in it.
    let inode = unsafe { AddressSpace::from_raw(folio.raw_mapping()) }.host();
    // SAFETY: The same, and the caller promises buffers or nothing.
    let ring = unsafe { BufferRing::of_or_create(folio, inode) };
    let Ok(range) = range_at(&ring, pos, len) else {
        return EINVAL.to_errno();
    };
    // SAFETY: The caller promises the operations, and `inode` is that of the folio's page cache.
    let fs = unsafe {
        WriteBegin::new(
            folio,
            inode,
            &range,
            ring.block_bits(),
            get_block,
            private,
            ops,
        )
    };
    match begin(&ring, &range, folio.test_uptodate(), &fs) {
        Ok(()) => 0,
        Err(error) => error,
    }
}

/// Indexes the new buffers of a folio, so that a write finds its first one at once. Nothing to do
/// for a few, or where there is no memory for it: those are walked.
///
/// # Safety
///
/// `head` must be null, or point at the first of as many linked buffers as the folio has blocks of
/// their size, which nobody else knows. `gfp` must be what they were allocated with.
#[export]
pub unsafe extern "C" fn rust_index_buffers(
    head: *mut bindings::buffer_head,
    folio_size: usize,
    gfp: bindings::gfp_t,
) {
    if let Some(head) = NonNull::new(head) {
        // SAFETY: The caller promises the same, and there are buffers.
        unsafe { buffer_head::index_buffers(head, folio_size, gfp) };
    }
}
