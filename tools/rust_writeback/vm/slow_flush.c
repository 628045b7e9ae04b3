// SPDX-License-Identifier: GPL-2.0
/*
 * For LD_PRELOAD: QEMU flushes a drive by fdatasync(), which takes $FLUSH_US here,
 * however long the host's own drive would take for what the guest has written.
 */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <unistd.h>

int fdatasync(int fd)
{
	return usleep(atoi(getenv("FLUSH_US")));
}
