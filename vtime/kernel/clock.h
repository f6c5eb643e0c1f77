/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock page: what the kernel (clock.c) tells every process of the time,
 * so that reading the clock (vdso.c) is no system call.
 *
 * In virtual time the clocks stand still while a process computes. So the page
 * is right if it is written before each return to a process, and it needs no
 * lock: there is one processor, and a process is interrupted only where it
 * asks the kernel for something or first touches a page.
 */
#ifndef CLOCK_H
#define CLOCK_H

/* How many reads at one moment are free: see clock.c. */
#define CLOCK_FREE_READS 1001

/* By how much one call of a process that spins moves the clock at most. */
#define CLOCK_MOST_NS ((unsigned int)TICK_NSEC / 2)

struct clock_page {
	int left;	/* of the free reads; every reader takes one */
	long long realtime_ns, monotonic_ns, boottime_ns;
	long long seconds;	/* time(2), which moves with the kernel's ticks */
};

#endif
