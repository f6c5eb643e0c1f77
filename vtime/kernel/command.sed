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

# arch/um/kernel/um_arch.c: without a core's number, ps aux and top of procps 4.0.2 (Debian 12) end
s/^\tseq_printf(m, "mode\\t\\t: skas\\n");$/&\n\tseq_puts(m, "physical id\\t: 0\\ncore id\\t\\t: 0\\ncpu cores\\t: 1\\n");/

# drivers/char/random.c: the command line names folders, which differ from machine to machine
/^void __init random_init_early/,/^}/ s/^\t_mix_pool_bytes(command_line, strlen(command_line));$/\t(void)command_line;/
s/^void __init random_init_early(.*/#include "command_restart.c"\n\n&/
# where an interrupt meets a program depends on how fast the machine is
/^void add_interrupt_randomness(/,/^}/ s/^\tfast_mix(fast_pool[->a-z]*, entropy,$/\tif (command_is_seeded)\n\t\treturn;\n&/
s/^void add_interrupt_randomness(int irq)$/extern bool command_is_seeded;\n\n&/

# net/bridge/br_netfilter_hooks.c: bridges ask iptables once br_netfilter is loaded, see modprobe
/^static inline void br_netfilter_sysctl_default(/,/^}/ s/ = 1;$/ = 0;/

# fs/hostfs/hostfs_kern.c: in a user namespace the files of the machine's root are nobody's (65534, the
# kernel's DEFAULT_OVERFLOWUID); here they are root's again, or mount and su would be set-id nobody
s/^\ti_uid_write(ino, st->uid);$/\ti_uid_write(ino, st->uid == 65534 ? 0 : st->uid);/
s/^\ti_gid_write(ino, st->gid);$/\ti_gid_write(ino, st->gid == 65534 ? 0 : st->gid);/

# fs/binfmt_elf.c: addresses do not follow from how long a path or a variable is
s/^\tbprm->p = STACK_ROUND(sp, items);$/\tunsigned long command_stack(unsigned long place);\n\n\tbprm->p = command_stack(STACK_ROUND(sp, items));/

# kernel/bpf/arena.c: min() of two signs, which only -O2 sees to be no fault
s/^\(\t*alloc_pages = \)min(page_cnt, KMALLOC_MAX_CACHE_SIZE/\1min_t(long, page_cnt, KMALLOC_MAX_CACHE_SIZE/

# Packets, for capture.c: include/linux/skbuff.h, include/linux/netdevice.h
s/^\tstruct_group(headers,$/&\n\tu64 capture_ns;\n\tu64 capture_number;\n\tu32 capture_device;/
s/^\tconst struct rtnl_link_ops \*rtnl_link_ops;$/&\n\tu32 capture_id;/

# net/core/dev.c, net/core/skbuff.c, net/core/rtnetlink.c, net/sched/sch_api.c
s/^\t\terr = link->doit(skb, nlh, extack);$/\t{\n\t\tcapture_requested(net, nlh);\n&\n\t\tcapture_answered(net, nlh, err, extack);\n\t}/
s/^#include <net\/pkt_sched.h>$/&\n#include <net\/capture.h>\n#include <net\/link_time.h>/
s/^\ttrace_net_dev_queue(skb);$/\tcapture_queued(skb, dev);\n&/
s/^\t\ttrace_qdisc_enqueue(q, txq, skb);$/\t\tcapture_accepted(skb);\n&/
/^static int dev_qdisc_enqueue(/,/^}/ s/^\tif (rc == NET_XMIT_SUCCESS)$/& {/
/^static int dev_qdisc_enqueue(/,/^}/ s/^\treturn rc;$/\t}\n&/
s/^\ttrace_net_dev_start_xmit(skb, dev);$/\tcapture_sent(skb, dev);\n&/
s/^\t\ttrace_kfree_skb(skb, __builtin_return_address(0), reason, sk);$/\t{\n\t\tcapture_dropped(skb, reason);\n&\n\t}/
/^static int qdisc_notify(/,/^}/ s/^\tif (!rtnl_notify_needed(.*$/\tcapture_qdiscs(qdisc_dev(new ?: old));\n&/
/^static int tclass_notify(/,/^}/ s/^\tif (!rtnl_notify_needed(.*$/\tcapture_qdiscs(qdisc_dev(q));\n&/
s/^subsys_initcall(pktsched_init);$/&\n\n#include "capture_qdiscs.c"/

# Time, for link_time.c: net/sched/sch_netem.c, net/sched/sch_api.c
# A packet in a netem stays known to its sender, as on a machine that has all hosts of a network: TCP
# does not send it again meanwhile, and fq paces it as its socket says. Trials release it (inside.sh).
/^struct netem_sched_data {$/,/^};$/ s/^\tstruct Qdisc\t\t\*qdisc;$/&\n\tu64\t\t\tbusy_until;/
/^static int netem_enqueue(/,/^}/ s/^\t\tif (q->rate) {$/\t\tif (!q->rate)\n\t\t\tnow = link_time(skb, now, \&q->busy_until);\n&/
/^void qdisc_watchdog_schedule_range_ns(/,/^}/ s/^\tif (hrtimer_is_queued(&wd->timer)) {$/\texpires += link_noise();\n&/

# kernel/exit.c, fs/read_write.c: which programs set up the network, and what they complain of
s/^void __noreturn do_exit(long code)$/void capture_exits(long code);\n\n&/
s/^\tWARN_ON(tsk->plug);$/&\n\tcapture_exits(code);/
s/^ssize_t ksys_write(unsigned int fd, const char __user \*buf, size_t count)$/void capture_said(unsigned int fd, const char __user *text, size_t bytes);\n\n&/
/ksys_write(unsigned int fd/,/^}/ s/^\tssize_t ret = -EBADF;$/&\n\n\tcapture_said(fd, buf, count);/

# net/ipv4/tcp_input.c: with which window a connection begins, for capture.c
/^void tcp_init_transfer(/,/^}/ s/^\ttcp_init_buffer_space(sk);$/&\n\tcapture_opened(sk);/
s/^void tcp_init_transfer(/void capture_opened(const struct sock *sk);\n\n&/
