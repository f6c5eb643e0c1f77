// SPDX-License-Identifier: GPL-2.0
/*
 * The report's "unmodified TCP": Reno that grows its window on every
 * acknowledgement, whether or not the window was used.
 *
 * Handley, Padhye and Floyd, "TCP Congestion Window Validation" (1999),
 * sections 3.3 and 4. Linux's own Reno returns early while the application
 * limits it (tcp_is_cwnd_limited), and no setting changes that; this is
 * tcp_reno_cong_avoid() without that line. Everything else is Reno.
 *
 * Run it with net.ipv4.tcp_slow_start_after_idle=0, or Linux validates the
 * window by its other two rules. In the guest's kernel it is built in; as a
 * module: make -C vtime/kernel.
 */
#include <linux/module.h>
#include <net/tcp.h>

static void unvalidated_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static struct tcp_congestion_ops unvalidated __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "unvalidated",
	.owner		= THIS_MODULE,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= unvalidated_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
};

static int __init unvalidated_register(void)
{
	return tcp_register_congestion_control(&unvalidated);
}

static void __exit unvalidated_unregister(void)
{
	tcp_unregister_congestion_control(&unvalidated);
}

module_init(unvalidated_register);
module_exit(unvalidated_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Reno that grows its window although the application limits it");
