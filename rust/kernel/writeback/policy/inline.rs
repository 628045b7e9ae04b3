// SPDX-License-Identifier: GPL-2.0

//! What kernels before 7.2 did: each writer starts the writeback of what it has written.

use super::{Action, Policy};

pub(super) const POLICY: Policy = Policy {
    name: c"inline",
    has_flusher: false,
    after: |written, _| Action::Flush(written),
};
