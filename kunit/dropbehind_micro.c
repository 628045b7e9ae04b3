// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of dropping folios whose writeback ends on the active core, in TSC
 * ticks. Where the TSC counts instructions, results repeat.
 *
 * Write the number of an open file to debugfs rust_writeback/micro_drop to end
 * bios of folios of that file, behind its first MIB_BEHIND MiB: the file must
 * have no folios there. A read returns a line per kind of bio.
 */
#include <linux/backing-dev.h>
#include <linux/bio.h>
#include <linux/debugfs.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/math64.h>
#include <linux/pagemap.h>
#include <linux/rust_writeback.h>
#include <linux/seq_file.h>
#include <linux/sort.h>
#include <linux/timex.h>
#include "internal.h"

#define ROUNDS		100
#define MIB_BEHIND	2
/* Longer than a folio waits to be dropped. */
#define A_WHILE		(HZ / 10 + 1)

struct kind {
	const char	*name;
	size_t		size;		/* of a folio */
	unsigned int	nr;		/* folios of a bio */
	bool		in_interrupt;	/* where the bio completes */
};

static const struct kind kinds[] = {
	{ "drop_4k_alone",	SZ_4K,	1 },
	{ "drop_4k_of_8",	SZ_4K,	8 },
	{ "drop_4k_of_64",	SZ_4K,	64 },
	{ "drop_64k_alone",	SZ_64K,	1 },
	{ "drop_64k_of_16",	SZ_64K,	16 },
	{ "drop_2m_alone",	SZ_2M,	1 },
	{ "drop_2m_of_4",	SZ_2M,	4 },
	{ "drop_4k_interrupt",	SZ_4K,	1,	true },
	{ "drop_4k_interrupt_of_8", SZ_4K, 8,	true },
};

static DEFINE_MUTEX(micro_lock);
/* Signed: on a busy host the difference may be negative. */
static s64 micro_result[ARRAY_SIZE(kinds)];
static bool micro_done;

/* Like a file system at the end of a bio. */
static noinline void end_folios(struct bio *bio)
{
	struct folio_iter fi;

	bio_for_each_folio_all(fi, bio)
		folio_end_writeback(fi.folio);
}

struct interrupt {
	struct irq_work	work;
	struct bio	*bio;
	s64		cost;
};

static void complete_bio(struct irq_work *work)
{
	struct interrupt *interrupt = container_of(work, struct interrupt, work);
	u64 begin = get_cycles();

	bio_endio(interrupt->bio);
	interrupt->cost = get_cycles() - begin;
}

/* Cost of the worker that drops the folios of this CPU, without its start. */
static s64 drop_ring(void)
{
	struct dropbehind_ring *ring = this_cpu_ptr(&dropbehind_rings);
	u64 begin;

	/* the ring has one work item */
	if (!cancel_delayed_work(&ring->work))
		return 0;
	begin = get_cycles();
	dropbehind_work(&ring->work.work);
	return get_cycles() - begin;
}

/*
 * Cost of completing @bio in an interrupt, and of the tasks that finish it. This
 * includes waking a worker or starting the timer for it, but not the path of the
 * worker to its start.
 */
static s64 complete_in_interrupt(struct bio *bio, bool dropbehind)
{
	struct interrupt interrupt = {
		.work = IRQ_WORK_INIT_HARD(complete_bio),
		.bio = bio,
	};
	u64 begin;

	irq_work_queue(&interrupt.work);
	while (irq_work_is_busy(&interrupt.work))
		cpu_relax();
	if (!dropbehind)
		return interrupt.cost;
	begin = get_cycles();
	bio_micro_work();
	interrupt.cost += get_cycles() - begin;
	return interrupt.cost + drop_ring();
}

static s64 complete_in_task(struct bio *bio)
{
	u64 begin = get_cycles();
	s64 cost;

	end_folios(bio);
	cost = get_cycles() - begin;
	return cost + drop_ring();
}

/* Adds a folio under writeback at @pos to @bio. */
static int add_folio(struct address_space *mapping, struct bio *bio, loff_t pos,
		     size_t size, bool dropbehind)
{
	struct folio *folio;
	int err = -ENOMEM;

	folio = __filemap_get_folio(mapping, pos >> PAGE_SHIFT,
				    FGP_LOCK | FGP_CREAT | FGP_DONTCACHE |
				    fgf_set_order(size), GFP_KERNEL);
	if (IS_ERR(folio))
		return PTR_ERR(folio);
	folio_mark_uptodate(folio);
	if (dropbehind)
		folio_set_dropbehind(folio);
	else
		folio_clear_dropbehind(folio);
	if (folio_size(folio) == size && !folio_test_dirty(folio) &&
	    bio_add_folio(bio, folio, size, 0)) {
		folio_start_writeback(folio);
		err = 0;
	}
	folio_unlock(folio);
	folio_put(folio);
	return err;
}

/* Ends one bio of this kind, and stores the cost in @cost. */
static int end_one(struct address_space *mapping, const struct kind *kind,
		   bool dropbehind, s64 *cost)
{
	loff_t first = MIB_BEHIND * SZ_1M, pos = first;
	struct bio *bio;
	bool is_left;
	int err = 0;

	bio = bio_alloc(NULL, kind->nr, REQ_OP_WRITE, GFP_KERNEL);
	bio->bi_end_io = end_folios;
	if (dropbehind)
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
	for (unsigned int i = 0; i < kind->nr && !err; i++) {
		err = add_folio(mapping, bio, pos, kind->size, dropbehind);
		pos += kind->size;
	}
	/* Folios pending for the LRU lists hold an extra reference. */
	lru_add_drain();

	migrate_disable();
	if (kind->in_interrupt)
		*cost = complete_in_interrupt(bio, dropbehind);
	else
		*cost = complete_in_task(bio);
	migrate_enable();
	bio_put(bio);

	/* no worker may be pending when the next bio begins */
	if (kind->in_interrupt)
		schedule_timeout_uninterruptible(A_WHILE);
	else
		flush_delayed_work(&raw_cpu_ptr(&dropbehind_rings)->work);

	is_left = filemap_range_has_page(mapping, first, pos - 1);
	if (!err && is_left == dropbehind)
		err = -EIO;
	truncate_inode_pages_range(mapping, first, pos - 1);
	return err;
}

static int compare(const void *a, const void *b)
{
	return cmp_int(*(const s64 *)a, *(const s64 *)b);
}

/*
 * The mean of the middle half: an interrupt makes a round expensive, and
 * sometimes the allocator frees earlier memory.
 */
static s64 middle(s64 *costs)
{
	s64 sum = 0;

	sort(costs, ROUNDS, sizeof(*costs), compare, NULL);
	for (int round = ROUNDS / 4; round < ROUNDS * 3 / 4; round++)
		sum += costs[round];
	return div_s64(sum, ROUNDS / 2);
}

/*
 * The cost of a drop is the extra cost of a dropbehind folio over an ordinary
 * one, which stays.
 */
static int measure(struct address_space *mapping)
{
	static s64 ordinary[ROUNDS], dropped[ROUNDS];

	for (int i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct kind *kind = &kinds[i];

		for (int round = 0; round < ROUNDS; round++) {
			int err = end_one(mapping, kind, false, &ordinary[round]) ?:
				  end_one(mapping, kind, true, &dropped[round]);

			if (err)
				return err;
		}
		micro_result[i] = div_s64(middle(dropped) - middle(ordinary),
					  kind->nr);
	}
	return 0;
}

static ssize_t micro_drop_write(struct file *micro, const char __user *buf,
				size_t count, loff_t *pos)
{
	struct file *file;
	int fd, err;

	err = kstrtoint_from_user(buf, count, 10, &fd);
	if (err)
		return err;
	file = fget(fd);
	if (!file)
		return -EBADF;
	if (!S_ISREG(file_inode(file)->i_mode) ||
	    !mapping_can_writeback(file->f_mapping)) {
		err = -EINVAL;
	} else {
		guard(mutex)(&micro_lock);
		micro_done = false;
		err = measure(file->f_mapping);
		micro_done = !err;
	}
	fput(file);
	return err ?: count;
}

static int micro_drop_show(struct seq_file *m, void *unused)
{
	guard(mutex)(&micro_lock);
	if (!micro_done)
		return -ENODATA;
	for (int i = 0; i < ARRAY_SIZE(kinds); i++)
		seq_printf(m, "%s %lld\n", kinds[i].name, micro_result[i]);
	return 0;
}
DEFINE_SHOW_STORE_ATTRIBUTE(micro_drop);

static int __init dropbehind_micro_init(void)
{
	debugfs_create_file("micro_drop", 0600,
			    debugfs_lookup("rust_writeback", NULL), NULL,
			    &micro_drop_fops);
	return 0;
}
late_initcall_sync(dropbehind_micro_init);
