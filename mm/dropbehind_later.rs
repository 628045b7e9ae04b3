// SPDX-License-Identifier: GPL-2.0

//! Folios that were to leave the page cache while somebody else had them locked or in use.

use core::cell::Cell;
use kernel::{
    alloc::flags::{
        GFP_NOWAIT,
        __GFP_NOWARN, //
    },
    bindings,
    folio::Folio,
    impl_has_delayed_work,
    new_delayed_work,
    prelude::*,
    sync::aref::ARef,
    time::msecs_to_jiffies,
    workqueue::{
        self,
        DelayedWork,
        WorkItem, //
    }, //
};

/// How often it is tried. The waits double, from a millisecond: a second in all.
const TRIES: u32 = 10;

/// A folio that is to be dropped, and the work that tries to.
#[pin_data]
struct Leftover {
    folio: ARef<Folio>,
    tried: Cell<u32>,
    #[pin]
    work: DelayedWork<Leftover>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Leftover { self.work }
}

impl WorkItem for Leftover {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        if let Some(guard) = this.folio.try_lock() {
            guard.end_dropbehind();
        }
        this.tried.set(this.tried.get().wrapping_add(1));
        if this.is_left() && this.tried.get() < TRIES {
            this.try_later();
        }
    }
}

impl Leftover {
    /// Whether the folio is still to be dropped, and nothing else will see to it.
    fn is_left(&self) -> bool {
        let folio = &self.folio;
        folio.test_dropbehind() && !folio.test_dirty() && !folio.test_writeback()
    }

    fn try_later(self: Pin<KBox<Self>>) {
        let wait = msecs_to_jiffies(1u32.wrapping_shl(self.tried.get()));
        workqueue::system().enqueue_delayed(self, wait);
    }
}

/// Tries again to drop `folio`, in a while.
///
/// Where there is no memory to remember it in, and where all tries fail, the folio stays until it
/// is reclaimed, as it does with C.
///
/// Context: any.
///
/// # Safety
///
/// `folio` must point at a folio that is or was in a page cache and is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_drop_later(folio: *mut bindings::folio) {
    // SAFETY: The caller promises a live folio of a page cache.
    let folio: ARef<Folio> = unsafe { Folio::from_raw(folio) }.into();
    let leftover = KBox::pin_init(
        pin_init!(Leftover {
            folio,
            tried: Cell::new(0),
            work <- new_delayed_work!("Leftover::work"),
        }),
        GFP_NOWAIT | __GFP_NOWARN,
    );
    if let Ok(leftover) = leftover {
        leftover.try_later();
    }
}
