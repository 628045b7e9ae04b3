// SPDX-License-Identifier: GPL-2.0

//! The pace of rounds: what a wb begins with, and its bounds in debugfs.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    error::code::EINVAL,
    ffi::{
        c_int,
        c_uint, //
    },
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
    wb_pace::{
        bounds,
        set_bounds,
        WbPace, //
    },
    writeback::pace::Bounds, //
};

/// Kibibytes in a page.
const KIB: i64 = (PAGE_SIZE / 1024) as i64;

/// Sets the pace of a wb that is being made.
///
/// # Safety
///
/// `wb` must point at a wb that nobody else knows yet.
#[export]
pub unsafe extern "C" fn rust_pace_init(wb: *mut bindings::bdi_writeback) {
    // SAFETY: The caller promises memory that is a wb's.
    WbPace::of(unsafe { BdiWriteback::from_raw(wb) }).init();
}

/// Stores the bounds in `numbers`, in the order of `enum rust_pace_bound`.
///
/// # Safety
///
/// `numbers` must point at [`bindings::rust_pace_bound_NR_RUST_PACE_BOUNDS`] numbers that may be
/// written.
#[export]
pub unsafe extern "C" fn rust_pace_get_bounds(numbers: *mut c_uint) {
    let now = bounds();
    let kib = |pages: i64| c_uint::try_from(pages.saturating_mul(KIB)).unwrap_or(c_uint::MAX);
    // SAFETY: The caller promises as many numbers.
    let numbers: &mut Numbers = unsafe { &mut *numbers.cast() };
    *numbers = [
        kib(now.least_pages),
        kib(now.most_pages),
        kib(now.inode_pages),
        now.least_delay_ms,
        now.most_delay_ms,
    ];
}

type Numbers = [c_uint; bindings::rust_pace_bound_NR_RUST_PACE_BOUNDS as usize];

/// Sets the bounds: `-EINVAL` if they are none.
///
/// # Safety
///
/// As for [`rust_pace_get_bounds`]; one caller at a time.
#[export]
pub unsafe extern "C" fn rust_pace_set_bounds(numbers: *const c_uint) -> c_int {
    // SAFETY: The caller promises as many numbers.
    let [least, most, inode, least_delay_ms, most_delay_ms] = unsafe { *numbers.cast::<Numbers>() };
    let pages = |kib: c_uint| i64::from(kib) / KIB;
    let new = Bounds {
        least_pages: pages(least),
        most_pages: pages(most),
        inode_pages: pages(inode),
        least_delay_ms,
        most_delay_ms,
    };
    if !new.are_valid(PAGE_SHIFT as u32) {
        return EINVAL.to_errno();
    }
    set_bounds(new);
    0
}
