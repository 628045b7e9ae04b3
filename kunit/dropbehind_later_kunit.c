// SPDX-License-Identifier: GPL-2.0
/*
 * Folios to drop soon or later: their number and the time are bounded, and they
 * are dropped as soon as possible.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rust_dropbehind.h>
#include <linux/rust_drop.h>

/* More than leftovers; with 64 KiB pages both hold 96 folios. */
#define MANY		80
#define TOO_MANY	(RUST_DROP_QUEUE_NR + MANY)
#define PATIENCE	(10 * HZ)

/* A folio without a page cache loses the flag when it is dropped. */
static struct folio *locked_folio(struct kunit *test)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	folio_lock(folio);
	folio_set_dropbehind(folio);
	return folio;
}

static void expect_given_up(struct kunit *test, struct folio *folio)
{
	unsigned long end = jiffies + PATIENCE;

	while (folio_ref_count(folio) > 1 && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
}

static void a_bounded_number_is_held(struct kunit *test)
{
	struct folio **folios = kunit_kcalloc(test, MANY, sizeof(*folios),
					      GFP_KERNEL);
	int held = 0;

	KUNIT_ASSERT_NOT_NULL(test, folios);
	for (int i = 0; i < MANY; i++)
		folios[i] = locked_folio(test);

	/* Stay on the CPU whose slots are counted. */
	preempt_disable();
	for (int i = 0; i < MANY; i++) {
		rust_drop_later(folios[i]);
		held += folio_ref_count(folios[i]) > 1;
	}
	preempt_enable();
	KUNIT_EXPECT_EQ(test, held, RUST_LEFTOVERS_NR);

	for (int i = 0; i < MANY; i++) {
		expect_given_up(test, folios[i]);
		KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(folios[i]));
		folio_unlock(folios[i]);
		folio_put(folios[i]);
	}
}

static void one_is_held_once(struct kunit *test)
{
	struct folio *folio = locked_folio(test);

	preempt_disable();
	rust_drop_later(folio);
	rust_drop_later(folio);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 2);
	folio_unlock(folio);
	expect_given_up(test, folio);
	folio_put(folio);
}

static void it_is_dropped_once_unlocked(struct kunit *test)
{
	struct folio *folio = locked_folio(test);

	rust_drop_later(folio);
	msleep(50);
	KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(folio));
	folio_unlock(folio);
	expect_given_up(test, folio);
	KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(folio));
	folio_put(folio);
}

/* A folio that became dirty is dropped after its writeback. */
static void a_dirty_one_is_left_alone(struct kunit *test)
{
	struct folio *folio = locked_folio(test);

	rust_drop_later(folio);
	folio_test_set_dirty(folio);
	folio_unlock(folio);
	expect_given_up(test, folio);
	KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(folio));
	folio_test_clear_dirty(folio);
	folio_put(folio);
}

struct interrupt {
	struct irq_work	work;
	struct folio	**folios;
	int		nr;
	int		held;
};

static void drop_in_interrupt(struct irq_work *work)
{
	struct interrupt *interrupt = container_of(work, struct interrupt, work);

	for (int i = 0; i < interrupt->nr; i++) {
		rust_drop_later(interrupt->folios[i]);
		interrupt->held += folio_ref_count(interrupt->folios[i]) > 1;
	}
}

/* An interrupt that drops @nr locked folios. */
static struct interrupt interrupt_with(struct kunit *test, int nr)
{
	struct interrupt interrupt = {
		.work = IRQ_WORK_INIT_HARD(drop_in_interrupt),
		.folios = kunit_kcalloc(test, nr, sizeof(struct folio *),
					GFP_KERNEL),
		.nr = nr,
	};

	KUNIT_ASSERT_NOT_NULL(test, interrupt.folios);
	for (int i = 0; i < nr; i++)
		interrupt.folios[i] = locked_folio(test);
	return interrupt;
}

static void run(struct interrupt *interrupt)
{
	irq_work_queue(&interrupt->work);
	irq_work_sync(&interrupt->work);
}

/* More folios than leftovers hold. */
static void a_task_drops_those_of_an_interrupt(struct kunit *test)
{
	struct interrupt interrupt = interrupt_with(test, MANY);

	for (int i = 0; i < MANY; i++)
		folio_unlock(interrupt.folios[i]);
	run(&interrupt);
	KUNIT_EXPECT_EQ(test, interrupt.held, MANY);
	for (int i = 0; i < MANY; i++) {
		struct folio *folio = interrupt.folios[i];

		expect_given_up(test, folio);
		KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(folio));
		folio_put(folio);
	}
}

/* The number is larger if another CPU drops some meanwhile. */
static void an_interrupt_has_so_many_held(struct kunit *test)
{
	struct interrupt interrupt = interrupt_with(test, TOO_MANY);

	run(&interrupt);
	KUNIT_EXPECT_GE(test, interrupt.held,
			RUST_DROP_QUEUE_NR / (PAGE_SIZE / SZ_4K) +
			RUST_LEFTOVERS_NR);
	for (int i = 0; i < TOO_MANY; i++) {
		expect_given_up(test, interrupt.folios[i]);
		folio_unlock(interrupt.folios[i]);
		folio_put(interrupt.folios[i]);
	}
}

static void one_of_an_interrupt_is_tried_again(struct kunit *test)
{
	struct interrupt interrupt = interrupt_with(test, 1);
	struct folio *folio = interrupt.folios[0];

	run(&interrupt);
	msleep(50);
	KUNIT_EXPECT_TRUE(test, folio_test_dropbehind(folio));
	folio_unlock(folio);
	expect_given_up(test, folio);
	KUNIT_EXPECT_FALSE(test, folio_test_dropbehind(folio));
	folio_put(folio);
}

static struct kunit_case dropbehind_later_cases[] = {
	KUNIT_CASE(a_bounded_number_is_held),
	KUNIT_CASE(one_is_held_once),
	KUNIT_CASE(it_is_dropped_once_unlocked),
	KUNIT_CASE(a_dirty_one_is_left_alone),
	KUNIT_CASE(a_task_drops_those_of_an_interrupt),
	KUNIT_CASE(an_interrupt_has_so_many_held),
	KUNIT_CASE(one_of_an_interrupt_is_tried_again),
	{}
};

static struct kunit_suite dropbehind_later_suite = {
	.name		= "dropbehind_later",
	.test_cases	= dropbehind_later_cases,
};

kunit_test_suite(dropbehind_later_suite);
