/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pace at which a wb's flusher writes for DONTCACHE writers: what is
 * remembered of it. See rust/kernel/wb_pace.rs.
 */
#ifndef _LINUX_RUST_PACE_H
#define _LINUX_RUST_PACE_H

struct rust_pace {
	unsigned long	served;		/* when a round ended, in jiffies */
	unsigned long	due;		/* when what is left is, in jiffies */
	unsigned int	delay;		/* for which it waits, in ms */
	unsigned int	inodes;		/* listed since a round, under list_lock */
	long		kick_at;	/* with one of them, in pages */
	long		kick_at_most;	/* with however many */
	long		uncounted;	/* what the common count lacks of them */
	/* the disk's, when a round looked last */
	unsigned long	writes;
	unsigned long	sectors;
	unsigned int	average;	/* of what it wrote before, in KiB */
};

#endif /* _LINUX_RUST_PACE_H */
