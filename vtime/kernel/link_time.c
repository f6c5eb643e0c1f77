// SPDX-License-Identifier: GPL-2.0
/*
 * What a packet costs where nobody limited a link, and how much a machine's times vary. For
 * commands (./run.sh -- …); called by sch_netem.c and sch_api.c, and by command.c.
 *
 * In virtual time computing takes none. A netem with a delay and without a rate would then hand on
 * a whole window at one moment. No network does that, and TCP is not made for it: its reader finds
 * all of a round trip waiting, takes that for a slow reader (tcp_rcv_space_adjust: what it copied
 * less what waits is nothing), and the receive window never grows. So such a link is busy for
 * link_packet_ns after each segment, and the next one follows that. The first one is not late, nor
 * is any that comes after a pause: a ping still takes what was set. 1 µs is about what Linux needs
 * for a segment on one processor, and a full one takes 1.2 µs at 10 Gbit/s.
 *
 * Where a rate is set, nothing changes: in netem itself, in the qdisc above it (HTB, as Mininet's
 * TCLink has it) or in the one below it.
 *
 * A machine's times are never the same twice. For runs that show how far a result depends on that,
 * the timers of all qdiscs are late by up to link_noise_ns, and a program's start takes up to
 * link_start_noise_us longer. Both follow from the seed. By default there is neither.
 */
#include <linux/kstrtox.h>
#include <linux/skbuff.h>
#include <net/link_time.h>
#include <net/pkt_sched.h>
#include <init.h>

static unsigned long long link_packet_ns = 1000;
static unsigned long long link_noise_ns, link_start_noise_us;
static u64 link_state;	/* of the noise: Vigna's splitmix64, as command_random() */

/* By their names (tc's kinds): what keeps packets to a rate. */
static bool link_has_rate(const struct Qdisc *sch)
{
	static const char * const kinds[] = { "htb", "tbf", "hfsc", "cake", "cbs" };
	unsigned int i;

	for (i = 0; sch && i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(sch->ops->id, kinds[i]))
			return true;
	return false;
}

/* Whether a qdisc above or right below limits what this one sends. In dev_queue_xmit(): RCU. */
static bool link_is_limited(struct Qdisc *sch, const struct Qdisc *below)
{
	if (link_has_rate(below))
		return true;
	while (sch && sch->parent != TC_H_ROOT) {
		sch = qdisc_lookup_rcu(qdisc_dev(sch), TC_H_MAJ(sch->parent));
		if (link_has_rate(sch))
			return true;
	}
	return false;
}

/*
 * When a packet that comes to netem now leaves for its delay. busy_until: of this netem, ns; moved
 * on. below: the qdisc to which netem hands on, NULL for none.
 */
u64 link_time(struct Qdisc *sch, const struct Qdisc *below, const struct sk_buff *skb, u64 now,
	      u64 *busy_until)
{
	u64 start = max(now, *busy_until);

	if (!link_packet_ns || link_is_limited(sch, below))
		return now;
	*busy_until = start + link_packet_ns * max_t(u64, 1, skb_shinfo(skb)->gso_segs);
	return start;
}

/* A number from 0 to a most. */
static u64 link_draw(u64 most)
{
	u64 word = link_state += 0x9e3779b97f4a7c15ULL;

	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
	return (word ^ (word >> 31)) % (most + 1);
}

/* By how much a qdisc's timer is late, ns. */
u64 link_noise(void)
{
	return link_noise_ns ? link_draw(link_noise_ns) : 0;
}

/* By how much a program's start takes longer, µs. */
u64 link_start_noise(void)
{
	return link_start_noise_us ? link_draw(link_start_noise_us) : 0;
}

/* Called with the seed of all that is random. */
void link_seed(u64 seed)
{
	link_state = ~seed;
}

static int __init link_read(char *word, int *add, unsigned long long *number)
{
	*add = 0;
	if (kstrtoull(word, 10, number))
		pr_emerg("first-flight: not a number: %s\n", word);
	return 0;
}

static int __init link_setup_packet(char *word, int *add)
{
	return link_read(word, add, &link_packet_ns);
}
__uml_setup("packet_cost_ns=", link_setup_packet,
"packet_cost_ns=<number>\n"
"    How long a netem without a rate is busy after a segment.\n\n");

static int __init link_setup_noise(char *word, int *add)
{
	return link_read(word, add, &link_noise_ns);
}
__uml_setup("packet_noise_ns=", link_setup_noise,
"packet_noise_ns=<number>\n"
"    By how much timers of qdiscs are late, at most.\n\n");

static int __init link_setup_start(char *word, int *add)
{
	return link_read(word, add, &link_start_noise_us);
}
__uml_setup("start_noise_us=", link_setup_start,
"start_noise_us=<number>\n"
"    By how much the start of a program takes longer, at most.\n\n");
