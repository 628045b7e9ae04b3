// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! A ring is walked by a cursor, which makes one turn at most.

use kernel::buffer_head::BufferHead;

/// A buffer does not lead to the next.
pub fn misuse(mut buffer: &BufferHead) {
    loop {
        buffer = buffer.next();
    }
}
