/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of the pace at which a wb's flusher writes for DONTCACHE writers. See
 * rust/kernel/wb_pace.rs.
 */
#ifndef _LINUX_RUST_PACE_H
#define _LINUX_RUST_PACE_H

struct rust_pace {
	unsigned long	served;		/* last served, in jiffies */
	unsigned long	due;		/* left pages are due, in jiffies */
	/* disk counters at the start of the last round */
	unsigned long	writes;
	unsigned long	sectors;
	unsigned int	average;	/* past request size, in KiB */
	unsigned int	queued;		/* pages enough in flight, or 0 */
	/* progress of the wb since the last sample */
	long		looked;		/* sample time, in ns */
	unsigned long	written;	/* pages then */
	/* set only while the flusher writes */
	long		portion;	/* max pages of an inode */
};

/* Total writes of a disk. */
struct rust_disk_writes {
	unsigned long	writes;
	unsigned long	sectors;
	bool		counts;		/* iostats are enabled */
};

#endif /* _LINUX_RUST_PACE_H */
