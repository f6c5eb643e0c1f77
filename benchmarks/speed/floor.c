/*
 * What a system call, a page fault, a switch between processes and a new program cost, in cycles
 * of the processor's counter: a guest's own clock stands still while it computes.
 *
 *   floor            a line each: what, and cycles of one, the least of some batches
 *   floor --hertz    cycles a second of this machine's clock
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { BATCHES = 200, CALLS = 100, PAGES = 64, TRIPS = 30, PROGRAMS = 1 };

static int to_child[2], to_parent[2];

static void calls(void)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

static void clocks(void)
{
	struct timespec now;

	for (int i = 0; i < CALLS; i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
}

static void faults(void)
{
	volatile char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < PAGES; i++)
		pages[i * 4096] = 1;
	munmap((void *)pages, PAGES * 4096);
}

static void trips(void)
{
	char byte = 0;

	for (int i = 0; i < TRIPS; i++)
		if (write(to_child[1], &byte, 1) != 1 || read(to_parent[0], &byte, 1) != 1)
			exit(1);
}

static void programs(void)
{
	for (int i = 0; i < PROGRAMS; i++) {
		if (vfork() == 0) {
			execl("/bin/true", "true", NULL);
			_exit(127);
		}
		wait(NULL);
	}
}

static void told(const char *what, void (*batch)(void), int count)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < BATCHES; i++) {
		const uint64_t start = __rdtsc();

		batch();
		const uint64_t took = __rdtsc() - start;

		least = took < least ? took : least;
	}
	printf("%s %.0f\n", what, (double)least / count);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char *argv[])
{
	char byte;

	if (argc > 1 && strcmp(argv[1], "--hertz") == 0) {
		const double start_s = now_s();
		const uint64_t start = __rdtsc();

		while (now_s() < start_s + 0.2)
			;
		printf("%.0f\n", (__rdtsc() - start) / (now_s() - start_s));
		return 0;
	}
	if (pipe(to_child) || pipe(to_parent))
		return 1;
	if (fork() == 0) {
		close(to_child[1]);
		while (read(to_child[0], &byte, 1) == 1 && write(to_parent[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	told("call", calls, CALLS);
	told("clock", clocks, CALLS);
	told("fault", faults, PAGES);
	told("trip", trips, TRIPS);
	told("program", programs, PROGRAMS);
	return 0;
}
