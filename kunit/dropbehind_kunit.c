// SPDX-License-Identifier: GPL-2.0
/*
 * Drops dropbehind folios: a folio is dropped if, and only if, it is still
 * dropbehind and unused when the worker reaches it.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/hash.h>
#include <linux/irq_work.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/rust_writeback.h>
#include <linux/rust_writeback_kunit.h>
#include <linux/swap.h>

#define MAGIC		0x746f6765
/* More than are removed together, if a ring has room for so many. */
#define NR_FOLIOS	MIN(40, DROPBEHIND_SLOTS / 4)
#define NR_INODES	2
#define PATIENCE	(10 * HZ)

static atomic_t nr_freed;
/* must not drop a folio, because it holds a spinlock */
static struct task_struct *holder;
static bool holder_drops;

static void count_freed(struct folio *folio)
{
	if (current == READ_ONCE(holder))
		holder_drops = true;
	atomic_inc(&nr_freed);
}

static const struct address_space_operations dropbehind_aops = {
	.dirty_folio	= noop_dirty_folio,
	.free_folio	= count_freed,
};

static int dropbehind_init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type dropbehind_fs_type = {
	.name			= "dropbehind",
	.init_fs_context	= dropbehind_init_fs_context,
	.kill_sb		= kill_anon_super,
};

struct dropbehind {
	struct vfsmount		*mnt;
	struct inode		*inodes[NR_INODES];
	/* the test has a reference on each */
	struct folio		*folios[NR_INODES][NR_FOLIOS];
	enum core		core;
};

static struct folio *add_folio(struct kunit *test, struct inode *inode,
			       pgoff_t index, unsigned int order)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, order);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, 0, filemap_add_folio(inode->i_mapping, folio,
						   index, GFP_KERNEL));
	folio_mark_uptodate(folio);
	folio_set_dropbehind(folio);
	folio_unlock(folio);
	return folio;
}

static int dropbehind_test_init(struct kunit *test)
{
	struct dropbehind *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	t->core = get_core();
	set_core(CORE_RUST);
	t->mnt = kern_mount(&dropbehind_fs_type);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->mnt);
	for (int inode = 0; inode < NR_INODES; inode++) {
		t->inodes[inode] = new_inode(t->mnt->mnt_sb);
		KUNIT_ASSERT_NOT_NULL(test, t->inodes[inode]);
		t->inodes[inode]->i_mapping->a_ops = &dropbehind_aops;
		mapping_set_large_folios(t->inodes[inode]->i_mapping);
		for (int i = 0; i < NR_FOLIOS; i++)
			t->folios[inode][i] = add_folio(test, t->inodes[inode],
							i, 0);
	}
	/* Folios pending for the LRU lists hold an extra reference. */
	lru_add_drain_all();
	atomic_set(&nr_freed, 0);
	return 0;
}

static void dropbehind_test_exit(struct kunit *test)
{
	struct dropbehind *t = test->priv;

	for (int inode = 0; inode < NR_INODES; inode++) {
		for (int i = 0; i < NR_FOLIOS; i++)
			folio_put(t->folios[inode][i]);
		truncate_inode_pages(t->inodes[inode]->i_mapping, 0);
		iput(t->inodes[inode]);
	}
	kern_unmount(t->mnt);
	set_core(t->core);
}

static bool is_there(struct folio *folio)
{
	return READ_ONCE(folio->mapping);
}

static void expect_freed(struct kunit *test, int nr)
{
	unsigned long end = jiffies + PATIENCE;

	while (atomic_read(&nr_freed) < nr && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_freed), nr);
}

/* Wait until no ring has a reference on @folio: then @nr are left. */
static void expect_references(struct kunit *test, struct folio *folio, int nr)
{
	unsigned long end = jiffies + PATIENCE;

	while (folio_ref_count(folio) != nr && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), nr);
}

static void all_folios_are_dropped(struct kunit *test)
{
	struct dropbehind *t = test->priv;

	/* In pairs, the second folio first. */
	for (int i = 0; i < NR_FOLIOS; i++)
		folio_end_dropbehind(t->folios[0][i ^ 1]);
	expect_freed(test, NR_FOLIOS);
	KUNIT_EXPECT_TRUE(test, mapping_empty(t->inodes[0]->i_mapping));
	for (int i = 0; i < NR_FOLIOS; i++) {
		struct folio *folio = t->folios[0][i];

		expect_references(test, folio, 1);
		KUNIT_EXPECT_FALSE(test, is_there(folio));
		KUNIT_EXPECT_FALSE(test, folio_test_locked(folio));
		KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(folio));
	}
	KUNIT_EXPECT_EQ(test, t->inodes[1]->i_mapping->nrpages, NR_FOLIOS);
}

static void folios_of_two_files_are_dropped(struct kunit *test)
{
	struct dropbehind *t = test->priv;

	for (int i = NR_FOLIOS - 1; i >= 0; i--)
		for (int inode = 0; inode < NR_INODES; inode++)
			folio_end_dropbehind(t->folios[inode][i]);
	expect_freed(test, NR_INODES * NR_FOLIOS);
	for (int inode = 0; inode < NR_INODES; inode++)
		KUNIT_EXPECT_TRUE(test,
				  mapping_empty(t->inodes[inode]->i_mapping));
}

/* A lookup and a write use two folios while they wait for the worker. */
static void used_folios_are_kept(struct kunit *test)
{
	struct dropbehind *t = test->priv;
	struct folio *found, *dirty = t->folios[0][NR_FOLIOS - 4];

	/* The worker waits for 50 ms: no other task may delay this one so long. */
	sched_set_fifo(current);
	for (int i = 0; i < NR_FOLIOS; i++)
		folio_end_dropbehind(t->folios[0][i]);
	found = filemap_get_folio(t->inodes[0]->i_mapping, NR_FOLIOS - 2);
	folio_test_set_dirty(dirty);
	sched_set_normal(current, 0);
	KUNIT_ASSERT_PTR_EQ(test, found, t->folios[0][NR_FOLIOS - 2]);
	folio_put(found);

	expect_freed(test, NR_FOLIOS - 2);
	KUNIT_EXPECT_EQ(test, t->inodes[0]->i_mapping->nrpages, 2);
	/* The test and the page cache have one reference each. */
	expect_references(test, found, 2);
	KUNIT_EXPECT_TRUE(test, is_there(found));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(found));
	KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(found));
	expect_references(test, dirty, 2);
	KUNIT_EXPECT_TRUE(test, is_there(dirty));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(dirty));
	KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(dirty));
	folio_test_clear_dirty(dirty);
}

/* A locked folio is dropped after it is unlocked, without another request. */
static void locked_folio_is_dropped_later(struct kunit *test)
{
	struct dropbehind *t = test->priv;
	struct folio *locked = t->folios[0][3];

	folio_lock(locked);
	for (int i = 0; i < NR_FOLIOS; i++)
		folio_end_dropbehind(t->folios[0][i]);
	expect_freed(test, NR_FOLIOS - 1);
	KUNIT_EXPECT_TRUE(test, is_there(locked));
	folio_unlock(locked);
	expect_freed(test, NR_FOLIOS);
}

/*
 * A folio that stays locked is kept after about 600 ms. Until then the ring
 * has one reference on the folio, although it was put there twice.
 */
static void folio_that_stays_locked_is_kept(struct kunit *test)
{
	struct dropbehind *t = test->priv;
	struct folio *locked = t->folios[0][0];

	folio_lock(locked);
	/* into one ring */
	preempt_disable();
	folio_end_dropbehind(locked);
	folio_end_dropbehind(locked);
	preempt_enable();
	msleep(300);
	KUNIT_EXPECT_EQ(test, folio_ref_count(locked), 3);
	expect_references(test, locked, 2);
	KUNIT_EXPECT_TRUE(test, is_there(locked));
	KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(locked));
	folio_unlock(locked);
}

/* A writer that appends to the file would have to read the last folio back. */
static void end_of_file_is_dropped_later(struct kunit *test)
{
	struct dropbehind *t = test->priv;
	struct inode *inode = t->inodes[0];

	i_size_write(inode, NR_FOLIOS * PAGE_SIZE - 1);
	atomic_inc(&inode->i_writecount);
	for (int i = 0; i < NR_FOLIOS; i++)
		folio_end_dropbehind(t->folios[0][i]);
	expect_freed(test, NR_FOLIOS - 1);
	msleep(200);
	KUNIT_EXPECT_TRUE(test, is_there(t->folios[0][NR_FOLIOS - 1]));
	expect_freed(test, NR_FOLIOS);
	atomic_dec(&inode->i_writecount);
}

static void large_folio_is_dropped_immediately(struct kunit *test)
{
	struct dropbehind *t = test->priv;
	struct folio *folio;
	bool waits;

	if (!mapping_large_folio_support(t->inodes[0]->i_mapping))
		kunit_skip(test, "no large folios in this kernel");
	folio = add_folio(test, t->inodes[0], SZ_64K, 5);
	folio_end_dropbehind(folio);
	KUNIT_EXPECT_FALSE(test, is_there(folio));
	folio_put(folio);

	/* With interrupts off the worker has to drop it, and starts at once. */
	folio = add_folio(test, t->inodes[0], SZ_64K, 5);
	scoped_guard(irqsave) {
		folio_end_dropbehind(folio);
		waits = timer_pending(&this_cpu_ptr(&dropbehind_rings)->work.timer);
	}
	KUNIT_EXPECT_FALSE(test, waits);
	expect_references(test, folio, 1);
	KUNIT_EXPECT_FALSE(test, is_there(folio));
	folio_put(folio);
}

struct interrupt {
	struct irq_work		work;
	struct dropbehind	*t;
};

static void drop_in_interrupt(struct irq_work *work)
{
	struct interrupt *interrupt = container_of(work, struct interrupt, work);

	for (int i = 0; i < NR_FOLIOS; i++)
		folio_end_dropbehind(interrupt->t->folios[0][i]);
}

static void folios_of_an_interrupt_are_dropped(struct kunit *test)
{
	struct interrupt interrupt = {
		.work	= IRQ_WORK_INIT_HARD(drop_in_interrupt),
		.t	= test->priv,
	};

	irq_work_queue(&interrupt.work);
	irq_work_sync(&interrupt.work);
	expect_freed(test, NR_FOLIOS);
}

/* If there are more folios than a ring holds, the task drops the others. */
static void task_drops_if_ring_is_full(struct kunit *test)
{
	const int nr = DROPBEHIND_SLOTS + NR_FOLIOS;
	struct dropbehind *t = test->priv;
	struct folio **folios = kunit_kcalloc(test, nr, sizeof(*folios),
					      GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, folios);
	for (int i = 0; i < nr; i++)
		folios[i] = add_folio(test, t->inodes[0], NR_FOLIOS + i, 0);
	for (int i = 0; i < nr; i++)
		folio_end_dropbehind(folios[i]);
	KUNIT_EXPECT_GT(test, atomic_read(&nr_freed), 0);
	expect_freed(test, nr);
	for (int i = 0; i < nr; i++)
		folio_put(folios[i]);
}

/*
 * File systems may end writeback with a spinlock held, and need this lock to
 * release a folio. PREEMPT_RT can preempt such a task. With one CPU, the worker
 * does not run beside a real-time task, so the ring gets full.
 */
static void task_with_spinlock_drops_nothing(struct kunit *test)
{
	const int nr = DROPBEHIND_SLOTS + NR_FOLIOS;
	struct dropbehind *t = test->priv;
	struct folio **folios = kunit_kcalloc(test, nr, sizeof(*folios),
					      GFP_KERNEL);
	static DEFINE_SPINLOCK(lock);

	KUNIT_ASSERT_NOT_NULL(test, folios);
	for (int i = 0; i < nr; i++)
		folios[i] = add_folio(test, t->inodes[0], NR_FOLIOS + i, 0);
	lru_add_drain_all();
	holder_drops = false;
	sched_set_fifo(current);
	scoped_guard(spinlock_irqsave, &lock) {
		WRITE_ONCE(holder, current);
		for (int i = 0; i < nr; i++)
			folio_end_dropbehind(folios[i]);
		WRITE_ONCE(holder, NULL);
	}
	sched_set_normal(current, 0);
	KUNIT_EXPECT_FALSE(test, holder_drops);
	/* The worker drops what the ring has taken. */
	for (int i = 0; i < DROPBEHIND_SLOTS; i++)
		expect_references(test, folios[i], 1);
	for (int i = 0; i < nr; i++)
		folio_put(folios[i]);
}

#define NR_INDICES	4096

/* The entries are addresses in @orders, which is large enough for that. */
static void fill(struct kunit *test, struct xarray *xa, const u8 *orders)
{
	for (unsigned long i = 0; i < NR_INDICES; i += 1UL << orders[i]) {
		XA_STATE_ORDER(xas, xa, i, orders[i]);

		do {
			xas_lock(&xas);
			xas_store(&xas, (void *)orders + i * sizeof(long));
			for (unsigned int mark = 0; mark < 3; mark++)
				if (hash_64(i, 8) >> mark & 1)
					xas_set_mark(&xas, (__force xa_mark_t)mark);
			xas_unlock(&xas);
		} while (xas_nomem(&xas, GFP_KERNEL));
		KUNIT_ASSERT_EQ(test, 0, xas_error(&xas));
	}
}

/* Erases entries of one order in one node from @i on, and returns the next. */
static unsigned long erase(struct xarray *xa, const u8 *orders, unsigned long i)
{
	unsigned long first = i, end;
	XA_STATE(xas, xa, i);

	xas_lock(&xas);
	xas_load(&xas);
	end = round_up(i + 1, XA_CHUNK_SIZE << xas.xa_node->shift);
	while (i < end && orders[i] == orders[first] && xa_load(xa, i))
		i += 1UL << orders[first];
	xas_erase(&xas, i - first);
	xas_unlock(&xas);
	return i;
}

/*
 * xas_erase() must do what storing NULL in each entry does. The entries have
 * mixed orders, and some of them have marks.
 */
static void erase_equals_store_of_null(struct kunit *test)
{
	u8 *orders = kunit_kcalloc(test, NR_INDICES, sizeof(long), GFP_KERNEL);
	struct xarray erased, stored;

	KUNIT_ASSERT_NOT_NULL(test, orders);
	xa_init(&erased);
	xa_init(&stored);
	for (unsigned long i = 0; i < NR_INDICES; i += 1UL << orders[i])
		orders[i] = min(9, min(i ? __ffs(i) : 9, hash_64(i + 1, 4)));
	fill(test, &erased, orders);
	fill(test, &stored, orders);
	/* Erase every other run, then runs that have lost a neighbour. */
	for (int pass = 0; pass < 2; pass++) {
		bool skip = !pass;

		for (unsigned long i = 0, next; i < NR_INDICES; i = next) {
			next = i + (1UL << orders[i]);
			skip = !skip;
			if (skip || !xa_load(&erased, i))
				continue;
			next = erase(&erased, orders, i);
			for (; i < next; i += 1UL << orders[i])
				xa_erase(&stored, i);
		}
		for (unsigned long i = 0; i < NR_INDICES; i++) {
			KUNIT_ASSERT_PTR_EQ(test, xa_load(&erased, i),
					    xa_load(&stored, i));
			for (unsigned int mark = 0; mark < 3; mark++) {
				xa_mark_t m = (__force xa_mark_t)mark;

				KUNIT_ASSERT_EQ(test, xa_get_mark(&erased, i, m),
						xa_get_mark(&stored, i, m));
				KUNIT_ASSERT_EQ(test, xa_marked(&erased, m),
						xa_marked(&stored, m));
			}
		}
	}
	/* A node with a wrong count would not be freed. */
	for (unsigned long i = 0; i < NR_INDICES; i += 1UL << orders[i])
		xa_erase(&erased, i);
	KUNIT_EXPECT_TRUE(test, xa_empty(&erased));
	xa_destroy(&erased);
	xa_destroy(&stored);
}

static struct kunit_case dropbehind_cases[] = {
	KUNIT_CASE(erase_equals_store_of_null),
	KUNIT_CASE(all_folios_are_dropped),
	KUNIT_CASE(folios_of_two_files_are_dropped),
	KUNIT_CASE(used_folios_are_kept),
	KUNIT_CASE(locked_folio_is_dropped_later),
	KUNIT_CASE(folio_that_stays_locked_is_kept),
	KUNIT_CASE(end_of_file_is_dropped_later),
	KUNIT_CASE(large_folio_is_dropped_immediately),
	KUNIT_CASE(folios_of_an_interrupt_are_dropped),
	KUNIT_CASE(task_drops_if_ring_is_full),
	KUNIT_CASE(task_with_spinlock_drops_nothing),
	{}
};

static struct kunit_suite dropbehind_suite = {
	.name		= "dropbehind",
	.init		= dropbehind_test_init,
	.exit		= dropbehind_test_exit,
	.test_cases	= dropbehind_cases,
};

kunit_test_suite(dropbehind_suite);
