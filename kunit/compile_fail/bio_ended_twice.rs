// SPDX-License-Identifier: GPL-2.0
// compile error: E0382

//! A bio belongs to its submitter once it is ended.

use kernel::bio::CompletedBio;

/// The second time it may have been freed.
pub fn misuse(bio: CompletedBio) {
    bio.end();
    bio.end();
}
