// SPDX-License-Identifier: GPL-2.0
// compile error: E0382

//! An ended bio belongs to its submitter.

use kernel::bio::CompletedBio;

/// The bio may have been freed before the second call.
pub fn misuse(bio: CompletedBio) {
    bio.end();
    bio.end();
}
