// SPDX-License-Identifier: GPL-2.0

#include <linux/percpu_counter.h>

#ifdef CONFIG_SMP
__rust_helper s32
rust_helper_percpu_counter_share(struct percpu_counter *fbc, unsigned int cpu)
{
	return *per_cpu_ptr(fbc->counters, cpu);
}

__rust_helper unsigned long
rust_helper_raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	unsigned long flags;

	raw_spin_lock_irqsave(lock, flags);
	return flags;
}

__rust_helper void
rust_helper_raw_spin_unlock_irqrestore(raw_spinlock_t *lock,
				       unsigned long flags)
{
	raw_spin_unlock_irqrestore(lock, flags);
}
#else
__rust_helper void
rust_helper_percpu_counter_add_batch(struct percpu_counter *fbc, s64 amount,
				     s32 batch)
{
	percpu_counter_add_batch(fbc, amount, batch);
}

__rust_helper s64
rust_helper_percpu_counter_sum(struct percpu_counter *fbc)
{
	return percpu_counter_sum(fbc);
}
#endif
