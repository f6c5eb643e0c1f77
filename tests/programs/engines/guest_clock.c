// SPDX-License-Identifier: GPL-2.0
/* vtime/kernel/clock.c as a library, on as little of a kernel as it asks for: see test_guest_clock.py. */
#include <stddef.h>
#include <stdlib.h>

#define __init
#define GFP_KERNEL 0
#define __GFP_ZERO 0
#define PAGE_SIZE 4096
#define TIMER_MULTIPLIER 1	/* as clock.sed makes it */
#define VM_READ 0
#define VM_WRITE 0
#define VM_SHARED 0
#define VM_MAYREAD 0
#define VM_MAYWRITE 0
#define VM_MAYSHARE 0
#define __NR_clock_gettime 228
#define PT_REGS_SYSCALL_NR(regs) (current->call)
#define local_irq_save(flags) ((void)(flags))
#define local_irq_restore(flags) ((void)(flags))
#define subsys_initcall(function) int start(void) { return function(); }
#define panic(text) abort()
#define TICK_NSEC 1000000	/* CONFIG_HZ=1000 */
#define min(one, other) ((one) < (other) ? (one) : (other))

struct page;
struct mm_struct;
struct vm_area_struct;
struct vm_special_mapping { const char *name; struct page **pages; };
struct task { long call; };

enum { TT_MODE_OFF, TT_MODE_INFCPU };
static int time_travel_mode = TT_MODE_INFCPU;
static unsigned long long time_travel_time;
static struct task tasks[2], *current = tasks;

static void time_travel_update_time_rel(unsigned long long ns) { time_travel_time += ns; }
static long long ktime_get_real(void) { return time_travel_time; }
static long long ktime_get(void) { return time_travel_time; }
static long long ktime_get_boottime(void) { return time_travel_time; }
static long long ktime_get_real_seconds(void) { return time_travel_time / 1000000000; }
static struct page *alloc_page(int flags) { (void)flags; return calloc(1, PAGE_SIZE); }
static void *page_address(struct page *page) { return page; }
static struct vm_area_struct *_install_special_mapping(
	struct mm_struct *mm, unsigned long at, unsigned long size, unsigned long flags,
	const struct vm_special_mapping *mapping)
{
	(void)mm; (void)at; (void)size; (void)flags; (void)mapping;
	return NULL;
}

#include "clock.c"

/* A system call of a process that reads the clock, and the return to the process. */
unsigned long long read_by_call(int process, long call)
{
	current = tasks + process;
	current->call = call;
	clock_read();
	clock_tell();
	return time_travel_time;
}

/* As vdso.c reads: from the page as long as there are free reads, else by a system call. */
unsigned long long read_by_page(int process)
{
	if (current != tasks + process) {
		current = tasks + process;
		clock_tell();
	}
	if (clock_page->left <= 0)
		return read_by_call(process, __NR_clock_gettime);
	clock_page->left--;
	return clock_page->monotonic_ns;
}

void sleep_for(unsigned long long ns)
{
	time_travel_update_time_rel(ns);
	clock_tell();
}
