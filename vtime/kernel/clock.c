// SPDX-License-Identifier: GPL-2.0
/*
 * Reading the clock is free in virtual time. Part of arch/um/kernel/time.c.
 *
 * UML lets every read cost a tick of 256 ns, or loops that wait for time to
 * move would spin forever. A transfer would then depend on how often some
 * process happened to look at the clock. Here 1001 reads at one and the same
 * moment are free, and only the next one moves it. prepare_tree also makes the
 * tick 1 ns instead of 256 (TIMER_MULTIPLIER): timers then fire on the
 * nanosecond they were set for, and the same transfer takes the same time
 * whatever ran before it.
 *
 * A process that reads 1000 times in a row, by one and the same system call and
 * with no read of anybody's in between, is waiting for the clock to move. From
 * there on its reads cost 1, 2, 3, ... ns: it gets through T ns in 1000 + √2T
 * reads. None costs more than half a tick: ticks write the time, for which the
 * kernel begins the read anew (a seqcount), so a read as long as a tick would
 * never end.
 *
 * Free reads are read from a page that every process has (clock.h), and taken
 * off what is left there; the others come into the kernel.
 */
#include <linux/mm.h>
#include <linux/timekeeping.h>
#include <asm/unistd.h>
#include "clock.h"

static struct page *clock_pages[2];	/* the page and the list's end */
static struct clock_page *clock_page;
static int clock_left;			/* free reads left, as last looked at */
static unsigned long long clock_moment;	/* of which these are */
static const void *clock_user;		/* who runs outside of the kernel */
static const void *clock_reader;	/* who read last, */
static long clock_call;			/* by which system call, */
static unsigned int clock_in_a_row;	/* how often without another read, */
static unsigned int clock_spins;	/* and how often since none was left */

static void clock_count(const void *reader, long call, int reads)
{
	if (reader != clock_reader || call != clock_call)
		clock_in_a_row = clock_spins = 0;
	clock_reader = reader;
	clock_call = call;
	clock_in_a_row += reads;
}

/* Counts what was read from the page. At another moment all reads are free again. */
static void clock_settle(void)
{
	if (time_travel_time != clock_moment) {
		clock_moment = time_travel_time;
		clock_page->left = CLOCK_FREE_READS;
		clock_in_a_row = clock_spins = 0;
	} else if (clock_page->left < clock_left) {
		clock_count(clock_user, __NR_clock_gettime,
			    clock_left - clock_page->left);
	}
	clock_left = clock_page->left;
}

/* A read that came into the kernel, which makes some of its own, too. */
static void clock_read(void)
{
	if (!clock_page || time_travel_mode != TT_MODE_INFCPU)
		return time_travel_update_time_rel(TIMER_MULTIPLIER);
	clock_settle();
	clock_count(current, PT_REGS_SYSCALL_NR(&current->thread.regs), 0);
	if (clock_left > 0) {
		clock_in_a_row++;
		clock_left = --clock_page->left;
	} else if (clock_in_a_row >= 1000) {
		clock_spins = min(clock_spins + 1, CLOCK_MOST_NS);
		time_travel_update_time_rel(clock_spins * TIMER_MULTIPLIER);
		clock_moment = time_travel_time;	/* nothing is free for it */
	} else {
		time_travel_update_time_rel(TIMER_MULTIPLIER);
	}
}

/* Called before every return to a process (interrupt_end), when time moves no more. */
void clock_tell(void)
{
	unsigned long flags;

	if (!clock_page || time_travel_mode != TT_MODE_INFCPU)
		return;
	local_irq_save(flags);	/* so that these reads are none */
	clock_settle();
	clock_user = current;
	clock_page->realtime_ns = ktime_get_real();
	clock_page->monotonic_ns = ktime_get();
	clock_page->boottime_ns = ktime_get_boottime();
	clock_page->seconds = ktime_get_real_seconds();
	local_irq_restore(flags);
}

/* Maps the page below the vDSO, for arch_setup_additional_pages; the stack ends there. */
struct vm_area_struct *clock_map(struct mm_struct *mm, unsigned long vdso)
{
	static struct vm_special_mapping mapping = {
		.name = "[vvar]",
		.pages = clock_pages,
	};

	return _install_special_mapping(mm, vdso - PAGE_SIZE, PAGE_SIZE,
					VM_READ | VM_WRITE | VM_SHARED |
					VM_MAYREAD | VM_MAYWRITE | VM_MAYSHARE,
					&mapping);
}

static int __init clock_init(void)
{
	clock_pages[0] = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!clock_pages[0])
		panic("Cannot allocate the clock page\n");
	clock_page = page_address(clock_pages[0]);
	return 0;
}
subsys_initcall(clock_init);
