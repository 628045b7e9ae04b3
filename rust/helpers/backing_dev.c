// SPDX-License-Identifier: GPL-2.0

#include <linux/backing-dev.h>
#include <linux/bitops.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/part_stat.h>
#include <linux/rust_dontcache.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

__rust_helper struct bdi_writeback *
rust_helper_unlocked_inode_to_wb_begin(struct inode *inode,
				       struct wb_lock_cookie *cookie)
{
	return unlocked_inode_to_wb_begin(inode, cookie);
}

/* In an RCU section. NULL as well if @inode is about to get another. */
__rust_helper struct bdi_writeback *
rust_helper_inode_wb_if_stays(struct inode *inode)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	if (inode_state_read_once(inode) & I_WB_SWITCH)
		return NULL;
	/* Pairs with the fence in inode_do_switch_wbs(). */
	smp_rmb();
	return inode->i_wb;
#else
	return inode_to_wb(inode);
#endif
}

__rust_helper void
rust_helper_unlocked_inode_to_wb_end(struct inode *inode,
				     struct wb_lock_cookie *cookie)
{
	unlocked_inode_to_wb_end(inode, cookie);
}

__rust_helper unsigned long
rust_helper_mapping_lock_pages(struct address_space *mapping)
{
	unsigned long flags;

	xa_lock_irqsave(&mapping->i_pages, flags);
	return flags;
}

__rust_helper void
rust_helper_mapping_unlock_pages(struct address_space *mapping,
				 unsigned long flags)
{
	xa_unlock_irqrestore(&mapping->i_pages, flags);
}

__rust_helper unsigned int rust_helper_inode_state_read(struct inode *inode)
{
	return inode_state_read(inode);
}

__rust_helper void
rust_helper_inode_state_set(struct inode *inode, unsigned int flags)
{
	inode_state_set(inode, flags);
}

__rust_helper void
rust_helper_inode_state_clear(struct inode *inode, unsigned int flags)
{
	inode_state_clear(inode, flags);
}

__rust_helper void
rust_helper_list_move(struct list_head *link, struct list_head *head)
{
	list_move(link, head);
}

__rust_helper void
rust_helper_list_move_tail(struct list_head *link, struct list_head *head)
{
	list_move_tail(link, head);
}

__rust_helper void
rust_helper_list_splice_tail_init(struct list_head *list,
				  struct list_head *head)
{
	list_splice_tail_init(list, head);
}

__rust_helper struct bdi_writeback *
rust_helper_inode_to_wb(const struct inode *inode)
{
	return inode_to_wb(inode);
}

__rust_helper bool
rust_helper_mapping_can_writeback(struct address_space *mapping)
{
	return mapping_can_writeback(mapping);
}

__rust_helper bool
rust_helper_mapping_dirty_tagged(const struct address_space *mapping)
{
	return mapping_tagged(mapping, PAGECACHE_TAG_DIRTY);
}

__rust_helper bool
rust_helper_mapping_writeback_tagged(const struct address_space *mapping)
{
	return mapping_tagged(mapping, PAGECACHE_TAG_WRITEBACK);
}

/* In the context of the flusher of @wb, which ends before the disk goes. */
__rust_helper bool
rust_helper_wb_disk_writes(struct bdi_writeback *wb,
			   struct rust_disk_writes *disk)
{
	struct device *owner = READ_ONCE(wb->bdi->owner);
	struct block_device *bdev;

	if (!owner)
		return false;
	bdev = dev_to_disk(owner)->part0;
	disk->writes = part_stat_read(bdev, ios[STAT_WRITE]);
	disk->sectors = part_stat_read(bdev, sectors[STAT_WRITE]);
	disk->largest = queue_max_sectors(bdev_get_queue(bdev));
	return true;
}

__rust_helper void rust_helper_wb_get(struct bdi_writeback *wb)
{
	wb_get(wb);
}

__rust_helper void rust_helper_wb_put(struct bdi_writeback *wb)
{
	wb_put(wb);
}

__rust_helper void rust_helper_spin_lock_irq(spinlock_t *lock)
{
	spin_lock_irq(lock);
}

__rust_helper void rust_helper_spin_unlock_irq(spinlock_t *lock)
{
	spin_unlock_irq(lock);
}

__rust_helper bool
rust_helper_queue_delayed_work(struct workqueue_struct *wq,
			       struct delayed_work *dwork, unsigned long delay)
{
	return queue_delayed_work(wq, dwork, delay);
}

__rust_helper bool rust_helper_timer_pending(const struct timer_list *timer)
{
	return timer_pending(timer);
}

__rust_helper bool
rust_helper_mod_delayed_work(struct workqueue_struct *wq,
			     struct delayed_work *dwork, unsigned long delay)
{
	return mod_delayed_work(wq, dwork, delay);
}

__rust_helper bool
rust_helper_test_bit(unsigned long nr, const unsigned long *addr)
{
	return test_bit(nr, addr);
}

__rust_helper bool
rust_helper_test_and_set_bit(unsigned long nr, unsigned long *addr)
{
	return test_and_set_bit(nr, addr);
}

__rust_helper bool
rust_helper_test_and_clear_bit(unsigned long nr, unsigned long *addr)
{
	return test_and_clear_bit(nr, addr);
}

__rust_helper void rust_helper_smp_mb__after_atomic(void)
{
	/* The caller of the helper says what it pairs with. */
	smp_mb__after_atomic();
}
