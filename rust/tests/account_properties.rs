// SPDX-License-Identifier: GPL-2.0

//! Random events on random folios: the counter always equals what a recount finds.

#![cfg(not(loom))]

use proptest::prelude::*;
use writeback::account::{self, Flags};

/// A folio as the test sees it: its flags, its size, and the wb that its inode belongs to.
#[derive(Clone, Debug)]
struct Folio {
    flags: Flags,
    pages: i64,
    wb: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Dirty,
    Clean,
    /// An ordinary lookup finds the folio.
    Claim,
    /// The folio leaves the page cache (it is cleaned first) and comes back as new.
    Replace {
        dropbehind: bool,
    },
    /// The folio's inode gets another wb.
    Move(usize),
    /// The folio becomes two of half its size, with its flags.
    Split,
}

const WBS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        Just(Step::Dirty),
        Just(Step::Clean),
        Just(Step::Claim),
        any::<bool>().prop_map(|dropbehind| Step::Replace { dropbehind }),
        (0..WBS).prop_map(Step::Move),
        Just(Step::Split),
    ];
    prop::collection::vec((any::<usize>(), step), 1..200)
}

fn folios() -> impl Strategy<Value = Vec<Folio>> {
    let folio = (0..10u32, 0..WBS).prop_map(|(order, wb)| Folio {
        flags: Flags {
            dirty: false,
            dropbehind: true,
        },
        pages: 1 << order,
        wb,
    });
    prop::collection::vec(folio, 8)
}

/// The truth, from the flags alone.
fn recount(folios: &[Folio], wb: usize) -> i64 {
    let counts = |folio: &&Folio| folio.wb == wb && folio.flags.dirty && folio.flags.dropbehind;
    folios.iter().filter(counts).map(|folio| folio.pages).sum()
}

fn change(folio: &mut Folio, counters: &mut [i64; WBS], after: Flags) {
    counters[folio.wb] += account::change(folio.flags, after) * folio.pages;
    folio.flags = after;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_counter_is_exact_after_every_step(mut folios in folios(), steps in steps()) {
        let mut counters = [0; WBS];
        for (index, step) in steps {
            let index = index % folios.len();
            let folio = &mut folios[index];
            match step {
                Step::Dirty => {
                    let after = Flags { dirty: true, ..folio.flags };
                    change(folio, &mut counters, after);
                }
                Step::Clean => change(folio, &mut counters, folio.flags.cleaned()),
                Step::Claim => change(folio, &mut counters, folio.flags.claimed()),
                Step::Replace { dropbehind } => {
                    change(folio, &mut counters, folio.flags.cleaned());
                    folio.flags.dropbehind = dropbehind;
                }
                Step::Move(wb) => {
                    if folio.flags.counts() {
                        counters[folio.wb] -= folio.pages;
                        counters[wb] += folio.pages;
                    }
                    folio.wb = wb;
                }
                Step::Split => {
                    if folio.pages > 1 {
                        folio.pages /= 2;
                        let half = folio.clone();
                        folios.push(half);
                    }
                }
            }
            for (wb, counter) in counters.iter().enumerate() {
                prop_assert_eq!(*counter, recount(&folios, wb));
            }
        }
        for folio in &mut folios {
            change(folio, &mut counters, folio.flags.cleaned());
        }
        prop_assert_eq!(counters, [0; WBS]);
    }
}
