// SPDX-License-Identifier: GPL-2.0

//! When a folio counts, and how much a CPU may count locally.

#![cfg(not(loom))]

use writeback::account::{change, cpu_batch, Flags};

#[test]
fn cpus_hide_no_more_than_2_mib() {
    assert_eq!(cpu_batch(12, 1), 512);
    for cpus in [2, 64, 512] {
        assert!(cpu_batch(12, cpus) * cpus as i32 <= 512);
    }
    assert_eq!(cpu_batch(16, 8192), 1);
}

const fn flags(dirty: bool, dropbehind: bool) -> Flags {
    Flags { dirty, dropbehind }
}

#[test]
fn only_dirty_dropbehind_folios_count() {
    assert!(flags(true, true).counts());
    assert!(!flags(true, false).counts());
    assert!(!flags(false, true).counts());
    assert!(!flags(false, false).counts());
}

#[test]
fn the_first_flag_to_be_cleared_uncounts() {
    let before = flags(true, true);
    assert_eq!(change(before, flags(false, true)), -1);
    assert_eq!(change(before, before.claimed()), -1);
}

#[test]
fn the_second_flag_to_be_cleared_changes_nothing() {
    let cleaned = flags(false, true);
    assert_eq!(change(cleaned, cleaned.claimed()), 0);
    assert_eq!(change(flags(true, true).claimed(), flags(false, false)), 0);
}

#[test]
fn the_second_flag_to_be_set_counts() {
    assert_eq!(change(flags(false, true), flags(true, true)), 1);
    assert_eq!(change(flags(true, false), flags(true, false).marked()), 1);
    assert_eq!(change(flags(false, false), flags(false, false).marked()), 0);
    assert_eq!(change(flags(false, false), flags(true, false)), 0);
    assert_eq!(change(flags(true, true), flags(true, true)), 0);
}
