// SPDX-License-Identifier: GPL-2.0
/*
 * What a kernel for anybody's command does beside clock.c. Part of arch/um/kernel/time.c.
 *
 * A program that spins, waiting for the clock or for others, would wait for ever: computing costs
 * no time here. Who spins makes a few system calls over and over, with the same results. So where
 * SPIN_AFTER calls in a row are each one of the last SPIN_CALLS different ones (by process, number
 * and result), and the machine was not idle once, each further call costs 1, 2, 3, ... ns, or a
 * share of what such calls have cost so far (1 of 2^SPIN_SHARE), up to CLOCK_MOST_NS: a wait of 10 s
 * then takes some 30,000 calls, and whoever waits for the clock is late by a thousandth.
 * SPIN_SOON calls are enough where all of them only ask what is ready or what time it is, are told
 * to come again, or find the end of a file, for then no data move, whoever calls: a call goes
 * on with the row if its process has asked before and has not slept since. So any number of
 * processes may spin in turns. Who has done that is known from there on: after SPIN_KNOWN such calls,
 * each costs SPIN_KNOWN_NS at least.
 * What is due meanwhile (timers, packets) comes at its own nanosecond, and where it gives somebody
 * work, the call ends. The count is the same in
 * every run, and so is the time. For who spins in another way, without any call, whoever has
 * started the guest sends SIGALRM to the process that runs, after seconds
 * (vtime/command/guest.py), and that moves the clock, by wall time.
 *
 * Where a link has no rate, nothing else would end: packets move at one moment, as many as there
 * is time for on the wall. So where PACKETS of them left devices within a time that no link with a
 * rate lets them (PACKETS_WITHIN_NS, besides what they cost), each further one costs PACKET_NS, as
 * about it does on a real machine. A packet that a process sends itself, not over TCP, costs that
 * process DATAGRAM_NS: who paces its datagrams by the clock (iperf3) would else send any number at
 * one moment.
 *
 * Starting a program takes START_US, in which others run. Without that a whole script would run at
 * one moment, before what it has asked of others has an effect: Open vSwitch looks at its flows
 * anew once in 5 ms.
 *
 * While a person is awaited at a terminal, time goes on as on the wall, or every clock in the guest
 * would run on for hours: whoever forwards the terminal sets kernel.paced (inside.py), and then
 * the idle machine waits for its next timer, or for input.
 *
 * Random numbers of a guest that was given a seed follow from it and from nothing of the machine's:
 * they are a public function of the seed, and keep no secret.
 */
#include <linux/delay.h>
#include <linux/kstrtox.h>
#include <linux/sched/stat.h>
#include <linux/sysctl.h>
#include <linux/threads.h>
#include <net/link_time.h>
#include <net/sock.h>
#include <asm/unistd.h>
#include <init.h>
#include "clock.h"

#define START_US 1000
#define SPIN_AFTER 100000ULL
#define SPIN_SOON 1000ULL
#define SPIN_KNOWN 20ULL
#define SPIN_KNOWN_NS 5000ULL
#define SPIN_CALLS 16
#define SPIN_SHARE 10
#define PROCESSES PID_MAX_DEFAULT	/* that are told apart */
#define SPIN_TOLD 1000		/* ns that one call costs before it is told who spins */
#define PACKETS 10000ULL
#define PACKETS_WITHIN_NS 1000000ULL
#define PACKET_NS 10000ULL	/* of up to 64 KB: 52 Gbit/s */
#define DATAGRAM_NS 1000ULL
#define STACK_WORDS 0x20000UL	/* bytes for a program's words and variables */
#define ALARM_LEAST 10000000ULL	/* ns that a first alarm costs; each costs twice the one before */
#define ALARM_MOST 100000000ULL

static unsigned long long command_in_a_row;	/* calls that were among the last different ones */
static unsigned long long command_asking;	/* calls that moved no data, in a row */
static struct {
	const void *task;
	long number, result;
} command_calls[SPIN_CALLS];
static unsigned int command_oldest;
/* By the number of a process: whether it only asked, SPIN_SOON times in a row; and how often it had
 * slept when it asked last. */
static struct command_process {
	bool spins, has_asked;
	u32 slept;
} command_processes[PROCESSES];
static unsigned long long command_spun;	/* ns that calls of who spins have cost, in a row */
static unsigned long long command_clock_spun;	/* the same of reads of the clock, */
static unsigned int command_clock_seen;		/* and clock_spins at the last one */
static unsigned long long command_datagrams;	/* sent, and not paid for yet */
/* Packets since a time, how many of them are free or paid for, and what was paid, ns. */
static unsigned long long command_since, command_packets, command_paid = PACKETS, command_cost;
static bool command_is_unlimited;	/* it was told that a link has no rate */
static unsigned long long command_alarm_ns;
static unsigned long long command_count, command_alarmed_at;	/* calls, and at the last alarm */
static char command_told[TASK_COMM_LEN];
static unsigned long long command_first_seed, command_seed, command_starts;
bool command_is_seeded;		/* read by drivers/char/random.c */
static int command_paced, command_restarted;
static unsigned int clock_spins;	/* of clock.c: who reads the clock until it moves */
static const void *clock_reader;
static unsigned long long clock_moment;

int command_wait(unsigned long long ns);	/* in os-Linux/util.c */
void command_restart_random(void);		/* in drivers/char/random.c */

/*
 * Called where nothing is to be done before the next timer or interrupt; true where there is
 * input, which comes before that timer.
 */
static bool command_idle(void)
{
	struct time_travel_event *next = time_travel_first_event();

	command_in_a_row = command_asking = command_spun = 0;
	command_alarm_ns = 0;
	return command_paced && command_wait(next ? next->time - time_travel_time : S64_MAX);
}

/* Read by who has started the guest, on its console. */
static void command_tell(void)
{
	if (strcmp(command_told, current->comm)) {
		strscpy(command_told, current->comm);
		pr_emerg("first-flight: spins: %s\n", current->comm);
	}
}

/* Whether a process has made the same call, with the same result, among the last different ones. */
static bool command_was_made(long number, long result)
{
	int each;

	for (each = 0; each < SPIN_CALLS; each++)
		if (command_calls[each].task == current && command_calls[each].number == number &&
		    command_calls[each].result == result)
			return true;
	command_calls[command_oldest].task = current;
	command_calls[command_oldest].number = number;
	command_calls[command_oldest].result = result;
	command_oldest = (command_oldest + 1) % SPIN_CALLS;
	return false;
}

/*
 * Whether a call moves no data: it asks what is ready, who has ended or what time it is, finds the
 * end of a file, or is told to come again.
 */
static bool command_asks(long number, long result)
{
	switch (number) {
	case __NR_select:
	case __NR_pselect6:
	case __NR_poll:
	case __NR_ppoll:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_sched_yield:
	case __NR_clock_gettime:
	case __NR_gettimeofday:
	case __NR_time:
	case __NR_times:
		return true;
	case __NR_read:
	case __NR_readv:
	case __NR_pread64:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_write:
	case __NR_wait4:
		return !result || result == -EAGAIN;
	}
	return result == -EAGAIN;
}

/* Whether the process that asks has asked before, and has not slept since. */
static bool command_asks_again(void)
{
	struct command_process *process = &command_processes[current->pid % PROCESSES];
	bool again = process->has_asked && process->slept == (u32)current->nvcsw;

	process->has_asked = true;
	process->slept = current->nvcsw;
	return again;
}

/* What a call costs that only asks, ns, by how many of them there were in a row. */
static unsigned long long command_asking_ns(void)
{
	struct command_process *process = &command_processes[current->pid % PROCESSES];

	if (process->spins)
		return command_asking > SPIN_KNOWN ?
		       max(command_asking - SPIN_KNOWN, SPIN_KNOWN_NS) : 0;
	if (command_asking <= SPIN_SOON)
		return 0;
	process->spins = true;
	return SPIN_KNOWN_NS;
}

/*
 * Moves the clock to an end, or to the next event before it. time_travel_update_time_rel() keeps
 * interrupts off until the end of its step; so timers and packets come at their own nanosecond.
 */
static void command_step(unsigned long long end)
{
	struct time_travel_event *next = time_travel_first_event();

	time_travel_update_time_rel((next ? clamp(next->time, time_travel_time, end) : end) -
				    time_travel_time);
}

static void command_advance(unsigned long long ns)
{
	unsigned long long end = time_travel_time + ns;

	while (time_travel_time < end)
		command_step(end);
}

/*
 * Moves the clock for who spins by ns, or by a share of spun if that is more, until somebody has
 * work. Returns the time that has passed.
 */
static unsigned long long command_spin_on(unsigned long long ns, unsigned long long spun)
{
	unsigned long long began = time_travel_time, end;
	unsigned int running = nr_running();

	end = began + min(max(ns, spun >> SPIN_SHARE), 0ULL + CLOCK_MOST_NS);
	do {
		command_step(end);
	} while (time_travel_time < end && nr_running() <= running && !need_resched());
	return time_travel_time - began;
}

/*
 * A read of the clock that was none of the free ones. clock.c has moved the clock by clock_spins
 * ns, and begins anew if time moves otherwise; so it is told.
 */
static void command_spin_clock(void)
{
	if (clock_spins <= command_clock_seen)
		command_clock_spun = 0;	/* it has begun anew */
	command_clock_seen = clock_spins;
	command_clock_spun += clock_spins;
	if (command_clock_spun >> SPIN_SHARE > clock_spins) {
		command_clock_spun += command_spin_on(0, command_clock_spun);
		clock_moment = time_travel_time;
	}
	if (clock_spins > SPIN_TOLD)
		command_tell();
}

/* A packet leaves a device. Called by capture.c, which sees them all. */
void command_packet(const char *device)
{
	if (time_travel_time - command_since > command_cost + PACKETS_WITHIN_NS) {
		command_since = time_travel_time;
		command_packets = command_cost = 0;
		command_paid = PACKETS;
	}
	command_packets++;
	if (command_packets > PACKETS && !command_is_unlimited) {
		command_is_unlimited = true;
		pr_emerg("first-flight: unlimited: %s\n", device);
	}
}

/* A packet comes to a device. Called by capture.c, too. */
void command_queued(const struct sk_buff *skb)
{
	if (!in_serving_softirq() && skb->sk && sk_fullsock(skb->sk) &&
	    skb->sk->sk_type != SOCK_STREAM)
		command_datagrams++;
}

/* What packets cost that left since the last call, ns. */
static unsigned long long command_packets_ns(void)
{
	unsigned long long more = command_packets > command_paid ? command_packets - command_paid : 0;
	unsigned long long ns = more * PACKET_NS + command_datagrams * DATAGRAM_NS;

	command_paid += more;
	command_cost += more * PACKET_NS;
	command_datagrams = 0;
	return ns;
}

/*
 * All that is random follows from the seed and from how many programs were started: one that draws
 * a number more than in another run, as its memory's addresses may decide, changes no other one.
 */
static void command_restart_numbers(void)
{
	command_seed = command_first_seed + command_starts * 0xd1342543de82ef95ULL;
	command_restart_random();
}

/* A program starts. */
static void command_start(void)
{
	unsigned long us = START_US + link_start_noise();

	command_processes[current->pid % PROCESSES] = (struct command_process) {};
	command_starts++;
	command_restart_numbers();
	usleep_range(us, us);
}

/*
 * Where a program's stack begins: as far below its end (which is random) for words and variables of
 * any length. Called by binfmt_elf.c; addresses decide some things, such as names of temporary files.
 */
unsigned long command_stack(unsigned long place)
{
	struct vm_area_struct *stack;
	unsigned long start;

	mmap_read_lock(current->mm);
	stack = find_vma(current->mm, place);
	start = stack ? stack->vm_end - STACK_WORDS : place;
	mmap_read_unlock(current->mm);
	return command_is_seeded && start < place ? start : place;
}

/* Called before every return to a process: from a system call, or from a page's fault (-1). */
void command_spin(void)
{
	long number = PT_REGS_SYSCALL_NR(&current->thread.regs);
	long result = regs_return_value(&current->thread.regs);
	unsigned long long ns = 0;
	bool asks;

	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	if (clock_spins && clock_reader == current) {
		command_spin_clock();
		return;
	}
	if (number < 0)
		return;
	if ((number == __NR_execve || number == __NR_execveat) && !result)
		command_start();
	command_count++;
	asks = command_asks(number, result);
	if (!(asks && command_asks_again()) && !command_was_made(number, result))
		command_in_a_row = command_asking = command_spun = 0;
	command_asking = asks ? command_asking + 1 : 0;
	if (++command_in_a_row > SPIN_AFTER)
		ns = command_in_a_row - SPIN_AFTER;
	ns = max(ns, command_asking_ns());
	if (ns > SPIN_TOLD)
		command_tell();
	command_spun = ns ? command_spun + command_spin_on(ns, command_spun) : 0;
	ns = command_packets_ns();
	if (ns)
		command_advance(ns);
}

/*
 * A process was stopped in the midst of its computing, by SIGALRM. It comes by wall time: where
 * there were calls since the last one, the machine is only slow, and nothing moves. Else the clock
 * moves until somebody has work, who is not late then.
 */
void command_alarm(void)
{
	unsigned int running = nr_running();
	unsigned long long end;

	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	if (command_count != command_alarmed_at) {
		command_alarmed_at = command_count;
		return;
	}
	command_tell();
	command_alarm_ns = clamp(2 * command_alarm_ns, ALARM_LEAST, ALARM_MOST);
	end = time_travel_time + command_alarm_ns;
	do {
		command_step(end);
	} while (time_travel_time < end && nr_running() <= running && !need_resched());
	if (time_travel_time < end)
		command_alarm_ns = 0;
}

/* The time of the day in ns, for capture.c. */
unsigned long long command_now(void)
{
	return time_travel_start + time_travel_time;
}

/*
 * Fills a buffer with what follows from the seed (Vigna's splitmix64); false without one.
 * In place of the machine's random numbers, which seed the guest's own generator.
 */
bool command_random(void *buffer, size_t bytes)
{
	unsigned char *place = buffer;

	if (!command_is_seeded)
		return false;
	while (bytes) {
		size_t part = min(bytes, sizeof(u64));
		u64 word = command_seed += 0x9e3779b97f4a7c15ULL;

		word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
		word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
		word ^= word >> 31;
		memcpy(place, &word, part);
		place += part;
		bytes -= part;
	}
	return true;
}

/* Nothing that was drawn before counts any more: kernel.restarted was written. */
static int command_restart(const struct ctl_table *table, int write, void *buffer, size_t *bytes,
			   loff_t *place)
{
	int error = proc_dointvec(table, write, buffer, bytes, place);

	if (!error && write) {
		command_starts = 0;
		link_seed(command_first_seed);
		command_restart_numbers();
	}
	return error;
}

static const struct ctl_table command_table[] = {
	{
		.procname = "paced",
		.data = &command_paced,
		.maxlen = sizeof(command_paced),
		.mode = 0644,
		.proc_handler = proc_dointvec,
	},
	{
		.procname = "restarted",
		.data = &command_restarted,
		.maxlen = sizeof(command_restarted),
		.mode = 0644,
		.proc_handler = command_restart,
	},
};

static int __init command_init(void)
{
	register_sysctl("kernel", command_table);
	return 0;
}
subsys_initcall(command_init);

static int __init command_setup_seed(char *word, int *add)
{
	*add = 0;
	if (kstrtoull(word, 10, &command_first_seed))
		return 1;
	command_is_seeded = true;
	command_seed = command_first_seed;
	link_seed(command_seed);
	return 0;
}
__uml_setup("seed=", command_setup_seed,
"seed=<number>\n"
"    Random numbers follow from it.\n\n");
