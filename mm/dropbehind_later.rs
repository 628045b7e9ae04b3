// SPDX-License-Identifier: GPL-2.0

//! Folios that were to leave the page cache while somebody else had them locked or in use.

use kernel::{
    bindings,
    folio::Folio,
    leftovers::Leftovers,
    percpu::CpuGuard,
    prelude::*, //
};

/// Tries again to drop `folio`, in a while.
///
/// Where the CPU has remembered as many as it can, and where all tries fail, the folio stays until
/// it is reclaimed, as it does with C.
///
/// Context: any.
///
/// # Safety
///
/// `folio` must point at a folio that is or was in a page cache and is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_drop_later(folio: *mut bindings::folio) {
    // SAFETY: The caller promises a live folio of a page cache.
    let folio = unsafe { Folio::from_raw(folio) };
    Leftovers::per_cpu().this(&CpuGuard::new()).add(folio);
}

/// Tries to drop what is in `leftovers`.
///
/// # Safety
///
/// `leftovers` must point at those of a CPU, and the caller must be the work that is part of them.
#[export]
pub unsafe extern "C" fn rust_leftovers_try(leftovers: *mut bindings::rust_leftovers) {
    // SAFETY: The caller promises it.
    unsafe { Leftovers::from_raw(leftovers) }.try_all();
}
