# The tests' own internet, tried without a box; and the program that looks names up for boxes.
load helpers
load network

@test "the internet serves its names by datagrams and streams, and logs each question" {
	internet
	[ "$(there getent ahostsv4 allowed.test | awk '{print $1; exit}')" = 203.0.113.1 ]
	[ "$(there getent ahostsv6 six.test | awk '{print $1; exit}')" = 2001:db8::6 ]
	[ "$(there getent ahostsv4 many.test | awk '$2 == "STREAM"' | sort -u | wc -l)" = 40 ]
	[ "$(there getent ahostsv4 deep.down.allowed.test | awk '{print $1; exit}')" = 203.0.113.2 ]
	[ "$(there getent ahostsv4 fromhosts.test | awk '{print $1; exit}')" = 203.0.113.9 ]
	[ "$(there getent ahostsv4 rebind.test | awk '{print $1; exit}')" = 198.51.100.7 ]
	[ "$(there getent ahostsv4 rebind.test | awk '{print $1; exit}')" = 127.0.0.1 ]
	not there getent ahostsv4 nothing.invalid.
	logged '^dns A allowed.test udp$'
	logged '^dns A many.test tcp$'
	logged '^dns A nothing.invalid udp$'
	not_logged 'fromhosts'
	LC_ALL=C grep -qaF "$(printf '\07allowed\04test')" "$net/packets"
}

@test "the internet's servers answer, also behind TLS, and log what they were asked" {
	needs curl openssl
	internet
	[ "$(there curl -sS http://allowed.test/x)" = "GET /x allowed.test" ]
	logged '^tcp (203.0.113.1|2001:db8::1) 80$'
	logged '^http (203.0.113.1|2001:db8::1) 80 GET /x allowed.test$'
	[ "$(there curl -sS --cacert "$net/ca.pem" https://plain.test/y)" = "GET /y plain.test" ]
	logged '^tls 203.0.113.3 plain.test$'
	not there curl -sS -m 20 https://plain.test/y
	[ "$(there curl -sS http://10.1.2.3/ http://169.254.169.254/ | wc -l)" = 2 ]
	[ "$(there curl -sS http://allowed.test/size/3000000 | wc -c)" = 3000000 ]
	[ "$(there curl -sS -d abc http://allowed.test/post http://allowed.test/again | wc -l)" = 2 ]
	count_logged '^tcp .* 80$' 5
	echo found >"$net/www/file"
	[ "$(there curl -sS http://allowed.test/www/file)" = found ]
	there "$python" -I -c 'import socket
s = socket.create_connection(("allowed.test", 22), 20)
assert s.recv(100) == b"SSH-2.0-test\r\n"
s.sendall(b"echo"); assert s.recv(4) == b"echo"'
}

@test "the internet leads nowhere else, and nothing of it is left" {
	internet
	not there "$python" -I -c 'import socket; socket.create_connection(("8.8.8.8", 53), 20)'
	[ "$(readlink "/proc/$internet_pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]
	kill -KILL "$internet_pid"
	for _ in $(seq "$(slow 600)"); do
		kill -0 "$internet_pid" 2>/dev/null || break
		sleep 0.05
	done
	not there true 2>/dev/null
	not grep -q "$net" /proc/self/mountinfo
}

# resolve NAME...: asks the helper in one burst, prints "NAME STATUS ADDRESS..." in the order of the names.
resolve() {
	there env "${resolve_env[@]}" "$python" -I -S "$BATS_TEST_DIRNAME/resolve.py" "$helper" "$@"
}

with_helper() {
	helper=$(libexec)/agentbox-resolve
	resolve_env=(-i)
	[ -x "$helper" ] || fail "$helper is not there"
	internet
}

@test "names are looked up as on the host: the hosts file, names of the internet, both families" {
	needs landlock
	with_helper
	resolve localhost fromhosts.test allowed.test six.test nothing.invalid many.test >"$top/out"
	grep -qE '^localhost 0 .*127\.0\.0\.1' "$top/out"
	grep -qx 'fromhosts.test 0 203.0.113.9' "$top/out"
	grep -E '^allowed.test 0 ' "$top/out" | grep -F 203.0.113.1 | grep -qF 2001:db8::1
	grep -qx 'six.test 0 2001:db8::6' "$top/out"
	grep -qx 'nothing.invalid 1' "$top/out"
	# Forty are there, and an answer has room for 32.
	[ "$(grep '^many.test 0 ' "$top/out" | wc -w)" = 34 ]
}

@test "a name is looked up as it is: no search list for one with a dot, and the caller's for one without" {
	needs landlock
	with_helper
	[ "$(resolve nothing.invalid absent.evil.invalid)" = $'nothing.invalid 1\nabsent.evil.invalid 1' ]
	not_logged 'corp.test'
	[[ "$(resolve alone)" == "alone 0 "*203.0.113.66* ]]
	logged '^dns A alone.corp.test'
	# The same thread answers both kinds, in either order.
	[[ "$(resolve alone nothing.invalid alone)" == *$'\nnothing.invalid 1\n'* ]]
	not_logged 'invalid.corp.test'
}

@test "of the environment only what the caller may tell its resolver counts" {
	needs landlock
	with_helper
	resolve_env=(-i LOCALDOMAIN=allowed.test "HOSTALIASES=$top/aliases" LD_PRELOAD=)
	echo 'alone evil.test' >"$top/aliases"
	[ "$(resolve alone)" = 'alone 0 203.0.113.2' ]
	not_logged ' evil.test '
}

@test "at most 8 names are looked up at once, 64 wait, and what is more is answered at once" {
	needs landlock
	with_helper
	resolve_env+=(RES_OPTIONS=timeout:5)
	local names=(silent.test silent.test silent.test silent.test silent.test silent.test silent.test silent.test)
	mapfile -t more < <(seq -f 'n%g.allowed.test' 100)
	resolve "${names[@]}" "${more[@]}" >"$top/out"
	[ "$(wc -l <"$top/out")" = 108 ]
	[ "$(grep -c '^silent.test 2$' "$top/out")" = 8 ]
	# Those that waited are answered when there is room (of the 64, some of the 8 may have been the first); the
	# rest was told to come again.
	[ "$(grep -cE '^n[0-9]+.allowed.test 0 203.0.113.2$' "$top/out")" -ge 56 ]
	[ "$(grep -cE '^n[0-9]+.allowed.test 2$' "$top/out")" -ge 1 ]
	[ "$(grep -cE '^n[0-9]+.allowed.test (0 203.0.113.2|2)$' "$top/out")" = 100 ]
}

@test "the look-up program is confined, without rights, and ends with its other end or at nonsense" {
	needs landlock
	with_helper
	there "$python" -I -S "$BATS_TEST_DIRNAME/resolve.py" "$helper" --confined >"$top/out"
	grep -qx 'NoNewPrivs 1' "$top/out"
	grep -qx 'Seccomp 2' "$top/out"
	grep -qx 'CapEff 0000000000000000' "$top/out"
	grep -qx 'CapPrm 0000000000000000' "$top/out"
	if [ "$(id -u)" = 0 ]; then
		grep -qx 'Uid 54321 54321 54321 54321' "$top/out"
		grep -qx 'Groups' "$top/out"
	fi
	grep -qx 'ended 0' "$top/out"
	grep -qx 'short 6' "$top/out"
	grep -qx 'long 6' "$top/out"
	grep -qx 'name 6' "$top/out"
	grep -qx 'address 6' "$top/out"
	grep -qx 'unread 0' "$top/out"
	not grep '^usage [^2]' "$top/out"
}
