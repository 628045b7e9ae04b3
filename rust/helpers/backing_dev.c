// SPDX-License-Identifier: GPL-2.0

#include <linux/backing-dev.h>
#include <linux/bitops.h>

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

__rust_helper struct bdi_writeback *
rust_helper_inode_to_wb(struct inode *inode)
{
	return inode_to_wb(inode);
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
