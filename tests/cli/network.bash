# For tests that need an internet: one of the test's own, in network and mount namespaces of its own, with
# names, servers and a log of what reached them (internet.py). Nothing of the machine's network is touched or
# reached, and it is gone with the process that serves it.
# shellcheck shell=bash disable=SC2034,SC2154

# Once a file: a certificate authority, and one certificate for all names.
make_certificates() {
	local dir=$BATS_FILE_TMPDIR/tls names
	[ ! -e "$dir/cert.pem" ] || return 0
	command -v openssl >/dev/null || return 0
	mkdir -p "$dir"
	names=$(printf 'DNS:%s,' allowed.test '*.allowed.test' plain.test inject.test other.test evil.test shared.test \
		xn--bcher-kva.test fromhosts.test)
	{
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj '/CN=A test authority' \
			-addext basicConstraints=critical,CA:TRUE -keyout "$dir/ca.key" -out "$dir/ca.pem" &&
			openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=allowed.test \
				-keyout "$dir/key.pem" -out "$dir/request.pem" &&
			openssl x509 -req -in "$dir/request.pem" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -days 2 \
				-extfile <(echo "subjectAltName=${names%,}") -out "$dir/cert.new"
	} 2>"$dir/words" || {
		cat "$dir/words" >&2
		fail "no certificates"
		return
	}
	mv "$dir/cert.new" "$dir/cert.pem"
}

# What runs first in the namespaces, with rights over them: addresses, the files that say how names are looked
# up, then the servers. Its argument is the internet's directory. An address that the kernel has no family for
# is left out.
# shellcheck disable=SC2016 # for the shell inside
internet_begins='
set -e
cd "$1"
exec </dev/null >>words 2>&1
mount --make-rprivate /
ip link set lo up
# An address that is not the loopback: without one, AI_ADDRCONFIG leaves a family out.
ip addr add 203.0.113.250/32 dev lo
ip addr add 2001:db8::250/128 dev lo nodad || true
for net in 203.0.113.0/24 198.51.100.0/24 192.0.2.0/24 10.0.0.0/8 169.254.0.0/16 9.9.9.9/32; do
	ip route add local "$net" dev lo
done
for net in 2001:db8::/32 64:ff9b::/96; do ip -6 route add local "$net" dev lo || true; done
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
for file in resolv.conf hosts nsswitch.conf gai.conf; do
	[ ! -e "/etc/$file" ] || mount --bind "$file" "$(readlink -f "/etc/$file")"
done
[ ! -d /run/nscd ] || mount -t tmpfs none /run/nscd
exec "$2" -I -S "$3" "$1" "$4"'

# internet [quiet] [PORT...]: starts it; $net is its directory. AGENTBOX is the program in there from now on. With
# "quiet" no packets are kept, which a test of much data does not want. The ports are left to `serve`.
internet() {
	local how=(-nm) enter=(-n -m) parent=$BASHPID
	needs ip nsenter unshare python3
	if [ "$(id -u)" != 0 ]; then
		needs userns
		how=(-Ucnm --keep-caps) enter=(-U --preserve-credentials -n -m)
	fi
	net=$top/net
	mkdir -p "$net/www"
	[ "${1-}" != quiet ] || {
		touch "$net/quiet"
		shift
	}
	printf '%s\n' "$@" | grep . >"$net/without" || true
	make_certificates
	[ ! -e "$BATS_FILE_TMPDIR/tls/cert.pem" ] || cp "$BATS_FILE_TMPDIR"/tls/{ca,cert,key}.pem "$net/"
	: >"$net/log"
	printf 'nameserver 127.0.0.1\nsearch corp.test\noptions timeout:2 attempts:1\n' >"$net/resolv.conf"
	printf '127.0.0.1 localhost\n::1 localhost\n203.0.113.9 fromhosts.test fromhosts\n' >"$net/hosts"
	printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$net/nsswitch.conf"
	: >"$net/gai.conf"
	unshare "${how[@]}" sh -c "$internet_begins" sh "$net" "$python" "$BATS_TEST_DIRNAME/internet.py" "$parent" \
		3>&- &
	internet_pid=$!
	# It ends with this shell, by itself.
	disown "$internet_pid"
	for _ in $(seq "$(slow 600)"); do
		[ ! -e "$net/ready" ] || break
		kill -0 "$internet_pid" 2>/dev/null || break
		sleep 0.05
	done
	if [ ! -e "$net/ready" ]; then
		cat "$net/words" >&2
		fail "the internet does not begin"
		return
	fi
	# shellcheck disable=SC2016 # for the shell inside
	there=(nsenter "${enter[@]}" -t "$internet_pid" sh -c 'cd "$0" && exec "$@"')
	# shellcheck disable=SC2016 # for the program that is written
	printf '#!/bin/bash\nexec %s "$PWD" %q "$@"\n' "$(printf '%q ' "${there[@]}")" "$AGENTBOX" >"$top/agentbox-there"
	chmod 755 "$top/agentbox-there"
	AGENTBOX_REAL=$AGENTBOX AGENTBOX=$top/agentbox-there
}

# there COMMAND...: on the internet, but in no box.
there() {
	"${there[@]}" "$PWD" "$@"
}

# The log's lines that match; `logged` fails without one, `not_logged` with one.
logged() {
	grep -E "$1" "$net/log" || {
		cat -v "$net/log" >&2
		fail "the log has no $1"
	}
}

not_logged() {
	not grep -E "$1" "$net/log" >&2 || fail "the log has $1"
}

# count_logged PATTERN N
count_logged() {
	local n
	n=$(grep -cE "$1" "$net/log" || true)
	[ "$n" = "$2" ] || {
		cat -v "$net/log" >&2
		fail "the log has $n times $1, expected $2"
	}
}

# serve NAME ADDRESS PORT COMMAND...: a server of the distribution on this internet, which ends with the test. Its
# words are in $net/NAME.words. Waits until it takes connections there.
serve() {
	local name=$1 address=$2 port=$3 pid
	shift 3
	"${there[@]}" "$PWD" setpriv --pdeathsig KILL "$@" </dev/null >"$net/$name.words" 2>&1 3>&- &
	pid=$!
	disown "$pid"
	for _ in $(seq "$(slow 300)"); do
		! there bash -c ": <>'/dev/tcp/$address/$port'" 2>/dev/null || return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	cat "$net/$name.words" >&2
	fail "$name does not begin"
}

# all_passed: waits until everything that has left so far is in $net/passed, by a datagram of the test's own, and
# that nothing was missed.
marks=40000
all_passed() {
	marks=$((marks + 1))
	there bash -c "echo >'/dev/udp/192.0.2.9/$marks'"
	for _ in $(seq "$(slow 300)"); do
		! grep -q " 192.0.2.9 $marks$" "$net/passed" || break
		sleep 0.05
	done
	grep -q " 192.0.2.9 $marks$" "$net/passed" || fail "the packets are not seen" || return
	not grep '^lost' "$net/passed"
}

# none_left [PATTERN]: but for what matches, no packet has left any box since the internet began.
none_left() {
	all_passed || return
	not grep -vE " 192\\.0\\.2\\.9 ${1+|$1}" "$net/passed" >&2 || fail "packets have left"
}

# $gateway: the child of $runner that is neither the box's first process, which has a number of its own inside, nor
# the resolver; "" while there is none.
find_gateway() {
	local pid
	gateway=''
	for pid in $(pgrep -P "$runner"); do
		[ "$(awk '/^NSpid/ {print NF}' "/proc/$pid/status")" = 2 ] || continue
		[ "$(cat "/proc/$pid/comm")" = agentbox-resolv ] || gateway=$pid
	done
}

allow() {
	policy_is <<<"network: {allow: [$1]}"
}

# carried HOST PORT N: the result has N connections to it, with bytes both ways.
carried() {
	want "[.network[] | select(.host == \"$1\" and .port == $2)] | length == 1 and .[0].connections == $3
		and .[0].sent_bytes > 0 and .[0].received_bytes > 0"
}

# refused LAYER TARGET REASON
refused() {
	want "[.violations[] | select(.layer == \"$1\" and .target == \"$2\" and .reason == \"$3\" and .certain
		and .count >= 1 and .rule == \"network.allow\")] | length > 0"
}
