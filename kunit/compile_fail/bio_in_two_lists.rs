// SPDX-License-Identifier: GPL-2.0
// compile error: E0382

//! A bio is in one list at most.

use kernel::{
    bio::{BioList, CompletedBio},
    writeback::batch::List,
};

/// It has one pointer to the next.
pub fn misuse(one: &mut BioList, other: &mut BioList, bio: CompletedBio) {
    one.push(bio);
    other.push(bio);
}
