/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Folios that were to leave the page cache while somebody else had them locked
 * or in use: where a CPU keeps them until it has tried again.
 */
#ifndef _LINUX_RUST_LEFTOVERS_H
#define _LINUX_RUST_LEFTOVERS_H

#include <linux/percpu-defs.h>
#include <linux/workqueue.h>

struct folio;

/* What does not fit stays in the page cache until it is reclaimed. */
enum {
	RUST_LEFTOVERS_NR	= 64,
};

struct rust_leftover {
	struct folio	*folio;
	unsigned long	since;		/* jiffies */
};

struct rust_leftovers {
	struct rust_leftover	places[RUST_LEFTOVERS_NR];
	unsigned int		tries;	/* since the last one came */
	struct delayed_work	work;
};

/* mm/rust_drop.c, for rust/kernel/leftovers.rs and drop_queue.rs */
DECLARE_PER_CPU(struct rust_leftovers, rust_leftovers);
bool rust_drop_begin(struct delayed_work *work, unsigned int ms, bool anew);

/* mm/dropbehind_later.rs */
void rust_drop_later(struct folio *folio);
void rust_leftovers_try(struct rust_leftovers *leftovers);

#endif /* _LINUX_RUST_LEFTOVERS_H */
