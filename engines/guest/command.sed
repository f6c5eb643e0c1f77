# SPDX-License-Identifier: GPL-2.0
# Puts command.c into UML, behind what clock.sed has changed (change_for_commands in compile.sh).

# arch/um/kernel/time.c
/^void time_travel_sleep/,/^}/ s/^\ttime_travel_update_time(next, true);/\tif (command_idle())\n\t\treturn;\n&/
s/^void time_travel_sleep(void)$/#include "command.c"\n\n&/

# arch/um/kernel/process.c
/^void interrupt_end/,/^}/ s/^\tthread_flags = read_thread_flags();/\tcommand_spin();\n&/
s/^void interrupt_end(void)/void command_spin(void);\n\n&/

# arch/um/os-Linux/skas/process.c
/^void userspace/,/^}/ s/^\t\t\tcase SIGALRM:$/&\n\t\t\t\tcommand_alarm();/
s/^void userspace(/void command_alarm(void);\n\n&/

# arch/um/os-Linux/util.c
s/^\treturn getrandom(buf, len, flags);/\tif (command_random(buf, len))\n\t\treturn len;\n&/
s/^ssize_t os_getrandom(/#include "command_os.c"\n\n&/

# drivers/char/random.c: the command line names folders, which differ from machine to machine
/^void __init random_init_early/,/^}/ s/^\t_mix_pool_bytes(command_line, strlen(command_line));$/\t(void)command_line;/
