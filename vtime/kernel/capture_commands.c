// SPDX-License-Identifier: GPL-2.0
/*
 * The part of capture.c that names who has set up the network: the commands that asked for queues,
 * how such programs ended, and what they and others wrote to their standard error. Scripts throw
 * all of this away. And with which window a connection begins. Part of net/core/capture.c.
 */
#define COMMAND_BYTES 400	/* of a command's words */
#define SAID_BYTES 200
#define MOST_COMMANDS 20000
#define MOST_SAID 4000
#define MOST_OPENED 20000

/* Programs that set up networks, by the names that their processes have. */
static const char *const capture_tools[] = {
	"tc", "ip", "sysctl", "ifconfig", "route", "ethtool", "bridge", "brctl", "ovs-vsctl",
	"ovs-ofctl", "iptables", "ip6tables", "nft",
};

/* What is written down of other programs: shells, and Mininet. */
static const char *const capture_complaints[] = {
	"not found", "nvalid", "llegal", "outside supported range", "RTNETLINK", "annot find device",
};

static unsigned int capture_commands, capture_said_lines, capture_opened_ends;

static bool capture_is_tool(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(capture_tools); i++)
		if (!strcmp(current->comm, capture_tools[i]))
			return true;
	return false;
}

/* The words of the process that runs, with spaces between them; 0 bytes where it has none. */
static unsigned int capture_words(char *words)
{
	int i, count = get_cmdline(current, words, COMMAND_BYTES);

	while (count > 0 && !words[count - 1])
		count--;
	for (i = 0; i < count; i++)
		if (!words[i])
			words[i] = ' ';
	return max(count, 0);
}

static u32 capture_namespace(bool *is_root)
{
	const struct nsproxy *proxy = current->nsproxy;

	*is_root = !proxy || net_eq(proxy->net_ns, &init_net);
	return proxy ? proxy->net_ns->ns.inum : init_net.ns.inum;
}

/* Who asks for the change of a queue that comes next; the RTNL is held. */
static void capture_asks(struct net_device *dev)
{
	char words[COMMAND_BYTES];
	unsigned int count;
	unsigned long flags;

	if (!capture_wants(dev) || capture_commands >= MOST_COMMANDS)
		return;
	capture_commands++;
	count = capture_words(words);
	local_irq_save(flags);
	begin_own(ASKED, capture_device(dev));
	put_option(1, words, count);
	put_u32(0);
	end();
	local_irq_restore(flags);
}

/* A process ends; code: as wait() has it. */
void capture_exits(long code)
{
	char words[COMMAND_BYTES];
	unsigned int count;
	unsigned long flags;
	bool is_root;
	u32 space;

	if (capture_fd < 0 || !current->mm || !thread_group_leader(current) ||
	    !capture_is_tool() || capture_commands >= MOST_COMMANDS)
		return;
	capture_commands++;
	count = capture_words(words);
	space = capture_namespace(&is_root);
	local_irq_save(flags);
	begin_own(COMMAND, space);
	put_u32(is_root);
	put_u32(current->pid);
	put_u32(code);
	put_option(1, words, count);
	put_u32(0);
	end();
	local_irq_restore(flags);
}

/* A process writes to its standard error. */
void capture_said(unsigned int fd, const char __user *text, size_t bytes)
{
	char said[SAID_BYTES + 1];
	unsigned long flags;
	bool is_root, is_kept;
	unsigned int i;
	u32 space;

	bytes = min_t(size_t, bytes, SAID_BYTES);
	if (fd != 2 || capture_fd < 0 || !bytes || capture_said_lines >= MOST_SAID ||
	    copy_from_user(said, text, bytes))
		return;
	said[bytes] = 0;
	is_kept = capture_is_tool();
	for (i = 0; i < ARRAY_SIZE(capture_complaints); i++)
		is_kept |= !!strstr(said, capture_complaints[i]);
	if (!is_kept)
		return;
	capture_said_lines++;
	space = capture_namespace(&is_root);
	local_irq_save(flags);
	begin_own(SAID, space);
	put_u32(is_root);
	put_u32(current->pid);
	put_option(1, said, bytes);
	put_option(2, current->comm, strlen(current->comm));
	put_u32(0);
	end();
	local_irq_restore(flags);
}

/* A TCP connection is established at this end; its congestion window is that of its route. */
void capture_opened(const struct sock *sk)
{
	const struct net *net = sock_net(sk);
	unsigned long flags;

	if (capture_fd < 0 || capture_opened_ends >= MOST_OPENED)
		return;
	capture_opened_ends++;
	local_irq_save(flags);
	begin_own(OPENED, net->ns.inum);
	put_u32(net_eq(net, &init_net));
	put_u32(tcp_snd_cwnd(tcp_sk(sk)));
	end();
	local_irq_restore(flags);
}
