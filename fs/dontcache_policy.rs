// SPDX-License-Identifier: GPL-2.0

//! The policy: what `generic_write_sync()` calls while it is not the default, and how it is chosen.

use crate::dontcache_kick as kick;
use kernel::{
    bindings,
    error::code::EINVAL,
    ffi::{
        c_char,
        c_int, //
    },
    fs::AddressSpace,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    writeback::policy::{
        find,
        Action,
        Policy,
        Written,
        POLICIES, //
    }, //
};

/// The active policy's place in the list. No other memory goes with it, so it needs no order.
static ACTIVE: Atomic<usize> = Atomic::new(0);

fn active() -> &'static Policy {
    POLICIES.get(ACTIVE.load(Relaxed)).unwrap_or(&POLICIES[0])
}

/// Whether the policy has the flusher write, which does so until nothing is left.
pub(super) fn has_flusher() -> bool {
    active().has_flusher
}

/// Whether it is the default, whose writers let pages gather.
pub(super) fn is_default() -> bool {
    ACTIVE.load(Relaxed) == 0
}

/// Has the active policy see to the `count` bytes in front of `end`, which a `RWF_DONTCACHE` write
/// has put into `mapping`.
///
/// Context: sleeps.
///
/// # Safety
///
/// `mapping` must point at the page cache of an inode that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_policy(
    mapping: *mut bindings::address_space,
    end: bindings::loff_t,
    count: isize,
) {
    // SAFETY: The caller promises a live page cache.
    let cache = unsafe { AddressSpace::from_raw(mapping) };
    let Some(written) = Written::before(end, count) else {
        return;
    };
    match (active().after)(written, cache) {
        Action::Ask => kick::ask_after_write(cache),
        Action::Kick => kick::kick_after_write(cache),
        Action::Flush(range) => cache.flush_range(range),
        Action::FlushAsMany(range) => cache.flush_range_as_many(range),
        Action::Nothing => {}
    }
}

/// Chooses the policy of this name: `-EINVAL` if there is none, otherwise whether it is another one
/// than the default.
///
/// # Safety
///
/// `name` must point at a string that ends with NUL and does not change during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_choose_policy(name: *const c_char) -> c_int {
    // SAFETY: The caller promises a string.
    let name = unsafe { CStr::from_char_ptr(name) };
    let Some(place) = find(name.to_bytes()) else {
        return EINVAL.to_errno();
    };
    ACTIVE.store(place, Relaxed);
    (place != 0).into()
}

/// The name of the active policy.
///
/// # Safety
///
/// None needed: it is as unsafe as whatever C declares.
#[export]
pub unsafe extern "C" fn rust_dontcache_policy_name() -> *const c_char {
    active().name.as_char_ptr()
}
