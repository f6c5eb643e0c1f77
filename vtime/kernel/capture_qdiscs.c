// SPDX-License-Identifier: GPL-2.0
/* The part of capture.c that reads qdiscs and classes: part of net/sched/sch_api.c. */

struct capture_walk {
	struct qdisc_walker w;	/* the first, as its callers know it */
	struct sk_buff *skb;
};

static int capture_class(struct Qdisc *q, unsigned long cl, struct qdisc_walker *walker)
{
	struct capture_walk *walk = container_of(walker, struct capture_walk, w);

	return tc_fill_tclass(walk->skb, q, cl, 0, 0, 0, RTM_NEWTCLASS, NULL);
}

static void capture_qdisc(struct sk_buff *skb, struct Qdisc *q)
{
	struct capture_walk walk = { .w.fn = capture_class, .skb = skb };

	if (!q || tc_qdisc_dump_ignore(q, false, NULL))
		return;
	tc_fill_qdisc(skb, q, q->parent, 0, 0, 0, RTM_NEWQDISC, NULL);
	/* Others have one class for each connection. */
	if (q->ops->cl_ops && (!strcmp(q->ops->id, "htb") || !strcmp(q->ops->id, "hfsc")))
		q->ops->cl_ops->walk(q, &walk.w);
}

/* Write how all qdiscs of a device are set, and what they have counted; the RTNL is held. */
void capture_qdiscs(struct net_device *dev)
{
	struct sk_buff *skb = alloc_skb(24576, GFP_KERNEL);
	struct Qdisc *root = rtnl_dereference(dev->qdisc), *q;
	int bucket;

	if (!skb)
		return;
	capture_qdisc(skb, root);
	if (root && qdisc_dev(root))
		hash_for_each(qdisc_dev(root)->qdisc_hash, bucket, q, hash)
			if (q != root)
				capture_qdisc(skb, q);
	capture_settings(dev, skb->data, skb->len);
	consume_skb(skb);
}
