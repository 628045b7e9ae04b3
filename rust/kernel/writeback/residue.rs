// SPDX-License-Identifier: GPL-2.0

//! Whether the counter of dirty dropbehind pages claims what is not there.
//!
//! A wb without dirty pages has no dirty dropbehind pages either. But the counters of a wb are
//! changed one after the other, by many CPUs, and cannot be read at one moment; nor need a weakly
//! ordered machine show the changes in the order in which they were made.

/// What is read of a `bdi_writeback`: exact sums over all CPUs, in pages, and unordered.
///
/// What changes for a folio is changed in one section: with interrupts off, or in an RCU read-side
/// critical section.
pub trait Wb {
    /// Dirty dropbehind pages.
    fn dontcache_dirty(&self) -> i64;

    /// Dirty pages.
    fn dirty(&self) -> i64;

    /// Pages dirtied since the wb was made. Pages that come from another wb are not among them.
    fn dirtied(&self) -> i64;

    /// Whether dirty dropbehind pages have come from another wb since the caller forgot of those
    /// before.
    fn has_come(&self) -> bool;
}

/// How many pages the counter of dirty dropbehind pages is too high, or too low if below zero.
///
/// Zero unless it is certain. `wait_for_sections` returns when all sections that are under way at
/// this moment have ended; what they changed is seen afterwards.
///
/// If nothing was dirtied and nothing has come until the end, all dirty pages there ever were are
/// known after the first wait. That none is dirty then means that all of them have been cleaned;
/// after the second wait, that they are out of the count as well. The count is read then. Whoever
/// added to it just before is seen after the third wait. What is redirtied and truncated in between
/// is missed: that does not show in `dirtied`.
pub fn residue(wb: &impl Wb, wait_for_sections: impl Fn()) -> i64 {
    let dirtied = wb.dirtied();
    if wb.dontcache_dirty() == 0 {
        return 0;
    }
    wait_for_sections();
    if wb.dirty() != 0 {
        return 0;
    }
    wait_for_sections();
    let claimed = wb.dontcache_dirty();
    wait_for_sections();
    if wb.dirty() != 0 || wb.dirtied() != dirtied || wb.has_come() {
        return 0;
    }
    claimed
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[derive(Default)]
    struct Counters {
        dontcache_dirty: Cell<i64>,
        dirty: Cell<i64>,
        dirtied: Cell<i64>,
        come: Cell<bool>,
    }

    impl Wb for Counters {
        fn dontcache_dirty(&self) -> i64 {
            self.dontcache_dirty.get()
        }
        fn dirty(&self) -> i64 {
            self.dirty.get()
        }
        fn dirtied(&self) -> i64 {
            self.dirtied.get()
        }
        fn has_come(&self) -> bool {
            self.come.get()
        }
    }

    /// The residue of a wb that claims five pages, if something happens at the first, second or
    /// third wait.
    fn residue_if(at: usize, happens: impl Fn(&Counters)) -> i64 {
        let wb = Counters::default();
        let waits = Cell::new(0);
        wb.dontcache_dirty.set(5);
        let found = residue(&wb, || {
            waits.set(waits.get() + 1);
            if waits.get() == at {
                happens(&wb);
            }
        });
        assert!(waits.get() >= at, "not waited so often");
        found
    }

    #[test]
    fn what_nobody_has_is_a_residue() {
        for pages in [5, -5] {
            let wb = Counters::default();
            wb.dontcache_dirty.set(pages);
            assert_eq!(residue(&wb, || ()), pages);
        }
    }

    #[test]
    fn nothing_claimed_waits_for_nobody() {
        assert_eq!(residue(&Counters::default(), || panic!("waited")), 0);
    }

    #[test]
    fn dirty_pages_are_none() {
        for wait in 1..=3 {
            assert_eq!(residue_if(wait, |wb| wb.dirty.set(5)), 0);
        }
    }

    #[test]
    fn dirtied_pages_are_none_once_they_are_clean() {
        for wait in 1..=3 {
            assert_eq!(residue_if(wait, |wb| wb.dirtied.set(5)), 0);
        }
    }

    #[test]
    fn pages_that_come_are_none() {
        for wait in 1..=3 {
            assert_eq!(residue_if(wait, |wb| wb.come.set(true)), 0);
        }
    }

    #[test]
    fn what_is_out_of_the_count_after_two_waits_is_none() {
        for wait in 1..=2 {
            assert_eq!(residue_if(wait, |wb| wb.dontcache_dirty.set(0)), 0);
        }
    }
}
