// SPDX-License-Identifier: GPL-2.0

#include <linux/backing-dev.h>
#include <linux/bitops.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

__rust_helper struct bdi_writeback *
rust_helper_unlocked_inode_to_wb_begin(struct inode *inode,
				       struct wb_lock_cookie *cookie)
{
	return unlocked_inode_to_wb_begin(inode, cookie);
}

/* Call under RCU. Also NULL if @inode is about to move to another wb. */
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

__rust_helper struct bdi_writeback *
rust_helper_inode_to_wb(struct inode *inode)
{
	return inode_to_wb(inode);
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
	/* The caller of the helper documents the pairing. */
	smp_mb__after_atomic();
}
