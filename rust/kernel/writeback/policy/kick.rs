// SPDX-License-Identifier: GPL-2.0

//! The default: the flusher writes as many pages as are counted.

use super::{Action, Policy};

pub(super) const POLICY: Policy = Policy {
    name: c"kick",
    after: |_, _| Action::Kick,
};
