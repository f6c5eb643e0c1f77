# SPDX-License-Identifier: GPL-2.0
# Puts clock.c, clock.h and vdso.c into UML; the two C files say what it is for. Four files of the
# kernel's are changed (change_clock in compile.sh applies and checks it). What changes a function
# comes before what puts lines above it.

# arch/um/include/linux/time-internal.h
s/^#define TIMER_MULTIPLIER 256$/#define TIMER_MULTIPLIER 1/

# arch/um/kernel/time.c
/^static u64 timer_read/,/^}/ s/time_travel_update_time_rel(TIMER_MULTIPLIER);/clock_read();/
s/^static u64 timer_read(.*/#include "clock.c"\n\n&/
# The scheduler's clock (sched_clock) is the ticks, and one more for each sched_yield(2) and for each
# 10,000 returns to one process. UML takes those back, one with each tick: the clock then stands still
# for as long as it was ahead (1000 s after a million yields), and who spins is not preempted. It may
# stay ahead.
/^\tif (tt_extra_sched_jiffies > 0)$/,/^\t\ttt_extra_sched_jiffies -= 1;$/d

# arch/um/kernel/process.c
/^void interrupt_end/,/^}/ s/^}/\tclock_tell();\n}/
s/^void interrupt_end(void)/void clock_tell(void);\n\n&/

# arch/x86/um/vdso/vma.c
s/^int arch_setup_additional_pages/struct vm_area_struct *clock_map(struct mm_struct *mm, unsigned long vdso);\n\n&/
s/^\tmmap_write_unlock(mm);/\tif (!IS_ERR(vma))\n\t\tvma = clock_map(mm, um_vdso_addr);\n&/
