// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: which writeback core is active, with which policy, and whether the
 * counter of dirty dropbehind pages is right. Works on both cores.
 */
#include <linux/backing-dev.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/percpu_counter.h>
#include <linux/rust_dropbehind.h>
#include <linux/rust_round.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

static int core_show(struct seq_file *m, void *unused)
{
	seq_puts(m, rust_writeback_active() ? "rust\n" : "c\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(core);

static int policy_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%s\n", rust_writeback_policy());
	return 0;
}

static ssize_t policy_write(struct file *file, const char __user *buf,
			    size_t count, loff_t *pos)
{
	char name[32] = {};
	int err;

	/* The C core has no choice. */
	if (!rust_writeback_active())
		return -EOPNOTSUPP;
	if (count >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, buf, count))
		return -EFAULT;
	/* What follows a NUL must not go unseen. */
	if (strlen(name) != count)
		return -EINVAL;
	err = rust_writeback_set_policy(strim(name));
	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(policy);

/* The pages of @mapping that are dirty and dropbehind, by their flags. */
static unsigned long mapping_dontcache_dirty(struct address_space *mapping)
{
	XA_STATE(xas, &mapping->i_pages, 0);
	unsigned long nr = 0, visited = 0;
	struct folio *folio;

	xas_lock_irq(&xas);
	xas_for_each_marked(&xas, folio, ULONG_MAX, PAGECACHE_TAG_DIRTY) {
		/* With DAX an entry is no folio. */
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
	struct xarray pages;	/* id of a bdi -> pages found on it */
	int err;
};

static void walk_inode(struct inode *inode, struct walk *walk)
{
	unsigned long id = inode_to_bdi(inode)->id, nr;
	void *entry;

	/* i_data: the pages of a device node are the block device's. */
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
		/* Only what can be dirty is sure to have a bdi. */
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
		/* The inode keeps the place in the list until the next is held. */
		iput(previous);
		previous = inode;

		cond_resched();
		spin_lock(&sb->s_inode_list_lock);
	}
	spin_unlock(&sb->s_inode_list_lock);
	iput(previous);
}

/* The exact sum over all wbs of @bdi; negative if they have drifted. */
static s64 bdi_dontcache_dirty(struct backing_dev_info *bdi)
{
	struct bdi_writeback *wb;
	s64 sum = 0;

	list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node) {
		/* One that is being released has lost its counters. */
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

static DEFINE_MUTEX(bounds_lock);

/* @data is the place of a number among the bounds. */
static int bound_get(void *data, u64 *number)
{
	unsigned int numbers[NR_RUST_PACE_BOUNDS];

	rust_pace_get_bounds(numbers);
	*number = numbers[(unsigned long)data];
	return 0;
}

static int bound_set(void *data, u64 number)
{
	unsigned int numbers[NR_RUST_PACE_BOUNDS];

	if (number > UINT_MAX)
		return -EINVAL;
	guard(mutex)(&bounds_lock);
	rust_pace_get_bounds(numbers);
	numbers[(unsigned long)data] = number;
	return rust_pace_set_bounds(numbers);
}
DEFINE_DEBUGFS_ATTRIBUTE(bound_fops, bound_get, bound_set, "%llu\n");

static const char * const bound_names[] = {
	[RUST_PACE_LEAST_KIB] = "least_kib",
	[RUST_PACE_MOST_KIB] = "most_kib",
	[RUST_PACE_INODE_KIB] = "inode_kib",
	[RUST_PACE_LEAST_MS] = "least_ms",
	[RUST_PACE_MOST_MS] = "most_ms",
};

/* The wbs that write for DONTCACHE writers, each at a pace of its own. */
static int wbs_show(struct seq_file *m, void *unused)
{
	struct backing_dev_info *bdi;
	struct bdi_writeback *wb;

	rcu_read_lock();
	list_for_each_entry_rcu(bdi, &bdi_list, bdi_list)
		list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node)
			seq_printf(m, "%s %u ms %ld KiB %u KiB\n",
				   bdi_dev_name(bdi),
				   READ_ONCE(wb->dontcache_pace.delay),
				   READ_ONCE(wb->dontcache_pace.kick_at)
				   << (PAGE_SHIFT - 10),
				   READ_ONCE(wb->dontcache_pace.average));
	rcu_read_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(wbs);

static int __init dontcache_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("rust_writeback", NULL);
	struct dentry *adaptive = debugfs_create_dir("adaptive", dir);
	unsigned long i;

	debugfs_create_file("core", 0400, dir, NULL, &core_fops);
	debugfs_create_file("dontcache_dirty", 0400, dir, NULL,
			    &dontcache_dirty_fops);
	debugfs_create_file("policy", 0600, dir, NULL, &policy_fops);
	for (i = 0; i < ARRAY_SIZE(bound_names); i++)
		debugfs_create_file(bound_names[i], 0600, adaptive, (void *)i,
				    &bound_fops);
	debugfs_create_file("wbs", 0400, adaptive, NULL, &wbs_fops);
	return 0;
}
late_initcall(dontcache_debugfs_init);
