/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scheduler's clock on the native machine.
 *
 * User-mode Linux has one that moves with the tick, a hundred times a second. What
 * runs for less is then not seen to run, neither by the scheduler, which decides by
 * it who is next, nor by whoever reads the CPU time of a worker.
 *
 * tools/rust_writeback/vm/native.py has this file compiled into one of the kernel's.
 */
#include <linux/sched/clock.h>
#include <os.h>

notrace unsigned long long sched_clock(void)
{
	static unsigned long long begin;

	if (!begin)
		begin = os_nsecs();
	return os_nsecs() - begin;
}
