// SPDX-License-Identifier: GPL-2.0

//! What the C does: the flusher writes as many pages as are counted, at once.

use super::{Action, Policy};

pub(super) const POLICY: Policy = Policy {
    name: c"kick",
    has_flusher: true,
    after: |_, _| Action::Kick,
};
