// SPDX-License-Identifier: GPL-2.0

//! Background writeback comes to the pages as to any others: when they are old, or too many.

use super::{Action, Policy};

pub(super) const POLICY: Policy = Policy {
    name: c"none",
    has_flusher: false,
    after: |_, _| Action::Nothing,
};
