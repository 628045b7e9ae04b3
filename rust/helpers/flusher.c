// SPDX-License-Identifier: GPL-2.0

#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/part_stat.h>
#include <linux/rust_pace.h>

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

/* Call from the flusher of @wb, which ends before the disk is freed. */
__rust_helper bool
rust_helper_wb_disk_writes(struct bdi_writeback *wb,
			   struct rust_disk_writes *disk)
{
	struct device *owner = READ_ONCE(wb->bdi->owner);
	struct request_queue *queue;
	struct block_device *bdev;

	if (!owner)
		return false;
	bdev = dev_to_disk(owner)->part0;
	queue = bdev_get_queue(bdev);
	disk->counts = blk_queue_io_stat(queue);
	disk->writes = part_stat_read(bdev, ios[STAT_WRITE]);
	disk->sectors = part_stat_read(bdev, sectors[STAT_WRITE]);
	return true;
}
