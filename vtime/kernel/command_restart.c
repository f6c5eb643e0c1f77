// SPDX-License-Identifier: GPL-2.0
/*
 * Lets random numbers begin anew: part of drivers/char/random.c. Who starts a command asks for it.
 *
 * How many were drawn before depends on where the command is: each file in memory takes one, such
 * as the folders above the command's own.
 */
bool command_random(void *buffer, size_t bytes);	/* in command.c */

void command_restart_random(void)
{
	u8 key[BLAKE2S_HASH_SIZE];
	unsigned long flags;

	if (!command_random(key, sizeof(key)))
		return;
	spin_lock_irqsave(&input_pool.lock, flags);
	blake2s_init_key(&input_pool.hash, BLAKE2S_HASH_SIZE, key, sizeof(key));
	spin_unlock_irqrestore(&input_pool.lock, flags);
	crng_reseed(NULL);
}
