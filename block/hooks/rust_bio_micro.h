/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the micro-benchmark, included by bio.c alone: the C's batches are private
 * to it.
 */
#ifdef CONFIG_RUST_WRITEBACK_MICRO

/* What the active core's worker of this CPU does. */
void bio_micro_work(void)
{
	if (rust_writeback_active())
		rust_bio_batch_work();
	else
		bio_complete_work_fn(this_cpu_ptr(&bio_complete_batch.work));
}

#endif /* CONFIG_RUST_WRITEBACK_MICRO */
