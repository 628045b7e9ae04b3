// SPDX-License-Identifier: GPL-2.0
/*
 * The index of a folio's buffers: there for many buffers, absent for a few,
 * true wherever a write goes, and gone with the buffers.
 */
#include <kunit/test.h>
#include <linux/buffer_head.h>
#include <linux/pagemap.h>
#include <linux/rust_buffer_walk.h>
#include <linux/rust_writeback_kunit.h>
#include <linux/vmstat.h>

#define BLOCK_SIZE_MIN	512
#define NR_ROUNDS	100

static struct address_space mapping;

static struct folio *locked_folio(struct kunit *test, unsigned int order)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, order);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	folio->mapping = &mapping;
	folio_lock(folio);
	return folio;
}

static void put_folio(struct folio *folio)
{
	if (folio_buffers(folio))
		try_to_free_buffers(folio);
	folio->mapping = NULL;
	folio_unlock(folio);
	folio_put(folio);
}

static void many_buffers_have_an_index(struct kunit *test)
{
	for (unsigned int order = 0; order <= 9; order++) {
		struct folio *folio = locked_folio(test, order);
		unsigned int nr = folio_size(folio) / SZ_1K;
		struct buffer_head *head, *bh;

		head = create_empty_buffers(folio, SZ_1K, 0);
		KUNIT_EXPECT_EQ(test, !!head->b_index, nr > 16);
		for (bh = head->b_this_page; bh != head; bh = bh->b_this_page)
			KUNIT_EXPECT_NULL(test, bh->b_index);
		put_folio(folio);
	}
}

/* Commits a byte of each block in turn, and finds that buffer dirty alone. */
static void commit_each(struct kunit *test, struct folio *folio)
{
	struct buffer_head *bh = folio_buffers(folio), *other;
	size_t size = bh->b_size;

	for (size_t at = 0; at < folio_size(folio); at += size) {
		unsigned int nr_dirty = 0;

		block_commit_write(folio, at + 1, at + 2);
		KUNIT_ASSERT_TRUE_MSG(test, buffer_dirty(bh), "at %zu", at);
		other = bh;
		do {
			nr_dirty += buffer_dirty(other);
			other = other->b_this_page;
		} while (other != bh);
		KUNIT_ASSERT_EQ_MSG(test, nr_dirty, 1, "at %zu", at);
		clear_buffer_dirty(bh);
		bh = bh->b_this_page;
	}
}

/* A folio that is dirty already, so that nothing is accounted for it. */
static struct folio *dirty_folio(struct kunit *test, unsigned int order,
				 size_t size)
{
	struct folio *folio = locked_folio(test, order);

	folio_mark_uptodate(folio);
	create_empty_buffers(folio, size, BIT(BH_Mapped));
	folio_test_set_dirty(folio);
	return folio;
}

static void clean_and_put(struct folio *folio)
{
	folio_test_clear_dirty(folio);
	put_folio(folio);
}

static void each_buffer_is_found(struct kunit *test)
{
	for (unsigned int order = 0; order <= 6; order += 3) {
		for (size_t size = BLOCK_SIZE_MIN; size <= SZ_4K; size *= 2) {
			struct folio *folio = dirty_folio(test, order, size);

			commit_each(test, folio);
			clean_and_put(folio);
		}
	}
}

/* As where there was no memory for it. */
static void without_an_index(struct kunit *test)
{
	struct folio *folio = dirty_folio(test, 5, SZ_1K);
	struct buffer_head *head = folio_buffers(folio);

	KUNIT_ASSERT_NOT_NULL(test, head->b_index);
	kfree(head->b_index);
	head->b_index = NULL;
	commit_each(test, folio);
	clean_and_put(folio);
}

/* Frees the buffers of @folio one by one, from the first or from the second. */
static void free_one_by_one(struct folio *folio, bool first)
{
	struct buffer_head *head = folio_detach_private(folio), *bh;

	bh = first ? head : head->b_this_page;
	head = bh;
	do {
		struct buffer_head *next = bh->b_this_page;

		free_buffer_head(bh);
		bh = next;
	} while (bh != head);
}

/* An index of 8 KiB that leaks in each round does not hide. */
static void nothing_is_left_over(struct kunit *test)
{
	struct folio *folio = locked_folio(test, 9);
	unsigned long before = 0, leak;

	leak = 2 * NR_ROUNDS;	/* in pages */
	for (unsigned int round = 0; round < NR_ROUNDS + 3; round++) {
		struct buffer_head *head;

		/* The first rounds fill the caches of the allocator. */
		if (round == 3)
			before = global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B);
		head = create_empty_buffers(folio, BLOCK_SIZE_MIN, 0);
		KUNIT_ASSERT_NOT_NULL(test, head->b_index);
		if (round % 3 == 0)
			KUNIT_ASSERT_TRUE(test, try_to_free_buffers(folio));
		else
			free_one_by_one(folio, round % 3 == 1);
	}
	KUNIT_EXPECT_LT(test,
			global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B),
			before + leak / 4);
	put_folio(folio);
}

#ifdef CONFIG_RUST_WRITEBACK_AB
static void the_c_core_makes_none(struct kunit *test)
{
	struct folio *folio = locked_folio(test, 9);

	set_core(CORE_C);
	KUNIT_EXPECT_NULL(test, create_empty_buffers(folio, SZ_1K, 0)->b_index);
	set_core(CORE_RUST);
	put_folio(folio);
}
#endif

/* A bitmap file of md may ask for that, on a file system of large blocks. */
static void a_block_beyond_the_folio_has_no_buffer(struct kunit *test)
{
	struct folio *folio = locked_folio(test, 0);

	for (int core = 0; core < NR_CORES; core++) {
		set_core(core);
		KUNIT_EXPECT_NULL(test, folio_alloc_buffers(folio, 2 * PAGE_SIZE,
							    GFP_KERNEL));
	}
	put_folio(folio);
}

static enum core core_before;

static int buffer_index_init(struct kunit *test)
{
	core_before = get_core();
	set_core(CORE_RUST);
	address_space_init_once(&mapping);
	return 0;
}

static void buffer_index_exit(struct kunit *test)
{
	set_core(core_before);
}

static struct kunit_case buffer_index_cases[] = {
	KUNIT_CASE(many_buffers_have_an_index),
	KUNIT_CASE(each_buffer_is_found),
	KUNIT_CASE(without_an_index),
	KUNIT_CASE(nothing_is_left_over),
#ifdef CONFIG_RUST_WRITEBACK_AB
	KUNIT_CASE(the_c_core_makes_none),
#endif
	KUNIT_CASE(a_block_beyond_the_folio_has_no_buffer),
	{}
};

static struct kunit_suite buffer_index_suite = {
	.name		= "buffer_index",
	.init		= buffer_index_init,
	.exit		= buffer_index_exit,
	.test_cases	= buffer_index_cases,
};

kunit_test_suite(buffer_index_suite);
