# Sessions that keep their processes: what lives on, what ends, and who may reach it.
# shellcheck shell=bash disable=SC2154,SC2016,SC2317,SC2034,SC2030,SC2031
load helpers
load sessions

# No keeper outlives its test, whatever became of it.
teardown() {
	local pid
	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || true
	done
	[ ! -e "${sessions-/nonexistent}" ] || kill_keepers
}

kill_keepers() {
	local record pid
	for record in "$sessions"/*/keeper; do
		[ -e "$record" ] || continue
		read -r pid _ <"$record"
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != agentbox-keeper ] || kill -KILL "$pid"
	done
}

# kept [TEXT]: a session s whose policy keeps processes, with TEXT as more of it.
kept() {
	own_state
	policy_is <<-END
		filesystem: {workspace: overlay}
		session: {processes: keep}
		${1-}
		END
	plain session new s -p "$policy"
	want_plain 0
}

# in_s ARGS...: a command in the session; leaves what `box` leaves.
in_s() {
	local start
	start=$(date +%s%3N)
	code=0
	"$AGENTBOX" session exec s "$@" >"$result" 2>"$words" || code=$?
	took_ms=$(($(date +%s%3N) - start))
	keep_result "$result"
}

keeper_of() {
	local pid
	read -r pid _ <"$sessions/$1/keeper"
	echo "$pid"
}

state_of() {
	"$AGENTBOX" session ls --json | jq -r --arg name "$1" '.sessions[] | select(.name == $name) | .state'
}

# until COMMAND...: waits until it succeeds.
until_so() {
	local _
	for _ in $(seq "$(slow 500)"); do
		! "$@" || return 0
		sleep 0.02
	done
	fail "never so: $*"
}

ended() {
	! running "$1"
}

gone() {
	[ ! -e "/proc/$1" ] || grep -q '^State:	Z' "/proc/$1/status"
}

@test "what a command leaves lives on, and the next ones find it" {
	kept
	nap=$(odd_sleep)
	in_s -- sh -c "sleep $nap & echo \$! >/tmp/pid; readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/mnt >/tmp/ns"
	want_exit 0 ''
	quickly 10000
	want '.leftover_killed == 0'
	[ "$(state_of s)" = running ]
	running "sleep $nap"
	in_s -- sh -c 'kill -0 "$(cat /tmp/pid)" && readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/mnt | cmp - /tmp/ns'
	want_exit 0
	in_s -- sh -c 'kill "$(cat /tmp/pid)"'
	want_exit 0
	until_so ended "sleep $nap"
	[ "$(state_of s)" = running ]
	plain session rm s
	want_plain 0
	[ -z "$(ls -A "$sessions")" ]
}

@test "the next command talks to a server of the former" {
	kept
	cat >"$work/serve.py" <<-'END'
		import os, socket
		one = socket.create_server(("127.0.0.1", 8080))
		two = socket.socket(socket.AF_UNIX)
		two.bind("\0abstract")
		two.listen()
		if os.fork():
		    os._exit(0)
		os.setsid()
		while True:
		    for s in one, two:
		        c, _ = s.accept()
		        c.sendall(b"served")
		        c.close()
		        print("to nobody", flush=True)
		END
	cat >"$work/ask.py" <<-'END'
		import socket
		a = socket.create_connection(("127.0.0.1", 8080))
		b = socket.socket(socket.AF_UNIX)
		b.connect("\0abstract")
		print(a.recv(10).decode(), b.recv(10).decode())
		END
	in_s -- "$python" -I serve.py
	want_exit 0 ''
	# Its stdout is nobody's any more, and still not closed.
	for _ in 1 2 3; do
		in_s -- "$python" -I ask.py
		want_exit 0 'served served'
	done
	plain session rm s
	want_plain 0
}

@test "A53: a pipeline ends with the command, although the session lives on" {
	kept
	nap=$(odd_sleep)
	start=$(date +%s%3N)
	"$AGENTBOX" session exec s -- sh -c "sleep $nap & echo done" | cat >"$result"
	took_ms=$(($(date +%s%3N) - start))
	quickly 10000
	want '.stdout == "done\n"'
	running "sleep $nap"
	# The keeper, and what answers for the sleeper: nothing of the caller's is left in them.
	found=0
	for dir in /proc/[0-9]*; do
		[[ $(cat "$dir/comm" 2>/dev/null) = agentbox-@(keeper|hold) ]] &&
			grep -qz "^XDG_STATE_HOME=$top/" "$dir/environ" 2>/dev/null || continue
		found=$((found + 1))
		not sh -c "ls -l $dir/fd | grep -E 'pts|$top/(res|words|work)'"
		[ "$(readlink "$dir/cwd")" = / ]
		for fd in 0 1 2; do
			[ "$(readlink "$dir/fd/$fd")" = /dev/null ]
		done
	done
	[ "$found" = 2 ]
	not grep -q "$nap" "/proc/$(keeper_of s)/cmdline"
}

@test "A72: a time limit ends one command with all that it began, and nothing else" {
	kept
	stays=$(odd_sleep) goes=$(odd_sleep)
	in_s -- sh -c "sleep $stays & echo x >/tmp/keep"
	want_exit 0
	# Twice forked, in sessions of their own, deaf to SIGTERM.
	in_s --wall 1s -- sh -c "trap '' TERM; (setsid setsid sh -c 'trap \"\" TERM; sleep $goes & sleep $goes' & ) & sleep $goes"
	want '.status == "timeout" and .limits_hit == ["wall"] and .leftover_killed >= 2'
	[ "$code" = 124 ]
	not running "sleep $goes"
	running "sleep $stays"
	in_s -- cat /tmp/keep
	want_exit 0 x
	# The command itself ends in time at SIGTERM: what it left does not outlive its limit either.
	in_s --wall 1s -- sh -c "(trap '' TERM; setsid sleep $goes) & sleep 60"
	want '.status == "timeout"'
	not running "sleep $goes"
	running "sleep $stays"
}

@test "a command that runs from its end, from process to process, does not outlive its limit" {
	kept 'limits: {pids: 64}'
	stays=$(odd_sleep)
	in_s -- sh -c "sleep $stays & echo x >/tmp/keep"
	cat >"$work/hop.py" <<-'END'
		import os, signal
		signal.signal(signal.SIGTERM, signal.SIG_IGN)
		for _ in range(4):
		    if os.fork() == 0:
		        os.setsid()
		        while True:
		            if os.fork():
		                os._exit(0)
		import time
		time.sleep(100)
		END
	in_s --wall 1s -- "$python" -I hop.py
	want '.status == "timeout"'
	not running hop.py
	# If nothing else would have helped the box is gone with it, and says so.
	[ "$(state_of s)" = broken ] || running "sleep $stays"
}

@test "other limits, refused calls and signals end one command with all that it began" {
	kept 'limits: {output: 1KiB, output_action: kill}'
	stays=$(odd_sleep) goes=$(odd_sleep)
	in_s -- sh -c "sleep $stays & echo x >/tmp/keep"
	want_exit 0
	in_s -- sh -c "setsid sleep $goes & yes"
	want '.status == "limit" and .limits_hit == ["output"]'
	not running "sleep $goes"
	in_s -- sh -c "setsid sleep $goes & kill -KILL -1"
	want '.status == "signaled" and .signal == "SIGKILL" or .signal == 9'
	not running "sleep $goes"
	running "sleep $stays"
	in_s -- cat /tmp/keep
	want_exit 0 x
}

@test "the caller's signal, or its death, ends the command and not the session" {
	kept
	stays=$(odd_sleep) goes=$(odd_sleep)
	in_s -- sh -c "sleep $stays & echo x >/tmp/keep"
	for signal in INT TERM KILL; do
		"$AGENTBOX" session exec s -- sh -c "setsid sleep $goes & sleep $goes" >"$result" 2>"$words" &
		client=$!
		until_so running "sleep $goes"
		kill "-$signal" "$client"
		wait "$client" || true
		until_so ended "sleep $goes"
		[ "$signal" = KILL ] || want '.status == "cancelled"'
	done
	running "sleep $stays"
	in_s -- cat /tmp/keep
	want_exit 0 x
}

@test "A72: commands run side by side, and their outputs are their own" {
	kept
	for i in 1 2 3 4 5 6; do
		"$AGENTBOX" session exec s -- sh -c "touch /tmp/up.$i
			while [ \$(ls /tmp/up.* | wc -l) -lt 6 ]; do sleep 0.02; done
			i=0; while [ \$i -lt 200 ]; do echo $i; echo e$i >&2; i=\$((i + 1)); done; exit $i" \
			>"$top/result.$i" 2>/dev/null &
	done
	wait
	for i in 1 2 3 4 5 6; do
		jq -e --argjson i "$i" '.exit_code == $i and (.stdout | split("\n") | unique) == ["", ($i | tostring)]
			and (.stderr | split("\n") | unique) == ["", "e\($i)"] and (.stdout | length) == 400' "$top/result.$i"
	done
}

@test "the first commands of a session at once: one box is made" {
	kept
	for i in 1 2 3 4 5; do
		"$AGENTBOX" session exec s -- sh -c 'readlink /proc/self/ns/pid' >"$top/result.$i" &
	done
	wait
	[ "$(jq -r .stdout "$top"/result.? | sort -u | grep -c pid:)" = 1 ]
	jq -es 'length == 5 and all(.[]; .exit_code == 0)' "$top"/result.?
}

@test "50 commands in a row leave nothing but the session" {
	kept
	in_s -- true
	keeper=$(keeper_of s)
	before=$(find "/proc/$keeper/fd" | wc -l)
	for i in $(seq 50); do
		"$AGENTBOX" session exec s -- sh -c "echo $i >>n; mv n m; mv m n; wc -l <n"
	done >"$top/all"
	[ "$(jq -r '.stdout | rtrimstr("\n")' "$top/all" | tr '\n' ' ')" = "$(seq -s ' ' 50) " ]
	[ "$(keeper_of s)" = "$keeper" ]
	until_so test "$(find "/proc/$keeper/fd" | wc -l)" = "$before"
	in_s -- sh -c 'ls -d /proc/[0-9]* | wc -l'
	want_exit 0
	# init, the reaper, what renames or not, the shell and its two.
	want '(.stdout | tonumber) <= 6'
}

@test "renames go on for what a command left" {
	kept
	mkdir "$work/dir"
	echo x >"$work/dir/file"
	in_s -- sh -c 'mv dir dir.1; mv dir.1 dir; (while [ ! -e go ]; do sleep 0.05; done; mv dir dir.2; mv dir.2 dir.3; echo $? >done) &'
	want_exit 0
	in_s -- sh -c 'touch go; until [ -e done ]; do sleep 0.05; done; cat done dir.3/file'
	want_exit 0 $'0\nx'
}

@test "what a command left is refused what the policy refuses" {
	kept
	in_s -- sh -c '(until [ -e go ]; do sleep 0.05; done; mount -t tmpfs none /tmp; unshare -U true; echo $? >done) 2>err &'
	want_exit 0
	in_s -- sh -c 'touch go; until [ -e done ]; do sleep 0.05; done; cat done err'
	want_exit 0
	want '.stdout | test("(not permitted|denied)")'
}

@test "B08: a joining command is confined like any other" {
	kept
	in_s -- sh -c 'sleep 100 & grep -E "Seccomp:|NoNewPrivs|CapEff|CapBnd" /proc/self/status; cat /proc/self/cgroup'
	cp "$result" "$top/first"
	in_s -- sh -c 'grep -E "Seccomp:|NoNewPrivs|CapEff|CapBnd" /proc/self/status; cat /proc/self/cgroup'
	want '.stdout | test("CapEff:\t0+\n") and test("CapBnd:\t0+\n") and test("NoNewPrivs:\t1") and test("Seccomp:\t2")'
	[ "$(jq .stdout "$top/first")" = "$(jq .stdout "$result")" ]
	in_s -- sh -c "find / -name '*agentbox*' -writable 2>/dev/null; ls -A $sessions 2>/dev/null; ls /proc/1/fd /proc/1/cwd 2>/dev/null; true"
	want_exit 0 ''
	# The reaper's and init's memory and descriptors are out of reach.
	in_s -- sh -c 'for p in /proc/[0-9]*; do case $(cat $p/comm) in agentbox*) cat $p/environ $p/mem; ls $p/fd;; esac; done 2>/dev/null | wc -c'
	want_exit 0 0
}

@test "B01: a command has its three descriptors, whoever joins" {
	kept
	exec 9<"$work" 8<<<x
	in_s -- sh -c 'ls /proc/self/fd | tr "\n" " "'
	want_exit 0 '0 1 2 3 '
	in_s -- sh -c 'sleep 100 & ls -l /proc/self/fd'
	want '.stdout | test("socket|memfd|layer") | not'
	echo in | "$AGENTBOX" session exec s -i -- cat >"$result"
	want '.stdout == "in\n"'
	in_s -- cat
	want_exit 0 ''
	"$AGENTBOX" session exec s --result "$top/live.json" -- sh -c 'echo out; echo err >&2; exit 3' >"$top/out" 2>"$top/err" || true
	[ "$(cat "$top/out")" = out ]
	[ "$(cat "$top/err")" = err ]
	jq -e '.exit_code == 3' "$top/live.json"
}

@test "what fails before the command runs is told, and harms nobody" {
	kept
	stays=$(odd_sleep)
	in_s -- sh -c "sleep $stays &"
	in_s -- nosuchcommand
	want_error command_not_found
	in_s --cwd /nonexistent -- true
	want_error bad_cwd
	in_s -e A=b -- sh -c 'echo $A; ulimit -n; umask; pwd'
	want_exit 0
	want ".stdout | startswith(\"b\\n1024\\n\") and endswith(\"$work\\n\")"
	in_s --open-files 100 -- sh -c 'ulimit -n'
	want_exit 0 100
	printf 'echo shell $1\n' >"$work/script"
	chmod 755 "$work/script"
	in_s -- ./script arg
	want_exit 0 'shell arg'
	running "sleep $stays"
}

@test "options and keys that a box which is there cannot have are refused by name" {
	kept
	for option in --cpu=1s --memory=1GiB --pids=5 --disk=1MiB --cpus=1 --keep-changes --apply; do
		in_s "$option" -- true
		want_error unsupported
		want ".error.message | startswith(\"${option%=*} \")"
	done
	[ "$(state_of s)" = ready ]
	printf 'version: 1\nsession: {processes: keep}\nlimits:\n  cpu: 5s\n' >"$policy"
	plain session new t -p "$policy"
	want_plain 0
	"$AGENTBOX" session exec t -- true >"$result" 2>"$words" || true
	want '.error.code == "unsupported" and (.error.message | test("limits.cpu")) and .error.line >= 1'
	printf 'version: 1\nsession: {processes: keep}\nnetwork: {allow: ["example.com:443"]}\n' >"$policy"
	plain session new u -p "$policy"
	want_plain 0
	"$AGENTBOX" session exec u -- true >"$result" 2>"$words" || true
	want '.error.code == "unsupported" and (.error.message | test("network.allow"))'
	# A plain run keeps nothing, whatever the policy says of sessions.
	policy_is <<<'session: {processes: keep}'
	nap=$(odd_sleep)
	box sh -c "sleep $nap &"
	want_exit 0
	not running "sleep $nap"
}

@test "a killed keeper takes the box along, shows as broken, and rm cleans up" {
	kept
	nap=$(odd_sleep) left=$(odd_sleep)
	in_s -- sh -c "setsid sleep $left & echo x >kept"
	want_exit 0
	"$AGENTBOX" session exec s -- sleep "$nap" >"$result" 2>"$words" &
	client=$!
	# The command itself, and not what the former left: before it begins, the end is another.
	until_so running "^sleep $nap"
	kill -KILL "$(keeper_of s)"
	until_so ended "sleep $nap"
	until_so ended "sleep $left"
	code=0
	wait "$client" || code=$?
	[ "$code" = 137 ]
	want '.status == "signaled" and ([.warnings[].code] | index("box_killed"))'
	until_so test "$(state_of s)" = broken
	in_s -- true
	want_error session_broken
	want_hint
	plain session rm s
	want_plain 0
	[ -z "$(ls -A "$sessions")" ]
}

@test "a keeper that is asked to end leaves a session that is whole" {
	kept
	nap=$(odd_sleep)
	in_s -- sh -c "sleep $nap & echo x >/tmp/x"
	keeper=$(keeper_of s)
	kill -TERM "$keeper"
	until_so gone "$keeper"
	until_so ended "sleep $nap"
	[ "$(state_of s)" = ready ]
	in_s -- cat /tmp/x
	want_exit 0 x
	[ "$(keeper_of s)" != "$keeper" ]
	[ "$(state_of s)" = running ]
}

@test "rm while a command runs is refused, and while processes are kept it is not" {
	kept
	nap=$(odd_sleep)
	"$AGENTBOX" session exec s -- sh -c "touch /tmp/up; sleep $nap" >"$result" 2>"$words" &
	client=$!
	until_so running "^sleep $nap"
	plain session rm s
	want_plain 1 'in use'
	running "sleep $nap"
	kill -TERM "$client"
	wait "$client" || true
	in_s -- sh -c "setsid sleep $nap &"
	keeper=$(keeper_of s)
	plain session rm s
	want_plain 0
	not running "sleep $nap"
	gone "$keeper"
	[ -z "$(ls -A "$sessions")" ]
}

@test "rm right after a command that left a process finds nobody in the session" {
	kept
	for _ in 1 2 3 4 5 6 7 8; do
		in_s -- sh -c 'sleep 100 &'
		want_exit 0
		plain session rm s
		want_plain 0
		plain session new s -p "$policy"
		want_plain 0
	done
}

@test "commands and rm at the same time: each is done or refused" {
	kept
	for round in 1 2 3 4 5; do
		for i in 1 2 3; do
			"$AGENTBOX" session exec s -- echo "$i" >"$top/result.$i" 2>/dev/null &
		done
		"$AGENTBOX" session rm s >/dev/null 2>&1 || true
		wait
		for i in 1 2 3; do
			jq -e --arg i "$i" '.stdout == $i + "\n" or (.error.code | IN("session_not_found", "session_busy", "session_broken", "box_died"))' "$top/result.$i"
		done
		plain session rm s
		[ ! -e "$sessions/s" ]
		plain session new s -p "$policy"
		want_plain 0
	done
}

@test "a stopped keeper is ended by rm all the same" {
	kept
	nap=$(odd_sleep)
	in_s -- sh -c "sleep $nap &"
	keeper=$(keeper_of s)
	kill -STOP "$keeper"
	plain session rm s
	want_plain 0
	until_so ended "sleep $nap"
	[ -z "$(ls -A "$sessions")" ]
}

@test "a link, a file or a stranger's socket at the socket's place is refused" {
	kept
	in_s -- true
	keeper=$(keeper_of s)
	mv "$sessions/s/socket" "$top/socket"
	ln -s "$top/socket" "$sessions/s/socket"
	in_s -- true
	want_error session_broken
	rm "$sessions/s/socket"
	echo x >"$sessions/s/socket"
	in_s -- true
	want_error session_broken
	mv "$top/socket" "$sessions/s/socket"
	in_s -- true
	want_exit 0
	# A socket that nobody listens on is a dead keeper's; a stranger's answer is none.
	kill -TERM "$keeper"
	until_so gone "$keeper"
	"$python" - "$sessions/s/socket" "$top/forged" <<-'END' &
		import os, socket, sys
		os.chdir(os.path.dirname(sys.argv[1]))
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.bind("socket")
		s.listen()
		open(sys.argv[2], "w").close()
		while True:
		    c, _ = s.accept()
		    while c.recv(4096):
		        c.send(b"nonsense" * 40)
		END
	until_there "$top/forged"
	in_s -- true
	want_error session_broken
}

@test "nonsense to a keeper harms nobody but who sends it" {
	kept
	stays=$(odd_sleep)
	in_s -- sh -c "sleep $stays &"
	"$python" - "$sessions/s" <<-'END'
		import array, os, socket, struct, sys
		os.chdir(sys.argv[1])
		lock = os.open("lock", os.O_RDWR)
		def send(data, fds=(), hello=True):
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    s.settimeout(20)
		    s.connect("socket")
		    if hello:
		        socket.send_fds(s, [head(32)], [lock])
		    with_fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
		    s.sendmsg([data], with_fds)
		    try:
		        return s, s.recv(4096)
		    except ConnectionResetError:
		        return s, b""
		def head(kind):
		    return struct.pack("II", 0x61626f78, kind)
		for data in b"", b"x", b"\0" * 8, b"\xff" * 4096, head(99), head(1) + b"x" * 100:
		    if data:
		        assert send(data)[1] == b"", data
		# Without a word of greeting, or with a descriptor that is not the lock or cannot be written.
		assert send(head(33), [lock], False)[1] == b""
		assert send(head(34), (), False)[1] == b""
		for fd in os.open("lock", os.O_RDONLY), os.open("lock", os.O_PATH), os.open("meta", os.O_RDWR):
		    assert send(head(32), [fd], False)[1] == b""
		kinds = range(1, 40)
		for kind in kinds:
		    if kind not in (33, 34):
		        assert send(head(kind))[1] == b"", kind
		        assert send(head(kind) + b"\0" * 4)[1] == b"", kind
		# A command without a descriptor, with too many, with one that is no socket, with a dead one.
		null = os.open("/dev/null", os.O_RDWR)
		assert send(head(33))[1] == b""
		assert send(head(33), [null] * 3)[1] == b""
		send(head(33), [null])
		a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s, _ = send(head(33), [b.fileno()])
		a.send(b"nonsense")
		b.close()
		a.settimeout(20)
		try:
		    while a.recv(4096):
		        pass
		except ConnectionResetError:
		    pass
		keep = [send(head(33), [null])[0] for _ in range(20)]
		END
	in_s -- echo fine
	want_exit 0 fine
	running "sleep $stays"
	plain session rm s
	want_plain 0
}

@test "B08: a box that is shown the session's directory does not reach its keeper" {
	kept
	plain session rm s
	policy_is <<-END
		filesystem: {read: [$top/state]}
		session: {processes: keep}
		END
	plain session new s -p "$policy"
	want_plain 0
	stays=$(odd_sleep)
	in_s -- sh -c "sleep $stays &"
	cat >"$work/reach.py" <<-'END'
		import os, socket, struct, sys
		os.chdir(sys.argv[1])
		def opened(flags):
		    try:
		        return os.open("lock", flags)
		    except OSError:
		        return None
		def ask(*messages):
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    s.settimeout(20)
		    try:
		        s.connect("socket")
		        for kind, fds in messages:
		            socket.send_fds(s, [struct.pack("II", 0x61626f78, kind)], fds)
		        return s.recv(100) == b""
		    except OSError:
		        return True
		a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		ways = [fd for fd in map(opened, (os.O_RDONLY, os.O_PATH)) if fd is not None]
		crowd = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(300)]
		if ways:
		    for s in crowd:
		        s.set_inheritable(True)
		        s.connect("socket")
		if os.fork() == 0:
		    os.setsid()
		    os.execlp("sleep", "sleep", "60")
		print(opened(os.O_RDWR), ask((34, ())), ask((33, (b.fileno(),))),
		      all(ask((32, (fd,)), (34, ())) for fd in ways))
		END
	in_s -- "$python" -I reach.py "$sessions/s"
	want_exit 0 'None True True True'
	running "sleep $stays"
	in_s -- echo fine
	want_exit 0 fine
}

@test "another user reaches no keeper" {
	needs root
	kept
	in_s -- true
	# Even with a way to the socket that the directories' modes close.
	chmod 777 "$sessions/s/socket"
	"$python" - "$sessions/s/socket" <<-'END'
		import os, socket, struct, sys
		place = os.open(sys.argv[1], os.O_PATH)
		os.setgroups([])
		os.setresgid(12345, 12345, 12345)
		os.setresuid(12345, 12345, 12345)
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.settimeout(20)
		s.connect("/proc/self/fd/%d" % place)
		try:
		    s.send(struct.pack("II", 0x61626f78, 34))
		    assert s.recv(4096) == b""
		except (BrokenPipeError, ConnectionResetError):
		    pass
		END
	in_s -- echo fine
	want_exit 0 fine
}

@test "a command that ends its reaper ends its session, and nothing gets away" {
	kept
	nap=$(odd_sleep)
	in_s -- sh -c "setsid sleep $nap & for p in /proc/[0-9]*; do [ \"\$(cat \$p/comm)\" != agentbox-reaper ] || kill -KILL \${p#/proc/}; done; sleep $nap"
	want '.status == "signaled"'
	until_so ended "sleep $nap"
	until_so test "$(state_of s)" = broken
	plain session rm s
	want_plain 0
}

@test "a stopped reaper is as a killed one: the whole box ends, and nobody lives on unwatched" {
	kept
	nap=$(odd_sleep)
	in_s --wall 60s -- sh -c "for p in /proc/[0-9]*; do [ \"\$(cat \$p/comm)\" != agentbox-reaper ] || kill -STOP \${p#/proc/}; done; sleep $nap"
	want '.status == "signaled" and [.warnings[].code] == ["box_killed"]'
	until_so ended "sleep $nap"
	plain session rm s
	want_plain 0
}

@test "the end reaches a process whose first thread has ended before the others, and no other command" {
	kept
	nap=$(odd_sleep)
	in_s -- sh -c "sleep $nap &"
	in_s --wall 1s -- python3 -c 'import ctypes, threading, time
threading.Thread(target=time.sleep, args=(99,)).start()
ctypes.CDLL(None).syscall(60, 0)'
	want '.status == "timeout" and .duration_ms < 9000'
	in_s -- echo there
	want '.stdout == "there\n"'
}

@test "files of a session are read while its box is kept, diff and changes too; writing waits for rm" {
	kept
	in_s -- sh -c 'echo x >new; sleep 100 &'
	want '[.changes[].path] == ["new"]'
	plain read s new
	want_plain 0 x
	plain diff s
	want_plain 0 new
	plain write s other <<<y
	want_plain 1 'in use'
}

# bats test_tags=vm
@test "no command can be started where the former use up all processes, and that is told" {
	needs cgroup
	kept 'limits: {pids: 12}'
	nap=$(odd_sleep)
	in_s -- sh -c "i=0; while [ \$i -lt 30 ]; do sleep $nap & i=\$((i + 1)); done"
	in_s -- true
	want_error no_resources
	want_hint
	[ "$(state_of s)" = running ]
	for dir in /proc/[0-9]*; do
		[ "$(cat "$dir/comm" 2>/dev/null)" != agentbox-hold ] ||
			not grep -qz "^XDG_STATE_HOME=$top/" "$dir/environ" 2>/dev/null || kill "${dir#/proc/}"
	done
	until_so ended "sleep $nap"
	in_s -- echo again
	want_exit 0 again
}

# bats test_tags=vm
@test "memory and processes are the whole box's, where a group holds them" {
	needs cgroup
	kept 'limits: {memory: 64MiB, pids: 40}'
	nap=$(odd_sleep)
	in_s -- sh -c "sleep $nap &"
	want_exit 0
	want '.enforcement.cgroup != "none"'
	in_s -- "$python" -I -c 'x = bytearray(200 << 20)'
	want '.status == "limit" and .limits_hit == ["memory"]'
	[ "$code" = 137 ]
	in_s -- "$python" -I -c 'x = bytearray(1 << 20); print(len(x))'
	want_exit 0 1048576
	want '.limits_hit == []'
	running "sleep $nap"
	keeper=$(keeper_of s)
	kill -KILL "$keeper"
	until_so ended "sleep $nap"
	plain gc
	want_plain 0
	[ -z "$(groups_left "$keeper")" ]
}
