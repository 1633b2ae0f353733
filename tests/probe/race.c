/*
 * race: one thread flips the text of a path between an allowed file and a hidden one, another opens
 * it over and over. Any decision that is taken by reading the caller's memory would be fooled.
 *
 *	race ALLOWED HIDDEN TURNS	(both names of the same length)
 *
 * Prints "opened N refused N leaked N"; leaked counts reads that did not begin with "ok".
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[256];
static atomic_bool stop;

static void *flip(void *data)
{
	char **names = data;
	size_t len = strlen(names[0]);

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		memcpy(path, names[0], len);
		atomic_signal_fence(memory_order_seq_cst);
		memcpy(path, names[1], len);
		atomic_signal_fence(memory_order_seq_cst);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long opened = 0, refused = 0, leaked = 0;
	pthread_t thread;

	if (argc != 4 || strlen(argv[1]) != strlen(argv[2]) || strlen(argv[1]) >= sizeof(path))
		return 2;
	strcpy(path, argv[1]);
	if (pthread_create(&thread, NULL, flip, argv + 1) != 0)
		return 2;
	for (long turn = atol(argv[3]); turn > 0; turn--) {
		char text[16] = { 0 };
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0) {
			refused++;
			continue;
		}
		opened++;
		if (read(fd, text, sizeof(text) - 1) > 0 && strncmp(text, "ok", 2) != 0)
			leaked++;
		close(fd);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("opened %ld refused %ld leaked %ld\n", opened, refused, leaked);
	return leaked ? 1 : 0;
}
