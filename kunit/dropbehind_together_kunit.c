// SPDX-License-Identifier: GPL-2.0
/*
 * Drops batches of folios: a folio is dropped if, and only if, it is still
 * dropbehind and unused after it was added.
 */
#include <kunit/test.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/rust_drop.h>
#include <linux/rust_dropbehind.h>
#include <linux/rust_writeback_kunit.h>
#include <linux/swap.h>

#define MAGIC		0x746f6765
#define NR_FOLIOS	40	/* more than a batch holds */
#define NR_INODES	2
#define PATIENCE	(10 * HZ)

static unsigned int nr_freed;

static void count_freed(struct folio *folio)
{
	nr_freed++;
}

static const struct address_space_operations together_aops = {
	.dirty_folio	= noop_dirty_folio,
	.free_folio	= count_freed,
};

static int together_init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type together_fs_type = {
	.name			= "dropbehind_together",
	.init_fs_context	= together_init_fs_context,
	.kill_sb		= kill_anon_super,
};

struct together {
	struct vfsmount		*mnt;
	struct inode		*inodes[NR_INODES];
	/* the test has a reference on each */
	struct folio		*folios[NR_INODES][NR_FOLIOS];
	struct rust_drop_batch	*batch;
	enum core		core;
};

static void add_folio(struct kunit *test, struct together *t, int inode, int i)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	t->folios[inode][i] = folio;
	KUNIT_ASSERT_EQ(test, 0, filemap_add_folio(t->inodes[inode]->i_mapping,
						   folio, i, GFP_KERNEL));
	folio_mark_uptodate(folio);
	folio_set_dropbehind(folio);
	folio_unlock(folio);
}

static int together_init(struct kunit *test)
{
	struct together *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	t->core = get_core();
	set_core(CORE_RUST);
	t->mnt = kern_mount(&together_fs_type);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->mnt);
	for (int inode = 0; inode < NR_INODES; inode++) {
		t->inodes[inode] = new_inode(t->mnt->mnt_sb);
		KUNIT_ASSERT_NOT_NULL(test, t->inodes[inode]);
		t->inodes[inode]->i_mapping->a_ops = &together_aops;
		for (int i = 0; i < NR_FOLIOS; i++)
			add_folio(test, t, inode, i);
	}
	nr_freed = 0;
	t->batch = rust_drop_batch_begin(t->folios[0][0], 2, PAGE_SIZE);
	KUNIT_ASSERT_NOT_NULL(test, t->batch);
	return 0;
}

static void together_exit(struct kunit *test)
{
	struct together *t = test->priv;

	for (int inode = 0; inode < NR_INODES; inode++) {
		for (int i = 0; i < NR_FOLIOS; i++)
			folio_put(t->folios[inode][i]);
		truncate_inode_pages(t->inodes[inode]->i_mapping, 0);
		iput(t->inodes[inode]);
	}
	kern_unmount(t->mnt);
	set_core(t->core);
}

static void gather(struct together *t, int inode)
{
	for (int i = 0; i < NR_FOLIOS; i++)
		folio_end_dropbehind(t->folios[inode][i]);
}

static bool is_there(struct folio *folio)
{
	return READ_ONCE(folio->mapping);
}

/* Only the test has a reference. */
static void expect_gone(struct kunit *test, struct folio *folio)
{
	KUNIT_EXPECT_FALSE(test, is_there(folio));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(folio));
	KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(folio));
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
}

static void all_leave(struct kunit *test)
{
	struct together *t = test->priv;

	gather(t, 0);
	/* A full batch was dropped before the next folio. */
	KUNIT_EXPECT_EQ(test, nr_freed, FOLIO_BATCH_SIZE);
	KUNIT_EXPECT_TRUE(test, is_there(t->folios[0][NR_FOLIOS - 1]));
	KUNIT_EXPECT_TRUE(test, folio_test_locked(t->folios[0][NR_FOLIOS - 1]));
	rust_drop_batch_end(t->batch);

	KUNIT_EXPECT_EQ(test, nr_freed, NR_FOLIOS);
	KUNIT_EXPECT_TRUE(test, mapping_empty(t->inodes[0]->i_mapping));
	/* Only the test's references keep the folios. */
	lru_add_drain_all();
	for (int i = 0; i < NR_FOLIOS; i++)
		expect_gone(test, t->folios[0][i]);
	KUNIT_EXPECT_EQ(test, t->inodes[1]->i_mapping->nrpages, NR_FOLIOS);
}

static void those_of_two_files_leave(struct kunit *test)
{
	struct together *t = test->priv;

	for (int i = NR_FOLIOS - 1; i >= 0; i--)
		for (int inode = 0; inode < NR_INODES; inode++)
			folio_end_dropbehind(t->folios[inode][i]);
	KUNIT_EXPECT_EQ(test, nr_freed, NR_INODES * NR_FOLIOS - 1);
	rust_drop_batch_end(t->batch);
	for (int inode = 0; inode < NR_INODES; inode++)
		KUNIT_EXPECT_TRUE(test,
				  mapping_empty(t->inodes[inode]->i_mapping));
}

/* A lookup and a write use two folios of the batch before it ends. */
static void what_is_used_stays(struct kunit *test)
{
	struct together *t = test->priv;
	struct folio *found, *dirty;

	gather(t, 0);
	found = filemap_get_folio(t->inodes[0]->i_mapping, NR_FOLIOS - 2);
	KUNIT_ASSERT_PTR_EQ(test, found, t->folios[0][NR_FOLIOS - 2]);
	dirty = t->folios[0][NR_FOLIOS - 4];
	folio_test_set_dirty(dirty);
	rust_drop_batch_end(t->batch);

	KUNIT_EXPECT_EQ(test, nr_freed, NR_FOLIOS - 2);
	KUNIT_EXPECT_EQ(test, t->inodes[0]->i_mapping->nrpages, 2);
	KUNIT_EXPECT_TRUE(test, is_there(found));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(found));
	KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(found));
	folio_put(found);
	KUNIT_EXPECT_TRUE(test, is_there(dirty));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(dirty));
	KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(dirty));
	folio_test_clear_dirty(dirty);
	/* The test and the page cache have one reference each. */
	lru_add_drain_all();
	KUNIT_EXPECT_EQ(test, folio_ref_count(found), 2);
	KUNIT_EXPECT_EQ(test, folio_ref_count(dirty), 2);
}

/* The locked folio is dropped later, on its own. */
static void what_is_locked_leaves_later(struct kunit *test)
{
	struct together *t = test->priv;
	struct folio *locked = t->folios[0][3];
	unsigned long end = jiffies + PATIENCE;

	folio_lock(locked);
	gather(t, 0);
	rust_drop_batch_end(t->batch);
	KUNIT_EXPECT_EQ(test, nr_freed, NR_FOLIOS - 1);
	KUNIT_EXPECT_TRUE(test, is_there(locked));
	folio_unlock(locked);
	while (is_there(locked) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_FALSE(test, is_there(locked));
}

/* A task that does not own the batch drops folios at once. */
static void another_owner_is_left_alone(struct kunit *test)
{
	struct together *t = test->priv;

	KUNIT_EXPECT_NULL(test, rust_drop_batch_begin(t->folios[0][0], 2,
						      PAGE_SIZE));
	rust_drop_batch_end(t->batch);
	gather(t, 0);
	KUNIT_EXPECT_EQ(test, nr_freed, NR_FOLIOS);
}

static struct kunit_case dropbehind_together_cases[] = {
	KUNIT_CASE(all_leave),
	KUNIT_CASE(those_of_two_files_leave),
	KUNIT_CASE(what_is_used_stays),
	KUNIT_CASE(what_is_locked_leaves_later),
	KUNIT_CASE(another_owner_is_left_alone),
	{}
};

static struct kunit_suite dropbehind_together_suite = {
	.name		= "dropbehind_together",
	.init		= together_init,
	.exit		= together_exit,
	.test_cases	= dropbehind_together_cases,
};

kunit_test_suite(dropbehind_together_suite);
