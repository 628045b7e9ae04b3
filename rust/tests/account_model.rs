// SPDX-License-Identifier: GPL-2.0

//! Interleavings of contexts that dirty, clean, cancel or claim (clear dropbehind) a folio, and of
//! the switch of its inode to another wb. In the end, each wb's counter must match the folio's
//! flags. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! The model also runs the protocol of the C core, and mutants of our protocol. It has to find the
//! races of the C core, and the fault of each mutant.
//!
//! The model tries all interleavings of two actors, and the interleavings of three actors with at
//! most three preemptions. With `LOOM_MAX_PREEMPTIONS=100` it tries all interleavings of three
//! actors, for up to an hour.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicU8, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use writeback::account::{change, Flags};

const DIRTY: u8 = 1;
const DROPBEHIND: u8 = 2;

/// Which context counts, and when.
#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Ours,
    /// A context that has changed one flag reads the other flag afterwards, and counts by both.
    C,
    /// A dropbehind folio is made dirty first, and accounted under the lock.
    DirtyBeforeLock,
    /// A cleaner reads dropbehind after it has cleared dirty.
    LookAfterCleaning,
    /// A cleaner reads dropbehind before it clears dirty.
    LookBeforeCleaning,
    /// Dirty data is cancelled, and the folio is not claimed before.
    CancelWithoutClaim,
    /// A claimer does not take the lock.
    ClaimWithoutLock,
    /// A claimer reads dirty, and clears dropbehind afterwards.
    ClaimInTwoSteps,
    /// A marker does not lock the folio.
    MarkWithoutFolio,
    /// A marker does not take the lock of the page cache.
    MarkWithoutLock,
    /// The switch does not wait for sections that began before its announcement.
    SwitchWithoutWait,
}

/// The state of the folio at the beginning. The folio belongs to the first wb. It is dropbehind,
/// unless the state says otherwise.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Clean,
    /// The folio's dirty data was cancelled, which leaves the dirty tag set.
    CleanTagged,
    Dirty,
    /// The folio is dirty and was migrated. No other context sees the migration itself. C loses
    /// dropbehind.
    Moved,
    /// Clean and not dropbehind.
    Plain,
    /// Dirty and not dropbehind.
    PlainDirty,
}

use Protocol::*;
use Start::*;

/// What an actor adds to the counter of each wb. The order of additions does not matter.
type Change = [i64; 2];
type Actor = fn(&Model) -> Change;
const DIRTIER: Actor = Model::dirty;
const CLEANER: Actor = Model::clean;
const CANCELLER: Actor = Model::cancel;
const CLAIMER: Actor = Model::claim;
const MARKER: Actor = Model::mark;
const SWITCH: Actor = Model::switch;
const WRITER: Actor = Model::write;

struct Model {
    protocol: Protocol,
    flags: AtomicU8,
    /// The lock of the folio.
    folio: Mutex<()>,
    /// The lock of the page cache, and its dirty tag for the folio.
    i_pages: Mutex<bool>,
    /// The wb of the inode: changes under the lock of the page cache.
    wb: AtomicUsize,
    /// A switch to another wb is announced.
    switching: AtomicBool,
    /// One lock for each actor that has wb sections: it is held during the RCU read-side section.
    rcu: [Mutex<()>; 2],
}

fn full_barrier<T>(change: impl FnOnce() -> T) -> T {
    fence(Ordering::SeqCst);
    let was = change();
    fence(Ordering::SeqCst);
    was
}

fn flags(word: u8) -> Flags {
    Flags {
        dirty: word & DIRTY != 0,
        dropbehind: word & DROPBEHIND != 0,
    }
}

impl Model {
    fn new(protocol: Protocol, start: Start) -> Self {
        let (dirty, tagged) = match start {
            Clean | Plain => (0, false),
            CleanTagged => (0, true),
            Dirty | Moved | PlainDirty => (DIRTY, true),
        };
        let dropbehind = match (protocol, start) {
            (C, Moved) | (_, Plain | PlainDirty) => 0,
            _ => DROPBEHIND,
        };
        Self {
            protocol,
            flags: AtomicU8::new(dropbehind | dirty),
            folio: Mutex::new(()),
            i_pages: Mutex::new(tagged),
            wb: AtomicUsize::new(0),
            switching: AtomicBool::new(false),
            rcu: Default::default(),
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    fn fetch_clear(&self, flag: u8) -> Flags {
        flags(full_barrier(|| {
            self.flags.fetch_and(!flag, Ordering::AcqRel)
        }))
    }

    fn test_set_dirty(&self) -> bool {
        full_barrier(|| self.flags.fetch_or(DIRTY, Ordering::AcqRel)) & DIRTY != 0
    }

    fn on_wb(&self, change: i64) -> Change {
        let mut changes = [0; 2];
        changes[self.wb.load(Ordering::Relaxed)] = change;
        changes
    }

    /// A wb section. The inode keeps its wb, because a switch waits for sections that began before
    /// its announcement, and other sections hold the lock. Passes to `change` whether the section
    /// holds the lock.
    fn section(&self, rcu: usize, change: impl FnOnce(bool) -> i64) -> Change {
        let _rcu = self.rcu[rcu].lock().unwrap();
        let announced = self.switching.load(Ordering::Acquire);
        let _lock = announced.then(|| self.i_pages.lock().unwrap());
        self.on_wb(change(announced))
    }

    /// Dirties the folio without its lock, as `mark_buffer_dirty()` and the unmapping of a dirty
    /// pte do.
    fn dirty(&self) -> Change {
        if matches!(self.protocol, C | DirtyBeforeLock) || !self.has(DROPBEHIND) {
            if self.test_set_dirty() {
                return [0; 2];
            }
            let mut tagged = self.i_pages.lock().unwrap();
            let counted = self.on_wb(i64::from(self.has(DROPBEHIND)));
            *tagged = true;
            return counted;
        }
        let mut tagged = self.i_pages.lock().unwrap();
        if self.test_set_dirty() {
            return [0; 2];
        }
        let counted = self.on_wb(i64::from(self.has(DROPBEHIND)));
        *tagged = true;
        counted
    }

    /// Dirties the folio under its lock, as a write does.
    fn write(&self) -> Change {
        let _folio = self.folio.lock().unwrap();
        self.dirty()
    }

    /// Sets dropbehind.
    fn mark(&self) -> Change {
        let locks = self.protocol != MarkWithoutFolio;
        let _folio = locks.then(|| self.folio.lock().unwrap());
        let locks = self.protocol != MarkWithoutLock;
        let _lock = locks.then(|| self.i_pages.lock().unwrap());
        let before = flags(full_barrier(|| {
            self.flags.fetch_or(DROPBEHIND, Ordering::AcqRel)
        }));
        self.on_wb(change(before, before.marked()))
    }

    /// Cleans the folio for I/O, under its lock. The start of the I/O clears the tag.
    fn clean(&self) -> Change {
        let _folio = self.folio.lock().unwrap();
        let change = self.section(0, |_| match self.protocol {
            C | LookAfterCleaning => {
                -i64::from(self.fetch_clear(DIRTY).dirty && self.has(DROPBEHIND))
            }
            LookBeforeCleaning => -i64::from(self.has(DROPBEHIND) && self.fetch_clear(DIRTY).dirty),
            _ => {
                let before = self.fetch_clear(DIRTY);
                change(
                    before,
                    Flags {
                        dirty: false,
                        ..before
                    },
                )
            }
        });
        let mut tagged = self.i_pages.lock().unwrap();
        *tagged &= self.has(DIRTY);
        change
    }

    /// Cancels dirty data of the locked folio, and leaves the tag. As in C, dropbehind is read after
    /// dirty is cleared.
    fn cancel(&self) -> Change {
        let _folio = self.folio.lock().unwrap();
        let claimed = match self.protocol {
            C | CancelWithoutClaim => [0; 2],
            _ => self.claim(),
        };
        let cleaned = self.section(0, |_| {
            -i64::from(self.fetch_clear(DIRTY).dirty && self.has(DROPBEHIND))
        });
        [0, 1].map(|wb| claimed[wb] + cleaned[wb])
    }

    fn claim(&self) -> Change {
        let claim = || {
            let before = self.fetch_clear(DROPBEHIND);
            change(before, before.claimed())
        };
        if !self.has(DROPBEHIND) {
            return [0; 2];
        }
        match self.protocol {
            C if self.fetch_clear(DROPBEHIND).dropbehind && self.has(DIRTY) => {
                self.section(1, |_| -1)
            }
            C => [0; 2],
            ClaimWithoutLock => self.section(1, |_| claim()),
            ClaimInTwoSteps => {
                let _lock = self.i_pages.lock().unwrap();
                let dirty = self.has(DIRTY);
                self.fetch_clear(DROPBEHIND);
                self.on_wb(-i64::from(dirty))
            }
            _ => {
                let _lock = self.i_pages.lock().unwrap();
                self.on_wb(claim())
            }
        }
    }

    /// Switches the inode to the other wb. The switch moves the counted pages of tagged folios
    /// only.
    fn switch(&self) -> Change {
        self.switching.store(true, Ordering::Relaxed);
        // A section that begins after this sees the announcement.
        if self.protocol != SwitchWithoutWait {
            for section in &self.rcu {
                drop(section.lock().unwrap());
            }
        }
        let tagged = self.i_pages.lock().unwrap();
        let moves = *tagged && flags(self.flags.load(Ordering::Relaxed)).counts();
        self.wb.store(1, Ordering::Relaxed);
        self.switching.store(false, Ordering::Release);
        [-i64::from(moves), i64::from(moves)]
    }
}

fn check(protocol: Protocol, start: Start, actors: &'static [Actor]) {
    let mut builder = loom::model::Builder::new();
    if actors.len() > 2 {
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
    }
    builder.check(move || {
        let model = Arc::new(Model::new(protocol, start));
        let (here, others) = actors.split_first().unwrap();
        let spawn = |&actor: &Actor| {
            let model = model.clone();
            thread::spawn(move || actor(&model))
        };
        let others: Vec<_> = others.iter().map(spawn).collect();
        let mut counters = [i64::from(matches!(start, Dirty | Moved)), 0];
        let mut add = |change: Change| (0..2).for_each(|wb| counters[wb] += change[wb]);
        add(here(&model));
        others
            .into_iter()
            .for_each(|other| add(other.join().unwrap()));
        let counts = flags(model.flags.load(Ordering::Relaxed)).counts();
        let expected = model.on_wb(i64::from(counts));
        assert_eq!(counters, expected, "a counter is wrong");
    });
}

macro_rules! right {
    ($($name:ident: $protocol:ident, $starts:expr, $actors:expr;)*) => {
        $(#[test]
        fn $name() {
            $starts.map(|start| check($protocol, start, &$actors));
        })*
    };
}

macro_rules! wrong {
    ($($name:ident: $protocol:ident, $start:ident, $actors:expr;)*) => {
        $(#[test]
        #[should_panic(expected = "a counter is wrong")]
        fn $name() {
            check($protocol, $start, &$actors);
        })*
    };
}

right! {
    ours_without_a_switch: Ours, [Clean, CleanTagged, Dirty], [CLEANER, DIRTIER, CLAIMER];
    ours_with_two_dirtiers: Ours, [Clean, Dirty], [CLEANER, DIRTIER, DIRTIER];
    ours_without_a_claimer: Ours, [Clean, CleanTagged, Dirty], [CLEANER, DIRTIER, SWITCH];
    ours_without_a_cleaner: Ours, [Clean, CleanTagged, Dirty], [CLAIMER, DIRTIER, SWITCH];
    ours_without_a_dirtier: Ours, [Dirty], [CLEANER, CLAIMER, SWITCH];
    ours_cancelled: Ours, [Clean, Dirty], [CANCELLER, DIRTIER, CLAIMER];
    ours_cancelled_and_switched: Ours, [Dirty], [CANCELLER, CLAIMER, SWITCH];
    ours_after_a_move: Ours, [Moved], [CLEANER, SWITCH];
    ours_marked_and_written: Ours, [Plain, PlainDirty, Clean], [MARKER, WRITER, CLAIMER];
    ours_marked_and_cleaned: Ours, [PlainDirty, Dirty], [MARKER, CLEANER, CLAIMER];
    ours_marked_and_cancelled: Ours, [PlainDirty, Dirty], [MARKER, CANCELLER, CLAIMER];
    ours_marked_and_switched: Ours, [Plain, PlainDirty], [MARKER, WRITER, SWITCH];
    c_dirtying_against_cleaning: C, [Clean, CleanTagged, Dirty], [CLEANER, DIRTIER];
    c_switch_against_cleaning: C, [Dirty], [CLEANER, SWITCH];
    c_switch_against_dirtying_what_is_untagged: C, [Clean], [DIRTIER, SWITCH];
}

wrong! {
    c_claim_against_dirtying: C, Clean, [DIRTIER, CLAIMER];
    c_claim_against_cleaning: C, Dirty, [CLEANER, CLAIMER];
    c_claim_against_cancelling: C, Dirty, [CANCELLER, CLAIMER];
    c_claim_against_switch: C, Dirty, [CLAIMER, SWITCH];
    c_switch_against_dirtying: C, CleanTagged, [DIRTIER, SWITCH];
    c_cleaning_after_a_move: C, Moved, [CLEANER];
    c_switch_after_a_move: C, Moved, [SWITCH];
    dirty_before_the_lock_is_caught_by_a_claim: DirtyBeforeLock, Clean, [DIRTIER, CLAIMER];
    dirty_before_the_lock_is_caught_by_a_switch: DirtyBeforeLock, CleanTagged, [DIRTIER, SWITCH];
    a_look_after_cleaning_is_caught: LookAfterCleaning, Dirty, [CLEANER, CLAIMER];
    a_look_before_cleaning_is_caught: LookBeforeCleaning, Dirty, [CLEANER, CLAIMER];
    a_cancelling_without_a_claim_is_caught: CancelWithoutClaim, Dirty, [CANCELLER, CLAIMER];
    a_claim_without_the_lock_is_caught: ClaimWithoutLock, Clean, [DIRTIER, CLAIMER];
    a_claim_in_two_steps_is_caught: ClaimInTwoSteps, Dirty, [CLEANER, CLAIMER];
    a_mark_without_the_folio_is_caught: MarkWithoutFolio, Plain, [MARKER, WRITER];
    a_mark_without_the_lock_is_caught: MarkWithoutLock, PlainDirty, [MARKER, SWITCH];
    a_switch_that_does_not_wait_is_caught: SwitchWithoutWait, Dirty, [CLEANER, SWITCH];
}
