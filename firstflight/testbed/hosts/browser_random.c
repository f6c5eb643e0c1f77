/*
 * Random numbers and ports of Chromium's network process that are the same in each trial. Preloaded.
 *
 * BoringSSL draws the seeds of its generators by syscall(SYS_getrandom, …) (crypto/fipsmodule/rand).
 * The length of a ClientHello follows from them (GREASE of ECH: 32 to 128 bytes), and which numbers
 * the kernel gives depends on what other processes drew before. So in that process each thread has a
 * stream of its own, by its name; other processes, and other system calls, are left alone. These
 * numbers keep no secret, in a guest that reaches no network.
 *
 * Its connections get the ports from 1024 on, one after another, as those of curl's library
 * (bound_ports.py). The kernel would give one port to two connections with different servers, and
 * what is known of a connection is known by its client's port.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NETWORK "--utility-sub-type=network.mojom.NetworkService"
#define SEED_BYTES 48	/* of AES-256 in counter mode (CTR_DRBG_ENTROPY_LEN) */
#define THREADS 256	/* names that are told apart */
#define FIRST_PORT 1024
#define PORTS (65536 - FIRST_PORT)

static uint64_t drawn[THREADS];	/* numbers, by the name of their thread */
static unsigned int ports;	/* that were tried */
static int is_network;

__attribute__((constructor)) static void look(void)
{
	static char words[1 << 16];
	int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? 0 : read(file, words, sizeof words);

	if (file >= 0)
		close(file);
	is_network = size > 0 && memmem(words, size, NETWORK, strlen(NETWORK)) != NULL;
}

/* Vigna's splitmix64. */
static uint64_t mixed(uint64_t word)
{
	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
	return word ^ (word >> 31);
}

static void draw(unsigned char *into, size_t size)
{
	char name[16] = "";
	uint64_t of_name = 0, place;

	prctl(PR_GET_NAME, name);
	for (char *each = name; *each; each++)
		of_name = mixed(of_name + (unsigned char)*each);
	place = of_name % THREADS;
	while (size) {
		uint64_t word = mixed(of_name + 0x9e3779b97f4a7c15ULL
			* __atomic_add_fetch(&drawn[place], 1, __ATOMIC_RELAXED));
		size_t piece = size < sizeof word ? size : sizeof word;

		memcpy(into, &word, piece);
		into += piece;
		size -= piece;
	}
}

long syscall(long number, ...)
{
	long word[6], answer;
	va_list more;

	va_start(more, number);
	for (int each = 0; each < 6; each++)
		word[each] = va_arg(more, long);
	va_end(more);
	if (number == SYS_getrandom && is_network && word[1] == SEED_BYTES) {
		draw((unsigned char *)word[0], word[1]);
		return word[1];
	}
	register long fourth __asm__("r10") = word[3];
	register long fifth __asm__("r8") = word[4];
	register long sixth __asm__("r9") = word[5];

	__asm__ volatile("syscall" : "=a"(answer)
		: "a"(number), "D"(word[0]), "S"(word[1]), "d"(word[2]), "r"(fourth), "r"(fifth),
		  "r"(sixth)
		: "rcx", "r11", "memory");
	if (answer < 0 && answer > -4096) {
		errno = -answer;
		return -1;
	}
	return answer;
}

ssize_t getrandom(void *into, size_t size, unsigned int flags)
{
	return syscall(SYS_getrandom, into, size, flags);
}

/* Gives a TCP socket over IPv4 that has no port the next one that is free. */
static void bind_next(int file)
{
	struct sockaddr_in own = { 0 };
	socklen_t size = sizeof own, kind_size = sizeof(int);
	int kind = 0, error = errno;

	if (getsockopt(file, SOL_SOCKET, SO_TYPE, &kind, &kind_size) || kind != SOCK_STREAM
	    || getsockname(file, (struct sockaddr *)&own, &size) || own.sin_family != AF_INET
	    || own.sin_port)
		return;
	for (int tries = 0; tries < PORTS; tries++) {
		unsigned int place = __atomic_fetch_add(&ports, 1, __ATOMIC_RELAXED);

		own.sin_port = htons(FIRST_PORT + place % PORTS);
		if (!bind(file, (struct sockaddr *)&own, sizeof own) || errno != EADDRINUSE)
			break;
	}
	errno = error;	/* connect() tells what is wrong */
}

int connect(int file, const struct sockaddr *to, socklen_t size)
{
	if (is_network && to && to->sa_family == AF_INET)
		bind_next(file);
	return syscall(SYS_connect, file, to, size);
}
