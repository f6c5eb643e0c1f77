// SPDX-License-Identifier: GPL-2.0
/*
 * What a packet costs in a netem, and how much a machine's times vary. For commands
 * (./run.sh -- …); called by sch_netem.c and sch_api.c, and by command.c.
 *
 * In virtual time computing takes none. A netem with a delay and without a rate would then hand on
 * a whole window at one moment. No network does that, and TCP is not made for it: its reader finds
 * all of a round trip waiting, takes that for a slow reader (tcp_rcv_space_adjust: what it copied
 * less what waits is nothing), and the receive window never grows. So a netem is busy for
 * link_packet_ns after each segment, and the next one follows that. The first one is not late, nor
 * is any that comes after a pause: a ping still takes what was set. 1 µs is about what Linux needs
 * for a segment on one processor, and a full one takes 1.2 µs at 10 Gbit/s.
 *
 * Whether a rate is set above or below does not matter. A bucket that is empty keeps packets apart
 * by more than that, and then the cost does not show. One that is full keeps nothing: under a netem
 * a bucket of 5 MB would pass a whole window at one moment. netem's own rate has no bucket.
 *
 * A machine's times are never the same twice. For runs that show how far a result depends on that,
 * the timers of all qdiscs are late by up to link_noise_ns, and a program's start takes up to
 * link_start_noise_us longer. Both follow from the seed. By default there is neither.
 */
#include <linux/kstrtox.h>
#include <linux/skbuff.h>
#include <net/link_time.h>
#include <init.h>

static unsigned long long link_packet_ns = 1000;
static unsigned long long link_noise_ns, link_start_noise_us;
static u64 link_state;	/* of the noise: Vigna's splitmix64, as command_random() */

/* When a packet that comes to netem now leaves for its delay. busy_until: of this netem, ns. */
u64 link_time(const struct sk_buff *skb, u64 now, u64 *busy_until)
{
	u64 start = max(now, *busy_until);

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
"    How long a netem without a rate of its own is busy after a segment.\n\n");

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
