// SPDX-License-Identifier: GPL-2.0
/*
 * Completes bios that ask for a task, in each context. A bio must end once, in
 * the order of completion, and in a context that may sleep. With Rust, bios of
 * few folios end in the interrupt, in any order relative to other bios; the
 * folios are dropped later.
 */
#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/pagemap.h>
#include <linux/rust_writeback.h>
#include <linux/rust_writeback_kunit.h>
#include <linux/timer.h>

#define NR_BIOS		600
#define PATIENCE	(10 * HZ)

struct ending {
	struct bio		*bios[NR_BIOS];
	unsigned int		nr;		/* number of bios */
	atomic_t		nr_ended;
	unsigned int		nr_ended_at_once;	/* in the interrupt */
	bool			in_order;
	bool			may_sleep;
	struct task_struct	*task;		/* task that ended last bio */
	bio_end_io_t		*end_io;	/* for folios, or NULL */
	struct completion	all;
	struct irq_work		irq_work;
	struct timer_list	timer;
};

static void end_bio(struct bio *bio)
{
	struct ending *ending = bio->bi_private;
	unsigned int nr = atomic_inc_return(&ending->nr_ended);

	if (ending->bios[nr - 1] != bio || bio->bi_next)
		ending->in_order = false;
	if (bio_in_atomic())
		ending->may_sleep = false;
	ending->task = current;
	if (nr == ending->nr)
		complete(&ending->all);
}

static void complete_bios(struct ending *ending)
{
	for (unsigned int nr = 0; nr < ending->nr; nr++)
		bio_endio(ending->bios[nr]);
}

static void begin(struct kunit *test, struct ending *ending, unsigned int nr)
{
	memset(ending, 0, sizeof(*ending));
	ending->nr = nr;
	ending->in_order = true;
	ending->may_sleep = true;
	init_completion(&ending->all);
	for (unsigned int i = 0; i < nr; i++) {
		struct bio *bio = bio_alloc(NULL, 1, REQ_OP_WRITE, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, bio);
		bio->bi_end_io = end_bio;
		bio->bi_private = ending;
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
		ending->bios[i] = bio;
	}
}

static void expect_ended(struct kunit *test, struct ending *ending,
			 bool by_worker)
{
	KUNIT_ASSERT_NE(test, 0,
			wait_for_completion_timeout(&ending->all, PATIENCE));
	KUNIT_EXPECT_EQ(test, atomic_read(&ending->nr_ended), ending->nr);
	KUNIT_EXPECT_TRUE(test, ending->in_order);
	KUNIT_EXPECT_TRUE(test, ending->may_sleep);
	KUNIT_EXPECT_EQ(test, ending->task != current, by_worker);
	for (unsigned int i = 0; i < ending->nr; i++)
		bio_put(ending->bios[i]);
}

static void in_a_task(struct kunit *test)
{
	struct ending *ending = test->priv;

	for (int core = 0; core < NR_CORES; core++) {
		set_core(core);
		begin(test, ending, NR_BIOS);
		complete_bios(ending);
		expect_ended(test, ending, false);
	}
}

static void with_preemption_off(struct kunit *test)
{
	struct ending *ending = test->priv;

	for (int core = 0; core < NR_CORES; core++) {
		set_core(core);
		begin(test, ending, NR_BIOS);
		preempt_disable();
		complete_bios(ending);
		KUNIT_EXPECT_EQ(test, atomic_read(&ending->nr_ended), 0);
		preempt_enable();
		expect_ended(test, ending, true);
	}
}

static void with_interrupts_off(struct kunit *test)
{
	struct ending *ending = test->priv;
	unsigned long flags;

	for (int core = 0; core < NR_CORES; core++) {
		set_core(core);
		begin(test, ending, NR_BIOS);
		local_irq_save(flags);
		complete_bios(ending);
		local_irq_restore(flags);
		expect_ended(test, ending, true);
	}
}

static void complete_in_irq_work(struct irq_work *work)
{
	struct ending *ending = container_of(work, struct ending, irq_work);

	complete_bios(ending);
	ending->nr_ended_at_once = atomic_read(&ending->nr_ended);
}

static void in_an_interrupt(struct kunit *test)
{
	struct ending *ending = test->priv;

	for (int core = 0; core < NR_CORES; core++) {
		set_core(core);
		begin(test, ending, NR_BIOS);
		init_irq_work(&ending->irq_work, complete_in_irq_work);
		irq_work_queue(&ending->irq_work);
		expect_ended(test, ending, true);
		irq_work_sync(&ending->irq_work);
	}
}

static void complete_in_timer(struct timer_list *timer)
{
	struct ending *ending = container_of(timer, struct ending, timer);

	complete_bios(ending);
	ending->nr_ended_at_once = atomic_read(&ending->nr_ended);
}

static void in_a_softirq(struct kunit *test)
{
	struct ending *ending = test->priv;

	for (int core = 0; core < NR_CORES; core++) {
		set_core(core);
		begin(test, ending, NR_BIOS);
		timer_setup_on_stack(&ending->timer, complete_in_timer, 0);
		mod_timer(&ending->timer, jiffies + 1);
		expect_ended(test, ending, true);
		timer_delete_sync(&ending->timer);
		timer_destroy_on_stack(&ending->timer);
	}
}

/* Like a driver that needs a task only at completion. */
static void end_in_task(struct bio *bio)
{
	if (!bio_complete_in_task(bio))
		end_bio(bio);
}

static void decided_at_completion(struct kunit *test)
{
	struct ending *ending = test->priv;

	for (int core = 0; core < NR_CORES; core++) {
		set_core(core);
		begin(test, ending, NR_BIOS);
		for (unsigned int i = 0; i < ending->nr; i++) {
			bio_clear_flag(ending->bios[i], BIO_COMPLETE_IN_TASK);
			ending->bios[i]->bi_end_io = end_in_task;
		}
		preempt_disable();
		complete_bios(ending);
		preempt_enable();
		expect_ended(test, ending, true);
	}
}

/* A bio of at most so many folios ends in the interrupt. */
#define FEW		min(16, DROPBEHIND_SLOTS / 8)
/* Slots of the ring for bios that an interrupt has interrupted. */
#define MARGIN		(2 * FEW)
/* How many bios of FEW folios may end in interrupts, if no folio leaves. */
#define FIT		((DROPBEHIND_SLOTS - MARGIN) / FEW)

/* Adds to @bio @nr folios to drop, with one reference each. */
static void add_folios(struct kunit *test, struct bio *bio, unsigned int nr,
		       bool dropbehind)
{
	for (unsigned int i = 0; i < nr; i++) {
		struct folio *folio = folio_alloc(GFP_KERNEL, 0);

		KUNIT_ASSERT_NOT_NULL(test, folio);
		if (dropbehind)
			folio_set_dropbehind(folio);
		bio_add_folio_nofail(bio, folio, folio_size(folio), 0);
	}
}

static void put_folios(struct bio *bio)
{
	struct folio_iter fi;

	bio_for_each_folio_all(fi, bio)
		folio_put(fi.folio);
}

/* Like a file system at the end of writeback. */
static void end_folios(struct bio *bio)
{
	struct folio_iter fi;

	bio_for_each_folio_all(fi, bio)
		folio_end_dropbehind(fi.folio);
	end_bio(bio);
}

/* Recreates the bios of @ending with @nr folios each. */
static void with_folios(struct kunit *test, struct ending *ending,
			unsigned int nr, bool dropbehind)
{
	struct bio *bio;

	for (unsigned int i = 0; i < ending->nr; i++) {
		bio_put(ending->bios[i]);
		bio = bio_alloc(NULL, FEW + 1, REQ_OP_WRITE, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, bio);
		bio->bi_end_io = ending->end_io ?: end_folios;
		bio->bi_private = ending;
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
		add_folios(test, bio, nr, dropbehind);
		ending->bios[i] = bio;
	}
}

/* Returns how many bios of @ending, of @nr folios, end in the interrupt. */
static unsigned int nr_ended_in_interrupt(struct kunit *test,
					  struct ending *ending,
					  unsigned int nr, bool dropbehind)
{
	with_folios(test, ending, nr, dropbehind);
	ending->irq_work = IRQ_WORK_INIT_HARD(complete_in_irq_work);
	irq_work_queue(&ending->irq_work);
	irq_work_sync(&ending->irq_work);

	KUNIT_EXPECT_NE(test, 0,
			wait_for_completion_timeout(&ending->all, PATIENCE));
	KUNIT_EXPECT_EQ(test, atomic_read(&ending->nr_ended), ending->nr);
	return ending->nr_ended_at_once;
}

/* All folios to drop are dropped soon. */
static void expect_dropped(struct kunit *test, struct ending *ending)
{
	unsigned long end = jiffies + PATIENCE;
	struct folio_iter fi;

	for (unsigned int i = 0; i < ending->nr; i++) {
		bio_for_each_folio_all(fi, ending->bios[i]) {
			while (folio_ref_count(fi.folio) > 1 &&
			       time_before(jiffies, end))
				msleep(20);
			KUNIT_EXPECT_EQ(test, folio_ref_count(fi.folio), 1);
			KUNIT_EXPECT_FALSE(test,
					   folio_test_dropbehind(fi.folio));
		}
		put_folios(ending->bios[i]);
		bio_put(ending->bios[i]);
	}
}

static void few_folios(struct kunit *test)
{
	struct ending *ending = test->priv;

	set_core(CORE_RUST);
	begin(test, ending, 1);
	KUNIT_EXPECT_EQ(test, 1, nr_ended_in_interrupt(test, ending, FEW, true));
	KUNIT_EXPECT_FALSE(test, ending->may_sleep);
	expect_dropped(test, ending);
}

static void few_folios_in_a_softirq(struct kunit *test)
{
	struct ending *ending = test->priv;

	set_core(CORE_RUST);
	begin(test, ending, FIT);
	with_folios(test, ending, FEW, true);
	timer_setup_on_stack(&ending->timer, complete_in_timer, 0);
	mod_timer(&ending->timer, jiffies + 1);
	KUNIT_EXPECT_NE(test, 0,
			wait_for_completion_timeout(&ending->all, PATIENCE));
	timer_delete_sync(&ending->timer);
	timer_destroy_on_stack(&ending->timer);
	KUNIT_EXPECT_EQ(test, ending->nr_ended_at_once, ending->nr);
	KUNIT_EXPECT_FALSE(test, ending->may_sleep);
	expect_dropped(test, ending);
}

static void many_folios(struct kunit *test)
{
	struct ending *ending = test->priv;

	set_core(CORE_RUST);
	begin(test, ending, 1);
	KUNIT_EXPECT_EQ(test, 0,
			nr_ended_in_interrupt(test, ending, FEW + 1, true));
	KUNIT_EXPECT_TRUE(test, ending->may_sleep);
	expect_dropped(test, ending);
}

/* Bios without dropbehind folios ask for a task for another reason. */
static void no_folios_to_drop(struct kunit *test)
{
	struct ending *ending = test->priv;

	set_core(CORE_RUST);
	begin(test, ending, 1);
	KUNIT_EXPECT_EQ(test, 0, nr_ended_in_interrupt(test, ending, 1, false));
	KUNIT_EXPECT_TRUE(test, ending->may_sleep);
	expect_dropped(test, ending);
}

/*
 * The end_io function itself may ask for a task. One bio at a time: on the
 * second call the worker owns the bio.
 */
static void end_folios_in_task(struct bio *bio)
{
	if (!bio_complete_in_task(bio))
		end_folios(bio);
}

static void few_folios_and_a_task(struct kunit *test)
{
	struct ending *ending = test->priv;

	set_core(CORE_RUST);
	begin(test, ending, 1);
	ending->end_io = end_folios_in_task;
	KUNIT_EXPECT_EQ(test, 0, nr_ended_in_interrupt(test, ending, 1, true));
	KUNIT_EXPECT_TRUE(test, ending->may_sleep);
	expect_dropped(test, ending);
}

/* More folios than the ring holds, unless another CPU drops some meanwhile. */
static void more_folios_than_fit(struct kunit *test)
{
	struct ending *ending = test->priv;

	set_core(CORE_RUST);
	begin(test, ending, NR_BIOS);
	KUNIT_EXPECT_LE(test, DROPBEHIND_SLOTS - MARGIN,
			nr_ended_in_interrupt(test, ending, 1, true));
	expect_dropped(test, ending);
}

/* As if interrupts ended the other bios after the ring was asked for room. */
static void end_folios_last(struct bio *bio)
{
	struct ending *ending = bio->bi_private;

	if (bio == ending->bios[0])
		for (unsigned int i = 1; i < ending->nr; i++)
			bio_endio(ending->bios[i]);
	end_folios(bio);
}

static void interrupted_bio_has_its_room(struct kunit *test)
{
	struct ending *ending = test->priv;

	set_core(CORE_RUST);
	begin(test, ending, DROPBEHIND_SLOTS / FEW + 1);
	ending->end_io = end_folios_last;
	with_folios(test, ending, FEW, true);
	preempt_disable();
	bio_endio(ending->bios[0]);
	preempt_enable();
	KUNIT_EXPECT_NE(test, 0,
			wait_for_completion_timeout(&ending->all, PATIENCE));
	expect_dropped(test, ending);
}

static enum core core_before;

static int bio_task_init(struct kunit *test)
{
	core_before = get_core();
	test->priv = kunit_kzalloc(test, sizeof(struct ending), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static void bio_task_exit(struct kunit *test)
{
	set_core(core_before);
}

static struct kunit_case bio_task_cases[] = {
	KUNIT_CASE(in_a_task),
	KUNIT_CASE(with_preemption_off),
	KUNIT_CASE(with_interrupts_off),
	KUNIT_CASE(in_an_interrupt),
	KUNIT_CASE(in_a_softirq),
	KUNIT_CASE(decided_at_completion),
	KUNIT_CASE(few_folios),
	KUNIT_CASE(few_folios_in_a_softirq),
	KUNIT_CASE(many_folios),
	KUNIT_CASE(no_folios_to_drop),
	KUNIT_CASE(few_folios_and_a_task),
	KUNIT_CASE(more_folios_than_fit),
	KUNIT_CASE(interrupted_bio_has_its_room),
	{}
};

static struct kunit_suite bio_task_suite = {
	.name		= "bio_task",
	.init		= bio_task_init,
	.exit		= bio_task_exit,
	.test_cases	= bio_task_cases,
};

kunit_test_suite(bio_task_suite);
