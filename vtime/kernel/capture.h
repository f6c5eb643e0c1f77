/* SPDX-License-Identifier: GPL-2.0 */
/* What capture.c wants to hear of, called from where command.sed puts it. */
#ifndef FIRST_FLIGHT_CAPTURE_H
#define FIRST_FLIGHT_CAPTURE_H

struct net;
struct net_device;
struct netlink_ext_ack;
struct nlmsghdr;
struct sk_buff;
struct sock;

void capture_queued(struct sk_buff *skb, struct net_device *dev);
void capture_accepted(struct sk_buff *skb);
void capture_sent(struct sk_buff *skb, struct net_device *dev);
void capture_dropped(struct sk_buff *skb, unsigned int reason);
void capture_settings(struct net_device *dev, const void *messages, unsigned int bytes);
void capture_requested(struct net *net, struct nlmsghdr *request);
void capture_answered(struct net *net, struct nlmsghdr *request, int error,
		      const struct netlink_ext_ack *extack);
void capture_opened(const struct sock *sk);
void capture_qdiscs(struct net_device *dev);	/* in sch_api.c: calls capture_settings() */

#endif
