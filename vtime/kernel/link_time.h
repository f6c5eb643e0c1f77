/* SPDX-License-Identifier: GPL-2.0 */
/* What a packet costs in a netem, and a machine's noise: see link_time.c. */
#ifndef LINK_TIME_H
#define LINK_TIME_H

#include <linux/types.h>

struct sk_buff;

u64 link_time(const struct sk_buff *skb, u64 now, u64 *busy_until);
u64 link_noise(void);
u64 link_start_noise(void);
void link_seed(u64 seed);

#endif
