// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of single operations of the active writeback core, in TSC ticks. Where
 * the TSC counts instructions, results repeat exactly.
 *
 * Write the number of an open file to debugfs rust_writeback/micro to run the
 * operations on that file. A read returns a line per operation.
 */
#include <linux/backing-dev.h>
#include <linux/debugfs.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/rust_writeback.h>
#include <linux/seq_file.h>
#include <linux/timex.h>
#include <linux/writeback.h>

#define ROUNDS	1000

struct subject {
	struct address_space	*mapping;
	struct folio		*folio;
	struct bdi_writeback	*wb;
	struct kiocb		iocb;	/* of a finished DONTCACHE write */
};

static void nothing(struct subject *s)
{
}

static void set_kick(struct subject *s)
{
	set_bit(WB_start_dontcache, &s->wb->state);
}

static void clear_kick(struct subject *s)
{
	clear_bit(WB_start_dontcache, &s->wb->state);
	clear_bit(WB_dontcache_delayed, &s->wb->state);
}

/* Request a round after the delay. C requests an immediate round instead. */
static void set_wait(struct subject *s)
{
	clear_kick(s);
	set_bit(rust_writeback_active() ? WB_dontcache_delayed :
					  WB_start_dontcache, &s->wb->state);
}

/* Inlined like the other operations, despite its size. */
static __always_inline void kick(struct subject *s)
{
	generic_write_sync(&s->iocb, 1);
}

static void consume(struct subject *s)
{
	dontcache_test_flush(s->wb);
}

static void dirty(struct subject *s)
{
	filemap_dirty_folio(s->mapping, s->folio);
}

static void clean(struct subject *s)
{
	folio_clear_dirty_for_io(s->folio);
}

/*
 * The minimum cost of @op after @prepare. An interrupt makes some rounds
 * expensive, so the minimum is the cost of the operation itself.
 */
static u64 ticks(struct subject *s, void (*prepare)(struct subject *),
		 void (*op)(struct subject *))
{
	u64 least = U64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		u64 begin, end;

		preempt_disable();
		prepare(s);
		begin = get_cycles();
		op(s);
		end = get_cycles();
		preempt_enable();
		least = min(least, end - begin);
	}
	return least;
}

enum micro_op {
	KICK_SET,
	KICK_WAIT,
	KICK_CLEAR,
	CONSUME,
	ACCOUNT_DIRTIED,
	ACCOUNT_CLEANED,
	BUFFERED_DIRTIED,
	BUFFERED_CLEANED,
	NR_MICRO_OPS
};

static const char * const micro_names[NR_MICRO_OPS] = {
	[KICK_SET]		= "kick_set",
	[KICK_WAIT]		= "kick_wait",
	[KICK_CLEAR]		= "kick_clear",
	[CONSUME]		= "consume",
	[ACCOUNT_DIRTIED]	= "account_dirtied",
	[ACCOUNT_CLEANED]	= "account_cleaned",
	[BUFFERED_DIRTIED]	= "buffered_dirtied",
	[BUFFERED_CLEANED]	= "buffered_cleaned",
};

static DEFINE_MUTEX(micro_lock);
/* Signed: on a busy host the difference may be negative. */
static s64 micro_result[NR_MICRO_OPS];
static bool micro_done;

/*
 * Accounting is the extra cost of a dropbehind folio in the functions that
 * dirty and clean it. At the end the folio is dirty and ordinary, so the wb has
 * dirty I/O, and nothing is counted.
 */
static int measure(struct subject *s)
{
	u64 empty = ticks(s, nothing, nothing);
	s64 *r = micro_result;

	r[BUFFERED_CLEANED] = ticks(s, dirty, clean) - empty;
	r[BUFFERED_DIRTIED] = ticks(s, clean, dirty) - empty;
	clean(s);
	folio_set_dropbehind(s->folio);
	r[ACCOUNT_CLEANED] = ticks(s, dirty, clean) - empty - r[BUFFERED_CLEANED];
	r[ACCOUNT_DIRTIED] = ticks(s, clean, dirty) - empty - r[BUFFERED_DIRTIED];
	clean(s);
	folio_clear_dropbehind(s->folio);
	dirty(s);

	if (percpu_counter_sum(&s->wb->stat[WB_DONTCACHE_DIRTY]))
		return -EBUSY;
	r[CONSUME] = ticks(s, set_kick, consume) - empty;
	r[KICK_SET] = ticks(s, set_kick, kick) - empty;
	r[KICK_WAIT] = ticks(s, set_wait, kick) - empty;
	r[KICK_CLEAR] = ticks(s, clear_kick, kick) - empty;
	return 0;
}

/* Use the first folio of @file, locked until all is measured. */
static int micro_run(struct file *file)
{
	struct subject s = {
		.mapping	= file->f_mapping,
		.iocb.ki_filp	= file,
		.iocb.ki_flags	= IOCB_DONTCACHE,
	};
	int err;

	if (!mapping_can_writeback(s.mapping))
		return -EINVAL;
	s.folio = read_mapping_folio(s.mapping, 0, file);
	if (IS_ERR(s.folio))
		return PTR_ERR(s.folio);
	folio_lock(s.folio);
	folio_wait_writeback(s.folio);
	err = -EBUSY;
	if (s.folio->mapping != s.mapping || folio_test_dropbehind(s.folio))
		goto unlock;
	dirty(&s);
	spin_lock(&s.mapping->host->i_lock);
	s.wb = inode_to_wb(s.mapping->host);
	spin_unlock(&s.mapping->host->i_lock);
	err = measure(&s);
unlock:
	folio_unlock(s.folio);
	folio_put(s.folio);
	return err;
}

static ssize_t micro_write(struct file *micro, const char __user *buf,
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
	if (!S_ISREG(file_inode(file)->i_mode)) {
		err = -EINVAL;
	} else {
		guard(mutex)(&micro_lock);
		micro_done = false;
		err = micro_run(file);
		micro_done = !err;
	}
	fput(file);
	return err ?: count;
}

static int micro_show(struct seq_file *m, void *unused)
{
	guard(mutex)(&micro_lock);
	if (!micro_done)
		return -ENODATA;
	for (int op = 0; op < NR_MICRO_OPS; op++)
		seq_printf(m, "%s %lld\n", micro_names[op], micro_result[op]);
	return 0;
}
DEFINE_SHOW_STORE_ATTRIBUTE(micro);

static int __init dontcache_micro_init(void)
{
	debugfs_create_file("micro", 0600,
			    debugfs_lookup("rust_writeback", NULL), NULL,
			    &micro_fops);
	return 0;
}
late_initcall_sync(dontcache_micro_init);
