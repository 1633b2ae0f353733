/*
 * Stage sockets: the box's side of its network, where a policy allows some hosts. Every address is
 * made a local one, so whatever host the command dials, it is the gateway's socket that answers for
 * a port that is listed, and the kernel's refusal for any other. Nothing is routed anywhere.
 */
#define _GNU_SOURCE
#include "box/child.h"
#include "base/fd.h"
#include "box/sync.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define LOOPBACK_INDEX 1 /* the first interface of every network namespace */
#define DUMMY_ADDRESS  0xc0000008
#define BACKLOG        4096
#define FREEBIND       78 /* IPV6_FREEBIND of linux/in6.h, Linux 4.15 */

/* One request to the kernel's routing. 0 or -errno. */
static int ask_kernel(int netlink, const struct nlmsghdr *ask)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	ssize_t n = send(netlink, ask, ask->nlmsg_len, 0);
	if (n >= 0)
		n = recv(netlink, &answer, sizeof answer, 0);
	if (n < 0)
		return -errno;
	if ((size_t)n < offsetof(typeof(answer), rest) || answer.head.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.error.error;
}

/* `local default dev lo`. 0 or -errno. */
static int make_local(int netlink, unsigned char family)
{
	const struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr attr;
		uint32_t index;
	} ask = {
		.head = { .nlmsg_len = sizeof ask,
			.nlmsg_type = RTM_NEWROUTE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK },
		.route = { .rtm_family = family,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_BOOT,
			.rtm_scope = RT_SCOPE_HOST,
			.rtm_type = RTN_LOCAL },
		.attr = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF },
		.index = LOOPBACK_INDEX,
	};
	return ask_kernel(netlink, &ask.head);
}

/*
 * `address add 192.0.0.8/32 dev lo`, the dummy address of RFC 7600. C libraries look for IPv4
 * addresses with AI_ADDRCONFIG only where there is one that is not the loopback's. 0 or -errno.
 */
static int give_address(int netlink)
{
	const struct {
		struct nlmsghdr head;
		struct ifaddrmsg address;
		struct rtattr attr;
		uint32_t value;
	} ask = {
		.head = { .nlmsg_len = sizeof ask,
			.nlmsg_type = RTM_NEWADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK },
		.address = { .ifa_family = AF_INET,
			.ifa_prefixlen = 32,
			.ifa_scope = RT_SCOPE_UNIVERSE,
			.ifa_index = LOOPBACK_INDEX },
		.attr = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFA_LOCAL },
		.value = htonl(DUMMY_ADDRESS),
	};
	return ask_kernel(netlink, &ask.head);
}

/*
 * Without IPv6, or with it switched off for new namespaces, no IPv6 address leads anywhere: that is
 * what the box shall see then.
 */
static int make_all_local(void)
{
	AUTO_FD netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (netlink < 0)
		return -errno;
	(void)make_local(netlink, AF_INET6);
	int r = make_local(netlink, AF_INET);
	return r < 0 ? r : give_address(netlink);
}

static bool set(int sock, int level, int option)
{
	int on = 1;
	return setsockopt(sock, level, option, &on, sizeof on) == 0;
}

/* To whom a datagram was sent: the answer comes from there, though no interface has the address. */
static bool tell_target(int sock, bool is_six)
{
	if (!is_six)
		return set(sock, IPPROTO_IP, IP_PKTINFO);
	return set(sock, IPPROTO_IPV6, IPV6_RECVPKTINFO) && set(sock, IPPROTO_IPV6, FREEBIND);
}

/* One socket for both families, or for IPv4 alone where the kernel has no other; or -errno. */
static int open_socket(int type, uint16_t port)
{
	int no = 0, family = AF_INET6;
	AUTO_FD sock = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0 && errno == EAFNOSUPPORT) {
		family = AF_INET;
		sock = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	if (sock < 0)
		return -errno;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	bool is_six = family == AF_INET6;
	if (is_six && setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) < 0)
		return -errno;
	if (type == SOCK_DGRAM && !tell_target(sock, is_six))
		return -errno;
	if (bind(sock, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
		    is_six ? sizeof six : sizeof four) < 0)
		return -errno;
	if (type == SOCK_STREAM && listen(sock, BACKLOG) < 0)
		return -errno;
	return fd_steal(&sock);
}

/* Of TCP's segments only resets are wanted; IPv6's header is not there, IPv4's is (raw(7)). */
static int want_resets(int sock, bool is_six)
{
	enum { FLAGS = 13, RESET = 4 };
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, FLAGS),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, RESET, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, NETWORK_REFUSAL_SIZE),
		BPF_STMT(BPF_RET | BPF_K, 0),
	}, code6[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, RESET, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, NETWORK_REFUSAL_SIZE),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {
		.len = is_six ? sizeof code6 / sizeof *code6 : sizeof code / sizeof *code,
		.filter = (struct sock_filter *)(is_six ? code6 : code),
	};
	return setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* Of ICMP's messages only "destination unreachable": icmp(7), RFC 3542 section 3.2. */
static int want_unreachable(int sock, bool is_six)
{
	const uint32_t all_but_3 = ~(1u << 3);
	uint32_t all_but_1[8];
	memset(all_but_1, 0xff, sizeof all_but_1);
	all_but_1[0] &= ~(1u << 1);
	if (is_six)
		return setsockopt(
			sock, IPPROTO_ICMPV6, 1 /* ICMPV6_FILTER */, all_but_1, sizeof all_but_1);
	return setsockopt(sock, SOL_RAW, 1 /* ICMP_FILTER */, &all_but_3, sizeof all_but_3);
}

/*
 * Hears the kernel's own answers to what nobody listens for. Not a packet socket: the end of one
 * takes the kernel some milliseconds. Where it cannot be made these refusals are not told of; in
 * its place goes a socket that hears nothing.
 */
static int open_refusals(int family, int protocol)
{
	bool is_six = family == AF_INET6;
	AUTO_FD sock = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	if (sock >= 0 && (protocol == IPPROTO_TCP ? want_resets(sock, is_six)
						  : want_unreachable(sock, is_six)) < 0)
		fd_close(&sock);
	return sock >= 0 ? fd_steal(&sock)
			 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Takes it over. */
static int give_socket(const struct child *child, int opened, struct err *err)
{
	AUTO_FD sock = opened;
	if (sock < 0)
		return child_fail(err, ERR_network_failed, sock, "socket");
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_SOCKET };
	int r = sync_send(child->setup_fd, &msg, sock);
	return r < 0 ? child_fail(err, ERR_network_failed, r, "sendmsg") : 0;
}

static int give_refusals(const struct child *child, struct err *err)
{
	static const struct {
		int family, protocol;
	} kinds[NETWORK_REFUSALS] = {
		{ AF_INET, IPPROTO_TCP },
		{ AF_INET, IPPROTO_ICMP },
		{ AF_INET6, IPPROTO_TCP },
		{ AF_INET6, IPPROTO_ICMPV6 },
	};
	for (size_t i = 0; i < NETWORK_REFUSALS; i++)
		if (give_socket(child, open_refusals(kinds[i].family, kinds[i].protocol), err) < 0)
			return -1;
	return 0;
}

bool sockets_spare(const struct child *child, int family)
{
	if (family != AF_INET && family != AF_INET6)
		return false;
	struct sync_msg msg = { .magic = SYNC_MAGIC, .kind = SYNC_SPARE };
	msg.family = family;
	AUTO_FD sock = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Without IPv6: one that cannot connect there either. */
	if (sock < 0 && errno == EAFNOSUPPORT)
		sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock >= 0)
		(void)sync_send(child->status_fd, &msg, sock);
	return true;
}

/*
 * needs: loopback
 * leaves: with hosts that are allowed: all addresses are the box's own; the supervisor has been
 *sent the sockets that the gateway serves, those for names first; init holds none of them
 */
int stage_sockets(struct child *child, struct err *err)
{
	const struct network_plan *reach = &child->plan->reach;
	if (reach->rule_count == 0)
		return 0;
	int r = make_all_local();
	if (r < 0)
		return child_fail(err, ERR_network_failed, r, "route");
	if (give_socket(child, open_socket(SOCK_DGRAM, NETWORK_NAMES_PORT), err) < 0 ||
		give_refusals(child, err) < 0 ||
		give_socket(child, open_socket(SOCK_STREAM, NETWORK_NAMES_PORT), err) < 0)
		return -1;
	for (size_t i = 0; i < reach->port_count; i++)
		if (give_socket(child, open_socket(SOCK_STREAM, reach->ports[i]), err) < 0)
			return -1;
	return 0;
}
