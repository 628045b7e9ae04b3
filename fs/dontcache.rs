// SPDX-License-Identifier: GPL-2.0

//! Writeback of the pages that DONTCACHE writes have dirtied. The callers are
//! `filemap_dontcache_kick_writeback()`, the flusher, and the code that moves an inode between the
//! lists of a wb or creates a wb.

pub mod dontcache_kick;
pub mod dontcache_round;
