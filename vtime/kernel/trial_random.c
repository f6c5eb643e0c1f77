// SPDX-License-Identifier: GPL-2.0
/*
 * Random numbers that begin again with each trial. Part of drivers/char/random.c, in the kernel for
 * trials; that for commands has command.c.
 *
 * Who starts a trial writes its seed to kernel.trial_seed. From there on all that is random follows
 * from that number, and from nothing that happened before: neither the trials that this guest ran,
 * nor the machine's own numbers. They are a public function of the seed, and keep no secret.
 *
 * What decides on packets (trial.sed names the files) draws from a stream of its own, by the file's
 * name: BBR's phase is then the same whatever cake or the neighbours' table draw meanwhile, and the
 * same on a kernel with another patch. All else draws from the kernel's own generator, which gets
 * its key from the seed and is not given another one later. What is drawn once per boot, such as
 * the keys of hash tables, is the same in every guest.
 */
#define TRIAL_STREAMS 64	/* files that draw */

static unsigned int trial_seed;
static bool trial_is_seeded;
static struct {
	const char *name;
	u64 drawn;	/* numbers since the seed was written */
} trial_streams[TRIAL_STREAMS];

/* Vigna's splitmix64. */
static u64 trial_mixed(u64 word)
{
	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
	return word ^ (word >> 31);
}

/* Number `drawn` of what follows from a name and a seed. */
static u64 trial_number(const char *name, u64 seed, u64 drawn)
{
	u64 state = seed;

	while (*name)
		state = trial_mixed(state + *name++);
	return trial_mixed(state + (drawn + 1) * 0x9e3779b97f4a7c15ULL);
}

/* A random number for the file of that name; the kernel's own while no trial has begun. */
u32 trial_random(const char *name)
{
	unsigned long flags;
	u64 drawn = 0;
	int each;

	if (!trial_is_seeded)
		return get_random_u32();
	local_irq_save(flags);
	for (each = 0; each < TRIAL_STREAMS - 1 && trial_streams[each].name; each++)
		if (!strcmp(trial_streams[each].name, name))
			break;
	trial_streams[each].name = name;
	drawn = trial_streams[each].drawn++;
	local_irq_restore(flags);
	return trial_number(name, trial_seed, drawn) >> 32;
}
EXPORT_SYMBOL(trial_random);

/* The same below a number, which is not 0. */
u32 trial_random_below(const char *name, u32 below)
{
	return ((u64)trial_random(name) * below) >> 32;
}
EXPORT_SYMBOL(trial_random_below);

/* Fills what is drawn once per boot. */
void trial_once(void *buffer, int bytes)
{
	u8 *place = buffer;
	int each;

	for (each = 0; each < bytes; each++)
		place[each] = trial_number("once", 0, each);
}
EXPORT_SYMBOL(trial_once);

/* The generator's next key, in place of what the machine gives; false while no trial has begun. */
static bool trial_key(u8 *key, size_t bytes)
{
	size_t each;

	for (each = 0; trial_is_seeded && each < bytes; each++)
		key[each] = trial_number("key", trial_seed, each);
	return trial_is_seeded;
}

static int trial_restart(const struct ctl_table *table, int write, void *buffer, size_t *bytes,
			 loff_t *place)
{
	int error = proc_douintvec(table, write, buffer, bytes, place), each;

	if (error || !write)
		return error;
	for (each = 0; each < TRIAL_STREAMS; each++)
		trial_streams[each].drawn = 0;
	trial_is_seeded = true;
	crng_reseed(NULL);
	return 0;
}

static const struct ctl_table trial_table[] = {
	{
		.procname = "trial_seed",
		.data = &trial_seed,
		.maxlen = sizeof(trial_seed),
		.mode = 0644,
		.proc_handler = trial_restart,
	},
};

static int __init trial_init(void)
{
	register_sysctl("kernel", trial_table);
	return 0;
}
subsys_initcall(trial_init);
