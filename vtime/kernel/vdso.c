// SPDX-License-Identifier: GPL-2.0
/*
 * What a process calls to read the clock, in place of arch/x86/um/vdso/um_vdso.c, where each of
 * these is a system call: here they read the kernel's clock page (clock.h), which lies below.
 * libc finds them by AT_SYSINFO_EHDR.
 */
#define DISABLE_BRANCH_PROFILING

#include <vdso/gettime.h>
#include <linux/time.h>
#include <asm/page.h>
#include <asm/unistd.h>
#include "clock.h"

extern char __ehdr_start[] __attribute__((visibility("hidden")));	/* the linker's */
#define PAGE ((volatile struct clock_page *)(__ehdr_start - PAGE_SIZE))

static long ask_kernel(long call, long first, void *second)
{
	long answer;

	asm volatile("syscall" : "=a" (answer) : "0" (call), "D" (first), "S" (second)
		     : "rcx", "r11", "memory");
	return answer;
}

/* Not by its exported name: calls of that would go through a table that nobody fills in here. */
static __always_inline int tell(clockid_t clock, struct __kernel_timespec *ts)
{
	unsigned long long ns;

	if ((clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME) ||
	    PAGE->left <= 0)
		return ask_kernel(__NR_clock_gettime, clock, ts);
	/* The page is written to before its times are read: no page fault can come between these. */
	PAGE->left--;
	ns = clock == CLOCK_REALTIME ? PAGE->realtime_ns :
	     clock == CLOCK_MONOTONIC ? PAGE->monotonic_ns : PAGE->boottime_ns;
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 0;
}

int __vdso_clock_gettime(clockid_t clock, struct __kernel_timespec *ts)
{
	return tell(clock, ts);
}
int clock_gettime(clockid_t, struct __kernel_timespec *)
	__attribute__((weak, alias("__vdso_clock_gettime")));

int __vdso_gettimeofday(struct __kernel_old_timeval *tv, struct timezone *tz)
{
	struct __kernel_timespec ts;

	if (!tv || tz)
		return ask_kernel(__NR_gettimeofday, (long)tv, tz);
	tell(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}
int gettimeofday(struct __kernel_old_timeval *, struct timezone *)
	__attribute__((weak, alias("__vdso_gettimeofday")));

__kernel_old_time_t __vdso_time(__kernel_old_time_t *t)
{
	__kernel_old_time_t seconds;

	/* None of the reads that are counted: the kernel reads no clock for it, either. */
	if (PAGE->left <= 0)
		return ask_kernel(__NR_time, (long)t, 0);
	seconds = PAGE->seconds;
	if (t)
		*t = seconds;
	return seconds;
}
__kernel_old_time_t time(__kernel_old_time_t *t) __attribute__((weak, alias("__vdso_time")));
