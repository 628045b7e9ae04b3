/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the micro-benchmark. Only bio.c includes this file: C's batches are
 * static there.
 */
#ifdef CONFIG_RUST_WRITEBACK_MICRO

/* Run the active core's worker function for this CPU. */
void bio_micro_work(void)
{
	if (rust_writeback_active())
		bio_task_run(this_cpu_ptr(&bio_tasks.work));
	else
		bio_complete_work_fn(this_cpu_ptr(&bio_complete_batch.work));
}

#endif /* CONFIG_RUST_WRITEBACK_MICRO */
