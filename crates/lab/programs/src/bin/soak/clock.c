/* A clock that can stand still, as that of a machine that was paused: preloaded, it subtracts the nanoseconds in
 * the first eight bytes of the file SOAK_CLOCK from what the process sees of the kernel's clocks, except that of
 * the calendar. Waits that name a time on those clocks are translated; all others are relative. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000

static const int64_t none;
static const volatile int64_t *behind = &none;
static int (*real_gettime)(clockid_t, struct timespec *);
static long (*real_syscall)(long, ...);

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("SOAK_CLOCK");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);

	real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (page != MAP_FAILED)
		behind = page;
	if (file >= 0)
		close(file);
}

static struct timespec later(struct timespec time, int64_t by)
{
	int64_t nanos = time.tv_nsec + by % SECOND;

	time.tv_sec += by / SECOND + (nanos >= SECOND) - (nanos < 0);
	time.tv_nsec = nanos < 0 ? nanos + SECOND : nanos % SECOND;
	return time;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result;

	/* Before the constructor has run. */
	if (!real_gettime)
		start();
	result = real_gettime(clock, time);
	if (result == 0 && clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE &&
	    clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID)
		*time = later(*time, -*behind);
	return result;
}

/* Rust's standard library waits by futexes until a time on the monotonic clock. */
long syscall(long number, ...)
{
	long a[6];
	struct timespec until;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (!real_syscall)
		start();
	if (number == SYS_futex && a[3] && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
	    !(a[1] & FUTEX_CLOCK_REALTIME)) {
		until = later(*(const struct timespec *)a[3], *behind);
		a[3] = (long)&until;
	}
	return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
