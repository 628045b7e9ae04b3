// SPDX-License-Identifier: GPL-2.0

//! The default: the flusher writes as many pages as are counted, once there are enough of them or
//! the first has waited for long enough.

use super::{Action, Policy};

pub(super) const POLICY: Policy = Policy {
    name: c"adaptive",
    has_flusher: true,
    after: |_, _| Action::Ask,
};
