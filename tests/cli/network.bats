# What a policy's list of hosts grants, and that nothing else passes: on an internet of the test's own.
load helpers
load network

# talk HOST PORT TEXT...: sends each text (with \n and the like) in a piece of its own over one connection and
# ends its side; prints what comes back (without CR) until the end or 5 seconds of silence, "reset" where it
# ends so. Where there is no name or no connection, it fails and says that.
# shellcheck disable=SC2016
talk='
import socket, sys, time
host, port, *texts = sys.argv[1:]
try:
    s = socket.create_connection((host, int(port)), 20)
except socket.gaierror:
    sys.exit("no name")
except OSError as e:
    sys.exit("refused")
s.settimeout(5)
try:
    for text in texts:
        s.sendall(text.encode("latin-1").decode("unicode_escape").encode("latin-1"))
        time.sleep(0.05)
    s.shutdown(socket.SHUT_WR)
    while data := s.recv(65536):
        sys.stdout.buffer.write(data.replace(b"\r", b""))
except TimeoutError:
    pass
except OSError:
    print("reset")
sys.stdout.flush()
'

talk() {
	box -- python3 -I -S -c "$talk" "$@"
}

# A query of one type for a name that is given as bytes with a length in front of each label.
# shellcheck disable=SC2016
query='
import socket, sys, struct
kind, server = int(sys.argv[1]), sys.argv[2]
for name in sys.argv[3:]:
    raw = name.encode("latin-1").decode("unicode_escape").encode("latin-1")
    labels = raw.split(b"|")
    text = b"".join(bytes([len(l) & 255]) + l for l in labels if l) + b"\0"
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    try:
        s.sendto(struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + text + struct.pack(">HH", kind, 1), (server, 53))
        answer = s.recv(4096)
        flags, _, answers = struct.unpack(">HHH", answer[2:8])
        print("rcode", flags & 15, "answers", answers)
    except OSError as e:
        print("none", type(e).__name__)
'

query() {
	box -- python3 -I -S -c "$query" "$@"
}

@test "A26: the box's resolver file is its own, and localhost and listed names are found" {
	needs landlock
	internet
	# The host's is a link that leads nowhere in the box.
	allow allowed.test
	box -- sh -c 'test -f /etc/resolv.conf && ! test -L /etc/resolv.conf && cat /etc/resolv.conf && getent hosts localhost && getent hosts allowed.test'
	want_exit 0
	want '.stdout | contains("nameserver 127.0.0.1") and contains("localhost") and contains("allowed.test")'
	want '.stdout | contains("corp.test") | not' '.violations == []'
	count_logged '^dns A allowed.test' 1
	not_logged 'localhost'
}

@test "A67: a client that knows no proxy reaches a listed name, in the clear and through TLS" {
	needs landlock curl openssl
	internet
	allow allowed.test
	box -- python3 -c 'import socket as s; c=s.create_connection(("allowed.test",80),3); c.send(b"GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n"); print(c.recv(12))'
	want_exit 0 "b'HTTP/1.1 200'"
	carried allowed.test 80 1
	cp "$net/ca.pem" .
	box -- curl -sS --cacert ca.pem https://allowed.test/x http://allowed.test/y
	want_exit 0 $'GET /x allowed.test\nGET /y allowed.test'
	carried allowed.test 443 1
	carried allowed.test 80 1
	want '.violations == []' '.enforcement.net_ns'
	logged '^tls .* allowed.test$'
}

@test "A67: Node, with a resolver of its own too, reaches what is listed" {
	needs landlock node
	internet
	allow allowed.test
	box -- node -e 'const http = require("http"), dns = require("dns");
		http.get("http://allowed.test/n", r => r.on("data", d => process.stdout.write(d)));
		dns.resolve4("allowed.test", (e, a) => console.log(e ? e.code : a.length))'
	want_exit 0
	want '.stdout | contains("GET /n allowed.test") and contains("1\n")'
}

@test "A67: a static program with a resolver of its own reaches what is listed, and finds no other name" {
	needs landlock musl-gcc
	internet
	cat >ask.c <<-'END'
		#include <netdb.h>
		#include <stdio.h>
		#include <sys/socket.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
			char text[200] = "";
			if (argc != 3 || getaddrinfo(argv[1], argv[2], &hints, &list))
				return puts("no name") < 0;
			int sock = socket(list->ai_family, SOCK_STREAM, 0);
			if (connect(sock, list->ai_addr, list->ai_addrlen) < 0)
				return puts("refused") < 0;
			return read(sock, text, sizeof text - 1) < 0 || fputs(text, stdout) < 0;
		}
	END
	musl-gcc -static -o ask ask.c
	allow allowed.test:22
	box -- ./ask allowed.test 22
	want '.exit_code == 0 and .stdout == "SSH-2.0-test\r\n"'
	box -- ./ask evil.test 22
	want_exit 0 'no name'
	not_logged evil
}

@test "A67: names that are not listed fail at once, are on record, and are asked of nobody" {
	needs landlock
	internet
	allow allowed.test:80
	talk evil.test 80 x
	quickly 2000
	want '.exit_code == 1 and .stderr == "no name\n"'
	refused dns evil.test not_listed
	want '[.violations[] | select(.target == "evil.test")][0].hint | contains("evil.test")'
	not_logged evil
	# A listed name has only the listed port.
	talk allowed.test 443 x
	want '.exit_code == 1 and .stderr == "refused\n"'
	not_logged '^tcp .* 443$'
}

@test "A67: addresses that are not listed cannot be reached, and those that are can" {
	needs landlock
	internet
	allow allowed.test:80
	talk 203.0.113.1 80 'GET / HTTP/1.0\r\n\r\n'
	want '.stdout | contains("200") | not'
	refused network 203.0.113.1:80 not_listed
	talk 2001:db8::1 80 'GET / HTTP/1.0\r\n\r\n'
	want '.stdout | contains("200") | not'
	not_logged '^tcp'
	allow '"10.1.0.0/16:5432", "[2001:db8::6]:80"'
	talk 10.1.2.3 5432 'hello\r\n'
	want_exit 0 $'database\nhello'
	carried 10.1.2.3 5432 1
	talk 10.2.2.3 5432 'hello\r\n'
	want '.stdout | contains("database") | not'
	refused network 10.2.2.3:5432 not_listed
	talk 2001:db8::6 80 'GET / HTTP/1.0\r\n\r\n'
	want '.stdout | contains("200 OK")'
	not_logged '^tcp 10.2'
}

@test "A67: other protocols pass as they come, whoever speaks first, a byte at a time too" {
	needs landlock
	internet
	allow '"allowed.test:22", "allowed.test:7", "allowed.test:80"'
	local port
	for port in 22 7; do
		box -- python3 -I -S -c 'import socket, sys
s = socket.create_connection(("allowed.test", int(sys.argv[1])), 20); s.settimeout(20)
server_first = sys.argv[1] == "22"
if server_first: assert s.recv(100) == b"SSH-2.0-test\r\n"
# Where the client speaks first, what no request begins with; then anything.
for byte in b"G" if server_first else b"\x01", b"GE", b"x", b"\0", b" ", b"\n":
    s.sendall(byte); got = b""
    while len(got) < len(byte): got += s.recv(10)
    assert got == byte
s.shutdown(socket.SHUT_WR); print(s.recv(10))' "$port"
		want_exit 0 "b''"
		want '.violations == []'
	done
	# Bytes that could still become a request are held, unless the rule says that nobody is to look.
	talk allowed.test 7 G
	want '.stdout == "reset\n"'
	refused network allowed.test:7 malformed
	allow '{host: "allowed.test:7", any_name: true}'
	talk allowed.test 7 G
	want_exit 0 G
	want '.violations == []'
}

@test "B40: any_name switches off, for its rule alone, that a connection must say the dialled name" {
	needs landlock
	internet
	allow '{host: "allowed.test:80", any_name: true}, "plain.test:80"'
	talk allowed.test 80 'GET / HTTP/1.0\r\nHost: evil.test\r\n\r\n'
	want '.stdout | contains("200 OK")' '.violations == []'
	talk plain.test 80 'GET / HTTP/1.0\r\nHost: evil.test\r\n\r\n'
	want '.stdout | contains("200") | not'
	refused network evil.test:80 host_mismatch
}

@test "A70: nothing is intercepted: clients see the servers' own certificates" {
	needs landlock curl openssl git
	internet
	allow 'plain.test, inject.test'
	mkdir -p "$top/r" && git -C "$top/r" init -q -b main . && git -C "$top/r" -c user.name=t -c user.email=t@t.test commit -q --allow-empty -m one
	git clone -q --bare "$top/r" "$net/www/r" && git -C "$net/www/r" update-server-info
	cp "$net/ca.pem" .
	box -e GIT_SSL_CAINFO="$PWD/ca.pem" -- sh -c 'curl -sS --cacert ca.pem https://plain.test && curl -sS --cacert ca.pem https://inject.test && git ls-remote https://inject.test/www/r'
	want_exit 0
	want '.stdout | contains("GET / plain.test") and contains("GET / inject.test") and contains("refs/heads/main")'
	box -- openssl s_client -connect plain.test:443 -servername plain.test -CAfile ca.pem -verify_return_error -brief
	want '.stderr + .stdout | contains("Verification: OK")'
	# Without the authority that signed them they are not trusted: no trust store was changed.
	box -- curl -sS https://plain.test
	want '.exit_code == 60'
}

@test "B35: a list in one policy and an empty one in another is the list; an empty one alone is no network" {
	needs landlock
	internet
	allow ''
	talk 203.0.113.1 80 x
	want '.exit_code == 1' '.enforcement.network == "none"' '.network == []'
	talk allowed.test 80 x
	want '.exit_code == 1' '.enforcement.network == "none"'
	not_logged .
}

@test "B36: names with NUL, percent, line ends, long labels or none are refused before any look-up" {
	needs landlock
	internet
	allow '"*.allowed.test"'
	query 1 127.0.0.1 'evil|test\0|allowed|test' 'evil.test\0|allowed|test' 'evil.test%00|allowed|test' \
		'evil.test\r\n|allowed|test' 'evil\\|allowed|test' 'a b|allowed|test' 'evil.test|allowed|test' '|allowed|test'
	want_exit 0
	want '.stdout | split("\n")[:-1] | length == 8 and all(test("^rcode (1|3|5) answers 0$|^none "))'
	want '[.violations[] | select(.layer == "dns")] | length > 0'
	# What is told of them is text.
	want '[.violations[].target | explode[] | select(. < 32 or . > 126)] == []'
	not_logged .
	# A label of 300 bytes has no form in a question; neither do 64.
	box -- python3 -I -S -c 'import socket, struct
for label in (b"\x40" + b"a" * 64, b"\xff" + b"a" * 255, b"\xc0\x0c", b""):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
    s.sendto(struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + label + b"\7allowed\4test\0\0\1\0\1", ("127.0.0.1", 53))
    try: print(struct.unpack(">H", s.recv(512)[2:4])[0] & 15 in (1, 3, 5))
    except OSError: print("none")'
	want_exit 0
	want '.stdout | contains("False") | not'
	not_logged .
}

@test "B37: only the listed name itself, in any case and with a last dot, is that name" {
	needs landlock
	internet
	allow 'allowed.test:22'
	local name
	for name in ALLOWED.test allowed.test. AlLoWeD.TeSt.; do
		talk "$name" 22 'x\r\n'
		want_exit 0 $'SSH-2.0-test\nx'
		carried allowed.test 22 1
	done
	for name in notallowed.test allowed.test.evil.test xn--llowed-2nf.test a.allowed.test test allowed allowed-test; do
		talk "$name" 22 'x\r\n'
		want '.exit_code == 1 and .stderr == "no name\n"'
		refused dns "$name" not_listed
	done
	not_logged '^dns A+ ([^a]|a[^l]|allowed\.test\.)'
	count_logged '^tcp .* 22$' 3
}

@test "B37: a wildcard takes whole labels below, and not the name itself" {
	needs landlock
	internet
	allow '"*.allowed.test:22"'
	local name
	for name in a.allowed.test x.sub.allowed.test; do
		talk "$name" 22 'x\r\n'
		want_exit 0 $'SSH-2.0-test\nx'
	done
	for name in allowed.test notallowed.test xallowed.test; do
		talk "$name" 22 'x\r\n'
		want '.exit_code == 1 and .stderr == "no name\n"'
	done
	not_logged '^dns A+ (allowed|notallowed|xallowed)'
}

@test "B37: a name of the policy that is not ASCII is reached by its ASCII form" {
	needs landlock idn
	internet
	allow 'bücher.test:22'
	talk xn--bcher-kva.test 22 'x\r\n'
	want_exit 0 $'SSH-2.0-test\nx'
	carried xn--bcher-kva.test 22 1
}

@test "B38: a listed name that leads to a private, loopback or metadata address is refused" {
	needs landlock
	internet
	local name
	for name in metadata.test private.test loopback.test mapped.test nat64.test; do
		allow "$name:80"
		talk "$name" 80 'GET / HTTP/1.0\r\nHost: x\r\n\r\n'
		want '.stdout | contains("200") | not'
		want "[.violations[] | select(.reason == \"private_address\" and .certain and (.target | startswith(\"$name\")))] | length > 0"
	done
	not_logged '^tcp'
	# With an address rule it is meant.
	allow '"private.test:5432", "10.1.2.3:5432"'
	talk private.test 5432 'x\r\n'
	want_exit 0 $'database\nx'
	logged '^tcp 10.1.2.3 5432$'
}

@test "B38: of private and public addresses of one name only the public ones are dialled" {
	needs landlock
	internet
	allow mixed.test:22
	talk mixed.test 22 'x\r\n'
	want_exit 0 $'SSH-2.0-test\nx'
	logged '^tcp 203.0.113.8 22$'
	not_logged '^tcp 10'
}

@test "B38: the address that was checked is the one that is dialled, also when the name turns" {
	needs landlock
	internet
	allow rebind.test:22
	box -- python3 -I -S -c 'import socket
for _ in range(2):
    try:
        s = socket.create_connection(("rebind.test", 22), 20); s.settimeout(5)
        print(s.recv(100))
    except OSError as e: print("refused")'
	want_exit 0
	logged '^tcp 198.51.100.7 22$'
	not_logged '^tcp 127'
}

@test "B38: the host's own loopback needs host.internal, and has only the listed port" {
	needs landlock
	internet
	allow host.internal:5432
	talk host.internal 5432 'x\r\n'
	want_exit 0 $'database\nx'
	carried host.internal 5432 1
	logged '^tcp (127.0.0.1|::1) 5432$'
	talk host.internal 22 'x\r\n'
	want '.exit_code == 1'
	talk 127.0.0.1 5432 'x\r\n'
	want '.stdout | contains("database") | not'
	not_logged '^tcp .* 22$'
}

@test "B40: a request that names another host never gets there, in whatever form" {
	needs landlock
	internet
	allow allowed.test:80
	local request
	for request in 'GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n' \
		'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n' \
		'GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n' \
		'GET http://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n' \
		'GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: evil.test\r\n\r\n' \
		'GET / HTTP/1.1\r\nHost: evil.test\r\nHost: allowed.test\r\n\r\n' \
		'GET / HTTP/1.1\r\nHOST : evil.test\r\n\r\n' \
		'GET / HTTP/1.1\r\n Host: evil.test\r\nHost: allowed.test\r\n\r\n' \
		'GET / HTTP/1.1\r\nHost: allowed.test\r\n\tevil.test\r\n\r\n' \
		'CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n' \
		'GET / HTTP/1.1\nHost: evil.test\n\n'; do
		: >"$net/log"
		talk allowed.test 80 "$request"
		want '.stdout | contains("evil") | not' '[.violations[] | select(.layer == "network")] | length == 1'
		not_logged '^http'
		not_logged evil
	done
	talk allowed.test 80 'GET /ok HTTP/1.1\r\nHost: shared.test\r\n\r\n'
	refused network shared.test:80 host_mismatch
	talk allowed.test 80 'GET /ok HTTP/1.1\r\nHost: ALLOWED.test:80\r\nConnection: close\r\n\r\n'
	want_exit 0
	want '.stdout | contains("GET /ok")' '.violations == []'
}

@test "B40: also a later request of the same connection, whole or in pieces, behind a body too" {
	needs landlock
	internet
	allow allowed.test:80
	local good='GET /1 HTTP/1.1\r\nHost: allowed.test\r\n\r\n' bad='GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n'
	local post='POST /1 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 3\r\n\r\nabc'
	local pieces
	for pieces in "$good$bad" "$post$bad" 'POST /1 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 3\r\nContent-Length: 40\r\n\r\nabc'"$bad"; do
		: >"$net/log"
		talk allowed.test 80 "$pieces"
		want '[.violations[] | select(.layer == "network")] | length == 1'
		not_logged ' /2 '
		not_logged evil
	done
	: >"$net/log"
	talk allowed.test 80 "$good" 'GET /2 HT' 'TP/1.1\r\nHo' 'st: evil.t' 'est\r\n\r\n'
	refused network evil.test:80 host_mismatch
	logged ' GET /1 allowed.test$'
	not_logged evil
	: >"$net/log"
	talk allowed.test 80 "$good$post" 'GET /3 HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n'
	want_exit 0
	want '.violations == []' '.stdout | contains("GET /1") and contains("POST /1") and contains("GET /3")'
}

@test "B40: TLS for another name of the same server is refused, and so is a greeting without a name" {
	needs landlock curl openssl
	internet
	allow allowed.test:443
	cp "$net/ca.pem" .
	box -- curl -sS --cacert ca.pem --connect-to shared.test:443:allowed.test:443 https://shared.test/
	want '.exit_code != 0'
	refused network shared.test:443 sni_mismatch
	box -- openssl s_client -connect allowed.test:443 -noservername -brief
	want '.exit_code != 0' '[.violations[] | select(.reason == "sni_mismatch")] | length == 1'
	not_logged '^tls'
	not_logged '^http'
}

@test "B40: a connection that is upgraded goes on both ways, when the server says so" {
	needs landlock
	internet
	allow allowed.test:80
	talk allowed.test 80 'GET /ws HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n' 'Host: any\r\n\r\nthing'
	want '.stdout | contains("101") and contains("thing")' '.violations == []'
}

@test "B43: names that are not listed leave no packet, whoever is asked" {
	needs landlock
	internet
	allow allowed.test
	query 1 127.0.0.1 'secret|evil|test' 'x|sub|allowed|test'
	quickly 2000
	want_exit 0
	want '.stdout | split("\n")[:-1] | all(test("^rcode (3|5) answers 0$"))'
	refused dns secret.evil.test not_listed
	query 1 9.9.9.9 'secret|evil|test'
	want '.stdout | test("answers [1-9]") | not'
	box -- python3 -I -S -c 'import socket
for to in (("9.9.9.9", 53), ("203.0.113.1", 5353), ("203.0.113.1", 443)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try: s.sendto(b"secret", to)
    except OSError: pass'
	want_exit 0
	not_logged .
	not env LC_ALL=C grep -qa secret "$net/packets"
}

@test "B43: record types but A and AAAA are refused, also for a listed name, and asked of nobody" {
	needs landlock
	internet
	allow allowed.test
	local kind
	for kind in 2 5 6 12 15 16 33 65 252 255; do
		query "$kind" 127.0.0.1 'allowed|test'
		want_exit 0
		want '.stdout | test("^rcode [0-5] answers 0\n$")'
	done
	refused dns allowed.test record_type
	query 28 127.0.0.1 'allowed|test'
	want_exit 0 'rcode 0 answers 0'
	not_logged '^dns ([0-9]+) '
}

@test "B43: with a list, sockets inside work as without: listening, UNIX, the loopback" {
	needs landlock
	internet
	allow allowed.test
	box -- python3 -I -S -c 'import socket
l = socket.socket(); l.bind(("127.0.0.1", 3000)); l.listen()
c = socket.create_connection(("127.0.0.1", 3000)); a, _ = l.accept(); c.sendall(b"x"); print(a.recv(1))
q = socket.socket(socket.AF_UNIX); q.bind("/tmp/q"); q.listen()
u = socket.socket(socket.AF_UNIX); u.connect("/tmp/q"); print("ok")'
	want_exit 0 $'b\'x\'\nok'
	want '.violations == []' '.network == []'
}

@test "C05: with a list, one box after another and many at once: all end well, and no slower in the end" {
	needs landlock
	internet quiet
	allow allowed.test
	local i first last began
	for i in $(seq 60); do
		[ "$i" != 1 ] && [ "$i" != 41 ] || began=$(date +%s%N)
		box -- true
		want_exit 0
		[ "$i" != 20 ] || first=$(($(date +%s%N) - began))
	done
	last=$(($(date +%s%N) - began))
	# Twice, as the machine may have other things to do; a slope would be many times that.
	[ "$last" -lt $((first * 2 + 1000000000)) ] || fail "the first 20 took $first ns, the last 20 $last ns"
	seq 40 | there xargs -P 40 -I{} "${AGENTBOX_REAL:?}" run -p "$policy" -q --result "$top/many.{}" -- true
	[ "$(cat "$top"/many.* | jq -s 'map(select(.status == "exited" and .exit_code == 0)) | length')" = 40 ]
}

@test "C11: 200 connections at once, each whole; and a slow reader holds up nobody" {
	needs landlock
	internet quiet
	allow allowed.test:80
	box --wall 5m -- python3 -I -S -c 'import socket, threading
done = []
def ask(host, size):
    s = socket.create_connection((host, 80), 100); s.settimeout(200)
    s.sendall(b"GET /size/%d HTTP/1.0\r\nHost: allowed.test\r\n\r\n" % size)
    return s
slow = ask("allowed.test", 64 << 20)
def load():
    s, n = ask("allowed.test", 1 << 20), 0
    while d := s.recv(65536): n += len(d)
    done.append(n >= 1 << 20)
threads = [threading.Thread(target=load) for _ in range(200)]
for t in threads: t.start()
for t in threads: t.join()
print(len(done), all(done), len(slow.recv(10)))'
	want_exit 0 '200 True 10'
	carried allowed.test 80 201
	want '.network[0].received_bytes >= 200 * 1048576'
}

@test "C11: a large download comes at no less than half of the direct rate, with a small gateway" {
	needs landlock curl
	internet quiet
	local size=$((256 << 20)) began direct through peak most
	began=$(date +%s%3N)
	there curl -sS -o /dev/null "http://allowed.test/size/$size"
	direct=$(($(date +%s%3N) - began))
	allow allowed.test:80
	began=$(date +%s%3N) most=0
	in_background --wall 5m -- curl -sS -o /dev/null -w '%{size_download}' "http://allowed.test/size/$size"
	while kill -0 "$runner" 2>/dev/null; do
		find_gateway 2>/dev/null
		peak=$(awk '/^VmHWM/ {print $2}' "/proc/${gateway:-none}/status" 2>/dev/null || true)
		[ "${peak:-0}" -le "$most" ] || most=$peak
		sleep 0.05
	done
	through=$(($(date +%s%3N) - began))
	code=0
	wait "$runner" || code=$?
	keep_result "$result"
	want_exit 0 "$size"
	[ "$most" -gt 0 ] && [ "$most" -lt 65536 ] || fail "the gateway had $most KiB"
	want ".network[0].received_bytes >= $size"
	[ "$through" -lt $((direct * 2 + 1000)) ] || fail "$through ms through the gateway, $direct ms without"
}

@test "the gateway is killed: nothing passes any more, and the result says so" {
	needs landlock
	internet
	allow allowed.test:22
	cat >wait.py <<-'END'
		import os, socket, time
		s = socket.create_connection(("allowed.test", 22), 20)
		s.settimeout(60)
		print(s.recv(100))
		open("/tmp/out/there", "w").close()
		try:
		    print(s.recv(100))
		except OSError:
		    print("reset")
		try:
		    socket.create_connection(("allowed.test", 22), 5)
		    print("connected")
		except OSError:
		    print("refused")
	END
	mkdir "$top/out"
	policy_is <<-END
		network: {allow: ["allowed.test:22"]}
		filesystem: {write: ["$top/out"]}
	END
	sed -i "s|/tmp/out|$top/out|" wait.py
	in_background -- python3 -I -S wait.py
	until_there "$top/out/there"
	find_gateway
	# The kernel keeps 15 bytes of a name.
	local resolver
	resolver=$(pgrep -P "$runner" -x agentbox-resolv)
	kill -KILL "$gateway"
	code=0
	wait "$runner" || code=$?
	keep_result "$result"
	[ "$code" = 0 ]
	# The result is there, and neither of the two is.
	[ ! -e "/proc/$gateway" ]
	[ ! -e "/proc/$resolver" ]
	want '.stdout | endswith("refused\n")' '.warnings | length > 0'
	count_logged '^tcp .* 22$' 1
}
