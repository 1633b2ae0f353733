# What a box with a list of hosts sends out, and what hostile, slow and starved ends of it lead to.
load helpers
load network

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

@test "whatever comes slowly, endlessly, in pieces or never is ended in time, and holds up nobody else" {
	needs landlock openssl
	internet quiet
	cp "$net/ca.pem" .
	allow 'allowed.test, "*.allowed.test:80"'
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
		case("dns endless", 53, send=endless(b"\xff\xff", b"\xff" * 65535))
		case("dns half", 53, send=[framed], shut=True)
		case("dns new", 53, send=[framed.replace(b"\0\x1e", b"\0\x20", 1).replace(b"\7a", b"\1n\7a")], shut=True)
		case("dns short", 53, send=[b"\0\0" * 100 + b"\0\1a"], shut=True)
		case("dns part", 53, 80, send=[framed[:7]])
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
		    time.sleep(0.01)
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
		# How each may end, and after how many seconds at least: what is held has 30.
		expected = {"bytewise": ("data", 0), "half": ("reset end", 0), "part": ("reset end", 25), "drops": ("reset", 25),
		    "slow": ("reset", 25), "endless": ("reset end", 0), "line": ("reset", 0), "short": ("reset end", 0),
		    "dns half": ("data", 0), "new": ("data", 0), "dns part": ("reset end", 0)}
		assert len(ends) == 17, ends.keys()
		for name, list in ends.items():
		    hows, least = expected.get(name) or expected[name.split()[1]]
		    for how, n, t in list:
		        if how not in hows or n > 8 << 20 or not least <= t < 60 * int(os.environ["SLOW"]):
		            print(name, how, n, t)
		print("served", served > 3, worst < 20 * int(os.environ["SLOW"]))
	END
	box --wall "$(slow 150)s" -e "SLOW=$AGENTBOX_SLOW" -- python3 -I -S hostile.py
	want_exit 0 'served True True'
	refused network allowed.test:443 malformed
	refused network allowed.test:80 malformed
	# Of what was held nothing got there.
	not_logged '^tls .* -$'
	not grep -vE '^(dns|tcp|tls) |^http .* (80 GET /|443 GET /good) allowed.test$' "$net/log" >&2
	[ "$(grep -c '^http .* 80 ' "$net/log")" = 1 ]
}

@test "the gateway is stopped: nothing opens, each limit holds, and the result comes" {
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
		print(attempt(s.recv, 100), flush=True)
		attempt(socket.create_connection, ("203.0.113.66", 80), 2)
		if sys.argv[1] == "stays":
		    time.sleep(100)
	END
	local way began
	for way in stays ends; do
		rm -f "$top/out/"*
		began=$(date +%s%3N)
		# What ends has time for it, also on a busy machine.
		in_background --wall "$([ "$way" = stays ] && echo 6 || slow 60)s" -- python3 -I -S still.py "$way"
		until_there "$top/out/there"
		find_gateway
		kill -STOP "$gateway"
		touch "$top/out/stopped"
		code=0
		wait "$runner" || code=$?
		# shellcheck disable=SC2034 # for quickly
		took_ms=$(($(date +%s%3N) - began))
		keep_result "$result"
		quickly 20000
		want '.network == []' '[.warnings[].code] == ["gateway_ended"]'
		if [ "$way" = stays ]; then
			want '.status == "timeout" and .limits_hit == ["wall"]' '.stdout | IN("", "TimeoutError\n")'
			[ "$code" = 124 ]
		else
			want_exit 0 TimeoutError
		fi
		not kill -0 "$gateway" 2>/dev/null
	done
	none_left '^udp .* 127\.0\.0\.1 53$|^udp 127\.0\.0\.1 53 '
	not_logged '^tcp'
}

@test "the gateway is killed in the midst of a transfer, the look-up program between two names" {
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
		curl -sS --limit-rate 10M -o "$top/out/much" http://allowed.test/size/100000000000; echo \$?
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
	keep_result "$result"
	want_exit 0
	want '.stdout | test("^GET /again plain.test\n(18|56)\n2\n$")' '[.warnings[].code] == ["gateway_ended"]' '.duration_ms < 40000'
	logged '^dns A plain.test'
	not_logged '^dns A a.allowed.test'
}

@test "with few descriptors a box has fewer connections, or does not begin; and the result tells" {
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
	for files in 8 12 16 20 24 32 64 256; do
		printf '#!/bin/sh\nulimit -n %s && exec %q "$@"\n' "$files" "$all" >"$top/few"
		chmod 755 "$top/few"
		AGENTBOX=$top/few
		printf 'network: {allow: ["allowed.test:80"]}\nlimits: {open_files: %s}\n' "$files" | policy_is
		box --wall 60s -- python3 -I -S many.py
		quickly 30000
		if [ "$code" = 125 ] && [ "$files" -lt 64 ]; then
			want_error no_resources network_failed
			want_hint
			want '.warnings == []'
		else
			want_exit 0 '8 True'
			carried allowed.test 80 8
		fi
		[ "$files" != 8 ] || [ "$code" = 125 ]
	done
}
