// SPDX-License-Identifier: GPL-2.0

//! Drops dropbehind folios from the page cache.

use core::ptr::NonNull;
use kernel::{
    bindings,
    container_of,
    dropbehind::{
        drop_locked,
        end_dropbehind,
        DropRing, //
    },
    folio::Folio,
    prelude::*, //
};

/// Has `folio` dropped if it is dropbehind and clean: a single page by the worker, and a larger
/// folio immediately if the context allows that. If another user of the folio prevents the drop,
/// the drop is tried again for about 600 ms if the ring has room. Meanwhile dropbehind stays set:
/// the folio counts if it becomes dirty, and a lookup can clear the flag.
///
/// Context: any but NMI.
///
/// # Safety
///
/// `folio` must point at a folio that is or was in a page cache and is not freed during the call.
#[export]
pub unsafe extern "C" fn dropbehind_end(folio: *mut bindings::folio) {
    // SAFETY: The caller promises a live folio of a page cache.
    end_dropbehind(unsafe { Folio::from_raw(folio) });
}

/// Drops `folio` if it is dropbehind, clean and not mapped, and its file system frees its private
/// data.
///
/// # Safety
///
/// `folio` must point at a folio that is or was in a page cache, is locked by the current task, and
/// is not freed during the call. The context must be a task with interrupts on.
#[export]
pub unsafe extern "C" fn dropbehind_drop_locked(folio: *mut bindings::folio) {
    // SAFETY: The caller promises what `drop_locked()` requires.
    unsafe { drop_locked(NonNull::new_unchecked(folio)) };
}

/// Drops the folios in the ring of `work`.
///
/// # Safety
///
/// The caller must be the work item of a CPU's ring, which `work` points at.
#[export]
pub unsafe extern "C" fn dropbehind_work(work: *mut bindings::work_struct) {
    // SAFETY: The caller promises a CPU's storage, and to be its work item.
    unsafe {
        let ring = container_of!(work, bindings::dropbehind_ring, work.work);
        DropRing::from_raw(ring).drop_all();
    }
}
