// SPDX-License-Identifier: GPL-2.0

//! Interleavings of those who dirty, clean and claim a folio and of the switch of its inode to
//! another wb: each wb's counter ends as the folio's flags demand. Run with
//! `RUSTFLAGS="--cfg loom"`.
//!
//! The C's protocol is tried beside ours, and the model has to find its races, as it has to find
//! what each mutant breaks of ours.
//!
//! All interleavings of two actors are tried, and those of three that preempt at most three times.
//! With `LOOM_MAX_PREEMPTIONS=100` the others are tried as well, for up to an hour.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicU8, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use writeback::account::{settle, Flags};

const DIRTY: u8 = 1;
const DROPBEHIND: u8 = 2;

/// Who counts, and when.
#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Ours,
    /// Who has changed a flag counts by what it sees of the other one.
    C,
    /// What settles does not look at the flags.
    NoLook,
    /// What settles looks at the flags first, and so counts for a dirtier that waits for the lock.
    LookFirst,
    /// Counted is read, and then written.
    CountedInTwoSteps,
    /// A claimer settles, and takes dropbehind afterwards.
    SettleBeforeClaim,
    /// A claimer takes dropbehind, and begins its section afterwards.
    ClaimBeforeSection,
    /// The switch moves what is dirty and dropbehind.
    SwitchByFlags,
}

/// What the actors find: a dropbehind folio of the first wb.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Clean,
    /// Its dirty data was cancelled, which leaves the tag.
    CleanTagged,
    Dirty,
    /// The same, and then moved in memory, which nobody can see happen: C forgets dropbehind.
    Moved,
    /// One more has made it dirty, and accounts that after all others have ended.
    Dirtied,
}

use Protocol::*;
use Start::*;

/// What an actor adds to the counter of each wb. The order of additions does not matter.
type Change = [i64; 2];
type Actor = fn(&Model) -> Change;
const DIRTIER: Actor = Model::dirty;
const CLEANER: Actor = Model::clean;
const CLAIMER: Actor = Model::claim;
const SWITCH: Actor = Model::switch;

struct Model {
    protocol: Protocol,
    flags: AtomicU8,
    counted: AtomicBool,
    /// The lock of the page cache, and its dirty tag for the folio.
    i_pages: Mutex<bool>,
    /// The wb of the inode: changes under the lock of the page cache.
    wb: AtomicUsize,
    /// A switch to another wb is announced.
    switching: AtomicBool,
    /// One for each actor that has sections: held during RCU's.
    rcu: [Mutex<()>; 2],
}

fn full_barrier<T>(change: impl FnOnce() -> T) -> T {
    fence(Ordering::SeqCst);
    let was = change();
    fence(Ordering::SeqCst);
    was
}

impl Flags for Model {
    fn is_dontcache_dirty(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == DIRTY | DROPBEHIND
    }

    fn test_and_set_counted(&self) -> bool {
        self.exchange_counted(true)
    }

    fn test_and_clear_counted(&self) -> bool {
        self.exchange_counted(false)
    }
}

impl Model {
    fn new(protocol: Protocol, start: Start) -> Self {
        let (dirty, counted, tagged) = match start {
            Clean => (0, false, false),
            CleanTagged => (0, false, true),
            Dirty | Moved => (DIRTY, true, true),
            Dirtied => (DIRTY, false, false),
        };
        let dropbehind = if (protocol, start) == (C, Moved) {
            0
        } else {
            DROPBEHIND
        };
        Self {
            protocol,
            flags: AtomicU8::new(dropbehind | dirty),
            counted: AtomicBool::new(counted),
            i_pages: Mutex::new(tagged),
            wb: AtomicUsize::new(0),
            switching: AtomicBool::new(false),
            rcu: Default::default(),
        }
    }

    fn exchange_counted(&self, counted: bool) -> bool {
        full_barrier(|| {
            if self.protocol == CountedInTwoSteps {
                let was = self.counted.load(Ordering::Acquire);
                self.counted.store(counted, Ordering::Release);
                return was;
            }
            self.counted.swap(counted, Ordering::AcqRel)
        })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    fn test_and_clear(&self, flag: u8) -> bool {
        full_barrier(|| self.flags.fetch_and(!flag, Ordering::AcqRel)) & flag != 0
    }

    /// What the change of a flag adds to the counter. With the C that is `unsettled`.
    fn account(&self, unsettled: i64) -> i64 {
        match self.protocol {
            C => unsettled,
            NoLook if self.exchange_counted(unsettled > 0) == (unsettled > 0) => 0,
            NoLook => unsettled,
            LookFirst => settle(self, self.is_dontcache_dirty()),
            _ => settle(self, unsettled > 0),
        }
    }

    fn on_wb(&self, change: i64) -> Change {
        let mut changes = [0; 2];
        changes[self.wb.load(Ordering::Relaxed)] = change;
        changes
    }

    /// The wb stays the inode's: nobody switches without having waited, or without the lock.
    fn section(&self, rcu: usize, change: impl FnOnce() -> i64) -> Change {
        let _rcu = self.rcu[rcu].lock().unwrap();
        let announced = self.switching.load(Ordering::Acquire);
        let _lock = announced.then(|| self.i_pages.lock().unwrap());
        self.on_wb(change())
    }

    /// Without the folio's lock, as `mark_buffer_dirty()`, or as a dirty pte that is unmapped.
    fn dirty(&self) -> Change {
        if full_barrier(|| self.flags.fetch_or(DIRTY, Ordering::AcqRel)) & DIRTY != 0 {
            return [0; 2];
        }
        self.dirtied()
    }

    fn dirtied(&self) -> Change {
        let mut tagged = self.i_pages.lock().unwrap();
        let mut change = 0;
        if self.has(DROPBEHIND) {
            change = self.account(1);
        }
        *tagged = true;
        self.on_wb(change)
    }

    /// For I/O, whose beginning takes the tag. The lock of the folio allows one at a time.
    fn clean(&self) -> Change {
        let clean = || self.test_and_clear(DIRTY) && self.has(DROPBEHIND);
        let change = self.section(0, || if clean() { self.account(-1) } else { 0 });
        let mut tagged = self.i_pages.lock().unwrap();
        *tagged &= self.has(DIRTY);
        change
    }

    /// The section begins first, or a writeback could take the tag of what is still counted.
    fn claim(&self) -> Change {
        let claim = || self.test_and_clear(DROPBEHIND);
        let settle = || self.account(-1);
        match self.protocol {
            C if claim() && self.has(DIRTY) => self.section(1, settle),
            ClaimBeforeSection if claim() => self.section(1, settle),
            C | ClaimBeforeSection => [0; 2],
            SettleBeforeClaim => self.section(1, || {
                let change = settle();
                claim();
                change
            }),
            _ => self.section(1, || if claim() { settle() } else { 0 }),
        }
    }

    /// Looks at what is tagged only: untagged, a counted folio would not be moved.
    fn switch(&self) -> Change {
        self.switching.store(true, Ordering::Relaxed);
        // Who begins a section after this sees the announcement.
        for section in &self.rcu {
            drop(section.lock().unwrap());
        }
        let tagged = self.i_pages.lock().unwrap();
        let moves = *tagged
            && match self.protocol {
                C | SwitchByFlags => self.is_dontcache_dirty(),
                _ => self.counted.load(Ordering::Relaxed),
            };
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
        if start == Dirtied {
            add(model.dirtied());
        }
        let counts = model.is_dontcache_dirty();
        let expected = model.on_wb(i64::from(counts));
        assert_eq!(counters, expected, "a counter is wrong");
        if protocol != C {
            let counted = model.counted.load(Ordering::Relaxed);
            assert_eq!(counted, counts, "counted is wrong");
        }
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
    ours_without_a_switch: Ours, [Clean, Dirty], [CLEANER, DIRTIER, CLAIMER];
    ours_with_two_dirtiers: Ours, [Clean, Dirty, Dirtied], [CLEANER, DIRTIER, DIRTIER];
    ours_without_a_claimer: Ours, [Clean, CleanTagged, Dirty, Dirtied], [CLEANER, DIRTIER, SWITCH];
    ours_without_a_cleaner: Ours, [Clean, CleanTagged, Dirty, Dirtied], [CLAIMER, DIRTIER, SWITCH];
    ours_without_a_dirtier: Ours, [Dirty, Dirtied], [CLEANER, CLAIMER, SWITCH];
    ours_after_a_move: Ours, [Moved], [CLEANER, SWITCH];
    c_dirtying_against_cleaning: C, [Clean, CleanTagged, Dirty], [CLEANER, DIRTIER];
    c_switch_against_cleaning: C, [Dirty], [CLEANER, SWITCH];
    c_switch_against_dirtying_what_is_untagged: C, [Clean], [DIRTIER, SWITCH];
}

wrong! {
    c_claim_against_dirtying: C, Clean, [DIRTIER, CLAIMER];
    c_claim_against_cleaning: C, Dirty, [CLEANER, CLAIMER];
    c_claim_against_switch: C, Dirty, [CLAIMER, SWITCH];
    c_switch_against_dirtying: C, CleanTagged, [DIRTIER, SWITCH];
    c_cleaning_after_a_move: C, Moved, [CLEANER];
    c_switch_after_a_move: C, Moved, [SWITCH];
    no_look_is_caught: NoLook, Clean, [DIRTIER, CLAIMER];
    a_look_too_early_is_caught: LookFirst, Dirtied, [CLEANER, DIRTIER, SWITCH];
    counted_in_two_steps_is_caught: CountedInTwoSteps, Dirty, [CLEANER, CLAIMER];
    a_settling_before_the_claim_is_caught: SettleBeforeClaim, Dirty, [CLAIMER, DIRTIER];
    a_claim_before_its_section_is_caught: ClaimBeforeSection, Dirty, [CLEANER, CLAIMER, SWITCH];
    a_switch_by_flags_is_caught: SwitchByFlags, CleanTagged, [DIRTIER, SWITCH];
}
