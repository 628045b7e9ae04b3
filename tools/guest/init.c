// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the guest: run one command and hand back what came of it.
 *
 * The initramfs holds this program as /init, the command as /command (its
 * arguments, each ended by a NUL) and its environment as /environment. The root
 * file system is $VM_ROOT, or the initramfs itself when that is not set. It is
 * a device with ext4, or "hostfs": then this is user-mode Linux, whose root is
 * that of the host, and whose serial lines stand for the ports.
 *
 * The host listens on three virtio-serial ports, which the console cannot
 * disturb: "stdout" and "stderr" carry the command's bytes and nothing else,
 * "control" carries lines for the host:
 *
 *	hello RELEASE		the guest is up
 *	core NAME		the core that the kernel says is active, or "none"
 *	refused REASON		the command was not run
 *	beat			once a second: the guest is alive
 *	exit STATUS TAINT OUT ERR	the command's status, the kernel's taint mask,
 *				and how many bytes went down either port
 *
 * The exit line is sent after every other process is gone and every file system
 * is unmounted, so a kernel that fails there fails the run. Without a command
 * there is a shell on the virtio console instead.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define DRIVE_SERIAL	"rust-writeback"
#define HOSTFS		"hostfs"
#define CORE_FILE	"/sys/kernel/debug/rust_writeback/core"
#define MAX_ARGS	4096

enum port { CONTROL, STDOUT, STDERR };

/* One of the command's two outputs on its way to the host. */
struct stream {
	int from, to;
	size_t start, end;
	unsigned long long total;
	char buf[32768];
};

static const struct {
	const char *type, *where, *options;
} mounts[] = {
	{ "sysfs", "/sys", NULL },
	{ "debugfs", "/sys/kernel/debug", NULL },
	{ "tracefs", "/sys/kernel/tracing", NULL },
	{ "configfs", "/sys/kernel/config", NULL },
	{ "cgroup2", "/sys/fs/cgroup", NULL },
	{ "devpts", "/dev/pts", "ptmxmode=0666" },
	{ "tmpfs", "/dev/shm", NULL },
	{ "tmpfs", "/run", NULL },
	{ "tmpfs", "/tmp", NULL },
	{ "tmpfs", "/var/tmp", NULL },
	{ "tmpfs", "/root", NULL },
	{ "tmpfs", "/mnt", NULL },
};

static int control = -1;
static struct stream out = { .from = -1, .to = -1 };
static struct stream err = { .from = -1, .to = -1 };

static void off(void)
{
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* What cannot be told over a port is left on the console, for the host's log. */
static void die(const char *what)
{
	printf("init: %s: %m\n", what);
	off();
}

static void tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vdprintf(control, format, args);
	va_end(args);
}

static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, len = 0;

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	close(fd);
	buf[len] = '\0';
	return n < 0 ? -1 : len;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		printf("init: %s: %m\n", path);
	close(fd);
}

static bool try_find(const char *folder, const char *file, const char *value, char *name)
{
	char path[512], text[128];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	dir = opendir(folder);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s/%s", folder, entry->d_name, file);
		if (entry->d_name[0] == '.' || read_file(path, text, sizeof(text)) < 0)
			continue;
		text[strcspn(text, "\n ")] = '\0';
		found = !strcmp(text, value);
		if (found)
			snprintf(name, 256, "%s", entry->d_name);
	}
	closedir(dir);
	return found;
}

/*
 * Names of devices swap from boot to boot, so look one up by what its sysfs file
 * says. Probing is asynchronous: wait up to half a minute.
 */
static void find(const char *folder, const char *file, const char *value, char *dev)
{
	char name[256];
	int tries;

	for (tries = 0; tries < 6000; tries++) {
		if (try_find(folder, file, value, name)) {
			snprintf(dev, 300, "/dev/%s", name);
			return;
		}
		usleep(5000);
	}
	errno = ENODEV;
	die(value);
}

static bool on_hostfs(void)
{
	const char *root = getenv("VM_ROOT");

	return root && !strcmp(root, HOSTFS);
}

/* The serial line must hand on every byte as it is. */
static void make_raw(int fd)
{
	struct termios settings;

	if (tcgetattr(fd, &settings))
		die("tcgetattr");
	cfmakeraw(&settings);
	if (tcsetattr(fd, TCSANOW, &settings))
		die("tcsetattr");
}

static int open_port(enum port port, int flags)
{
	static const char *const names[] = {
		[CONTROL] = "control",
		[STDOUT] = "stdout",
		[STDERR] = "stderr",
	};
	char dev[300];
	int fd;

	if (on_hostfs())
		snprintf(dev, sizeof(dev), "/dev/ttyS%d", port);
	else
		find("/sys/class/virtio-ports", "name", names[port], dev);
	fd = open(dev, O_RDWR | O_CLOEXEC | O_NOCTTY | flags);
	if (fd < 0)
		die(dev);
	if (on_hostfs())
		make_raw(fd);
	return fd;
}

/* Turn a file of strings that each end in a NUL into a list; returns how many. */
static int read_list(const char *path, char **list)
{
	static char text[2][1 << 20];
	static int used;
	char *at = text[used], *end;
	ssize_t len;
	int n = 0;

	len = read_file(path, text[used], sizeof(text[0]));
	if (len < 0)
		return 0;
	used++;
	for (end = at + len; at < end && n < MAX_ARGS; at += strlen(at) + 1)
		list[n++] = at;
	list[n] = NULL;
	return n;
}

static void enter_root(const char *dev)
{
	const char *type = on_hostfs() ? HOSTFS : "ext4";
	int tries;

	for (tries = 0; !on_hostfs() && access(dev, F_OK) && tries < 6000; tries++)
		usleep(5000);
	mkdir("/new", 0755);
	if (mount(dev, "/new", type, MS_RDONLY, NULL))
		die("the root file system");
	if (mount("/dev", "/new/dev", NULL, MS_MOVE, NULL) ||
	    mount("/proc", "/new/proc", NULL, MS_MOVE, NULL) ||
	    chdir("/new") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot("."))
		die("cannot enter the root file system");
}

static void mount_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].where, 0755);
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, mounts[i].options) &&
		    errno != ENODEV)
			printf("init: %s: %m\n", mounts[i].where);
	}
	chmod("/tmp", 01777);
	chmod("/var/tmp", 01777);
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory +io");
	if (getenv("VM_SHARE") &&
	    mount("share", "/share", "9p", 0,
		  "trans=virtio,version=9p2000.L,msize=512000,cache=mmap"))
		die("/share");
}

static int count_mounts(void)
{
	FILE *file = setmntent("/proc/self/mounts", "r");
	int n = 0;

	while (getmntent(file))
		n++;
	endmntent(file);
	return n;
}

/* Unmount the newest mount that the command left; false when there is none. */
static bool unmount_last(int ours)
{
	FILE *file = setmntent("/proc/self/mounts", "r");
	struct mntent *entry;
	char where[4096];
	int n = 0, tries;

	while ((entry = getmntent(file))) {
		n++;
		snprintf(where, sizeof(where), "%s", entry->mnt_dir);
	}
	endmntent(file);
	if (n <= ours)
		return false;
	/* What was just killed may still be on its way out. */
	for (tries = 0; tries < 2000; tries++) {
		if (!umount2(where, UMOUNT_NOFOLLOW))
			return true;
		if (errno != EBUSY)
			break;
		usleep(5000);
	}
	printf("init: %s stays mounted: %m\n", where);
	return !umount2(where, MNT_DETACH);
}

/* In a process of its own, because all of this may take long: PID 1 goes on beating. */
static void tear_down(int ours)
{
	kill(-1, SIGKILL);
	sync();
	while (unmount_last(ours))
		;
	_exit(0);
}

static void child_setup(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
}

static void run_command(char **argv, int stdout_pipe, int stderr_pipe)
{
	int null = open("/dev/null", O_RDONLY);

	child_setup();
	dup2(null, 0);
	dup2(stdout_pipe, 1);
	dup2(stderr_pipe, 2);
	close(null);
	execvp(argv[0], argv);
	dprintf(2, "%s: %m\n", argv[0]);
	_exit(errno == ENOENT ? 127 : 126);
}

static void run_shell(void)
{
	const char *lines = getenv("LINES"), *columns = getenv("COLUMNS");
	struct winsize size = {
		.ws_row = lines ? atoi(lines) : 24,
		.ws_col = columns ? atoi(columns) : 80,
	};
	int tty = open("/dev/hvc0", O_RDWR);

	child_setup();
	if (tty < 0)
		die("/dev/hvc0");
	unsetenv("LINES");
	unsetenv("COLUMNS");
	ioctl(tty, TIOCSCTTY, 0);
	ioctl(tty, TIOCSWINSZ, &size);
	dup2(tty, 0);
	dup2(tty, 1);
	dup2(tty, 2);
	close(tty);
	execlp("bash", "-bash", NULL);
	_exit(127);
}

static pid_t start(char **argv)
{
	int out_pipe[2], err_pipe[2];
	pid_t pid;

	if (pipe2(out_pipe, O_CLOEXEC) || pipe2(err_pipe, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (!pid) {
		if (argv)
			run_command(argv, out_pipe[1], err_pipe[1]);
		run_shell();
	}
	if (pid < 0)
		die("fork");
	close(out_pipe[1]);
	close(err_pipe[1]);
	out.from = out_pipe[0];
	err.from = err_pipe[0];
	return pid;
}

/* Move what can be moved without waiting, so that the host can slow the command. */
static void pump(struct stream *s)
{
	ssize_t n;

	if (s->start == s->end) {
		s->start = 0;
		s->end = 0;
		n = read(s->from, s->buf, sizeof(s->buf));
		if (n <= 0) {
			close(s->from);
			s->from = -1;
			return;
		}
		s->end = n;
	}
	n = write(s->to, s->buf + s->start, s->end - s->start);
	if (n > 0) {
		s->start += n;
		s->total += n;
	}
}

static struct pollfd stream_events(const struct stream *s)
{
	if (s->start < s->end)
		return (struct pollfd){ .fd = s->to, .events = POLLOUT };
	return (struct pollfd){ .fd = s->from, .events = POLLIN };
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Serve until the command has ended and all that it left is put away. */
static int serve(pid_t command, int signals, int timer, int ours)
{
	unsigned long long ticks;
	struct signalfd_siginfo info;
	pid_t pid, cleaner = -1;
	int status, result = -1;

	while (cleaner || out.from >= 0 || err.from >= 0) {
		struct pollfd fds[] = {
			{ .fd = signals, .events = POLLIN },
			{ .fd = timer, .events = POLLIN },
			stream_events(&out),
			stream_events(&err),
		};

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (fds[1].revents && read(timer, &ticks, sizeof(ticks)) > 0)
			tell("beat\n");
		if (fds[2].revents)
			pump(&out);
		if (fds[3].revents)
			pump(&err);
		if (!fds[0].revents || read(signals, &info, sizeof(info)) < 0)
			continue;
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (pid == cleaner)
				cleaner = 0;
			if (pid != command)
				continue;
			result = exit_status(status);
			cleaner = fork();
			if (!cleaner)
				tear_down(ours);
			if (cleaner < 0)
				die("fork");
		}
	}
	return result;
}

/* The host asked for a core: measuring the other one would be worse than failing. */
static void check_core(void)
{
	const char *wanted = getenv("VM_CORE");
	char core[64] = "none";

	if (read_file(CORE_FILE, core, sizeof(core)) > 0)
		core[strcspn(core, "\n")] = '\0';
	tell("core %s\n", core);
	if (!wanted || !strcmp(wanted, core))
		return;
	tell("refused core\n");
	for (;;)
		pause();
}

int main(void)
{
	static char *argv[MAX_ARGS + 4], *environment[MAX_ARGS + 1];
	struct itimerspec second = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct rlimit files = { 1 << 20, 1 << 20 };
	char dev[300], taint[32];
	int argc, i, signals, timer, ours, status;
	struct utsname name;
	sigset_t chld;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/dev", 0755);
	mkdir("/proc", 0555);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	if (mount("proc", "/proc", "proc", 0, NULL))
		die("/proc");

	argc = read_list("/command", argv);
	read_list("/environment", environment);
	clearenv();
	for (i = 0; environment[i]; i++)
		putenv(environment[i]);
	if (argc == 1) {
		argv[2] = argv[0];
		argv[0] = "sh";
		argv[1] = "-c";
	}
	if (getenv("VM_ROOT"))
		enter_root(getenv("VM_ROOT"));
	mount_all();

	control = open_port(CONTROL, 0);
	uname(&name);
	tell("hello %s\n", name.release);
	check_core();
	out.to = open_port(STDOUT, O_NONBLOCK);
	err.to = open_port(STDERR, O_NONBLOCK);
	if (getenv("VM_NVME")) {
		find("/sys/block", "device/serial", DRIVE_SERIAL, dev);
		setenv("NVME", dev, 1);
	}
	unsetenv("VM_ROOT");
	unsetenv("VM_CORE");
	unsetenv("VM_SHARE");
	unsetenv("VM_NVME");
	ours = count_mounts();
	setrlimit(RLIMIT_NOFILE, &files);
	/* A guest that is short of memory is not a dead one. */
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (chdir("/root"))
		die("/root");

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (signals < 0 || timer < 0 || timerfd_settime(timer, 0, &second, NULL))
		die("timer");

	status = serve(start(argc ? argv : NULL), signals, timer, ours);
	if (read_file("/proc/sys/kernel/tainted", taint, sizeof(taint)) < 0)
		die("/proc/sys/kernel/tainted");
	tell("exit %d %lld %llu %llu\n", status, atoll(taint), out.total, err.total);
	/* The host switches the machine off once it has read all that was sent. */
	for (;;)
		pause();
}
