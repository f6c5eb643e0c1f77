/*
 * Makes a fork server of curl: a process that has linked its forty libraries once, and forks
 * for each command line instead of linking them again.
 *
 *     LD_PRELOAD=fork_server.so LD_BIND_NOW=1 curl
 *
 * It writes an int 0 when it is ready. Then it reads requests from standard input: the length in
 * bytes, an unsigned int, and as many bytes of words, a NUL behind each: where standard output
 * goes, where standard error goes, argv[0], argv[1], and so on. A child runs curl's own main()
 * with these arguments, and the answer is an int, its status as waitpid() tells it. Integers are
 * the machine's own. The end of standard input ends the server.
 *
 * A program of another name, as a wrapper that starts curl, runs as if nothing were loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "curl"
#define MOST_BYTES (1u << 20)	/* of a request */

typedef int main_function(int, char **, char **);
typedef void hook(void);
static main_function *main_of_program;

/* Returns 0 if all bytes were read, -1 at the end of standard input or on an error. */
static int read_all(void *bytes, size_t length)
{
	for (size_t have = 0; have < length;) {
		ssize_t more = read(STDIN_FILENO, (char *)bytes + have, length - have);

		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			return -1;
		have += more;
	}
	return 0;
}

static int answer(int status)
{
	return write(STDOUT_FILENO, &status, sizeof(status)) == sizeof(status) ? 0 : -1;
}

static void redirect(const char *path, int flags, int to)
{
	int file = open(path, flags, 0600);

	if (file < 0 || dup2(file, to) < 0)
		_exit(127);
	close(file);
}

/* In the child: becomes the program. Does not return. */
static void run(char *words, size_t length, char **environment)
{
	size_t count = 0;
	char **argv;

	for (size_t at = 0; at < length; at++)
		count += !words[at];
	argv = calloc(count + 1, sizeof(*argv));
	if (!argv || count < 3 || words[length - 1])
		_exit(127);
	for (size_t word = 0; word < count; word++, words += strlen(words) + 1)
		argv[word] = words;
	redirect("/dev/null", O_RDONLY, STDIN_FILENO);
	redirect(argv[0], O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
	redirect(argv[1], O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
	exit(main_of_program(count - 2, argv + 2, environment));
}

static int serve(int argc, char **argv, char **environment)
{
	unsigned int length;

	(void)argc;
	(void)argv;
	if (answer(0))
		return 1;
	while (!read_all(&length, sizeof(length))) {
		char *words = length <= MOST_BYTES ? malloc(length) : NULL;
		int status;
		pid_t child;

		if (!words || read_all(words, length))
			return 1;
		child = fork();
		if (!child)
			run(words, length, environment);
		free(words);
		if (child < 0 || waitpid(child, &status, 0) < 0 || answer(status))
			return 1;
	}
	return 0;
}

static int is_program(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *name;

	if (length < 0)
		return 0;
	path[length] = 0;
	name = strrchr(path, '/');
	return name && !strcmp(name + 1, PROGRAM);
}

/* The C library's function that calls main() once all libraries are linked (glibc, csu/libc-start.c). */
int __libc_start_main(main_function *program, int argc, char **argv, hook *init, hook *fini,
		      hook *rtld_fini, void *stack_end)
{
	int (*next)(main_function *, int, char **, hook *, hook *, hook *, void *) =
		dlsym(RTLD_NEXT, "__libc_start_main");

	unsetenv("LD_PRELOAD");
	unsetenv("LD_BIND_NOW");
	main_of_program = program;
	return next(is_program() ? serve : program, argc, argv, init, fini, rtld_fini, stack_end);
}
