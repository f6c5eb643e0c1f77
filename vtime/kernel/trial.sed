# SPDX-License-Identifier: GPL-2.0
# Puts trial_random.c into the kernel for trials: see there (change_for_trials in compile.sh applies and
# checks it).

# drivers/char/random.c: the key follows from the trial's seed, and stays
/^static void crng_reseed(/,/^}/ s/^\textract_entropy(key, sizeof(key));$/\tif (trial_is_seeded \&\& work)\n\t\treturn;\n\tif (!trial_key(key, sizeof(key)))\n\t\textract_entropy(key, sizeof(key));/
s/^static void crng_reseed(struct work_struct \*work)$/static bool trial_is_seeded;\nstatic bool trial_key(u8 *key, size_t bytes);\n\n&/
/^device_initcall(random_sysctls_init);$/,/^#endif$/ s/^#endif$/&\n\n#include "trial_random.c"/

# include/linux/random.h
s/^#endif \/\* _LINUX_RANDOM_H \*\/$/u32 trial_random(const char *name);\nu32 trial_random_below(const char *name, u32 below);\n\n&/

# include/linux/once.h
s/^\(\tDO_ONCE[A-Z_]*(\)get_random_bytes,/\1trial_once,/
s/^#define get_random_once(.*/void trial_once(void *buffer, int bytes);\n\n&/
