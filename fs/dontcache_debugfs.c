// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs files: the active writeback core, a check of the counter of dirty
 * dropbehind pages, and a switch that keeps these pages dirty. They work on
 * both cores.
 */
#include <linux/backing-dev.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/pagemap.h>
#include <linux/percpu_counter.h>
#include <linux/rust_writeback.h>
#include <linux/seq_file.h>
#include <linux/xarray.h>

static int core_show(struct seq_file *m, void *unused)
{
	seq_puts(m, rust_writeback_active() ? "rust\n" : "c\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(core);

DEFINE_STATIC_KEY_FALSE(dontcache_hold_key);

static int hold_get(void *unused, u64 *on)
{
	*on = static_key_enabled(&dontcache_hold_key);
	return 0;
}

static int hold_set(void *unused, u64 on)
{
	if (on > 1)
		return -EINVAL;
	if (on)
		static_branch_enable(&dontcache_hold_key);
	else
		static_branch_disable(&dontcache_hold_key);
	return 0;
}
DEFINE_SIMPLE_ATTRIBUTE(hold_fops, hold_get, hold_set, "%llu\n");

/* Test both flags in one read. */
static bool folio_is_dontcache_dirty(const struct folio *folio)
{
	const unsigned long both = BIT(PG_dirty) | BIT(PG_dropbehind);

	return (READ_ONCE(*const_folio_flags(folio, 0)) & both) == both;
}

/* Count the dirty dropbehind pages of @mapping from the page flags. */
static unsigned long mapping_dontcache_dirty(struct address_space *mapping)
{
	XA_STATE(xas, &mapping->i_pages, 0);
	unsigned long nr = 0, visited = 0;
	struct folio *folio;

	xas_lock_irq(&xas);
	xas_for_each_marked(&xas, folio, ULONG_MAX, PAGECACHE_TAG_DIRTY) {
		/* A DAX entry is a value, not a folio. */
		if (!xa_is_value(folio) && folio_is_dontcache_dirty(folio))
			nr += folio_nr_pages(folio);
		if (++visited % XA_CHECK_SCHED)
			continue;
		xas_pause(&xas);
		xas_unlock_irq(&xas);
		cond_resched();
		xas_lock_irq(&xas);
	}
	xas_unlock_irq(&xas);
	return nr;
}

struct walk {
	struct xarray pages;	/* bdi id -> pages found */
	int err;
};

static void walk_inode(struct inode *inode, struct walk *walk)
{
	unsigned long id = inode_to_bdi(inode)->id, nr;
	void *entry;

	/* A device node's i_mapping is the block device's: use i_data. */
	nr = mapping_dontcache_dirty(&inode->i_data);
	if (!nr)
		return;
	entry = xa_load(&walk->pages, id);
	if (entry)
		nr += xa_to_value(entry);
	entry = xa_store(&walk->pages, id, xa_mk_value(nr), GFP_KERNEL);
	if (xa_is_err(entry))
		walk->err = xa_err(entry);
}

static void walk_super(struct super_block *sb, void *arg)
{
	struct inode *inode, *previous = NULL;
	struct walk *walk = arg;

	spin_lock(&sb->s_inode_list_lock);
	list_for_each_entry(inode, &sb->s_inodes, i_sb_list) {
		spin_lock(&inode->i_lock);
		/* Only an inode with dirty pages is sure to have a bdi. */
		if ((inode_state_read(inode) & (I_FREEING | I_WILL_FREE | I_NEW)) ||
		    !mapping_tagged(&inode->i_data, PAGECACHE_TAG_DIRTY) ||
		    !mapping_can_writeback(&inode->i_data)) {
			spin_unlock(&inode->i_lock);
			continue;
		}
		__iget(inode);
		spin_unlock(&inode->i_lock);
		spin_unlock(&sb->s_inode_list_lock);

		walk_inode(inode, walk);
		/*
		 * Put an inode only after the next inode is held: the held
		 * inode marks the place in the list.
		 */
		iput(previous);
		previous = inode;

		cond_resched();
		spin_lock(&sb->s_inode_list_lock);
	}
	spin_unlock(&sb->s_inode_list_lock);
	iput(previous);
}

/* The exact sum over all wbs of @bdi; negative after drift. */
static s64 bdi_dontcache_dirty(struct backing_dev_info *bdi)
{
	struct bdi_writeback *wb;
	s64 sum = 0;

	list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node) {
		/* A wb in release has freed its counters. */
		if (!wb_tryget(wb))
			continue;
		sum += percpu_counter_sum(&wb->stat[WB_DONTCACHE_DIRTY]);
		wb_put(wb);
	}
	return sum;
}

static int dontcache_dirty_show(struct seq_file *m, void *unused)
{
	struct backing_dev_info *bdi;
	struct walk walk = {};

	xa_init(&walk.pages);
	iterate_supers(walk_super, &walk);
	if (walk.err)
		goto out;

	rcu_read_lock();
	list_for_each_entry_rcu(bdi, &bdi_list, bdi_list) {
		void *entry = xa_load(&walk.pages, bdi->id);

		seq_printf(m, "%s %lld %lu\n", bdi_dev_name(bdi),
			   bdi_dontcache_dirty(bdi),
			   entry ? xa_to_value(entry) : 0);
	}
	rcu_read_unlock();
out:
	xa_destroy(&walk.pages);
	return walk.err;
}
DEFINE_SHOW_ATTRIBUTE(dontcache_dirty);

static int __init dontcache_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("rust_writeback", NULL);

	debugfs_create_file("core", 0400, dir, NULL, &core_fops);
	debugfs_create_file("dontcache_dirty", 0400, dir, NULL,
			    &dontcache_dirty_fops);
	debugfs_create_file("hold", 0600, dir, NULL, &hold_fops);
	return 0;
}
late_initcall(dontcache_debugfs_init);
