/*
 * Preloaded into packetdrill: before a script it spins on times(2) until the tick of 10 ms has
 * moved ten times, to start in the middle of a jiffy of 1 ms. times(2) reads no clock, so virtual
 * time would stand still, or move after seconds of spinning (vtime/kernel/command.c). Here the
 * first call waits until 1 µs after a multiple of 4.096 s, a slot of the timer wheel's fifth level,
 * and each further one for the next jiffy, which counts as a tick. So every script meets the same
 * phase of the kernel's ticks and timers, however long its preparations took.
 */
#include <sys/times.h>
#include <time.h>

#define JIFFY_NS 1000000LL
#define GRID_NS (4096 * JIFFY_NS)
#define AFTER_NS 1000LL
#define SECOND_NS 1000000000LL

clock_t times(struct tms *buffer)
{
	static clock_t ticks;
	long long step_ns = ticks ? JIFFY_NS : GRID_NS, at_ns;
	struct timespec at;

	if (buffer)
		*buffer = (struct tms){ 0 };
	clock_gettime(CLOCK_MONOTONIC, &at);
	at_ns = at.tv_sec * SECOND_NS + at.tv_nsec - AFTER_NS;
	at_ns += step_ns - at_ns % step_ns + AFTER_NS;
	at.tv_sec = at_ns / SECOND_NS;
	at.tv_nsec = at_ns % SECOND_NS;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	return ++ticks;
}
