// SPDX-License-Identifier: GPL-2.0
/*
 * Loads that fio cannot say, told in the form in which fio tells its own (json+).
 *
 *   load tree DIR FILES SMALLEST LARGEST BLOCK MODE
 *   load compaction DIR WRITERS FILES SIZE BLOCK READERS READ_BLOCK MODE
 *   load touch BYTES
 *
 * tree: FILES new files, each written once in writes of BLOCK; their sizes go
 * round from SMALLEST to LARGEST by powers of two. It ends with a syncfs().
 * compaction: each of WRITERS writes FILES files of SIZE, syncs each, and renames
 * it into place, while READERS read at random from the files reader.0, reader.1
 * and so on, which have to be there; they end with the writers.
 * touch: uses so much memory, all of it again and again, until it is killed.
 *
 * MODE is that of the writers: buffered, dontcache or direct. A job's runtime ends
 * when its last request has returned; durable is when all of it was on the drive.
 * job_start is of the epoch.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

#define REST_NS		200000000	/* between two rounds over touched memory */
#define SIGNIFICANT	6		/* bits of a time that its bin keeps: 1.6 %, as in fio */
#define BINS		((64 - SIGNIFICANT) << SIGNIFICANT)

struct histogram {
	uint64_t count[BINS];
};

struct job {
	const char *name;
	int number;
	bool reads;
	uint64_t bytes, ios, start_ns, runtime_ns, durable_ns;
	double user, system;
	struct histogram latency, syncs;
};

static const char *directory;
static int mode_flags, open_flags;
static uint64_t files, size, block, read_block;
static atomic_int writers_left;
static pthread_barrier_t ready;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t begin_job(struct job *job)
{
	job->start_ns = clock_ns(CLOCK_REALTIME);
	return now();
}

static void add(struct histogram *h, uint64_t ns)
{
	int shift = ns >> SIGNIFICANT ? 63 - __builtin_clzll(ns) - (SIGNIFICANT - 1) : 0;

	h->count[(shift << SIGNIFICANT) + (ns >> shift)]++;
}

static void print_bins(const struct histogram *h)
{
	uint64_t total = 0;
	bool first = true;

	printf("{\"bins\":{");
	for (int i = 0; i < BINS; i++) {
		int shift = i >> SIGNIFICANT;
		uint64_t low = (uint64_t)(i & ((1 << SIGNIFICANT) - 1)) << shift;

		if (!h->count[i])
			continue;
		printf("%s\"%llu\":%llu", first ? "" : ",", (unsigned long long)low,
		       (unsigned long long)h->count[i]);
		total += h->count[i];
		first = false;
	}
	printf("},\"N\":%llu}", (unsigned long long)total);
}

static void print_traffic(const char *name, const struct job *job, bool there)
{
	static const struct histogram nothing;

	printf("\"%s\":{\"io_bytes\":%llu,\"total_ios\":%llu,\"runtime\":%llu,\"lat_ns\":", name,
	       (unsigned long long)(there ? job->bytes : 0), (unsigned long long)(there ? job->ios : 0),
	       (unsigned long long)(there ? job->runtime_ns / 1000000 : 0));
	print_bins(there ? &job->latency : &nothing);
	printf("},");
}

static void print_job(const struct job *job, bool last)
{
	bool uncached = mode_flags && !job->reads, direct = open_flags && !job->reads;

	printf("{\"jobname\":\"%s\",\"error\":0,", job->name);
	print_traffic("read", job, job->reads);
	print_traffic("write", job, !job->reads);
	printf("\"sync\":{\"lat_ns\":");
	print_bins(&job->syncs);
	printf("},\"job_start\":%.3f,\"durable\":%.3f,", job->start_ns / 1e6, job->durable_ns / 1e6);
	printf("\"usr_cpu\":%.6f,\"sys_cpu\":%.6f,", 1e11 * job->user / job->runtime_ns,
	       1e11 * job->system / job->runtime_ns);
	printf("\"job options\":{\"direct\":\"%d\",\"uncached\":\"%d\"}}%s", direct, uncached, last ? "" : ",");
}

static void measure_cpu(struct job *job)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	job->user = used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6;
	job->system = used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6;
}

static void *buffer(uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
			    -1, 0);

	if (memory == MAP_FAILED)
		err(1, "%llu bytes of memory", (unsigned long long)bytes);
	return memory;
}

static int open_file(const char *format, int number, uint64_t file, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), format, directory, number, (unsigned long long)file);
	fd = open(path, flags, 0644);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

/* Write a new file from its beginning to its end. */
static void write_file(struct job *job, int fd, char *from, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes; done += block) {
		uint64_t part = bytes - done < block ? bytes - done : block, begin = now();
		struct iovec io = { .iov_base = from, .iov_len = part };
		ssize_t n = pwritev2(fd, &io, 1, done, mode_flags);

		if (n < 0)
			err(1, "write");
		if ((uint64_t)n != part)
			errx(1, "a write stopped at %zd of %llu bytes", n, (unsigned long long)part);
		add(&job->latency, now() - begin);
		job->bytes += part;
		job->ios++;
	}
}

static int tree(uint64_t smallest)
{
	static struct job job = { .name = "tree" };
	char *from = buffer(block);
	uint64_t bytes = smallest, begin = begin_job(&job);
	int dir = open(directory, O_RDONLY | O_DIRECTORY);

	if (dir < 0)
		err(1, "%s", directory);
	for (uint64_t i = 0; i < files; i++, bytes = bytes < size ? 2 * bytes : smallest) {
		int fd = open_file("%s/tree.%d.%llu", 0, i, O_WRONLY | O_CREAT | O_EXCL | open_flags);

		write_file(&job, fd, from, bytes);
		close(fd);
	}
	job.runtime_ns = now() - begin;
	if (syncfs(dir))
		err(1, "syncfs");
	job.durable_ns = now() - begin;
	measure_cpu(&job);
	printf("{\n\"fio version\":\"load\",\"jobs\":[");
	print_job(&job, true);
	printf("]}\n");
	return 0;
}

static void *write_tables(void *argument)
{
	struct job *job = argument;
	char *from = buffer(block), old[4096], new[4096];
	uint64_t begin, synced;

	pthread_barrier_wait(&ready);
	begin = begin_job(job);
	snprintf(old, sizeof(old), "%s/new.%d", directory, job->number);
	for (uint64_t i = 0; i < files; i++) {
		int fd = open_file("%s/new.%d", job->number, 0, O_WRONLY | O_CREAT | O_EXCL | open_flags);

		write_file(job, fd, from, size);
		job->runtime_ns = now() - begin;
		synced = now();
		if (fsync(fd))
			err(1, "fsync");
		add(&job->syncs, now() - synced);
		close(fd);
		snprintf(new, sizeof(new), "%s/table.%d.%llu", directory, job->number, (unsigned long long)i);
		if (rename(old, new))
			err(1, "rename");
	}
	job->durable_ns = now() - begin;
	measure_cpu(job);
	writers_left--;
	return NULL;
}

static void *read_tables(void *argument)
{
	struct job *job = argument;
	int fd = open_file("%s/reader.%d", job->number, 0, O_RDONLY);
	uint64_t begin, chance = 20260101 + job->number;
	char *to = buffer(read_block);
	struct stat there;

	pthread_barrier_wait(&ready);
	begin = begin_job(job);
	if (fstat(fd, &there) || (uint64_t)there.st_size < read_block)
		errx(1, "reader.%d has nothing to read", job->number);
	while (writers_left) {
		uint64_t start = now();

		chance ^= chance << 13;
		chance ^= chance >> 7;
		chance ^= chance << 17;
		if (pread(fd, to, read_block, chance % (there.st_size / read_block) * read_block) < 0)
			err(1, "read");
		add(&job->latency, now() - start);
		job->bytes += read_block;
		job->ios++;
	}
	job->runtime_ns = now() - begin;
	job->durable_ns = job->runtime_ns;
	measure_cpu(job);
	close(fd);
	return NULL;
}

static int compaction(int writers, int readers)
{
	struct job *jobs = calloc(writers + readers, sizeof(*jobs));
	pthread_t *threads = calloc(writers + readers, sizeof(*threads));

	if (!jobs || !threads)
		err(1, "memory");
	writers_left = writers;
	if (pthread_barrier_init(&ready, NULL, writers + readers))
		errx(1, "no barrier");
	for (int i = 0; i < writers + readers; i++) {
		jobs[i].reads = i >= writers;
		jobs[i].name = jobs[i].reads ? "readers" : "writers";
		jobs[i].number = jobs[i].reads ? i - writers : i;
		if (pthread_create(&threads[i], NULL, jobs[i].reads ? read_tables : write_tables, &jobs[i]))
			errx(1, "no thread");
	}
	for (int i = 0; i < writers + readers; i++)
		pthread_join(threads[i], NULL);
	printf("{\n\"fio version\":\"load\",\"jobs\":[");
	for (int i = 0; i < writers + readers; i++)
		print_job(&jobs[i], i == writers + readers - 1);
	printf("]}\n");
	return 0;
}

static int touch(uint64_t bytes)
{
	volatile char *memory = buffer(bytes);
	struct timespec rest = { .tv_nsec = REST_NS };

	printf("touched\n");
	fflush(stdout);
	for (;; nanosleep(&rest, NULL))
		for (uint64_t i = 0; i < bytes; i += 4096)
			memory[i]++;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (*text == '-' || !value || *end)
		errx(2, "%s is not a number above 0", text);
	return value;
}

static void set_mode(const char *text)
{
	if (strcmp(text, "buffered") && strcmp(text, "dontcache") && strcmp(text, "direct"))
		errx(2, "%s is no mode; there are buffered, dontcache and direct", text);
	mode_flags = strcmp(text, "dontcache") ? 0 : RWF_DONTCACHE;
	open_flags = strcmp(text, "direct") ? 0 : O_DIRECT;
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";

	if (!strcmp(shape, "touch") && argc == 3)
		return touch(number(argv[2]));
	if (!strcmp(shape, "tree") && argc == 8) {
		directory = argv[2];
		files = number(argv[3]);
		size = number(argv[5]);
		block = number(argv[6]);
		set_mode(argv[7]);
		return tree(number(argv[4]));
	}
	if (!strcmp(shape, "compaction") && argc == 10) {
		directory = argv[2];
		files = number(argv[4]);
		size = number(argv[5]);
		block = number(argv[6]);
		read_block = number(argv[8]);
		set_mode(argv[9]);
		return compaction(number(argv[3]), number(argv[7]));
	}
	errx(2, "usage: load tree|compaction|touch ...; see the top of load.c");
}
