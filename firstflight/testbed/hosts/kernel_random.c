/*
 * Lets a program's OpenSSL take its random numbers from the kernel, one by one.
 *
 *     LD_PRELOAD=kernel_random.so nginx …
 *
 * or loaded by a program that uses OpenSSL already. OpenSSL's own generator is a process's: what it
 * draws next depends on all that it has drawn, on the time and on the process's number. The length
 * of an ECDSA signature, and so the size of a handshake, follows from what the server draws and
 * from what it signs, which the client's numbers are a part of: both take them from here. A guest's
 * kernel restarts its numbers with each trial (vtime/kernel/trial_random.c). A program without
 * OpenSSL runs as if nothing were loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

/* struct rand_meth_st of openssl/rand.h, whose package not every machine has. */
struct method {
	int (*seed)(const void *, int);
	int (*bytes)(unsigned char *, int);
	void (*cleanup)(void);
	int (*add)(const void *, int, double);
	int (*pseudorandom)(unsigned char *, int);
	int (*status)(void);
};

/* Returns 1, or 0 where the kernel gives nothing. */
static int draw(unsigned char *place, int bytes)
{
	while (bytes > 0) {
		ssize_t drawn = getrandom(place, bytes, 0);

		if (drawn < 0 && errno == EINTR)
			continue;
		if (drawn <= 0)
			return 0;
		place += drawn;
		bytes -= drawn;
	}
	return 1;
}

static int is_ready(void)
{
	return 1;
}

static const struct method from_kernel = {
	.bytes = draw,
	.pseudorandom = draw,
	.status = is_ready,
};

__attribute__((constructor)) static void take_from_kernel(void)
{
	void *library = dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_NOLOAD);
	int (*set_method)(const struct method *) = NULL;

	if (library)
		*(void **)&set_method = dlsym(library, "RAND_set_rand_method");
	if (set_method)
		set_method(&from_kernel);
}
