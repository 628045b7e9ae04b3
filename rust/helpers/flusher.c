// SPDX-License-Identifier: GPL-2.0

#include <linux/backing-dev.h>
#include <linux/fs.h>
#include <linux/list.h>

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
