// SPDX-License-Identifier: GPL-2.0
/*
 * Storage and work items for dropping folios.
 */
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/memcontrol.h>
#include <linux/mm_inline.h>
#include <linux/rust_writeback.h>

DEFINE_PER_CPU_ALIGNED(struct dropbehind_ring, dropbehind_rings);

/*
 * Reclaim cannot free these folios before the work runs: the queue needs a
 * rescuer.
 */
static struct workqueue_struct *dropbehind_wq __ro_after_init;

void dropbehind_begin(struct dropbehind_ring *ring, unsigned int ms, bool anew)
{
	unsigned long wait = msecs_to_jiffies(ms);

	if (anew)
		mod_delayed_work(dropbehind_wq, &ring->work, wait);
	else
		queue_delayed_work(dropbehind_wq, &ring->work, wait);
}

/*
 * Take folios that have left the page cache off their LRU list, and update the
 * statistics once for all folios of the same list. The caller has references on
 * the folios. A folio that is skipped here is taken off when its last reference
 * is dropped.
 */
void dropbehind_del_lru(struct folio *const *folios, unsigned int nr)
{
	struct lruvec *lruvec = NULL;
	enum zone_type zone = 0;
	enum lru_list lru = 0;
	unsigned long flags;
	long nr_pages = 0;

	for (unsigned int i = 0; i < nr; i++) {
		struct folio *folio = folios[i];

		if (folio_test_large(folio) || !folio_test_clear_lru(folio))
			continue;
		/* Other contexts clear PG_lru before they change this flag. */
		if (folio_test_unevictable(folio)) {
			folio_set_lru(folio);
			continue;
		}
		if (lruvec && (!folio_matches_lruvec(folio, lruvec) ||
			       folio_lru_list(folio) != lru ||
			       folio_zonenum(folio) != zone)) {
			update_lru_size(lruvec, lru, zone, -nr_pages);
			lruvec_unlock_irqrestore(lruvec, flags);
			lruvec = NULL;
		}
		if (!lruvec) {
			lruvec = folio_lruvec_lock_irqsave(folio, &flags);
			lru = folio_lru_list(folio);
			zone = folio_zonenum(folio);
			nr_pages = 0;
		}
		/* MGLRU may be switched on or off meanwhile. */
		if (lru_gen_del_folio(lruvec, folio, true))
			continue;
		list_del(&folio->lru);
		nr_pages++;
		if (folio_test_active(folio))
			folio_clear_active(folio);
	}
	if (lruvec) {
		update_lru_size(lruvec, lru, zone, -nr_pages);
		lruvec_unlock_irqrestore(lruvec, flags);
	}
}

static int __init dropbehind_init(void)
{
	unsigned int cpu;

	/* Unbound: a real-time task that has the CPU cannot delay drops. */
	dropbehind_wq = alloc_workqueue("dropbehind",
					WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!dropbehind_wq)
		panic("mm: no workqueue to drop folios in\n");
	for_each_possible_cpu(cpu)
		INIT_DELAYED_WORK(&per_cpu(dropbehind_rings, cpu).work,
				  dropbehind_work);
	return 0;
}
core_initcall(dropbehind_init);
