/*
 * agentbox-lookup: asks the C library's user database on behalf of agentbox, which is a static
 * program and cannot load the modules that a network directory needs.
 *
 *	agentbox-lookup user UID|NAME     prints NAME:UID:GID:HOME
 *	agentbox-lookup group GID|NAME    prints NAME:GID
 *
 * Exit status: 0 found, 1 not found, 2 usage, 125 the database could not be asked.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A decimal id; 0 and *ret_id, or -1 when the word is a name. */
static int parse_id(const char *word, unsigned *ret_id)
{
	if (!*word || strspn(word, "0123456789") != strlen(word))
		return -1;
	errno = 0;
	unsigned long id = strtoul(word, NULL, 10);
	/* The last id means "none" to the kernel. */
	if (errno || id >= 0xffffffffUL)
		return -1;
	*ret_id = (unsigned)id;
	return 0;
}

static int missing(void)
{
	if (errno == 0 || errno == ENOENT || errno == ESRCH)
		return 1;
	perror("agentbox-lookup");
	return 125;
}

static int print_user(const char *word)
{
	unsigned id;
	errno = 0;
	const struct passwd *user = parse_id(word, &id) == 0 ? getpwuid(id) : getpwnam(word);
	if (!user)
		return missing();
	printf("%s:%u:%u:%s\n", user->pw_name, user->pw_uid, user->pw_gid, user->pw_dir);
	return 0;
}

static int print_group(const char *word)
{
	unsigned id;
	errno = 0;
	const struct group *group = parse_id(word, &id) == 0 ? getgrgid(id) : getgrnam(word);
	if (!group)
		return missing();
	printf("%s:%u\n", group->gr_name, group->gr_gid);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 2;
	if (argc == 3 && strcmp(argv[1], "user") == 0)
		status = print_user(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "group") == 0)
		status = print_group(argv[2]);
	else
		fputs("usage: agentbox-lookup user UID|NAME\n"
		      "       agentbox-lookup group GID|NAME\n",
			stderr);
	if (fflush(stdout) != 0) {
		perror("agentbox-lookup");
		return 125;
	}
	return status;
}
