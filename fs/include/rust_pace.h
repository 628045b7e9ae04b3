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
	long		found;		/* by the round that runs, or kept by it */
	/* the disk's, when a round looked last */
	unsigned long	writes;
	unsigned long	sectors;
	unsigned int	average;	/* of what it wrote before, in KiB */
	unsigned int	why;		/* the next round begins */
	/* the wb's, since it was looked at last */
	long		looked;		/* when, in ns */
	unsigned long	written;	/* pages then */
	unsigned int	queued;		/* pages that are enough, or zero */
	/* the flusher's, while it writes */
	unsigned int	request;	/* a large one of the disk, in pages */
	unsigned int	whole;		/* the same, if nothing less is to be */
	unsigned int	rest;		/* pages behind whole ones, of an inode */
	long		portion;	/* pages of an inode at most */
	long		kept;		/* pages, of all */
};

/* What a disk has written since it is there. */
struct rust_disk_writes {
	unsigned long	writes;
	unsigned long	sectors;
	unsigned int	largest;	/* sectors that it takes at once */
	bool		counts;		/* it says that it does */
};

/* Why a round began, as tracepoints tell it; "dontcache" is for its size. */
#ifdef CONFIG_RUST_WRITEBACK
#define EM_DONTCACHE_DEADLINE	\
	EM(WB_REASON_DONTCACHE_DEADLINE, "dontcache_deadline")
#define EM_DONTCACHE_LEFT	\
	EM(WB_REASON_DONTCACHE_LEFT, "dontcache_left")
#define EM_DONTCACHE_SYNC	\
	EM(WB_REASON_DONTCACHE_SYNC, "dontcache_sync")
#else
#define EM_DONTCACHE_DEADLINE
#define EM_DONTCACHE_LEFT
#define EM_DONTCACHE_SYNC
#endif

#endif /* _LINUX_RUST_PACE_H */
