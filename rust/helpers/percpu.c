// SPDX-License-Identifier: GPL-2.0

#include <linux/percpu_counter.h>

__rust_helper void *rust_helper_raw_cpu_ptr(void __percpu *ptr)
{
	return raw_cpu_ptr(ptr);
}

__rust_helper s64
rust_helper_percpu_counter_sum(struct percpu_counter *fbc)
{
	return percpu_counter_sum(fbc);
}

#ifndef CONFIG_SMP
__rust_helper void
rust_helper_percpu_counter_add_batch(struct percpu_counter *fbc, s64 amount,
				     s32 batch)
{
	percpu_counter_add_batch(fbc, amount, batch);
}
#endif
