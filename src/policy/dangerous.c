/*
 * dangerous: the one table of places whose grant would hand over the host, its services or a whole
 * home. Text only; whether a granted path is a socket is found out where the host is looked at.
 */
#define _GNU_SOURCE
#include "policy/path.h"

#include <fnmatch.h>
#include <string.h>

struct place {
	const char
		*path; /* "*" stands for a component or a part of it; "~/" for the caller's home */
	bool below;    /* everything below it, too */
	const char *why;
};

static const char kernel[] = "the kernel's own files";
static const char homes[] = "a whole home directory";
static const char engine[] = "whoever reaches the container engine owns the host";
static const char manager[] = "whoever reaches the service manager can start programs outside";
static const char bus[] = "whoever reaches the message bus can ask services to act outside";
static const char machines[] = "whoever reaches the virtual machine manager can change the host";
static const char agent[] = "whoever reaches the key agent can use its keys";
static const char keys[] = "it holds private keys";
static const char screen[] = "whoever reaches the display or terminal can type into it";
static const char accounts[] = "the accounts and rights of the host";

static const struct place places[] = {
	{ "/proc", true, kernel },
	{ "/sys", true, kernel },
	{ "/dev", true, "the host's devices" },
	{ "/etc", false, "all of the host's configuration" },
	{ "/etc/shadow", false, accounts },
	{ "/etc/gshadow", false, accounts },
	{ "/etc/sudoers", false, accounts },
	{ "/etc/sudoers.d", true, accounts },
	{ "/root", false, homes },
	{ "/home/*", false, homes },
	{ "/run", false, "the sockets of all of the host's services" },
	{ "/run/docker.sock", false, engine },
	{ "/run/docker", true, engine },
	{ "/run/containerd", true, engine },
	{ "/run/podman", true, engine },
	{ "/run/crio", true, engine },
	{ "/run/buildkit", true, engine },
	{ "/run/k3s", true, engine },
	{ "/run/libvirt", true, machines },
	{ "/run/incus", true, machines },
	{ "/run/lxd*", true, machines },
	{ "/run/systemd/private", false, manager },
	{ "/run/systemd/notify", false, manager },
	{ "/run/systemd/journal", true, manager },
	{ "/run/systemd/io.systemd*", true, manager },
	{ "/run/systemd/userdb", true, manager },
	{ "/run/dbus", true, bus },
	{ "/run/snapd*", true, manager },
	{ "/run/udev/control", false, manager },
	{ "/run/cups/cups.sock", false, bus },
	{ "/run/pcscd", true, agent },
	{ "/run/ssh-agent*", true, agent },
	{ "/run/screen", true, screen },
	{ "/run/tmux", true, screen },
	{ "/run/user/*/bus", false, bus },
	{ "/run/user/*/dbus*", true, bus },
	{ "/run/user/*/at-spi*", true, bus },
	{ "/run/user/*/systemd", true, manager },
	{ "/run/user/*/docker*", true, engine },
	{ "/run/user/*/podman", true, engine },
	{ "/run/user/*/containerd*", true, engine },
	{ "/run/user/*/libvirt", true, machines },
	{ "/run/user/*/gnupg", true, agent },
	{ "/run/user/*/keyring*", true, agent },
	{ "/run/user/*/gcr", true, agent },
	{ "/run/user/*/ssh-agent*", true, agent },
	{ "/run/user/*/openssh_agent", false, agent },
	{ "/run/user/*/tmux*", true, screen },
	{ "/run/user/*/wayland-*", false, screen },
	{ "/run/user/*/pipewire-*", false, screen },
	{ "/run/user/*/pulse", true, screen },
	{ "/var/run", false, "the sockets of all of the host's services" },
	{ "/var/lib/docker", true, engine },
	{ "/var/lib/containerd", true, engine },
	{ "/var/lib/containers", true, engine },
	{ "/var/lib/lxd", true, machines },
	{ "/var/lib/incus", true, machines },
	{ "/var/snap/lxd", true, machines },
	{ "/tmp/ssh-*", true, agent },
	{ "/tmp/tmux-*", true, screen },
	{ "/tmp/.X11-unix", true, screen },
	{ "/tmp/.ICE-unix", true, screen },
	{ "~/.docker/run", true, engine },
	{ "~/.docker/desktop", true, engine },
	{ "~/.docker/docker.sock", false, engine },
	{ "~/.colima/*/docker.sock", false, engine },
	{ "~/.rd/docker.sock", false, engine },
	{ "~/.local/share/containers", true, engine },
	{ "~/.ssh", false, keys },
	{ "~/.gnupg", false, keys },
	{ "~/.gnupg/S.*", false, agent },
	{ "~/.ssh/agent*", true, agent },
};

enum relation { APART, ABOVE, SAME, BELOW };

/* How `path` lies to the place `pattern`, component by component. Both absolute. */
static enum relation relate(const char *path, const char *pattern)
{
	for (;;) {
		path += *path == '/';
		pattern += *pattern == '/';
		size_t len = strcspn(path, "/"), plen = strcspn(pattern, "/");
		if (!len || !plen)
			return len ? BELOW : plen ? ABOVE : SAME;
		if (memchr(pattern, '*', plen)) {
			char name[256], glob[64];
			if (len >= sizeof name || plen >= sizeof glob)
				return APART;
			memcpy(name, path, len);
			name[len] = 0;
			memcpy(glob, pattern, plen);
			glob[plen] = 0;
			if (fnmatch(glob, name, 0) != 0)
				return APART;
		} else if (len != plen || memcmp(path, pattern, len) != 0) {
			return APART;
		}
		path += len;
		pattern += plen;
	}
}

/* The rest of a path below a directory ("" for itself), or NULL. */
static const char *inside(const char *path, const char *dir)
{
	size_t len = strlen(dir);
	while (len > 0 && dir[len - 1] == '/')
		len--;
	if (len == 0 || strncmp(path, dir, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	return path + len;
}

const char *policy_dangerous(const char *path, const char *home)
{
	if (strcmp(path, "/") == 0)
		return "the whole file system";
	/* /var/run is another name of /run. */
	const char *run = inside(path, "/var");
	if (run && inside(run, "/run"))
		path = run;
	const char *rest = NULL;
	if (home) {
		enum relation to_home = relate(path, home);
		if (to_home == SAME || to_home == ABOVE)
			return homes;
		rest = inside(path, home);
	}
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const struct place *place = &places[i];
		bool own = place->path[0] == '~';
		if (own && !rest)
			continue;
		enum relation r = relate(own ? rest : path, own ? place->path + 1 : place->path);
		if (r == SAME || r == ABOVE || (r == BELOW && place->below))
			return place->why;
	}
	return NULL;
}
