// SPDX-License-Identifier: GPL-2.0
/*
 * Drives the C and the Rust core through the same random writes to two twin
 * folios. block_commit_write(), __block_write_begin_int() (with get_block and
 * with an iomap) and ext4_block_write_begin() must return the same values, make
 * the same requests to the file system and the disk in the same order, and
 * leave the same buffers, folio flags and data.
 *
 * They differ on purpose in one case. If the folio is up to date on entry, Rust
 * leaves the buffers outside the range as they are. C visits some of them:
 *
 * - In write_begin, C sets BH_Uptodate. All data of an up-to-date folio is
 *   valid, whatever a buffer says, and readers check the folio first. A buffer
 *   loses the bit when its write fails. The next write to that buffer sets the
 *   bit again. Only bread(), in the cache of a block device, checks the buffer
 *   alone. It then reads the device, as with either core if no write touches
 *   another part of the folio.
 *
 * - In commit, C clears BH_New. get_block sets the bit under the folio lock.
 *   Under the same lock, the commit clears it from copied buffers, and
 *   folio_zero_new_buffers() from the rest of the range. So no buffer of an
 *   up-to-date folio has the bit when the next write begins.
 *
 * Not tested are states in which C warns: a new buffer in the range of ext4's
 * walk, and, in an up-to-date folio, one that is new but not up to date in the
 * range of a write_begin (if get_block failed, it would be dirtied as it is).
 */
#include <kunit/test.h>
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/hash.h>
#include <linux/iomap.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/prandom.h>
#include <linux/pseudo_fs.h>
#include <linux/rust_writeback_kunit.h>
#include <linux/writeback.h>
#include "ext4/ext4.h"
#include "ext4/ext4_jbd2.h"
#include "internal.h"

#define TWIN_MAGIC	0x7477696e
#define MAX_ORDER	9
#define MIN_BLOCK_BITS	SECTOR_SHIFT
#define MAX_BLOCK_BITS	16
#define MAX_BUFFERS	(PAGE_SIZE << MAX_ORDER >> MIN_BLOCK_BITS)
#define MAX_EVENTS	(MAX_BUFFERS + 2)	/* a range has two ends */

/* Small folios are quick to test, and find most bugs. */
#define NR_TRIALS(order) max(8192 >> (order), 320)

/* Disk block of block 0 of a file. */
#define FIRST_BLOCK	4096

static unsigned long replay;
module_param(replay, ulong, 0);
MODULE_PARM_DESC(replay, "run only the trial with this seed");

enum walk { COMMIT_WRITE, WRITE_BEGIN, WRITE_BEGIN_IOMAP, EXT4_WRITE_BEGIN };

static const char *const walk_names[] = {
	[COMMIT_WRITE]		= "block_commit_write",
	[WRITE_BEGIN]		= "__block_write_begin_int",
	[WRITE_BEGIN_IOMAP]	= "__block_write_begin_int, iomap",
	[EXT4_WRITE_BEGIN]	= "ext4_block_write_begin",
};

struct buffer {
	unsigned long		state;
	sector_t		block;
	struct block_device	*bdev;
};

enum { EVENT_GET_BLOCK, EVENT_READ, EVENT_WRITE };

/* A request of a walk to the file system or disk; without padding. */
struct event {
	u32			what;
	u32			how;	/* create; flags of the bio */
	u64			where;	/* block of the file, sector */
	u64			state;	/* of the buffer; length of the I/O */
	u64			offset;	/* of the buffer in its folio */
};

struct twin {
	struct inode		*inode;
	struct folio		*folio;
	struct event		*events;
	unsigned int		nr_events;
	unsigned int		nr_get_blocks;
	int			ret;
};

/* A write and the state before it. The seed determines all of it. */
struct trial {
	u64			seed;
	enum walk		walk;
	unsigned int		order;
	unsigned int		block_bits;
	pgoff_t			index;
	size_t			from;
	size_t			to;
	loff_t			i_size;
	bool			uptodate;
	bool			dirty;
	struct iomap		iomap;
	unsigned int		get_block_bits;	/* that get_block may set */
	unsigned int		failing_call;	/* of get_block */
	int			error;
	bool			reads_fail;	/* some of them */
};

struct tally {
	unsigned long		trials;
	unsigned long		get_blocks;
	unsigned long		reads;
	unsigned long		no_space;
	unsigned long		io_errors;
	unsigned long		changed_data;
	unsigned long		made_uptodate;
	unsigned long		made_dirty;
	unsigned long		only_c_changed;
};

struct pair {
	struct vfsmount		*mnt;
	struct gendisk		*disk;
	struct twin		twins[NR_CORES];
	struct twin		*running;	/* its I/O reaches the disk */
	struct trial		trial;
	struct buffer		*before;
	struct tally		tally;
	/* With a store, the disk keeps written data. */
	void			*store;
	sector_t		store_start;
	sector_t		bad_sector;
};

static unsigned int trial_buffers(const struct trial *trial)
{
	return PAGE_SIZE << trial->order >> trial->block_bits;
}

static bool touched(const struct trial *trial, unsigned int nr)
{
	size_t start = (size_t)nr << trial->block_bits;
	size_t end = start + BIT(trial->block_bits);

	return end > trial->from && start < trial->to;
}

/* A draw does not depend on earlier draws: both twins get the same values. */
static u32 draw_of(const struct trial *trial, u64 where, unsigned int bits)
{
	return hash_64(hash_64(where, 32) ^ hash_64(trial->seed, 32), bits);
}

static void note(struct twin *twin, struct event event)
{
	if (twin->nr_events < MAX_EVENTS)
		twin->events[twin->nr_events] = event;
	twin->nr_events++;
}

static int twin_get_block(struct inode *inode, sector_t block,
			  struct buffer_head *bh, int create)
{
	struct pair *pair = inode->i_private;
	struct trial *trial = &pair->trial;
	struct twin *twin = pair->running;
	u32 draw = draw_of(trial, block, 5) & trial->get_block_bits;

	note(twin, (struct event) {
		.what	= EVENT_GET_BLOCK,
		.where	= block,
		.state	= bh->b_state,
		.offset	= bh_offset(bh),
		.how	= create,
	});
	if (++twin->nr_get_blocks == trial->failing_call)
		return trial->error;
	bh->b_bdev = pair->disk->part0;
	bh->b_blocknr = FIRST_BLOCK + block;
	set_buffer_mapped(bh);
	if (draw & 1)
		set_buffer_new(bh);
	if (draw & 2)
		set_buffer_delay(bh);
	if (draw & 4)
		set_buffer_unwritten(bh);
	if (draw >> 3 == 3)
		set_buffer_uptodate(bh);
	return 0;
}

static bool disk_fails(struct pair *pair, struct bio *bio)
{
	sector_t sector = bio->bi_iter.bi_sector;

	if (pair->store)
		return bio_data_dir(bio) == WRITE && sector == pair->bad_sector;
	return pair->trial.reads_fail && !draw_of(&pair->trial, sector, 1);
}

static void disk_transfer(struct pair *pair, struct bio *bio, sector_t sector,
			  void *data)
{
	void *stored = pair->store;

	if (!stored) {
		memset(data, draw_of(&pair->trial, sector, 8), SECTOR_SIZE);
		return;
	}
	stored += (sector - pair->store_start) << SECTOR_SHIFT;
	if (bio_data_dir(bio) == WRITE)
		memcpy(stored, data, SECTOR_SIZE);
	else
		memcpy(data, stored, SECTOR_SIZE);
}

static void disk_submit_bio(struct bio *bio)
{
	struct pair *pair = bio->bi_bdev->bd_disk->private_data;
	sector_t sector = bio->bi_iter.bi_sector;
	struct bvec_iter iter;
	struct bio_vec bvec;

	note(pair->running, (struct event) {
		.what	= bio_data_dir(bio) == WRITE ? EVENT_WRITE : EVENT_READ,
		.how	= bio->bi_opf,
		.where	= sector,
		.state	= bio->bi_iter.bi_size,
	});
	if (disk_fails(pair, bio)) {
		bio_set_flag(bio, BIO_QUIET);
		bio_io_error(bio);
		return;
	}
	bio_for_each_segment(bvec, bio, iter) {
		void *data = bvec_virt(&bvec);

		for (unsigned int at = 0; at < bvec.bv_len; at += SECTOR_SIZE)
			disk_transfer(pair, bio, sector++, data + at);
	}
	bio_endio(bio);
}

static const struct block_device_operations disk_ops = {
	.owner		= THIS_MODULE,
	.submit_bio	= disk_submit_bio,
};

static const struct address_space_operations twin_aops = {
	.dirty_folio	= block_dirty_folio,
};

static int twin_init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, TWIN_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type twin_fs_type = {
	.name			= "buffer_walk_twin",
	.init_fs_context	= twin_init_fs_context,
	.kill_sb		= kill_anon_super,
};

/*
 * The folios are not in the page cache, which may support small folios only:
 * the walks need only their mapping. The inode is not hashed, so the flusher
 * does not search it for dirty folios.
 */
static void twin_init(struct kunit *test, struct twin *twin)
{
	struct pair *pair = test->priv;

	twin->inode = new_inode(pair->mnt->mnt_sb);
	KUNIT_ASSERT_NOT_NULL(test, twin->inode);
	twin->inode->i_mode = S_IFREG | 0600;
	twin->inode->i_private = pair;
	twin->inode->i_mapping->a_ops = &twin_aops;
	twin->events = kunit_kcalloc(test, MAX_EVENTS, sizeof(struct event),
				     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, twin->events);
}

/* A locked folio of the trial's size and block size. */
static void twin_get_folio(struct kunit *test, enum core core)
{
	struct pair *pair = test->priv;
	const struct trial *trial = &pair->trial;
	struct twin *twin = &pair->twins[core];

	twin->inode->i_blkbits = trial->block_bits;
	twin->folio = folio_alloc(GFP_KERNEL, trial->order);
	KUNIT_ASSERT_NOT_NULL(test, twin->folio);
	folio_lock(twin->folio);
	twin->folio->mapping = twin->inode->i_mapping;
	set_core(core);
	create_empty_buffers(twin->folio, BIT(trial->block_bits), 0);
}

static void twin_put_folio(struct twin *twin)
{
	struct buffer_head *head, *bh;

	if (!twin->folio)
		return;
	head = folio_buffers(twin->folio);
	bh = head;
	do {
		bh->b_state = 0;
	} while ((bh = bh->b_this_page) != head);
	try_to_free_buffers(twin->folio);
	twin->folio->mapping = NULL;
	folio_unlock(twin->folio);
	folio_put(twin->folio);
	twin->folio = NULL;
}

/* Set the state of the trial, independent of the last trial. */
static void twin_prepare(struct pair *pair, struct twin *twin)
{
	const struct trial *trial = &pair->trial;
	const struct buffer *before = pair->before;
	struct folio *folio = twin->folio;
	struct buffer_head *head = folio_buffers(folio), *bh = head;

	i_size_write(twin->inode, trial->i_size);
	folio->index = trial->index;
	folio_cancel_dirty(folio);
	if (trial->dirty)
		filemap_dirty_folio(folio->mapping, folio);
	if (trial->uptodate)
		folio_mark_uptodate(folio);
	else
		folio_clear_uptodate(folio);
	memset(folio_address(folio), (u8)~trial->seed, folio_size(folio));
	do {
		bh->b_state = before->state;
		bh->b_blocknr = before->block;
		bh->b_bdev = before->bdev;
		before++;
	} while ((bh = bh->b_this_page) != head);
	twin->nr_events = 0;
	twin->nr_get_blocks = 0;
}

static int twin_walk(struct pair *pair, struct twin *twin, enum walk walk,
		     size_t from, size_t to)
{
	struct folio *folio = twin->folio;
	loff_t pos = folio_pos(folio) + from;

	pair->running = twin;
	switch (walk) {
	case COMMIT_WRITE:
		block_commit_write(folio, from, to);
		return 0;
	case WRITE_BEGIN:
		return __block_write_begin_int(folio, pos, to - from,
					       twin_get_block, NULL);
	case WRITE_BEGIN_IOMAP:
		return __block_write_begin_int(folio, pos, to - from, NULL,
					       &pair->trial.iomap);
	case EXT4_WRITE_BEGIN:
		return ext4_block_write_begin(NULL, folio, pos, to - from,
					      twin_get_block);
	}
	return -EINVAL;
}

static u32 below(struct rnd_state *rnd, u32 ceiling)
{
	return prandom_u32_state(rnd) % ceiling;
}

static void draw_range(struct trial *trial, struct rnd_state *rnd)
{
	size_t size = PAGE_SIZE << trial->order;
	size_t block = BIT(trial->block_bits);
	size_t from = below(rnd, size + 1), to = below(rnd, size + 1);

	switch (below(rnd, 9)) {
	case 0:
		from = 0;
		to = size;
		break;
	case 1:
		from = 0;
		break;
	case 2:
		to = size;
		break;
	case 3:
		to = from;
		break;
	case 4:
		from = round_down(from, block);
		to = from;
		break;
	case 5:
		from = round_down(from, block);
		to = round_down(to, block);
		break;
	case 6:		/* around the edges of blocks */
		from = round_down(from, block) + below(rnd, 3);
		to = round_down(to, block) + below(rnd, 3);
		from = clamp(from, 1, size + 1) - 1;
		to = clamp(to, 1, size + 1) - 1;
		break;
	case 7:
		to = min(from + below(rnd, block + 1), size);
		break;
	default:
		break;
	}
	trial->from = min(from, to);
	trial->to = max(from, to);
	/* A write_begin starts inside the folio, even with no bytes. */
	if (trial->walk != COMMIT_WRITE && trial->from == size) {
		trial->from = 0;
		trial->to = 0;
	}
}

static void draw_iomap(struct pair *pair, struct rnd_state *rnd)
{
	static const u16 types[] = {
		IOMAP_HOLE, IOMAP_DELALLOC, IOMAP_MAPPED, IOMAP_UNWRITTEN,
	};
	struct trial *trial = &pair->trial;
	size_t size = PAGE_SIZE << trial->order;
	u64 addr = (u64)below(rnd, 4096) << MAX_BLOCK_BITS;

	trial->iomap = (struct iomap) {
		.bdev	= pair->disk->part0,
		.addr	= addr,
		.offset	= trial->index << PAGE_SHIFT,
		.length	= below(rnd, 2) ? size : below(rnd, size) + 1,
		.type	= types[below(rnd, ARRAY_SIZE(types))],
		.flags	= below(rnd, 2) ? IOMAP_F_NEW : 0,
	};
}

/* In a trial, each bit is set in no buffer, all, or some. */
static void draw_buffers(struct pair *pair, struct rnd_state *rnd)
{
	const unsigned long bits = BIT(BH_Uptodate) | BIT(BH_Dirty) |
				   BIT(BH_Mapped) | BIT(BH_New) |
				   BIT(BH_Delay) | BIT(BH_Unwritten) |
				   BIT(BH_Write_EIO) | BIT(BH_Meta) |
				   BIT(BH_Verified);
	const struct trial *trial = &pair->trial;
	u32 on = prandom_u32_state(rnd) & prandom_u32_state(rnd);
	u32 off = prandom_u32_state(rnd);
	sector_t block = (trial->index << PAGE_SHIFT) >> trial->block_bits;

	for (unsigned int nr = 0; nr < trial_buffers(trial); nr++) {
		unsigned long state = prandom_u32_state(rnd);
		bool mapped;

		state = ((state | on) & ~off) & bits;
		if (touched(trial, nr) && (state & BIT(BH_New))) {
			if (trial->walk == EXT4_WRITE_BEGIN)
				state &= ~BIT(BH_New);
			else if (trial->walk != COMMIT_WRITE && trial->uptodate)
				state |= BIT(BH_Uptodate);
		}
		mapped = state & BIT(BH_Mapped);
		pair->before[nr] = (struct buffer) {
			.state	= state,
			.block	= mapped ? FIRST_BLOCK + block + nr : -1,
			.bdev	= mapped ? pair->disk->part0 : NULL,
		};
	}
}

static void draw_trial(struct pair *pair, u64 seed)
{
	struct trial *trial = &pair->trial;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, hash_64(seed, 32));
	trial->seed = seed;
	trial->index = (pgoff_t)below(&rnd, 1 << 22) << MAX_ORDER;
	trial->i_size = (trial->index << PAGE_SHIFT) +
			below(&rnd, 2 * (PAGE_SIZE << trial->order));
	trial->uptodate = below(&rnd, 2);
	trial->dirty = below(&rnd, 2);
	trial->get_block_bits = prandom_u32_state(&rnd);
	trial->failing_call = below(&rnd, 2) ? 1 + below(&rnd, 4) : 0;
	trial->error = below(&rnd, 2) ? -ENOSPC : -EIO;
	trial->reads_fail = !below(&rnd, 4);
	draw_range(trial, &rnd);
	draw_iomap(pair, &rnd);
	draw_buffers(pair, &rnd);
}

static __printf(2, 3) __noreturn void fail_trial(struct kunit *test,
						 const char *fmt, ...)
{
	const struct pair *pair = test->priv;
	const struct trial *trial = &pair->trial;
	struct va_format what = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	what.va = &args;
	KUNIT_FAIL(test, "%s, replay=%llu\norder %u, blocks of %lu, from %zu to %zu, folio %s\n%pV",
		   walk_names[trial->walk], trial->seed, trial->order,
		   BIT(trial->block_bits), trial->from, trial->to,
		   trial->uptodate ? "up to date" : "not up to date", &what);
	va_end(args);
	kunit_try_catch_throw(&test->try_catch);
}

static bool same_buffer(const struct buffer *a, const struct buffer *b)
{
	return a->state == b->state && a->block == b->block &&
	       a->bdev == b->bdev;
}

static struct buffer buffer_of(const struct buffer_head *bh)
{
	return (struct buffer) {
		.state	= bh->b_state,
		.block	= bh->b_blocknr,
		.bdev	= bh->b_bdev,
	};
}

/* The intended difference: see the top of the file. */
static void check_untouched(struct kunit *test, unsigned int nr,
			    const struct buffer *c, const struct buffer *rust)
{
	struct pair *pair = test->priv;
	const struct buffer *before = &pair->before[nr];
	struct buffer allowed = *before;

	if (pair->trial.walk == COMMIT_WRITE)
		allowed.state &= ~BIT(BH_New);
	else
		allowed.state |= BIT(BH_Uptodate);
	if (!same_buffer(c, before)) {
		pair->tally.only_c_changed++;
		if (!same_buffer(c, &allowed))
			fail_trial(test, "C left buffer %u as %lx, it was %lx",
				   nr, c->state, before->state);
	}
	if (!same_buffer(rust, before))
		fail_trial(test, "Rust left buffer %u as %lx, it was %lx", nr,
			   rust->state, before->state);
}

static void check_buffers(struct kunit *test)
{
	struct pair *pair = test->priv;
	const struct trial *trial = &pair->trial;
	struct buffer_head *c_bh, *rust_bh;

	c_bh = folio_buffers(pair->twins[CORE_C].folio);
	rust_bh = folio_buffers(pair->twins[CORE_RUST].folio);
	for (unsigned int nr = 0; nr < trial_buffers(trial); nr++) {
		struct buffer c = buffer_of(c_bh), rust = buffer_of(rust_bh);

		if (trial->uptodate && !touched(trial, nr))
			check_untouched(test, nr, &c, &rust);
		else if (!same_buffer(&c, &rust))
			fail_trial(test, "buffer %u was %lx, C left %lx at %lld, Rust %lx at %lld",
				   nr, pair->before[nr].state,
				   c.state, (s64)c.block,
				   rust.state, (s64)rust.block);
		if (atomic_read(&c_bh->b_count) ||
		    atomic_read(&rust_bh->b_count))
			fail_trial(test, "buffer %u is still in use", nr);
		c_bh = c_bh->b_this_page;
		rust_bh = rust_bh->b_this_page;
	}
}

static void check_events(struct kunit *test)
{
	struct pair *pair = test->priv;
	const struct twin *c = &pair->twins[CORE_C];
	const struct twin *rust = &pair->twins[CORE_RUST];

	if (c->nr_events > MAX_EVENTS || c->nr_events != rust->nr_events)
		fail_trial(test, "C asked %u times for something, Rust %u times",
			   c->nr_events, rust->nr_events);
	for (unsigned int nr = 0; nr < c->nr_events; nr++) {
		const struct event *a = &c->events[nr], *b = &rust->events[nr];

		if (memcmp(a, b, sizeof(*a)))
			fail_trial(test,
				   "event %u: C %u/%x/%llu/%llx/%llu, Rust %u/%x/%llu/%llx/%llu",
				   nr, a->what, a->how, a->where, a->state,
				   a->offset, b->what, b->how, b->where,
				   b->state, b->offset);
	}
}

static void check_trial(struct kunit *test)
{
	struct pair *pair = test->priv;
	struct twin *c = &pair->twins[CORE_C];
	struct twin *rust = &pair->twins[CORE_RUST];

	if (c->ret != rust->ret)
		fail_trial(test, "C returned %d, Rust %d", c->ret, rust->ret);
	check_events(test);
	check_buffers(test);
	if (folio_test_uptodate(c->folio) != folio_test_uptodate(rust->folio))
		fail_trial(test, "only one folio is up to date now");
	if (folio_test_dirty(c->folio) != folio_test_dirty(rust->folio))
		fail_trial(test, "only one folio is dirty now");
	if (memcmp(folio_address(c->folio), folio_address(rust->folio),
		   folio_size(c->folio)))
		fail_trial(test, "the data differ");
}

static void count_trial(struct pair *pair)
{
	const struct trial *trial = &pair->trial;
	struct tally *tally = &pair->tally;
	struct twin *twin = &pair->twins[CORE_RUST];

	tally->trials++;
	tally->get_blocks += twin->nr_get_blocks;
	tally->reads += twin->nr_events - twin->nr_get_blocks;
	tally->no_space += twin->ret == -ENOSPC;
	tally->io_errors += twin->ret == -EIO;
	tally->made_uptodate += !trial->uptodate &&
				folio_test_uptodate(twin->folio);
	tally->made_dirty += !trial->dirty && folio_test_dirty(twin->folio);
	tally->changed_data += !!memchr_inv(folio_address(twin->folio),
					    (u8)~trial->seed,
					    folio_size(twin->folio));
}

static void run_trial(struct kunit *test, u64 seed)
{
	struct pair *pair = test->priv;
	struct trial *trial = &pair->trial;

	draw_trial(pair, seed);
	for (int core = 0; core < NR_CORES; core++) {
		struct twin *twin = &pair->twins[core];

		twin_prepare(pair, twin);
		set_core(core);
		twin->ret = twin_walk(pair, twin, trial->walk, trial->from,
				      trial->to);
	}
	check_trial(test);
	count_trial(pair);
}

static void run_trials(struct kunit *test, enum walk walk)
{
	struct pair *pair = test->priv;
	struct trial *trial = &pair->trial;
	unsigned long before = get_taint();
	u64 seed = (u64)(walk + 1) << 32;

	trial->walk = walk;
	for (trial->order = 0; trial->order <= MAX_ORDER; trial->order++) {
		unsigned int bits = min(MAX_BLOCK_BITS,
					PAGE_SHIFT + trial->order);

		for (trial->block_bits = MIN_BLOCK_BITS;
		     trial->block_bits <= bits; trial->block_bits++) {
			for (int core = 0; core < NR_CORES; core++)
				twin_get_folio(test, core);
			for (int nr = 0; nr < NR_TRIALS(trial->order); nr++) {
				seed++;
				if (!replay || seed == replay)
					run_trial(test, seed);
			}
			for (int core = 0; core < NR_CORES; core++)
				twin_put_folio(&pair->twins[core]);
			cond_resched();
		}
	}
	if (replay && !pair->tally.trials)
		kunit_skip(test, "replay names a trial of another walk");
	kunit_info(test, "%lu trials: %lu get_block, %lu reads, %lu ENOSPC, %lu EIO, %lu data changed, %lu made up to date, %lu made dirty, %lu buffers only C changed",
		   pair->tally.trials, pair->tally.get_blocks,
		   pair->tally.reads, pair->tally.no_space,
		   pair->tally.io_errors, pair->tally.changed_data,
		   pair->tally.made_uptodate, pair->tally.made_dirty,
		   pair->tally.only_c_changed);
	KUNIT_EXPECT_EQ_MSG(test, get_taint(), before, "there was a warning");
}

/* Trials without any effect would be equal, too. */
static void expect_begun(struct kunit *test)
{
	struct tally *tally = &((struct pair *)test->priv)->tally;

	if (replay)
		return;
	KUNIT_EXPECT_GE(test, tally->trials, 80000UL);
	KUNIT_EXPECT_GT(test, tally->reads, 1000UL);
	KUNIT_EXPECT_GT(test, tally->io_errors, 100UL);
	KUNIT_EXPECT_GT(test, tally->changed_data, 1000UL);
	KUNIT_EXPECT_GT(test, tally->only_c_changed, 1000UL);
}

static void expect_blocks_asked_for(struct kunit *test)
{
	struct tally *tally = &((struct pair *)test->priv)->tally;

	expect_begun(test);
	if (replay)
		return;
	KUNIT_EXPECT_GT(test, tally->get_blocks, 10000UL);
	KUNIT_EXPECT_GT(test, tally->no_space, 1000UL);
}

static void twins_commit_alike(struct kunit *test)
{
	struct tally *tally = &((struct pair *)test->priv)->tally;

	run_trials(test, COMMIT_WRITE);
	if (replay)
		return;
	KUNIT_EXPECT_GE(test, tally->trials, 80000UL);
	KUNIT_EXPECT_GT(test, tally->made_uptodate, 1000UL);
	KUNIT_EXPECT_GT(test, tally->made_dirty, 1000UL);
	KUNIT_EXPECT_GT(test, tally->only_c_changed, 1000UL);
}

static void twins_begin_alike(struct kunit *test)
{
	run_trials(test, WRITE_BEGIN);
	expect_blocks_asked_for(test);
}

static void twins_begin_alike_with_an_iomap(struct kunit *test)
{
	run_trials(test, WRITE_BEGIN_IOMAP);
	expect_begun(test);
}

static void twins_begin_alike_on_ext4(struct kunit *test)
{
	run_trials(test, EXT4_WRITE_BEGIN);
	expect_blocks_asked_for(test);
}

#define LOST_BUFFER	7
#define LOST_ORDER	4

static struct buffer_head *lost_buffer(struct twin *twin)
{
	struct buffer_head *bh = folio_buffers(twin->folio);

	for (int nr = 0; nr < LOST_BUFFER; nr++)
		bh = bh->b_this_page;
	return bh;
}

static void twin_write_back(struct kunit *test, struct twin *twin)
{
	struct pair *pair = test->priv;
	struct writeback_control wbc = {
		.sync_mode	= WB_SYNC_ALL,
		.nr_to_write	= LONG_MAX,
	};

	pair->running = twin;
	KUNIT_EXPECT_TRUE(test, folio_clear_dirty_for_io(twin->folio));
	KUNIT_EXPECT_EQ(test, 0, __block_write_full_folio(twin->inode,
							  twin->folio,
							  twin_get_block,
							  &wbc));
	folio_lock(twin->folio);
	folio_wait_writeback(twin->folio);
}

/*
 * Write to the folio, and change @content, its expected data, in the same way.
 */
static void twin_write(struct kunit *test, struct twin *twin, enum walk walk,
		       size_t from, size_t to, void *content)
{
	struct pair *pair = test->priv;
	void *data = folio_address(twin->folio);

	KUNIT_ASSERT_EQ(test, 0, twin_walk(pair, twin, walk, from, to));
	memset(content + from, (u8)from, to - from);
	memcpy(data + from, content + from, to - from);
	twin_walk(pair, twin, COMMIT_WRITE, from, to);
	KUNIT_EXPECT_TRUE(test, folio_test_uptodate(twin->folio));
	KUNIT_EXPECT_TRUE(test, folio_test_dirty(twin->folio));
	KUNIT_EXPECT_MEMEQ(test, data, content, folio_size(twin->folio));
	/* The old data on the disk must not be read. */
	for (unsigned int nr = 0; nr < twin->nr_events; nr++)
		KUNIT_EXPECT_NE(test, twin->events[nr].what, EVENT_READ);
}

static void lose_a_write(struct kunit *test, enum core core, void *content)
{
	struct pair *pair = test->priv;
	struct twin *twin = &pair->twins[core];
	struct trial *trial = &pair->trial;
	sector_t block = trial->index;
	struct rnd_state rnd;
	size_t size;

	for (unsigned int nr = 0; nr < trial_buffers(trial); nr++)
		pair->before[nr] = (struct buffer) {
			.state	= BIT(BH_Uptodate) | BIT(BH_Mapped) |
				  BIT(BH_Dirty),
			.block	= FIRST_BLOCK + block + nr,
			.bdev	= pair->disk->part0,
		};
	twin_get_folio(test, core);
	twin_prepare(pair, twin);
	size = folio_size(twin->folio);
	prandom_seed_state(&rnd, 1);
	prandom_bytes_state(&rnd, content, size);
	memcpy(folio_address(twin->folio), content, size);
	memset(pair->store, 0, size);

	pair->store_start = (FIRST_BLOCK + block) << PAGE_SECTORS_SHIFT;
	pair->bad_sector = pair->store_start +
			   (LOST_BUFFER << PAGE_SECTORS_SHIFT);
	twin_write_back(test, twin);
	pair->bad_sector = 0;
	KUNIT_ASSERT_TRUE(test, folio_test_uptodate(twin->folio));
	KUNIT_ASSERT_FALSE(test, folio_test_dirty(twin->folio));
	KUNIT_ASSERT_FALSE(test, buffer_uptodate(lost_buffer(twin)));
	KUNIT_ASSERT_TRUE(test, buffer_write_io_error(lost_buffer(twin)));
}

static void recover_a_lost_write(struct kunit *test, enum core core,
				 enum walk walk)
{
	const size_t lost = LOST_BUFFER * PAGE_SIZE;
	const size_t size = PAGE_SIZE << LOST_ORDER;
	struct pair *pair = test->priv;
	struct twin *twin = &pair->twins[core];
	void *content = kunit_kzalloc(test, size, GFP_KERNEL);
	unsigned long state;

	KUNIT_ASSERT_NOT_NULL(test, content);
	set_core(core);
	lose_a_write(test, core, content);
	state = lost_buffer(twin)->b_state;

	/* Write before, directly behind, and far behind the buffer. */
	twin_write(test, twin, walk, lost - 2 * PAGE_SIZE + 5, lost, content);
	twin_write(test, twin, walk, lost + PAGE_SIZE, lost + PAGE_SIZE + 1,
		   content);
	twin_write(test, twin, walk, lost + 2 * PAGE_SIZE + 1, size, content);
	if (core == CORE_C)
		state |= BIT(BH_Uptodate);
	KUNIT_EXPECT_EQ(test, lost_buffer(twin)->b_state, state);
	twin_write_back(test, twin);
	KUNIT_EXPECT_NE(test, 0, memcmp(pair->store + lost, content + lost,
					PAGE_SIZE));

	twin_write(test, twin, walk, lost + 1, lost + 2, content);
	KUNIT_EXPECT_TRUE(test, buffer_uptodate(lost_buffer(twin)));
	twin_write_back(test, twin);
	KUNIT_EXPECT_TRUE(test, buffer_uptodate(lost_buffer(twin)));
	KUNIT_EXPECT_FALSE(test, buffer_write_io_error(lost_buffer(twin)));
	KUNIT_EXPECT_FALSE(test, folio_test_dirty(twin->folio));
	KUNIT_EXPECT_MEMEQ(test, folio_address(twin->folio), content, size);
	KUNIT_EXPECT_MEMEQ(test, pair->store, content, size);
	twin_put_folio(twin);
}

/* Only a failed write clears a buffer's bit in an up-to-date folio. */
static void a_lost_write_is_recovered(struct kunit *test)
{
	struct pair *pair = test->priv;

	pair->trial = (struct trial) {
		.order		= LOST_ORDER,
		.block_bits	= PAGE_SHIFT,
		.index		= 3 << LOST_ORDER,
		.i_size		= 4 << LOST_ORDER << PAGE_SHIFT,
		.uptodate	= true,
		.dirty		= true,
	};
	pair->store = kunit_kzalloc(test, PAGE_SIZE << LOST_ORDER, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pair->store);
	for (int core = 0; core < NR_CORES; core++) {
		recover_a_lost_write(test, core, WRITE_BEGIN);
		recover_a_lost_write(test, core, EXT4_WRITE_BEGIN);
	}
}

static enum core core_before;

static struct gendisk *disk_create(struct pair *pair)
{
	struct gendisk *disk = blk_alloc_disk(NULL, NUMA_NO_NODE);

	if (IS_ERR(disk))
		return NULL;
	strscpy(disk->disk_name, "buffer_walk_twin", DISK_NAME_LEN);
	disk->fops = &disk_ops;
	disk->flags = GENHD_FL_NO_PART;
	disk->private_data = pair;
	set_capacity(disk, 1ULL << 40);
	if (add_disk(disk)) {
		put_disk(disk);
		return NULL;
	}
	return disk;
}

static int buffer_walk_twins_init(struct kunit *test)
{
	struct pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	struct super_block *sb;

	core_before = get_core();
	KUNIT_ASSERT_NOT_NULL(test, pair);
	test->priv = pair;
	pair->before = kunit_kcalloc(test, MAX_BUFFERS, sizeof(struct buffer),
				     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pair->before);
	pair->disk = disk_create(pair);
	KUNIT_ASSERT_NOT_NULL(test, pair->disk);

	pair->mnt = kern_mount(&twin_fs_type);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pair->mnt);
	sb = pair->mnt->mnt_sb;
	KUNIT_ASSERT_EQ(test, super_setup_bdi(sb), 0);
	/* ext4's walk needs only this of its super block: no journal. */
	sb->s_fs_info = kunit_kzalloc(test, sizeof(struct ext4_sb_info),
				      GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sb->s_fs_info);
	for (int core = 0; core < NR_CORES; core++)
		twin_init(test, &pair->twins[core]);
	return 0;
}

static void buffer_walk_twins_exit(struct kunit *test)
{
	struct pair *pair = test->priv;

	set_core(core_before);
	if (!pair)
		return;
	for (int core = 0; core < NR_CORES; core++) {
		twin_put_folio(&pair->twins[core]);
		iput(pair->twins[core].inode);
	}
	if (!IS_ERR_OR_NULL(pair->mnt))
		kern_unmount(pair->mnt);
	if (pair->disk) {
		del_gendisk(pair->disk);
		put_disk(pair->disk);
	}
}

static struct kunit_case buffer_walk_twins_cases[] = {
	KUNIT_CASE_SLOW(twins_commit_alike),
	KUNIT_CASE_SLOW(twins_begin_alike),
	KUNIT_CASE_SLOW(twins_begin_alike_with_an_iomap),
	KUNIT_CASE_SLOW(twins_begin_alike_on_ext4),
	KUNIT_CASE(a_lost_write_is_recovered),
	{}
};

static struct kunit_suite buffer_walk_twins_suite = {
	.name		= "buffer_walk_twins",
	.init		= buffer_walk_twins_init,
	.exit		= buffer_walk_twins_exit,
	.test_cases	= buffer_walk_twins_cases,
};

kunit_test_suite(buffer_walk_twins_suite);
