// SPDX-License-Identifier: GPL-2.0
/*
 * overwrite DIR: what a small write into a cached folio costs, as a function of
 * where in the folio it lands. DIR is on ext4. On stdout:
 *
 *	block SIZE			the file system's blocks, in bytes
 *	curve OFFSET TICKS		pwrite of 1 KiB at an offset of a 2 MiB folio
 *	order ORDER PLACE TICKS		pwrite of 1 KiB into a folio of that order
 *	CALL SIZE PLACE TICKS		one call; writev writes ten vectors of SIZE
 *
 * PLACE is the start, the middle or the end of the folio; TICKS are the TSC's,
 * the least of all repetitions. Each row finds the same state: every buffer of
 * the folio is mapped, up to date and dirty, and nothing is under writeback. The
 * orders of all folios and this state are looked up before and after, and what
 * was written is read back; a run in which one of these is wrong fails.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <linux/kernel-page-flags.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT(n)		(1ULL << (n))
#define KIB		1024
#define PAGE		4096
#define VECTORS		10
#define MAX_ORDER	9
#define MAX_FOLIO	(PAGE << MAX_ORDER)
#define MAIN_FOLIOS	5
#define CURVE_STEPS	32
#define WARM_UP		20
#define REPEATS		200

#define PAGEMAP_PRESENT	BIT(63)
#define PAGEMAP_PFN	(BIT(55) - 1)

struct file {
	int fd;
	int order;	/* of each of its folios */
	size_t size;
	char *expected;	/* what it has to hold */
};

struct call {
	const char *name;
	size_t vectors;
	ssize_t (*run)(int fd, size_t size, off_t offset);
};

/* All writes come from here, so that rows differ in where they go alone. */
static alignas(PAGE) char source[MAX_FOLIO];
static struct io_uring ring;

static noreturn void fail(const char *format, ...)
{
	va_list args;

	fputs("overwrite: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static ssize_t run_write(int fd, size_t size, off_t offset)
{
	return write(fd, source, size);
}

static ssize_t run_pwrite(int fd, size_t size, off_t offset)
{
	return pwrite(fd, source, size, offset);
}

static ssize_t run_writev(int fd, size_t size, off_t offset)
{
	struct iovec vectors[VECTORS];
	int i;

	for (i = 0; i < VECTORS; i++)
		vectors[i] = (struct iovec){ source + i * size, size };
	return writev(fd, vectors, VECTORS);
}

static ssize_t run_io_uring(int fd, size_t size, off_t offset)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct io_uring_cqe *cqe;
	ssize_t done;

	if (!sqe)
		return -1;
	io_uring_prep_write(sqe, fd, source, size, offset);
	if (io_uring_submit_and_wait(&ring, 1) != 1 || io_uring_peek_cqe(&ring, &cqe))
		return -1;
	done = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return done;
}

static const struct call calls[] = {
	{ "write", 1, run_write },
	{ "pwrite", 1, run_pwrite },
	{ "writev", VECTORS, run_writev },
	{ "io_uring", 1, run_io_uring },
};

/* New bytes for the next write, other ones at each place and each time. */
static void renew_source(size_t len)
{
	static unsigned int times;
	size_t i;

	times++;
	for (i = 0; i < len; i++)
		source[i] = i % 251 + times;
}

/* A tick is an instruction, where the machine counts them. */
static uint64_t now(void)
{
#ifdef __x86_64__
	return __rdtsc();
#else
	uint64_t ticks;

	asm volatile("isb; mrs %0, cntvct_el0" : "=r" (ticks) : : "memory");
	return ticks;
#endif
}

static uint64_t ticks_of(const struct call *call, struct file *file, size_t size, off_t offset)
{
	size_t len = call->vectors * size;
	uint64_t ticks, least = UINT64_MAX;
	ssize_t done;
	int i;

	renew_source(len);
	for (i = 0; i < WARM_UP + REPEATS; i++) {
		if (lseek(file->fd, offset, SEEK_SET) != offset)
			fail("lseek: %m");
		ticks = now();
		done = call->run(file->fd, size, offset);
		ticks = now() - ticks;
		if (done != (ssize_t)len)
			fail("%s of %zu bytes returned %zd", call->name, len, done);
		if (i >= WARM_UP && ticks < least)
			least = ticks;
	}
	memcpy(file->expected + offset, source, len);
	return least;
}

static uint64_t pwrite_ticks(struct file *file, off_t offset)
{
	static const struct call pwrite_call = { "pwrite", 1, run_pwrite };

	return ticks_of(&pwrite_call, file, KIB, offset);
}

static void fill(struct file *file)
{
	size_t folio = (size_t)PAGE << file->order;
	off_t at;

	for (at = 0; at < (off_t)file->size; at += folio) {
		renew_source(folio);
		if (pwrite(file->fd, source, folio, at) != (ssize_t)folio)
			fail("a folio of order %d cannot be written: %m", file->order);
		memcpy(file->expected + at, source, folio);
	}
}

/* Writes of one folio's size, aligned, have the page cache take such folios. */
static struct file make_file(const char *name, int order, size_t size)
{
	struct file file = {
		.fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
		.order = order,
		.size = size,
		.expected = malloc(size),
	};

	if (file.fd < 0 || !file.expected)
		fail("%s: %m", name);
	fill(&file);
	/* This gives the buffers their blocks, and cleans them. */
	if (fsync(file.fd))
		fail("fsync: %m");
	fill(&file);
	return file;
}

static void read_words(const char *path, uint64_t *words, size_t count, uint64_t first)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	/* What lies beyond the last page of memory stays zero. */
	memset(words, 0, count * sizeof(*words));
	if (fd < 0 || pread(fd, words, count * sizeof(*words), first * sizeof(*words)) <= 0)
		fail("%s: %m", path);
	close(fd);
}

/* Is there a folio of this order at the address, up to date, dirty, not under writeback? */
static bool is_folio(const char *address, int order)
{
	static const uint64_t state = BIT(KPF_UPTODATE) | BIT(KPF_DIRTY) | BIT(KPF_WRITEBACK);
	static const uint64_t compound = BIT(KPF_COMPOUND_HEAD) | BIT(KPF_COMPOUND_TAIL);
	static uint64_t map[1 << MAX_ORDER], flags[(1 << MAX_ORDER) + 1];
	uint64_t first, i, pages = BIT(order);

	read_words("/proc/self/pagemap", map, pages, (uintptr_t)address / PAGE);
	first = map[0] & PAGEMAP_PFN;
	if (!first || first % pages)
		return false;
	for (i = 0; i < pages; i++)
		if (!(map[i] & PAGEMAP_PRESENT) || (map[i] & PAGEMAP_PFN) != first + i)
			return false;

	read_words("/proc/kpageflags", flags, pages + 1, first);
	if ((flags[0] & state) != (BIT(KPF_UPTODATE) | BIT(KPF_DIRTY)) ||
	    (flags[0] & compound) != (order ? BIT(KPF_COMPOUND_HEAD) : 0))
		return false;
	for (i = 1; i < pages; i++)
		if ((flags[i] & compound) != BIT(KPF_COMPOUND_TAIL))
			return false;
	return !(flags[pages] & BIT(KPF_COMPOUND_TAIL));
}

static void prove(const struct file *file)
{
	char *map = mmap(NULL, file->size, PROT_READ, MAP_SHARED | MAP_POPULATE, file->fd, 0);
	size_t at;

	if (map == MAP_FAILED)
		fail("mmap: %m");
	for (at = 0; at < file->size; at += (size_t)PAGE << file->order)
		if (!is_folio(map + at, file->order))
			fail("no proof of a dirty folio of order %d at %zu; nothing is reported",
			     file->order, at);
	munmap(map, file->size);
}

static void verify(const struct file *file)
{
	char *found = malloc(file->size);
	size_t i;

	if (!found || pread(file->fd, found, file->size, 0) != (ssize_t)file->size)
		fail("a file cannot be read back: %m");
	for (i = 0; i < file->size; i++)
		if (found[i] != file->expected[i])
			fail("order %d: the byte at %zu is wrong", file->order, i);
	free(found);
}

/* Places of a write of so many bytes in a folio. */
enum { START, MIDDLE, END, PLACES };

static const char * const places[PLACES] = { "start", "middle", "end" };

static off_t place(int where, size_t folio, size_t len)
{
	return where == START ? 0 : where == MIDDLE ? folio / 2 : folio - len;
}

static void measure_calls(struct file *file, off_t folio)
{
	static const size_t sizes[] = { 1 * KIB, 10 * KIB, 100 * KIB };
	const struct call *call;
	size_t i, len;
	int where;

	for (call = calls; call < calls + ARRAY_SIZE(calls); call++)
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			for (where = START; where < PLACES; where++) {
				len = call->vectors * sizes[i];
				printf("%s %zu %s %llu\n", call->name, sizes[i], places[where],
				       (unsigned long long)
				       ticks_of(call, file, sizes[i],
						folio + place(where, MAX_FOLIO, len)));
			}
}

/*
 * With steps of 5 KiB on top, which are a block and a quarter or five blocks, so
 * that no offset is better than the others to whoever counts blocks by powers of two.
 */
static void measure_curve(struct file *file, off_t folio)
{
	off_t offset;
	int i;

	for (i = 0; i <= CURVE_STEPS; i++) {
		offset = i * (MAX_FOLIO / CURVE_STEPS) + i % 4 * 5 * KIB;
		if (i == CURVE_STEPS)
			offset = MAX_FOLIO - KIB;
		printf("curve %lld %llu\n", (long long)offset,
		       (unsigned long long)pwrite_ticks(file, folio + offset));
	}
}

static void measure_order(struct file *file)
{
	int where;

	for (where = START; where < PLACES; where++)
		printf("order %d %s %llu\n", file->order, places[where],
		       (unsigned long long)
		       pwrite_ticks(file, place(where, (size_t)PAGE << file->order, KIB)));
}

int main(int argc, char **argv)
{
	struct file files[MAX_ORDER + 2], *main_file = &files[MAX_ORDER + 1];
	const struct sched_param first = { .sched_priority = 1 };
	off_t folio = MAIN_FOLIOS / 2 * MAX_FOLIO;
	struct statfs fs;
	char name[32];
	size_t i;

	if (argc != 2 || chdir(argv[1]) || statfs(".", &fs))
		fail("name a folder that is there");
	if (fs.f_type != EXT4_SUPER_MAGIC)
		fail("%s is not on ext4", argv[1]);
	/* io_uring's worker inherits this; a fair scheduler's turns would depend on the past. */
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		fail("sched_setscheduler: %m");
	if (io_uring_queue_init(1, &ring, 0))
		fail("io_uring is not there");

	for (i = 0; i <= MAX_ORDER; i++) {
		snprintf(name, sizeof(name), "order-%zu", i);
		files[i] = make_file(name, i, (size_t)PAGE << i);
	}
	*main_file = make_file("main", MAX_ORDER, (size_t)MAX_FOLIO * MAIN_FOLIOS);

	for (i = 0; i < ARRAY_SIZE(files); i++)
		prove(&files[i]);
	printf("block %ld\n", (long)fs.f_bsize);
	measure_curve(main_file, folio);
	for (i = 0; i <= MAX_ORDER; i++)
		measure_order(&files[i]);
	/* These end with io_uring: once its worker shares our files, each call costs more. */
	measure_calls(main_file, folio);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		prove(&files[i]);
		verify(&files[i]);
	}
	return 0;
}
