// SPDX-License-Identifier: GPL-2.0

//! As [`inline`](super::inline), held back by two limits: a writer starts nothing while anything of
//! its file is under writeback, and never more than it has written. What is left over stays to the
//! next writer that finds the file idle, and to background writeback.

use super::{Action, Policy};

pub(super) const POLICY: Policy = Policy {
    name: c"rate-limited",
    has_flusher: false,
    after: |written, cache| {
        if cache.is_under_writeback() {
            Action::Nothing
        } else {
            Action::FlushAsMany(written)
        }
    },
};
