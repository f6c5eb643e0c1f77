/* SPDX-License-Identifier: GPL-2.0 */
/* Headers that most of the kernel's files include, read once for all of them: see cc.sh. */
#include <linux/kconfig.h>
#include <linux/compiler_types.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/mm.h>
#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/seq_file.h>
#include <linux/proc_fs.h>
#include <linux/netdevice.h>
#include <net/sock.h>
