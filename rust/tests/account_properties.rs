// SPDX-License-Identifier: GPL-2.0

//! Random events on random folios: the counter always equals what a recount finds.

#![cfg(not(loom))]

use proptest::prelude::*;
use writeback::account::{moved, Event, FolioState};

/// A folio as the test sees it: its flags, its size, and the wb that its inode belongs to.
#[derive(Clone, Debug)]
struct Folio {
    state: FolioState,
    pages: i64,
    wb: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Folio(Event),
    /// The folio leaves the page cache (it is cleaned first) and comes back as new.
    Replace {
        dropbehind: bool,
    },
    /// The folio's inode gets another wb.
    Move(usize),
}

const WBS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        Just(Step::Folio(Event::Dirty)),
        Just(Step::Folio(Event::Clean)),
        Just(Step::Folio(Event::Claim)),
        any::<bool>().prop_map(|dropbehind| Step::Replace { dropbehind }),
        (0..WBS).prop_map(Step::Move),
    ];
    prop::collection::vec((0..8usize, step), 1..200)
}

fn folios() -> impl Strategy<Value = Vec<Folio>> {
    let folio = (0..10u32, 0..WBS).prop_map(|(order, wb)| Folio {
        state: FolioState::DROPBEHIND,
        pages: 1 << order,
        wb,
    });
    prop::collection::vec(folio, 8)
}

/// The truth, from the flags alone.
fn recount(folios: &[Folio], wb: usize) -> i64 {
    folios
        .iter()
        .filter(|folio| folio.wb == wb && folio.state.dirty && folio.state.dropbehind)
        .map(|folio| folio.pages)
        .sum()
}

fn apply(folio: &mut Folio, counters: &mut [i64; WBS], event: Event) {
    counters[folio.wb] += folio.state.change(event, folio.pages);
    folio.state = folio.state.after(event);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_counter_is_exact_after_every_step(mut folios in folios(), steps in steps()) {
        let mut counters = [0; WBS];
        for (index, step) in steps {
            let folio = &mut folios[index];
            match step {
                Step::Folio(event) => apply(folio, &mut counters, event),
                Step::Replace { dropbehind } => {
                    apply(folio, &mut counters, Event::Clean);
                    folio.state.dropbehind = dropbehind;
                }
                Step::Move(wb) => {
                    if folio.state.counts() {
                        let (old, new) = moved(folio.pages);
                        counters[folio.wb] += old;
                        counters[wb] += new;
                    }
                    folio.wb = wb;
                }
            }
            for (wb, counter) in counters.iter().enumerate() {
                prop_assert_eq!(*counter, recount(&folios, wb));
            }
        }
        for folio in &mut folios {
            apply(folio, &mut counters, Event::Clean);
        }
        prop_assert_eq!(counters, [0; WBS]);
    }
}
