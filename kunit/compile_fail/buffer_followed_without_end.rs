// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! A cursor walks a ring, and makes one turn at most.

use kernel::buffer_head::BufferHead;

/// A buffer gives no access to the next one.
pub fn misuse(mut buffer: &BufferHead) {
    loop {
        buffer = buffer.next();
    }
}
