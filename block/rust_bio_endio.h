/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where bio_endio() cannot end a bio that wants a task, included by bio.c alone
 * in front of it.
 */
#ifdef CONFIG_RUST_WRITEBACK

/*
 * Besides atomic contexts that is where the submitter of @bio still has one of
 * its folios locked, on a device that completes what it is given at once: the
 * folio's end of dropbehind would fail for the lock.
 */
static inline bool rust_bio_in_atomic(struct bio *bio)
{
	return bio_in_atomic() ||
	       (rust_writeback_active() && rust_bio_has_locked_folio(bio));
}

/* bio_endio() asks by the C's name, and only of a bio that wants a task. */
#define bio_in_atomic()	rust_bio_in_atomic(bio)

#ifdef CONFIG_RUST_WRITEBACK_MICRO
/* What the active core's worker of this CPU does. */
void bio_micro_work(void)
{
	if (rust_writeback_active())
		rust_bio_batch_work();
	else
		bio_complete_work_fn(this_cpu_ptr(&bio_complete_batch.work));
}
#endif

#endif /* CONFIG_RUST_WRITEBACK */
