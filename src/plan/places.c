/* places: tables of the host's system places that a box shows. */
#include "plan/places.h"

#include <string.h>

const char *const places_etc_network[] = { "/etc/protocols", "/etc/services" };
const size_t places_etc_network_count = sizeof places_etc_network / sizeof *places_etc_network;

const char *const places_top[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/nix",
	"/gnu",
};
const size_t places_top_count = sizeof places_top / sizeof *places_top;

const char *const places_etc[] = {
	"/etc/alternatives",
	"/etc/crypto-policies",
	"/etc/fonts",
	"/etc/gitconfig",
	"/etc/java-11-openjdk",
	"/etc/java-17-openjdk",
	"/etc/java-21-openjdk",
	"/etc/java-25-openjdk",
	"/etc/ld.so.cache",
	"/etc/localtime",
	"/etc/os-release",
	"/etc/pki",
	"/etc/ssl",
};
const size_t places_etc_count = sizeof places_etc / sizeof *places_etc;

const char *places_not_workspace(const char *path, const char *home)
{
	static const char *const system[] = {
		"/bin",
		"/boot",
		"/dev",
		"/etc",
		"/home",
		"/lib",
		"/lib64",
		"/proc",
		"/root",
		"/run",
		"/sbin",
		"/sys",
		"/tmp",
		"/usr",
		"/var",
		"/var/run",
		"/var/tmp",
	};
	if (strcmp(path, "/") == 0)
		return "the root directory";
	size_t len = strlen(path);
	/* Home itself, and what contains it. */
	if (strncmp(home, path, len) == 0 && (home[len] == 0 || home[len] == '/'))
		return home[len] == 0 ? "the home directory"
				      : "a directory that holds the home directory";
	for (size_t i = 0; i < sizeof system / sizeof *system; i++)
		if (strcmp(path, system[i]) == 0)
			return "a system directory";
	/* Whatever lies below the kernel's file systems and the services' sockets is no workspace.
	 */
	static const char *const below[] = { "/proc/", "/sys/", "/dev/", "/run/" };
	for (size_t i = 0; i < sizeof below / sizeof *below; i++)
		if (strncmp(path, below[i], strlen(below[i])) == 0)
			return "below a system directory";
	return NULL;
}
