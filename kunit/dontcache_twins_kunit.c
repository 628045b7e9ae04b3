// SPDX-License-Identifier: GPL-2.0
/*
 * Drives the C and the Rust core through the same random operations on two twin
 * file systems. All visible state must be the same.
 *
 * The operations are the kernel's own functions with our hooks. The file system
 * below is minimal, and writes its pages nowhere.
 */
#include <kunit/test.h>
#include <linux/backing-dev.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/prandom.h>
#include <linux/pseudo_fs.h>
#include <linux/rust_writeback.h>
#include <linux/rust_writeback_kunit.h>
#include <linux/writeback.h>

#define TWIN_MAGIC	0x7477696e
#define NR_PAGES	16
#define NR_STEPS	200
#define NR_SEQUENCES	64

/* Drop the folios that wait in the rings. C has dropped its folios by now. */
static void drop_waiting(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		flush_delayed_work(&per_cpu(dropbehind_rings, cpu).work);
}

static int twin_writepages(struct address_space *mapping,
			   struct writeback_control *wbc)
{
	struct folio *folio = NULL;
	int error = 0;

	while ((folio = writeback_iter(mapping, wbc, folio, &error))) {
		folio_start_writeback(folio);
		folio_unlock(folio);
		folio_end_writeback(folio);
	}
	drop_waiting();
	return error;
}

static const struct address_space_operations twin_aops = {
	.dirty_folio	= filemap_dirty_folio,
	.writepages	= twin_writepages,
};

static int twin_init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, TWIN_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type twin_fs_type = {
	.name			= "dontcache_twin",
	.init_fs_context	= twin_init_fs_context,
	.kill_sb		= kill_anon_super,
};

struct twin {
	struct vfsmount		*mnt;
	struct file		*file;	/* only what a kiocb needs */
	struct inode		*inode;
	struct address_space	*mapping;
	struct bdi_writeback	*wb;
};

static struct inode *twin_new_inode(struct kunit *test, struct super_block *sb)
{
	struct inode *inode = new_inode(sb);

	KUNIT_ASSERT_NOT_NULL(test, inode);
	inode->i_ino = get_next_ino();
	inode->i_mode = S_IFREG | 0600;
	i_size_write(inode, NR_PAGES * PAGE_SIZE);
	insert_inode_hash(inode);
	inode->i_mapping->a_ops = &twin_aops;
	mapping_set_gfp_mask(inode->i_mapping, GFP_KERNEL);
	return inode;
}

/*
 * Without WB_registered the flusher is not woken: only the test acts on the
 * twin.
 */
static void twin_init(struct kunit *test, struct twin *twin)
{
	struct super_block *sb;

	twin->mnt = kern_mount(&twin_fs_type);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, twin->mnt);
	sb = twin->mnt->mnt_sb;
	KUNIT_ASSERT_EQ(test, super_setup_bdi(sb), 0);
	twin->wb = &sb->s_bdi->wb;

	twin->inode = twin_new_inode(test, sb);
	twin->mapping = twin->inode->i_mapping;
	twin->file = kunit_kzalloc(test, sizeof(*twin->file), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, twin->file);
	twin->file->f_mapping = twin->mapping;
	clear_bit(WB_registered, &twin->wb->state);
}

static void twin_exit(struct twin *twin)
{
	set_bit(WB_registered, &twin->wb->state);
	truncate_inode_pages(twin->mapping, 0);
	iput(twin->inode);
	kern_unmount(twin->mnt);
}

enum op {
	OP_WRITE_DONTCACHE,
	OP_WRITE_BUFFERED,
	OP_LOOKUP,
	OP_CLEAN_FOR_IO,
	OP_CANCEL,
	OP_TRUNCATE,
	OP_KICK,
	OP_FLUSH,
	NR_OPS
};

/*
 * Kick as the end of a DONTCACHE write does. Rust kicks for any number of
 * pages.
 */
static void twin_kick(struct twin *twin)
{
	struct kiocb iocb = {
		.ki_filp	= twin->file,
		.ki_flags	= IOCB_DONTCACHE,
		.ki_pos		= PAGE_SIZE,
	};

	WRITE_ONCE(twin->wb->dontcache_kick_at, LONG_MIN);
	generic_write_sync(&iocb, PAGE_SIZE);
}

static void write_page(struct address_space *mapping, pgoff_t index, fgf_t fgp)
{
	struct folio *folio;

	folio = __filemap_get_folio(mapping, index,
				    FGP_LOCK | FGP_CREAT | fgp, GFP_KERNEL);
	if (IS_ERR(folio))
		return;
	folio_mark_uptodate(folio);
	folio_mark_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
}

static void twin_write(struct twin *twin, pgoff_t index, fgf_t fgp)
{
	write_page(twin->mapping, index, fgp);
}

/* Locks the folio at @index without a lookup that clears dropbehind. */
static struct folio *twin_lock(struct twin *twin, pgoff_t index)
{
	struct folio *folio = xa_load(&twin->mapping->i_pages, index);

	if (folio)
		folio_lock(folio);
	return folio;
}

static s64 twin_counted(struct twin *twin)
{
	return percpu_counter_sum(&twin->wb->stat[WB_DONTCACHE_DIRTY]);
}

static long twin_step(struct twin *twin, enum op op, pgoff_t index)
{
	struct folio *folio;
	long ret = 0;

	switch (op) {
	case OP_WRITE_DONTCACHE:
		twin_write(twin, index, FGP_DONTCACHE);
		break;
	case OP_WRITE_BUFFERED:
		twin_write(twin, index, 0);
		break;
	case OP_LOOKUP:
		folio = filemap_get_folio(twin->mapping, index);
		ret = !IS_ERR(folio);
		if (ret)
			folio_put(folio);
		break;
	case OP_CLEAN_FOR_IO:
		folio = twin_lock(twin, index);
		if (folio) {
			ret = folio_clear_dirty_for_io(folio);
			folio_unlock(folio);
		}
		break;
	case OP_CANCEL:
		folio = twin_lock(twin, index);
		if (folio) {
			folio_cancel_dirty(folio);
			/* Rust has done that. The folio would leave the cache. */
			folio_clear_dropbehind(folio);
			folio_unlock(folio);
		}
		break;
	case OP_TRUNCATE:
		truncate_inode_pages_range(twin->mapping, index * PAGE_SIZE,
					   (index + 1) * PAGE_SIZE - 1);
		break;
	case OP_KICK:
		/*
		 * The C core cannot kick an inode that has no wb yet. Rust does
		 * not kick for pages that are not dropbehind.
		 */
		if (inode_to_wb(twin->inode) && twin_counted(twin))
			twin_kick(twin);
		break;
	case OP_FLUSH:
		/* Each write ends with a kick, which lists its inode. */
		if (test_bit(WB_start_dontcache, &twin->wb->state))
			twin_kick(twin);
		ret = dontcache_test_flush(twin->wb);
		break;
	default:
		break;
	}
	return ret;
}

struct snapshot {
	long	ret;
	s64	stat[NR_WB_STAT_ITEMS];
	bool	pending;
	bool	has_dirty_io;
	u8	folios[NR_PAGES];
};

/* Returns the dirty dropbehind pages, counted from the folio flags. */
static s64 twin_snapshot(struct twin *twin, long ret, struct snapshot *shot)
{
	s64 truth = 0;

	memset(shot, 0, sizeof(*shot));
	shot->ret = ret;
	for (int item = 0; item < NR_WB_STAT_ITEMS; item++)
		shot->stat[item] = percpu_counter_sum(&twin->wb->stat[item]);
	shot->pending = test_bit(WB_start_dontcache, &twin->wb->state);
	shot->has_dirty_io = wb_has_dirty_io(twin->wb);
	for (pgoff_t index = 0; index < NR_PAGES; index++) {
		struct folio *folio = xa_load(&twin->mapping->i_pages, index);

		if (!folio)
			continue;
		shot->folios[index] = 1 | folio_test_dirty(folio) << 1 |
				      folio_test_dropbehind(folio) << 2 |
				      folio_test_uptodate(folio) << 3;
		if (folio_test_dirty(folio) && folio_test_dropbehind(folio))
			truth++;
	}
	return truth;
}

static void run_sequence(struct kunit *test, enum core core, u64 seed,
			 struct snapshot *shots)
{
	struct rnd_state rnd;
	struct twin twin;

	set_core(core);
	twin_init(test, &twin);
	prandom_seed_state(&rnd, seed);
	for (int step = 0; step < NR_STEPS; step++) {
		enum op op = prandom_u32_state(&rnd) % NR_OPS;
		pgoff_t index = prandom_u32_state(&rnd) % NR_PAGES;
		long ret = twin_step(&twin, op, index);
		s64 truth = twin_snapshot(&twin, ret, &shots[step]);

		KUNIT_EXPECT_EQ_MSG(test, shots[step].stat[WB_DONTCACHE_DIRTY],
				    truth, "core %d seed %llu step %d op %d",
				    core, seed, step, op);
	}
	twin_exit(&twin);
}

static void twins_stay_alike(struct kunit *test)
{
	struct snapshot *shots[2];
	long flushed = 0, counted = 0, pending = 0;

	for (int core = 0; core < 2; core++) {
		shots[core] = kunit_kcalloc(test, NR_STEPS,
					    sizeof(struct snapshot),
					    GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, shots[core]);
	}
	for (u64 seed = 1; seed <= NR_SEQUENCES; seed++) {
		run_sequence(test, CORE_C, seed, shots[CORE_C]);
		run_sequence(test, CORE_RUST, seed, shots[CORE_RUST]);
		for (int step = 0; step < NR_STEPS; step++) {
			struct snapshot *shot = &shots[CORE_RUST][step];

			KUNIT_ASSERT_MEMEQ_MSG(test, &shots[CORE_C][step], shot,
					       sizeof(*shot),
					       "seed %llu step %d", seed, step);
			flushed += shot->ret > 0 ? shot->ret : 0;
			counted += shot->stat[WB_DONTCACHE_DIRTY];
			pending += shot->pending;
		}
	}
	/* Sequences without any effect would be equal, too. */
	KUNIT_EXPECT_GT(test, flushed, 0L);
	KUNIT_EXPECT_GT(test, counted, 0L);
	KUNIT_EXPECT_GT(test, pending, 0L);
}

/* A folio that is marked dropbehind counts if it is dirty, and once. */
static void marked_folio_counts_if_dirty(struct kunit *test)
{
	struct snapshot shot;
	struct twin twin;
	s64 truth;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	for (pgoff_t index = 0; index < 3; index++) {
		struct folio *folio;

		twin_write(&twin, index, 0);
		folio = twin_lock(&twin, index);
		KUNIT_ASSERT_NOT_NULL(test, folio);
		if (index == 1)
			folio_clear_dirty_for_io(folio);
		KUNIT_EXPECT_TRUE(test, dropbehind_mark(folio));
		KUNIT_EXPECT_TRUE(test, dropbehind_mark(folio));
		folio_unlock(folio);
	}
	truth = twin_snapshot(&twin, 0, &shot);
	KUNIT_EXPECT_EQ(test, truth, 2);
	KUNIT_EXPECT_EQ(test, shot.stat[WB_DONTCACHE_DIRTY], truth);

	/* The marked folio becomes dirty, another is written to without DONTCACHE. */
	twin_write(&twin, 1, FGP_DONTCACHE);
	twin_write(&twin, 2, 0);
	truth = twin_snapshot(&twin, 0, &shot);
	KUNIT_EXPECT_EQ(test, truth, 2);
	KUNIT_EXPECT_EQ(test, shot.stat[WB_DONTCACHE_DIRTY], truth);
	twin_exit(&twin);
}

/* A kick makes the flusher write and drop dropbehind pages. */
static void kick_reaches_the_flusher(struct kunit *test)
{
	for (int core = CORE_C; core < NR_CORES; core++) {
		struct snapshot shot;
		struct twin twin;

		set_core(core);
		twin_init(test, &twin);
		set_bit(WB_registered, &twin.wb->state);
		for (pgoff_t index = 0; index < NR_PAGES; index++)
			twin_write(&twin, index, FGP_DONTCACHE);
		twin_snapshot(&twin, 0, &shot);
		KUNIT_EXPECT_EQ(test, shot.stat[WB_DONTCACHE_DIRTY], NR_PAGES);

		twin_kick(&twin);
		flush_delayed_work(&twin.wb->dwork);
		twin_snapshot(&twin, 0, &shot);
		KUNIT_EXPECT_EQ(test, shot.stat[WB_DONTCACHE_DIRTY], 0);
		KUNIT_EXPECT_EQ(test, shot.stat[WB_RECLAIMABLE], 0);
		KUNIT_EXPECT_FALSE(test, shot.pending);
		KUNIT_EXPECT_TRUE(test, mapping_empty(twin.mapping));
		twin_exit(&twin);
	}
}

/* An inode without dropbehind pages keeps its pages and its dirtied time. */
static void kick_takes_only_its_share(struct kunit *test)
{
	unsigned long dirtied_when;
	struct inode *other;
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	other = twin_new_inode(test, twin.mnt->mnt_sb);
	for (pgoff_t index = 0; index < NR_PAGES; index++)
		write_page(other->i_mapping, index, 0);
	dirtied_when = other->dirtied_when;
	twin_write(&twin, 0, FGP_DONTCACHE);
	set_bit(WB_registered, &twin.wb->state);

	twin_kick(&twin);
	flush_delayed_work(&twin.wb->dwork);
	KUNIT_EXPECT_TRUE(test, mapping_empty(twin.mapping));
	KUNIT_EXPECT_EQ(test, twin_counted(&twin), 0);
	KUNIT_EXPECT_EQ(test, percpu_counter_sum(&twin.wb->stat[WB_RECLAIMABLE]),
			NR_PAGES);
	KUNIT_EXPECT_EQ(test, other->dirtied_when, dirtied_when);
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_dirty.next, &other->i_io_list);

	clear_bit(WB_registered, &twin.wb->state);
	truncate_inode_pages(other->i_mapping, 0);
	iput(other);
	twin_exit(&twin);
}

/*
 * Ordinary pages of the first inode use up the round. The second inode must not
 * pass inodes queued for other work. It is first in the next round, even if the
 * first inode gets more pages, or if other work was about to write both.
 */
static void leave_in_a_round(struct kunit *test, bool interrupted)
{
	struct inode *other;
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	other = twin_new_inode(test, twin.mnt->mnt_sb);
	for (pgoff_t index = 1; index < NR_PAGES; index++)
		twin_write(&twin, index, 0);
	twin_write(&twin, 0, FGP_DONTCACHE);
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_dirty.next, &twin.inode->i_io_list);
	twin_kick(&twin);
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_dontcache.next,
			    &twin.inode->i_io_list);
	write_page(other->i_mapping, 0, FGP_DONTCACHE);

	KUNIT_EXPECT_EQ(test, dontcache_test_flush(twin.wb), NR_PAGES);
	KUNIT_EXPECT_EQ(test, twin_counted(&twin), 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&twin.wb->b_io));
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_dontcache.next, &other->i_io_list);

	for (pgoff_t index = 1; index < NR_PAGES; index++)
		twin_write(&twin, index, 0);
	twin_write(&twin, 0, FGP_DONTCACHE);
	twin_kick(&twin);
	if (interrupted) {
		guard(spinlock)(&twin.wb->list_lock);
		list_move(&other->i_io_list, &twin.wb->b_io);
		list_move(&twin.inode->i_io_list, &twin.wb->b_io);
	}
	KUNIT_EXPECT_TRUE(test, test_bit(WB_dontcache_delayed, &twin.wb->state));
	KUNIT_EXPECT_EQ(test, dontcache_test_flush(twin.wb), NR_PAGES + 1);
	KUNIT_EXPECT_EQ(test, twin_counted(&twin), 0);
	iput(other);
	twin_exit(&twin);
}

static void round_begins_with_unserved_inode(struct kunit *test)
{
	leave_in_a_round(test, false);
	leave_in_a_round(test, true);
}

/*
 * Other work has queued two inodes. The one that is written first has lost its
 * dropbehind page to an ordinary write. A round writes the one behind it.
 */
static void inode_without_pages_hides_no_other(struct kunit *test)
{
	struct inode *other;
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	other = twin_new_inode(test, twin.mnt->mnt_sb);
	write_page(other->i_mapping, 0, FGP_DONTCACHE);
	write_page(other->i_mapping, 0, 0);
	twin_write(&twin, 0, FGP_DONTCACHE);
	twin_kick(&twin);
	scoped_guard(spinlock, &twin.wb->list_lock) {
		guard(spinlock)(&other->i_lock);
		inode_state_set(other, I_SYNC_QUEUED);
		list_move_tail(&twin.inode->i_io_list, &twin.wb->b_io);
		list_move_tail(&other->i_io_list, &twin.wb->b_io);
	}

	KUNIT_EXPECT_EQ(test, dontcache_test_flush(twin.wb), 1);
	KUNIT_EXPECT_EQ(test, twin_counted(&twin), 0);
	iput(other);
	twin_exit(&twin);
}

/*
 * Beside a sync, a round finds an inode without dropbehind pages, which is newer
 * than the sync. It must not queue the inode: the sync would write it, too.
 */
static void sync_does_not_get_new_inodes(struct kunit *test)
{
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	twin_write(&twin, 0, FGP_DONTCACHE);
	twin_kick(&twin);
	twin_write(&twin, 0, 0);
	set_bit(WB_start_dontcache, &twin.wb->state);

	dontcache_flush_beside(twin.wb, false, twin.mnt->mnt_sb,
			       twin.inode->dirtied_when - 1);
	KUNIT_EXPECT_FALSE(test, test_bit(WB_start_dontcache, &twin.wb->state));
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_dontcache.next,
			    &twin.inode->i_io_list);

	/* A sync that has to write it gets it. */
	twin.wb->dontcache_served = jiffies - 2 * HZ;
	set_bit(WB_start_dontcache, &twin.wb->state);
	dontcache_flush_beside(twin.wb, false, twin.mnt->mnt_sb,
			       twin.inode->dirtied_when);
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_more_io.next,
			    &twin.inode->i_io_list);
	twin_exit(&twin);
}

/*
 * An inode with dropbehind pages goes to the end of the queue, behind an inode
 * without such pages: other work writes it next, and a round looks only there.
 */
static void inode_with_pages_is_queued_last(struct kunit *test)
{
	struct inode *other;
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	other = twin_new_inode(test, twin.mnt->mnt_sb);
	write_page(other->i_mapping, 0, 0);
	twin_write(&twin, 0, FGP_DONTCACHE);
	twin_kick(&twin);
	scoped_guard(spinlock, &twin.wb->list_lock) {
		list_move_tail(&other->i_io_list, &twin.wb->b_dontcache);
		KUNIT_EXPECT_EQ(test, dontcache_queue(twin.wb, NULL, jiffies), 2);
	}
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_io.prev, &twin.inode->i_io_list);

	scoped_guard(spinlock, &twin.wb->list_lock)
		list_move(&twin.inode->i_io_list, &twin.wb->b_dontcache);
	twin.wb->dontcache_served = jiffies - 2 * HZ;
	dontcache_flush_beside(twin.wb, false, twin.mnt->mnt_sb, jiffies);
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_more_io.prev,
			    &twin.inode->i_io_list);
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_more_io.next, &other->i_io_list);

	truncate_inode_pages(other->i_mapping, 0);
	iput(other);
	twin_exit(&twin);
}

/* The flusher retries an inode that was busy. */
static void busy_inode_is_retried(struct kunit *test)
{
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	twin_write(&twin, 0, FGP_DONTCACHE);
	set_bit(WB_registered, &twin.wb->state);
	scoped_guard(spinlock, &twin.inode->i_lock)
		inode_state_set(twin.inode, I_SYNC);

	twin_kick(&twin);
	flush_delayed_work(&twin.wb->dwork);
	KUNIT_EXPECT_EQ(test, twin_counted(&twin), 1);
	KUNIT_EXPECT_TRUE(test, test_bit(WB_dontcache_delayed, &twin.wb->state));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&twin.wb->dwork));

	scoped_guard(spinlock, &twin.inode->i_lock)
		inode_state_clear(twin.inode, I_SYNC);
	/* Nothing was written: the flusher retries after the delay. */
	msleep(1300);
	flush_delayed_work(&twin.wb->dwork);
	KUNIT_EXPECT_EQ(test, twin_counted(&twin), 0);
	KUNIT_EXPECT_FALSE(test, test_bit(WB_dontcache_delayed, &twin.wb->state));
	KUNIT_EXPECT_TRUE(test, mapping_empty(twin.mapping));
	twin_exit(&twin);
}

static int writepages_beside(struct address_space *mapping,
			     struct writeback_control *wbc)
{
	struct twin *other = mapping->host->i_private;

	mapping->host->i_private = NULL;
	twin_write(other, 1, FGP_DONTCACHE);
	twin_kick(other);
	return twin_writepages(mapping, wbc);
}

static const struct address_space_operations beside_aops = {
	.dirty_folio	= filemap_dirty_folio,
	.writepages	= writepages_beside,
};

/*
 * Other work has queued an inode, which gets its first dropbehind page while a
 * round writes. It stays queued for that work: a sync would miss its other
 * pages if the round wrote it.
 */
static void queued_inode_stays_queued(struct kunit *test)
{
	struct twin twin, other;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	other = twin;
	other.inode = twin_new_inode(test, twin.mnt->mnt_sb);
	other.mapping = other.inode->i_mapping;
	other.file = kunit_kzalloc(test, sizeof(*other.file), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, other.file);
	other.file->f_mapping = other.mapping;
	twin_write(&other, 0, 0);
	scoped_guard(spinlock, &twin.wb->list_lock) {
		guard(spinlock)(&other.inode->i_lock);
		inode_state_set(other.inode, I_SYNC_QUEUED);
		list_move(&other.inode->i_io_list, &twin.wb->b_io);
	}
	twin.inode->i_private = &other;
	twin.mapping->a_ops = &beside_aops;
	twin_write(&twin, 0, FGP_DONTCACHE);
	twin_kick(&twin);

	KUNIT_EXPECT_EQ(test, dontcache_test_flush(twin.wb), 1);
	KUNIT_EXPECT_NULL(test, twin.inode->i_private);
	KUNIT_EXPECT_PTR_EQ(test, twin.wb->b_more_io.prev,
			    &other.inode->i_io_list);
	KUNIT_EXPECT_EQ(test, twin_counted(&twin), 1);

	truncate_inode_pages(other.mapping, 0);
	iput(other.inode);
	twin_exit(&twin);
}

/*
 * An inode is listed if it may have dirty dropbehind pages. While it moves to
 * another wb, its page cache is locked and not searched.
 */
static void inode_that_moves_is_not_searched(struct kunit *test)
{
	bool while_it_moves, later;
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	twin_write(&twin, 0, FGP_DONTCACHE);
	twin_step(&twin, OP_CLEAN_FOR_IO, 0);

	spin_lock(&twin.wb->list_lock);
	spin_lock(&twin.inode->i_lock);
	inode_state_set(twin.inode, I_WB_SWITCH);
	xa_lock_irq(&twin.mapping->i_pages);
	while_it_moves = dontcache_keeps(twin.inode, twin.wb);
	xa_unlock_irq(&twin.mapping->i_pages);
	inode_state_clear(twin.inode, I_WB_SWITCH);
	later = dontcache_keeps(twin.inode, twin.wb);
	spin_unlock(&twin.inode->i_lock);
	spin_unlock(&twin.wb->list_lock);

	KUNIT_EXPECT_TRUE(test, while_it_moves);
	KUNIT_EXPECT_FALSE(test, later);
	twin_exit(&twin);
}

/* A kick for an inode without a wb, as after a direct write, does nothing. */
static void kick_without_wb_does_nothing(struct kunit *test)
{
	struct twin twin;

	set_core(CORE_RUST);
	twin_init(test, &twin);
	KUNIT_ASSERT_NULL(test, twin.inode->i_wb);
	twin_kick(&twin);
	KUNIT_EXPECT_FALSE(test, test_bit(WB_start_dontcache, &twin.wb->state));
	twin_exit(&twin);
}

static enum core core_before;

static int dontcache_twins_init(struct kunit *test)
{
	core_before = get_core();
	return 0;
}

static void dontcache_twins_exit(struct kunit *test)
{
	set_core(core_before);
}

static struct kunit_case dontcache_twins_cases[] = {
	KUNIT_CASE_SLOW(twins_stay_alike),
	KUNIT_CASE(marked_folio_counts_if_dirty),
	KUNIT_CASE(kick_reaches_the_flusher),
	KUNIT_CASE(kick_takes_only_its_share),
	KUNIT_CASE(round_begins_with_unserved_inode),
	KUNIT_CASE(inode_without_pages_hides_no_other),
	KUNIT_CASE(sync_does_not_get_new_inodes),
	KUNIT_CASE(inode_with_pages_is_queued_last),
	KUNIT_CASE(queued_inode_stays_queued),
	KUNIT_CASE(busy_inode_is_retried),
	KUNIT_CASE(inode_that_moves_is_not_searched),
	KUNIT_CASE(kick_without_wb_does_nothing),
	{}
};

static struct kunit_suite dontcache_twins_suite = {
	.name		= "dontcache_twins",
	.init		= dontcache_twins_init,
	.exit		= dontcache_twins_exit,
	.test_cases	= dontcache_twins_cases,
};

kunit_test_suite(dontcache_twins_suite);
