// SPDX-License-Identifier: GPL-2.0

//! Interleavings of folios that are dirtied, that come from another wb and that are cleaned
//! with a look for a residue: what is accounted at that moment is never taken for one. Run with
//! `RUSTFLAGS="--cfg loom"`.
//!
//! A lock for readers and writers stands for RCU: who has been a writer has waited for all readers.
//! Each mutant leaves out what the look depends on; the model has to find it.
//!
//! Interleavings that preempt at most three times are tried; with `LOOM_MAX_PREEMPTIONS=100` the
//! others as well, for some minutes.

#![cfg(loom)]

use loom::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use loom::sync::{Arc, RwLock};
use loom::thread;
use std::cell::Cell;
use writeback::residue::{residue, Wb};

const CPUS: usize = 2;

/// What is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// One of the three waits.
    NoWait(usize),
    /// That pages come from another wb is not noted.
    NoNote,
}

/// A counter, a part of it for each CPU.
#[derive(Default)]
struct PerCpu([AtomicI64; CPUS]);

impl PerCpu {
    fn add(&self, cpu: usize, pages: i64) {
        self.0[cpu].fetch_add(pages, Ordering::Relaxed);
    }

    fn sum(&self) -> i64 {
        self.0.iter().map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

struct Model {
    mutant: Mutant,
    accounting: RwLock<()>,
    dontcache_dirty: PerCpu,
    dirty: PerCpu,
    dirtied: PerCpu,
    come: AtomicBool,
}

impl Wb for Model {
    fn dontcache_dirty(&self) -> i64 {
        self.dontcache_dirty.sum()
    }

    fn dirty(&self) -> i64 {
        self.dirty.sum()
    }

    fn dirtied(&self) -> i64 {
        self.dirtied.sum()
    }

    fn has_come(&self) -> bool {
        self.come.load(Ordering::Relaxed)
    }
}

impl Model {
    /// A wb whose counter claims so many pages too many.
    fn new(mutant: Mutant, too_many: i64) -> Self {
        let model = Self {
            mutant,
            accounting: RwLock::new(()),
            dontcache_dirty: PerCpu::default(),
            dirty: PerCpu::default(),
            dirtied: PerCpu::default(),
            come: AtomicBool::new(false),
        };
        model.dontcache_dirty.add(0, too_many);
        model
    }

    fn dirty_one(&self, cpu: usize) {
        let _section = self.accounting.read().unwrap();
        self.dontcache_dirty.add(cpu, 1);
        self.dirty.add(cpu, 1);
        self.dirtied.add(cpu, 1);
    }

    fn one_comes(&self, cpu: usize) {
        let _section = self.accounting.read().unwrap();
        self.dontcache_dirty.add(cpu, 1);
        if self.mutant != Mutant::NoNote {
            self.come.store(true, Ordering::Relaxed);
        }
        self.dirty.add(cpu, 1);
    }

    fn clean_one(&self, cpu: usize) {
        let _section = self.accounting.read().unwrap();
        self.dontcache_dirty.add(cpu, -1);
        self.dirty.add(cpu, -1);
    }

    fn residue(&self) -> i64 {
        let waits = Cell::new(0);
        residue(self, || {
            waits.set(waits.get() + 1);
            if self.mutant != Mutant::NoWait(waits.get()) {
                drop(self.accounting.write().unwrap());
            }
        })
    }
}

/// A folio is cleaned, and another one dirtied or taken over, and cleaned.
fn check(mutant: Mutant, too_many: i64, begin: fn(&Model, usize)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        let model = Arc::new(Model::new(mutant, too_many));
        model.dirty_one(0);
        let cleaner = {
            let model = model.clone();
            thread::spawn(move || model.clean_one(0))
        };
        let other = {
            let model = model.clone();
            thread::spawn(move || {
                begin(&model, 1);
                model.clean_one(1);
            })
        };
        let seen = model.residue();
        assert!(
            seen == 0 || seen == too_many,
            "what is accounted was taken for a residue"
        );
        cleaner.join().unwrap();
        other.join().unwrap();
        // As the flusher does before it looks.
        model.come.store(false, Ordering::Relaxed);
        assert_eq!(model.residue(), too_many, "a residue was not found");
    });
}

#[test]
fn what_is_accounted_is_no_residue() {
    check(Mutant::None, 0, Model::dirty_one);
    check(Mutant::None, 0, Model::one_comes);
}

#[test]
fn a_residue_is_found_as_it_is() {
    for pages in [1, -1] {
        check(Mutant::None, pages, Model::dirty_one);
    }
}

#[test]
#[should_panic(expected = "what is accounted was taken for a residue")]
fn a_missing_first_wait_is_caught() {
    check(Mutant::NoWait(1), 0, Model::dirty_one);
}

#[test]
#[should_panic(expected = "what is accounted was taken for a residue")]
fn a_missing_second_wait_is_caught() {
    check(Mutant::NoWait(2), 0, Model::dirty_one);
}

#[test]
#[should_panic(expected = "what is accounted was taken for a residue")]
fn a_missing_third_wait_is_caught() {
    check(Mutant::NoWait(3), 0, Model::dirty_one);
}

#[test]
#[should_panic(expected = "what is accounted was taken for a residue")]
fn pages_that_come_unnoticed_are_caught() {
    check(Mutant::NoNote, 0, Model::one_comes);
}
