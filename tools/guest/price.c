// SPDX-License-Identifier: GPL-2.0
/*
 * price FILE MODE ORDER SIZE BYTES WRITERS: a load between two marks that QEMU's
 * plugin knows (tools/price). MODE is buffered, dontcache or direct. SIZE is that
 * of a write, BYTES is what each writer writes. ORDER is
 *
 *	row	one write after the other, from the start of the file
 *	append	the same with O_APPEND
 *	random	writes at multiples of SIZE, each place once, in an order that
 *		looks random and is always the same
 *	short	as row, but the second half of the data is not in memory: the kernel
 *		copies the first half, and continues after a page fault
 *
 * With several WRITERS there is a thread for each, on a CPU of its own. FILE may
 * contain %d, the number of the writer: each has its own file then, and syncs it
 * when all have written. Otherwise each writes its own part of the file, and the
 * first one syncs it.
 *
 * The region between the marks ends when the files are synced and 300 ms have
 * passed, in which the kernel drops the last folios. On stdout: the number of
 * writes and of the pages that are cached in the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define RWF_DONTCACHE	0x80
#define SYS_CACHESTAT	451
#define SETTLE_USEC	300000
#define MAX_WRITERS	8

/* nopl with a magic displacement: the second number is one more. */
#define MARK_START()	asm volatile(".byte 0x0f, 0x1f, 0x80; .long 0x70726963" : : : "memory")
#define MARK_END()	asm volatile(".byte 0x0f, 0x1f, 0x80; .long 0x70726964" : : : "memory")

enum order { ROW, APPEND, RANDOM, SHORT };

struct writer {
	pthread_t thread;
	int number;
	int fd;
	off_t start;
};

static enum order order;
static int flags;
static size_t size;
static size_t writes;
static char *source;
static bool separate;
static pthread_barrier_t ready, written, done;

static noreturn void fail(const char *format, ...)
{
	va_list args;

	fputs("price: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* Memory that no write has to fault in. */
static void *memory(size_t bytes)
{
	void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (found == MAP_FAILED)
		fail("%zu bytes of memory: %s", bytes, strerror(errno));
	return found;
}

/*
 * A permutation of 0 to count - 1: a step that has no divisor in common with
 * count, about 0.618 of it.
 */
static size_t scattered(size_t n, size_t count)
{
	static size_t step;
	size_t a, b, rest;

	if (!step) {
		for (step = count * 618 / 1000 | 1;; step += 2) {
			for (a = step, b = count; b; a = b, b = rest)
				rest = a % b;
			if (a == 1)
				break;
		}
	}
	return n * step % count;
}

static void write_all(struct writer *writer)
{
	struct iovec vector = { source, size };
	size_t n;

	for (n = 0; n < writes; n++) {
		off_t at = writer->start + size * (order == RANDOM ? scattered(n, writes) : n);

		if (order == SHORT && madvise(source + size / 2, size / 2, MADV_DONTNEED))
			fail("madvise: %s", strerror(errno));
		/* With O_APPEND the offset is ignored. */
		if (pwritev2(writer->fd, &vector, 1, at, flags) != (ssize_t)size)
			fail("write %zu: %s", n, strerror(errno));
	}
}

static void sync_all(struct writer *writer)
{
	if (fsync(writer->fd))
		fail("fsync: %s", strerror(errno));
}

static void *run(void *argument)
{
	struct writer *writer = argument;
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET(writer->number, &own);
	if (sched_setaffinity(0, sizeof(own), &own))
		fail("CPU %d: %s", writer->number, strerror(errno));
	pthread_barrier_wait(&ready);
	write_all(writer);
	pthread_barrier_wait(&written);
	/* Several tasks that sync one file wait for each other at each of its folios. */
	if (separate || !writer->number)
		sync_all(writer);
	pthread_barrier_wait(&done);
	return NULL;
}

/*
 * Without delayed allocation ext4 places blocks by the number of the process,
 * modulo 16. The load always runs in one whose number is a multiple of 16.
 */
static void take_number(void)
{
	int status;

	while (getpid() % 16) {
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child) {
			waitpid(child, &status, 0);
			exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
	}
}

static uint64_t cached(int fd)
{
	uint64_t range[2] = { 0, 0 }, stat[5];

	if (syscall(SYS_CACHESTAT, fd, range, stat, 0))
		fail("cachestat: %s", strerror(errno));
	return stat[0];
}

static void run_together(struct writer *writers, int count)
{
	int n;

	/* The marks are this thread's: it waits while the others write. */
	pthread_barrier_init(&ready, NULL, count + 1);
	pthread_barrier_init(&written, NULL, count);
	pthread_barrier_init(&done, NULL, count + 1);
	for (n = 0; n < count; n++)
		if (pthread_create(&writers[n].thread, NULL, run, &writers[n]))
			fail("a thread: %s", strerror(errno));
	MARK_START();
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&done);
	usleep(SETTLE_USEC);
	MARK_END();
	for (n = 0; n < count; n++)
		pthread_join(writers[n].thread, NULL);
}

int main(int argc, char **argv)
{
	static const char * const orders[] = { "row", "append", "random", "short" };
	struct writer writers[MAX_WRITERS] = { 0 };
	int open_flags = O_WRONLY | O_CREAT | O_CLOEXEC;
	uint64_t pages = 0;
	int count, n;

	if (argc != 7)
		fail("price FILE MODE ORDER SIZE BYTES WRITERS");
	if (!strcmp(argv[2], "dontcache"))
		flags = RWF_DONTCACHE;
	else if (!strcmp(argv[2], "direct"))
		open_flags |= O_DIRECT;
	else if (strcmp(argv[2], "buffered"))
		fail("%s is no mode", argv[2]);
	for (order = ROW; strcmp(argv[3], orders[order]); order++)
		if (order == SHORT)
			fail("%s is no order", argv[3]);
	if (order == APPEND)
		open_flags |= O_APPEND;
	size = strtoul(argv[4], NULL, 10);
	writes = size ? strtoul(argv[5], NULL, 10) / size : 0;
	count = atoi(argv[6]);
	if (!writes || count < 1 || count > MAX_WRITERS)
		fail("there is nothing to write, or not 1 to %d writers", MAX_WRITERS);
	separate = strstr(argv[1], "%d");
	for (n = 0; n < count; n++) {
		char name[256], *place = strstr(argv[1], "%d");

		if (place)
			snprintf(name, sizeof(name), "%.*s%d%s", (int)(place - argv[1]), argv[1], n, place + 2);
		else
			snprintf(name, sizeof(name), "%s", argv[1]);
		writers[n].number = n;
		writers[n].fd = open(name, open_flags, 0600);
		if (writers[n].fd < 0)
			fail("%s: %s", name, strerror(errno));
		writers[n].start = separate ? 0 : n * writes * size;
	}
	take_number();
	source = memory(size);
	memset(source, 0x5a, size);
	scattered(0, writes);

	if (count > 1) {
		run_together(writers, count);
	} else {
		MARK_START();
		write_all(&writers[0]);
		sync_all(&writers[0]);
		usleep(SETTLE_USEC);
		MARK_END();
	}
	for (n = 0; n < count; n++)
		if (separate || !n)
			pages += cached(writers[n].fd);
	printf("%zu %llu\n", writes * count, (unsigned long long)pages);
	return 0;
}
