// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>

__rust_helper unsigned int rust_helper_i_blocksize(const struct inode *inode)
{
	return i_blocksize(inode);
}
