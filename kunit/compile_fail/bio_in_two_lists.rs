// SPDX-License-Identifier: GPL-2.0
// compile error: E0382

//! A bio is in one list at most.

use kernel::bio::{BioTask, CompletedBio};

/// A bio has one `next` pointer.
pub fn misuse(bio: CompletedBio) {
    BioTask::add(bio);
    BioTask::add(bio);
}
