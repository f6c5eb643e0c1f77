/*
 * Preloaded into packetdrill: before a script it spins on times(2) until the tick of 10 ms has
 * moved ten times, to start in the middle of a jiffy. times(2) reads no clock, so virtual time
 * would stand still; here each call waits a little.
 */
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

clock_t times(struct tms *buffer)
{
	const struct timespec wait = { .tv_nsec = 50 * 1000 };

	nanosleep(&wait, NULL);
	return syscall(SYS_times, buffer);
}
