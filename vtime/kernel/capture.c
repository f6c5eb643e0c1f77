// SPDX-License-Identifier: GPL-2.0
/*
 * Writes what passes every Ethernet device of every network namespace into a file of the machine's:
 * pcapng (draft-ietf-opsawg-pcapng), which Wireshark reads. For commands (./run.sh --capture -- …).
 *
 * In the kernel, so that nothing in the guest runs, waits or sees anything else because of it: the
 * clock stands still meanwhile, and a command does the same with it and without. Each packet is
 * written once for each device that sends it, when it leaves the device's queue; or when it is
 * dropped there. What pcapng has no field for stands in options and blocks for local use:
 *
 * option OPTION_QUEUE of a packet: when it came to the queue, and what became of it.
 * block BLOCK: how a device is set (DEVICE), its qdiscs and classes with their counters, in
 *     netlink's own words (SETTINGS), what was dropped elsewhere (DROPS), that the file was full
 *     (FULL), a qdisc or class that the kernel refused (REFUSED), whose command changes queues next
 *     (ASKED), how a program that sets up networks ended (COMMAND), what one complained of (SAID),
 *     with which window an end of a TCP connection begins (OPENED).
 *
 * vtime/command reads none of it: wire/capture/pcapng.py does.
 */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/reboot.h>
#include <linux/rtnetlink.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <linux/uaccess.h>
#include <net/capture.h>
#include <net/dropreason.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>
#include <net/tcp.h>
#include <init.h>
#include <os.h>

#define FILE_NAME "capture.pcapng"	/* in the folder in which the guest was started */
#define SNAP_BYTES 128			/* of a packet: headers with all their options */
#define BLOCK 0x80004646u
#define OPTION_QUEUE 0x8001
#define MOST_BLOCK 65536
#define BUFFER_BYTES (1 << 20)
#define FLUSH_NS 1000000000ULL
#define MOST_DEVICES 65536
#define MOST_DROPS 1024
#define ACCEPTED BIT_ULL(63)

enum { DEVICE = 1, SETTINGS, DROPS, FULL, REFUSED, ASKED, COMMAND, SAID, OPENED };

static int capture_fd = -1;
static u64 capture_room;		/* bytes that may still be written */
static u8 capture_buffer[BUFFER_BYTES];
static unsigned int capture_filled, capture_block;
static u64 capture_flushed, capture_packets;
static u32 capture_devices;
static const struct net_device *capture_known[MOST_DEVICES];	/* those that are there */
static struct {
	u32 device, reason;
	u64 count;
} capture_drops[MOST_DROPS];

/* In command.c. The time of the day, as programs in the guest see it; reading it moves nothing. */
unsigned long long command_now(void);
void command_packet(const char *device);
void command_queued(const struct sk_buff *skb);

static void capture_close(const char *why)
{
	os_close_file(capture_fd);
	capture_fd = -1;
	pr_emerg("first-flight: capture: %s\n", why);
}

static void capture_flush(void)
{
	unsigned int done = 0;

	capture_flushed = command_now();
	while (capture_fd >= 0 && done < capture_filled) {
		int count = os_write_file(capture_fd, capture_buffer + done, capture_filled - done);

		if (count <= 0)
			capture_close("the file could not be written any further");
		else
			done += count;
	}
	capture_filled = 0;
}

static void put(const void *bytes, unsigned int count)
{
	memcpy(capture_buffer + capture_filled, bytes, count);
	capture_filled += count;
}

static void put_u16(u16 number) { put(&number, sizeof(number)); }
static void put_u32(u32 number) { put(&number, sizeof(number)); }
static void put_u64(u64 number) { put(&number, sizeof(number)); }

static void pad(void)
{
	while ((capture_filled - capture_block) % 4)
		capture_buffer[capture_filled++] = 0;
}

static void put_option(u16 code, const void *bytes, u16 count)
{
	put_u16(code);
	put_u16(count);
	put(bytes, count);
	pad();
}

static void begin(u32 type)
{
	if (capture_filled + MOST_BLOCK > BUFFER_BYTES ||
	    command_now() - capture_flushed > FLUSH_NS)
		capture_flush();
	capture_block = capture_filled;
	put_u32(type);
	put_u32(0);	/* its size, once it is known */
}

static void end(void)
{
	u32 size;

	pad();
	size = capture_filled + sizeof(size) - capture_block;
	put_u32(size);
	memcpy(capture_buffer + capture_block + sizeof(u32), &size, sizeof(size));
	capture_room -= min_t(u64, capture_room, size);
}

/* A block for local use, up to what belongs to its kind. */
static void begin_own(u16 kind, u32 device)
{
	begin(BLOCK);
	put_u16(kind);
	put_u16(0);
	put_u32(device);
	put_u64(command_now());
}

static bool capture_is_ethernet(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER && !(dev->flags & IFF_LOOPBACK);
}

static bool capture_wants(const struct net_device *dev)
{
	return capture_fd >= 0 && capture_is_ethernet(dev) &&
		(dev->capture_id || capture_devices < MOST_DEVICES);
}

/* The number of a device in the file, from 0 on; it is given one where it has none. */
static u32 capture_device(struct net_device *dev)
{
	static const u8 nanoseconds = 9;

	if (!dev->capture_id) {
		dev->capture_id = ++capture_devices;
		begin(1);	/* Interface Description Block */
		put_u16(1);	/* LINKTYPE_ETHERNET */
		put_u16(0);
		put_u32(SNAP_BYTES);
		put_option(2, dev->name, strlen(dev->name));
		put_option(9, &nanoseconds, 1);
		put_u32(0);
		end();
	}
	capture_known[dev->capture_id - 1] = dev;
	return dev->capture_id - 1;
}

/* Whether a packet still has its device: the field has other uses, too. */
static bool capture_knows(const struct net_device *dev)
{
	u32 i;

	for (i = 0; i < capture_devices; i++)
		if (dev && capture_known[i] == dev)
			return true;
	return false;
}

static u32 capture_peer(struct net_device *dev)
{
	const struct rtnl_link_ops *ops = dev->rtnl_link_ops;
	struct net_device *peer;

	if (!ops || !ops->get_link_net)
		return U32_MAX;
	peer = __dev_get_by_index(ops->get_link_net(dev), dev_get_iflink(dev));
	return peer && capture_wants(peer) ? capture_device(peer) : U32_MAX;
}

/* How a device is set, after a change of it; the RTNL is held. */
static void capture_describe(struct net_device *dev)
{
	const struct rtnl_link_ops *ops = dev->rtnl_link_ops;
	const char *kind = ops ? ops->kind : "";
	struct net_device *master;
	u32 device, peer, queue_packets = dev->tx_queue_len;
	unsigned long flags;

	if (!capture_wants(dev))
		return;
	local_irq_save(flags);
	device = capture_device(dev);
	peer = capture_peer(dev);
	master = netdev_master_upper_dev_get(dev);
	begin_own(DEVICE, device);
	put_u32(dev_net(dev)->ns.inum);
	put_u32(net_eq(dev_net(dev), &init_net));
	put_u32(peer);
	put_u32(dev->mtu);
	put_u32(!!(dev->flags & IFF_UP));
	put_u32(!!(dev->features & NETIF_F_TSO) | !!(dev->features & NETIF_F_GSO) << 1 |
		!!(dev->features & NETIF_F_GRO) << 2 | !!(dev->features & NETIF_F_CSUM_MASK) << 3);
	put_option(1, dev->name, strlen(dev->name));
	put_option(2, kind, strlen(kind));
	put_option(3, master ? master->name : "", master ? strlen(master->name) : 0);
	put_option(4, &queue_packets, sizeof(queue_packets));
	put_u32(0);
	end();
	local_irq_restore(flags);
}

/* Called by capture_qdiscs(), with RTM_NEWQDISC and RTM_NEWTCLASS messages; the RTNL is held. */
void capture_settings(struct net_device *dev, const void *messages, unsigned int bytes)
{
	unsigned long flags;
	u32 device;

	if (!capture_wants(dev) || bytes > MOST_BLOCK / 2)
		return;
	local_irq_save(flags);
	device = capture_device(dev);
	begin_own(SETTINGS, device);
	put_u32(bytes);
	put(messages, bytes);
	end();
	local_irq_restore(flags);
}

#include "capture_commands.c"

/* A request by rtnetlink is about to be carried out: a queue that it replaces takes what it has
 * counted along. The RTNL is held. */
void capture_requested(struct net *net, struct nlmsghdr *request)
{
	struct tcmsg *tc = nlmsg_data(request);
	struct net_device *dev;

	if (request->nlmsg_type != RTM_NEWQDISC && request->nlmsg_type != RTM_DELQDISC &&
	    request->nlmsg_type != RTM_NEWTCLASS && request->nlmsg_type != RTM_DELTCLASS)
		return;
	dev = nlmsg_len(request) < sizeof(*tc) ? NULL : __dev_get_by_index(net, tc->tcm_ifindex);
	if (dev && capture_is_ethernet(dev)) {
		capture_qdiscs(dev);
		capture_asks(dev);
	}
}

/* A request by rtnetlink was answered; the RTNL is held. */
void capture_answered(struct net *net, struct nlmsghdr *request, int error,
		      const struct netlink_ext_ack *extack)
{
	const char *said = extack && extack->_msg ? extack->_msg : "";
	struct tcmsg *tc = nlmsg_data(request);
	char kind[IFNAMSIZ] = "";
	struct net_device *dev;
	struct nlattr *name;
	unsigned long flags;

	if (capture_fd < 0 || error >= 0 || error == -EAGAIN ||
	    (request->nlmsg_type != RTM_NEWQDISC && request->nlmsg_type != RTM_NEWTCLASS) ||
	    nlmsg_len(request) < sizeof(*tc))
		return;
	dev = __dev_get_by_index(net, tc->tcm_ifindex);
	name = nlmsg_find_attr(request, sizeof(*tc), TCA_KIND);
	if (!dev || !capture_wants(dev))
		return;
	if (name)
		nla_strscpy(kind, name, sizeof(kind));
	local_irq_save(flags);
	begin_own(REFUSED, capture_device(dev));
	put_u32(-error);
	put_option(1, kind, strlen(kind));
	put_option(2, said, min_t(size_t, strlen(said), 200));
	put_u32(0);
	end();
	local_irq_restore(flags);
}

/* A packet was given to a device, and comes to its queue if it has one. */
void capture_queued(struct sk_buff *skb, struct net_device *dev)
{
	command_queued(skb);
	skb->capture_number = 0;
	if (!capture_wants(dev))
		return;
	skb->capture_device = capture_device(dev);
	skb->capture_ns = command_now();
	skb->capture_number = ++capture_packets;
}

/* The root qdisc took it; netem says so of what it loses at random, too. */
void capture_accepted(struct sk_buff *skb)
{
	if (skb->capture_number)
		skb->capture_number |= ACCEPTED;
}

static void capture_write(struct sk_buff *skb, u32 device, u32 reason)
{
	unsigned int tag = skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;
	unsigned int kept = min_t(unsigned int, skb->len, SNAP_BYTES - VLAN_HLEN);
	u64 now = command_now();
	u8 *place;

	begin(6);	/* Enhanced Packet Block */
	put_u32(device);
	put_u32(now >> 32);
	put_u32((u32)now);
	put_u32(kept + tag);
	put_u32(skb->len + tag);
	place = capture_buffer + capture_filled;
	if (skb_copy_bits(skb, 0, place, kept))
		memset(place, 0, kept);
	if (tag && kept >= 2 * ETH_ALEN) {
		__be16 words[] = { skb->vlan_proto, htons(skb_vlan_tag_get(skb)) };

		memmove(place + 2 * ETH_ALEN + tag, place + 2 * ETH_ALEN, kept - 2 * ETH_ALEN);
		memcpy(place + 2 * ETH_ALEN, words, sizeof(words));
	}
	capture_filled += kept + tag;
	pad();
	put_u16(2);	/* epb_flags: outbound */
	put_u16(4);
	put_u32(2);
	put_u16(OPTION_QUEUE);
	put_u16(32);
	put_u64(skb->capture_number ? skb->capture_ns : now);
	put_u64(skb->capture_number & ~ACCEPTED);
	put_u32(!!(skb->capture_number & ACCEPTED));
	put_u32(reason);
	put_u32(skb_shinfo(skb)->gso_size);
	put_u32(skb_shinfo(skb)->gso_segs);
	if (reason)
		put_option(1, "dropped in the queue", 20);
	put_u32(0);
	end();
	if (!capture_room) {
		begin_own(FULL, 0);
		end();
		capture_flush();
		capture_close("the file is full");
	}
}

/* A packet has left the queue, or never came to one. */
void capture_sent(struct sk_buff *skb, struct net_device *dev)
{
	unsigned long flags;

	if (capture_is_ethernet(dev))
		command_packet(dev->name);
	if (!capture_wants(dev))
		return;
	local_irq_save(flags);
	capture_write(skb, capture_device(dev), 0);
	skb->capture_number = 0;
	local_irq_restore(flags);
}

/* A packet is no more, and did not come to where it was sent. */
void capture_dropped(struct sk_buff *skb, unsigned int reason)
{
	unsigned long flags;
	unsigned int i;

	if (capture_fd < 0 || (!skb->capture_number && reason <= SKB_DROP_REASON_NOT_SPECIFIED))
		return;
	local_irq_save(flags);
	if (skb->capture_number) {
		capture_write(skb, skb->capture_device, reason);
		skb->capture_number = 0;
	} else if (capture_knows(skb->dev)) {
		u32 device = skb->dev->capture_id - 1;

		for (i = 0; i < MOST_DROPS && capture_drops[i].count; i++)
			if (capture_drops[i].device == device && capture_drops[i].reason == reason)
				break;
		if (i < MOST_DROPS) {
			capture_drops[i].device = device;
			capture_drops[i].reason = reason;
			capture_drops[i].count++;
		}
	}
	local_irq_restore(flags);
}

static int capture_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);

	if (!capture_is_ethernet(dev))
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UNREGISTER:
		if (dev->capture_id)
			capture_known[dev->capture_id - 1] = NULL;
		break;
	case NETDEV_GOING_DOWN:
		capture_qdiscs(dev);
		break;
	case NETDEV_UP:
		capture_describe(dev);
		capture_qdiscs(dev);
		break;
	case NETDEV_DOWN:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGE_TX_QUEUE_LEN:
	case NETDEV_FEAT_CHANGE:
	case NETDEV_CHANGENAME:
	case NETDEV_CHANGEUPPER:
		capture_describe(dev);
	}
	return NOTIFY_DONE;
}

static struct notifier_block capture_events = { .notifier_call = capture_event };

static const char *capture_reason(u32 reason)
{
	u32 subsys = (reason & SKB_DROP_REASON_SUBSYS_MASK) >> SKB_DROP_REASON_SUBSYS_SHIFT;
	u32 number = reason & ~SKB_DROP_REASON_SUBSYS_MASK;
	const struct drop_reason_list *list = subsys >= SKB_DROP_REASON_SUBSYS_NUM ? NULL :
		rcu_dereference_check(drop_reasons_by_subsys[subsys], 1);

	return list && number < list->n_reasons && list->reasons[number] ?
		list->reasons[number] : "";
}

static int capture_end(struct notifier_block *block, unsigned long event, void *unused)
{
	struct net_device *dev;
	unsigned long flags;
	struct net *net;
	unsigned int i;

	if (capture_fd < 0)
		return NOTIFY_DONE;
	rtnl_lock();
	for_each_net(net)
		for_each_netdev(net, dev)
			if (capture_wants(dev))
				capture_qdiscs(dev);
	rtnl_unlock();
	local_irq_save(flags);
	for (i = 0; i < MOST_DROPS && capture_drops[i].count; i++) {
		const char *reason = capture_reason(capture_drops[i].reason);

		begin_own(DROPS, capture_drops[i].device);
		put_u64(capture_drops[i].count);
		put_option(1, reason, strlen(reason));
		put_u32(0);
		end();
	}
	capture_flush();
	local_irq_restore(flags);
	return NOTIFY_DONE;
}

static struct notifier_block capture_ends = { .notifier_call = capture_end };

static int __init capture_init(void)
{
	static const char program[] = "First Flight";

	/* Qdiscs are read in any case: what reads them may let others run. */
	register_netdevice_notifier(&capture_events);
	if (!capture_room)
		return 0;
	capture_fd = os_open_file(FILE_NAME, of_write(OPENFLAGS()), 0);
	if (capture_fd < 0) {
		pr_emerg("first-flight: capture: the file could not be opened\n");
		return 0;
	}
	begin(0x0A0D0D0A);	/* Section Header Block */
	put_u32(0x1A2B3C4D);
	put_u32(1);		/* version 1.0 */
	put_u64(U64_MAX);	/* of unknown length */
	put_option(4, program, sizeof(program) - 1);
	put_u32(0);
	end();
	register_reboot_notifier(&capture_ends);
	return 0;
}
late_initcall(capture_init);

static int __init capture_setup(char *word, int *add)
{
	*add = 0;
	if (kstrtoull(word, 10, &capture_room))
		capture_room = 0;
	return 0;
}
__uml_setup("capture=", capture_setup,
"capture=<bytes>\n"
"    Packets of all devices go to capture.pcapng, at most so many bytes.\n\n");
