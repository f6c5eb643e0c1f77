/*
 * Preloaded into packetdrill: before a script it spins on times(2) until the tick of 10 ms has
 * moved ten times, to start in the middle of a jiffy of 1 ms. times(2) reads no clock, so virtual
 * time would stand still, or move after seconds of spinning (vtime/kernel/command.c). Here each
 * call waits for 1 µs after the next jiffy began, so that every script starts at the same part of
 * one.
 */
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define JIFFY_NS 1000000
#define AFTER_NS 1000

clock_t times(struct tms *buffer)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += JIFFY_NS - (at.tv_nsec - AFTER_NS + JIFFY_NS) % JIFFY_NS;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	return syscall(SYS_times, buffer);
}
