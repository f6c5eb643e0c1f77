// SPDX-License-Identifier: GPL-2.0
/*
 * Reno that begins again with the initial window after it was idle for an
 * RTO (RFC 5681 section 4.1), and has no other rule about unused windows.
 *
 * This is what ns did that the report compares with (section 3.1): a slow
 * start after an idle RTO, the whole old window after an application-limited
 * stretch, and an ssthresh that does not remember the window. Growth is
 * Linux's own Reno, which does not grow a window that is not used.
 *
 * The congestion control interface has no call before the first segment
 * after an idle time that would come early enough: CA_EVENT_TX_START comes
 * when that segment, of up to two packets, is already cut. min_tso_segs is
 * asked at the start of every tcp_write_xmit(), before the window is looked
 * at, and that is where the rule is applied. The result is exact.
 *
 * Run it with net.ipv4.tcp_slow_start_after_idle=0.
 */
#include <linux/module.h>
#include <net/tcp.h>

/* As tcp_init_cwnd(), which is not exported. */
static u32 restart_window(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 window = dst ? dst_metric(dst, RTAX_INITCWND) : 0;

	return window ? window : TCP_INIT_CWND;
}

static u32 restart_before_sending(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 idle = tcp_jiffies32 - tp->lsndtime;

	if (!tp->packets_out && tcp_send_head(sk) && idle > inet_csk(sk)->icsk_rto)
		tcp_snd_cwnd_set(tp, min(restart_window(sk), tcp_snd_cwnd(tp)));
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

static struct tcp_congestion_ops restart __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "restart",
	.owner		= THIS_MODULE,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.min_tso_segs	= restart_before_sending,
};

static int __init restart_register(void)
{
	return tcp_register_congestion_control(&restart);
}

static void __exit restart_unregister(void)
{
	tcp_unregister_congestion_control(&restart);
}

module_init(restart_register);
module_exit(restart_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Reno with a restart from the initial window after an idle RTO");
