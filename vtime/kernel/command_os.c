// SPDX-License-Identifier: GPL-2.0
/* The part of command.c that asks the machine: part of arch/um/os-Linux/util.c. */
#include <poll.h>

_Bool command_random(void *buffer, size_t bytes);	/* in command.c */

/* Wait so long, to the millisecond, or until there is standard input; whether there is. */
int command_wait(unsigned long long ns)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	unsigned long long ms = ns / 1000000;

	return poll(&input, 1, ms < 3600000 ? ms : 3600000) > 0 && (input.revents & POLLIN);
}
