// SPDX-License-Identifier: GPL-2.0

//! What becomes of the pages that a DONTCACHE write has dirtied: what `generic_write_sync()` and
//! the flusher call.

pub mod dontcache_kick;
pub mod dontcache_pace;
pub mod dontcache_policy;
pub mod dontcache_round;
