// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion Window Validation as its report has it: Handley, Padhye and
 * Floyd, "TCP Congestion Window Validation" (1999), pseudo-code of section
 * 2.2, and the increase of section 2 only when the window was full as the
 * acknowledgement arrived. Otherwise Reno.
 *
 * Two congestion controls are registered:
 *
 *   cwv        the window is full when less than one MSS of it is free
 *              (section 5), which is when no further segment may be sent
 *   cwv_exact  it is full when nothing of it is free: what section 5 warns of
 *
 * As in the report's FreeBSD the window is counted in bytes: Linux's snd_cwnd
 * is whole segments, what is beyond it is kept in `fraction` (the report's
 * cwnd is snd_cwnd * MSS + fraction). The floor is one segment.
 *
 * When things happen. The pseudo-code runs after each segment sent. A
 * congestion control is not called then; it is called before (min_tso_segs,
 * at the start of every tcp_write_xmit) and when an acknowledgement arrives
 * (cong_avoid). So what was sent is judged at the next of these calls, with
 * the clock and the RTO of the moment at which it was sent. No segment can be
 * sent between the two, so that what goes over the wire is exact; a reader of
 * TCP_INFO sees the new window up to one acknowledgement late.
 *
 *  - The idle rule runs before the first segment after the idle time instead
 *    of after it. That segment could be sent either way.
 *  - Segments of one tcp_write_xmit are judged together, by the last of them.
 *    Only the last can fill the window or be the end of the data.
 *  - While TCP recovers from a loss the window is the recovery's, and counts
 *    as full: nothing is validated. The report does not speak of that.
 *  - The clock is jiffies (HZ), the report's tcp_now.
 *  - An acknowledgement of two segments grows the window by two, as Linux's
 *    Reno does (RFC 3465); the report's TCP grew by one for each.
 *
 * Run it with net.ipv4.tcp_slow_start_after_idle=0.
 */
#include <linux/module.h>
#include <net/tcp.h>

struct cwv {
	u32 t_prev;	/* when the sender was last network-limited (jiffies) */
	u32 w_used;	/* most that was outstanding since then (bytes) */
	u32 fraction;	/* of the window, beyond snd_cwnd segments (bytes) */
	u32 segments;	/* snd_cwnd as this module left it */
	u32 una;	/* snd_una when segments were last sent or acknowledged */
	u32 judged;	/* snd_nxt up to which sending has been judged */
	u32 end_of_data;	/* write_seq when segments were last sent */
	u32 rto;	/* at that time (jiffies) */
	u8 exact;
};

/* The report's cwnd, in bytes. */
static u32 cwv_window(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);

	/* Set by someone else: a loss, an undo, a clamp. */
	if (cwv->segments != tcp_snd_cwnd(tp))
		cwv->fraction = 0;
	return tcp_snd_cwnd(tp) * tp->mss_cache + cwv->fraction;
}

static void cwv_set_window(struct sock *sk, u32 bytes)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);

	bytes = max(bytes, tp->mss_cache);
	cwv->segments = min(bytes / tp->mss_cache, tp->snd_cwnd_clamp);
	cwv->fraction = bytes % tp->mss_cache;
	tcp_snd_cwnd_set(tp, cwv->segments);
}

/* ssthresh never becomes smaller: it remembers the window. */
static void cwv_remember(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 three_quarters = (u32)((u64)cwv_window(sk) * 3 / 4 / tp->mss_cache);

	WRITE_ONCE(tp->snd_ssthresh, max(tp->snd_ssthresh, three_quarters));
}

/* win = min(cwnd, receiver's declared max window) */
static u32 cwv_usable_window(const struct sock *sk)
{
	return min(cwv_window(sk), tcp_sk(sk)->max_window);
}

/*
 * Whether the window was full with `unacknowledged` bytes in `packets`
 * outstanding. For Linux a window of n segments is full with n packets
 * outstanding, however short they are.
 */
static bool cwv_is_full(const struct sock *sk, u32 unacknowledged, u32 packets)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct cwv *cwv = inet_csk_ca(sk);
	u32 window = min(cwv_window(sk), tp->snd_wnd);

	if (cwv->exact)
		return unacknowledged >= window;
	return unacknowledged + tp->mss_cache > window || packets >= tcp_snd_cwnd(tp);
}

/* "After sending a data segment", for all that was sent since the last call. */
static void cwv_judge_sent(struct sock *sk, u32 packets)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);
	u32 unacknowledged = tp->snd_nxt - cwv->una;
	u32 sent_at = tp->lsndtime;

	if (cwv->judged == tp->snd_nxt)
		return;
	cwv->judged = tp->snd_nxt;
	if (inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder ||
	    cwv_is_full(sk, unacknowledged, packets)) {
		cwv->t_prev = sent_at;
		cwv->w_used = 0;
		return;
	}
	if (cwv->end_of_data != tp->snd_nxt)	/* more data is available */
		return;
	cwv->w_used = max(cwv->w_used, unacknowledged);
	if ((s32)(sent_at - cwv->t_prev) < (s32)cwv->rto)
		return;
	/* The sender has been application-limited. */
	cwv_remember(sk);
	cwv_set_window(sk, (cwv_usable_window(sk) + cwv->w_used) / 2);
	cwv->t_prev = sent_at;
	cwv->w_used = 0;
}

/* "The sender has been idle": halve the window for every RTO. */
static void cwv_judge_idle(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);
	u32 rto = max(inet_csk(sk)->icsk_rto, 1U);
	u32 idle = tcp_jiffies32 - tp->lsndtime;
	u32 times = idle / rto;

	if (!times || inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder)
		return;
	cwv_remember(sk);
	while (times-- && cwv_usable_window(sk) > tp->mss_cache)
		cwv_set_window(sk, cwv_usable_window(sk) / 2);
	cwv->t_prev = tcp_jiffies32;
	cwv->w_used = 0;
}

/* Asked at the start of tcp_write_xmit(), before the window is looked at. */
static u32 cwv_before_sending(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);

	cwv_judge_sent(sk, tcp_packets_in_flight(tp));
	if (tcp_send_head(sk))
		cwv_judge_idle(sk);
	cwv->una = tp->snd_una;
	cwv->end_of_data = tp->write_seq;
	cwv->rto = inet_csk(sk)->icsk_rto;
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

/* An acknowledgement: `acked` packets are no longer outstanding. */
static void cwv_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);
	u32 unacknowledged = tp->snd_nxt - cwv->una;
	u32 packets = tcp_packets_in_flight(tp) + acked;
	u32 window, more;
	bool was_full;

	cwv_judge_sent(sk, packets);
	was_full = cwv_is_full(sk, unacknowledged, packets);
	cwv->una = tp->snd_una;
	if (!was_full)
		return;
	window = cwv_window(sk);
	if (tcp_in_slow_start(tp)) {
		more = min(acked, tp->snd_ssthresh - tcp_snd_cwnd(tp));
		window += more * tp->mss_cache;
		acked -= more;
	}
	if (acked)	/* one segment a window, in bytes */
		window += max((u32)((u64)acked * tp->mss_cache * tp->mss_cache / window), 1U);
	cwv_set_window(sk, window);
}

static void cwv_start(struct sock *sk, bool exact)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);

	*cwv = (struct cwv) {
		.t_prev = tcp_jiffies32, .segments = tcp_snd_cwnd(tp), .una = tp->snd_una,
		.judged = tp->snd_nxt, .end_of_data = tp->write_seq,
		.rto = inet_csk(sk)->icsk_rto, .exact = exact,
	};
}

static void cwv_init(struct sock *sk)
{
	cwv_start(sk, false);
}

static void cwv_exact_init(struct sock *sk)
{
	cwv_start(sk, true);
}

static struct tcp_congestion_ops cwv __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "cwv",
	.owner		= THIS_MODULE,
	.init		= cwv_init,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= cwv_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.min_tso_segs	= cwv_before_sending,
};

static struct tcp_congestion_ops cwv_exact __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "cwv_exact",
	.owner		= THIS_MODULE,
	.init		= cwv_exact_init,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= cwv_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.min_tso_segs	= cwv_before_sending,
};

static int __init cwv_register(void)
{
	int error;

	BUILD_BUG_ON(sizeof(struct cwv) > ICSK_CA_PRIV_SIZE);
	error = tcp_register_congestion_control(&cwv);
	if (error)
		return error;
	error = tcp_register_congestion_control(&cwv_exact);
	if (error)
		tcp_unregister_congestion_control(&cwv);
	return error;
}

static void __exit cwv_unregister(void)
{
	tcp_unregister_congestion_control(&cwv_exact);
	tcp_unregister_congestion_control(&cwv);
}

module_init(cwv_register);
module_exit(cwv_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Congestion Window Validation of Handley, Padhye and Floyd (1999)");
