# SPDX-License-Identifier: GPL-2.0
# Changes arch/um/kernel/time.c so that reading the clock is free in virtual time.
#
# UML lets every read cost a tick of 256 ns, or loops that wait for time to
# move would spin forever. A transfer would then depend on how often some
# process happened to look at the clock. Here only the 1000th read at one and
# the same moment moves it. build.sh also makes the tick 1 ns instead of 256
# (TIMER_MULTIPLIER): timers then fire on the nanosecond they were set for, and
# the same transfer takes the same time whatever ran before it.
#
# A process that reads 1000 times in a row, by one and the same system call and
# with no read of anybody's in between, is waiting for the clock to move. From
# there on its reads cost 1, 2, 3, ... ns: it gets through T ns in 1000 + √2T reads.
/^static u64 timer_read/,/^}/ {
	s/^\(\t*\)time_travel_update_time_rel(TIMER_MULTIPLIER);/\1{\
\1	static unsigned long long last;\
\1	static unsigned int reads, in_a_row;\
\1	static const void *reader;\
\1	static long call;\
\
\1	if (reader != current || call != PT_REGS_SYSCALL_NR(\&current->thread.regs))\
\1		in_a_row = 0;\
\1	reader = current;\
\1	call = PT_REGS_SYSCALL_NR(\&current->thread.regs);\
\1	if (time_travel_time != last) {\
\1		last = time_travel_time;\
\1		reads = in_a_row = 0;\
\1	} else if (++in_a_row > 1000) {\
\1		time_travel_update_time_rel((in_a_row - 1000) * TIMER_MULTIPLIER);\
\1		last = time_travel_time;\
\1	} else if (++reads > 1000) {\
\1		time_travel_update_time_rel(TIMER_MULTIPLIER);\
\1	}\
\1}/
}
