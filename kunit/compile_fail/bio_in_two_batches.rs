// SPDX-License-Identifier: GPL-2.0
// compile error: E0382

//! A bio is in one list at most.

use kernel::bio::{BioBatch, CompletedBio};

/// It has one pointer to the next.
pub fn misuse(one: &BioBatch, other: &BioBatch, bio: CompletedBio) {
    one.add(bio);
    other.add(bio);
}
