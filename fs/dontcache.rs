// SPDX-License-Identifier: GPL-2.0

//! Writeback of the pages that DONTCACHE writes have dirtied. `generic_write_sync()` and the
//! flusher call these functions.

pub mod dontcache_kick;
pub mod dontcache_round;
