# What a hostile command tries, and does not get.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

@test "the probe sees its own namespaces, no capability, no privilege to gain, a filter" {
	probe probe
	box -- ./probe
	want_exit 0
	jq -r .stdout "$result" >"$top/seen"
	"$AGENTBOX_PROBES/probe-probe" >"$top/outside"
	local kind
	for kind in user mnt pid net ipc uts; do
		[ "$(jq -r ".ns.$kind" "$top/seen")" != "$(jq -r ".ns.$kind" "$top/outside")" ] ||
			fail "shares the host's $kind namespace"
	done
	sees '.status | .CapInh, .CapPrm, .CapEff, .CapBnd, .CapAmb | . == "0000000000000000"' 5
	sees '.status | .NoNewPrivs == "1" and .Seccomp == "2" and .SigBlk == "0000000000000000"'
	sees '.signals_not_default == []'
	sees '.interfaces == ["lo"]'
	sees '.has_terminal == false'
	sees '.hostname == "agentbox"'
	sees '.rlimits.core <= 1' # 1: not even a crash handler, by core(5)
	sees '.fds | keys == ["0", "1", "2"] and all(. == "pipe" or . == "character")'
	sees '.processes | length <= 3'
	sees '.shm == []'
	sees '[.mounts[] | select(.path == "/" or .path == "/usr") | .options | split(",") | index("ro")] | all'
	sees '[.mounts[] | select(.path | startswith("/dev/") | not) | .options | split(",") | index("nosuid")] | all'
}

# sees FILTER [COUNT]: what the probe reported.
sees() {
	[ "$(jq "$1" "$top/seen" | grep -c true)" = "${2-1}" ] || {
		echo "not so: $1" >&2
		jq . "$top/seen" >&2
		return 1
	}
}

@test "only what is granted can be written" {
	probe probe
	local place places=(/ /usr /usr/bin /etc /dev /proc /sys /var /opt /run /lib /tmp /dev/shm "$work" "$top" "$HOME")
	box -- ./probe "${places[@]}"
	want_exit 0
	jq -r .stdout "$result" >"$top/seen"
	for place in /tmp /dev/shm "$HOME"; do
		sees ".writable | index(\"$place\") != null"
	done
	for place in / /usr /usr/bin /etc /dev /proc /sys /var /opt /lib "$work"; do
		sees ".writable | index(\"$place\") == null"
	done
	[ -z "$(find "$top" -name '.probe-*')" ]
}

@test "B01: descriptors that the caller left open do not reach the command" {
	probe probe
	echo s3cret >secret.env
	exec 9</etc 8<secret.env 7>"$top/open" 200</dev/null
	box -- ./probe
	want_exit 0
	jq -r .stdout "$result" >"$top/seen"
	sees '.fds | keys == ["0", "1", "2"]'
	box -- sh -c 'cat <&8; ls /proc/self/fd/9/; ls -l /proc/1/fd/'
	exec 9<&- 8<&- 7>&- 200<&-
	want '.stdout + .stderr | contains("s3cret") | not' '.stdout == ""'
}

@test "B04: no process of the box leads to the agentbox program" {
	local before
	before=$(sha256sum "$AGENTBOX")
	box -- sh -c 'for p in /proc/[0-9]*/exe; do echo x >$p; done; cp /bin/sh /proc/1/exe; readlink /proc/1/exe; head -c 4 /proc/1/exe'
	[ "$(sha256sum "$AGENTBOX")" = "$before" ]
	want ".stdout | contains(\"$AGENTBOX\") | not"
}

tiocsti='import ctypes as c; l=c.CDLL(None,use_errno=True); [print(l.syscall(16,0,c.c_ulong(q),c.c_char_p(b"i")),c.get_errno()) for q in (0x5412,0x541C,0x100005412,0x700000541C)]'

@test "B06: characters cannot be pushed into the caller's terminal" {
	needs python3 script pty x86_64
	on_terminal "'$AGENTBOX' run -- python3 -c '$tiocsti' >'$result' 2>'$words'"
	keep_result "$result"
	want '.exit_code == 0' '.stdout | test("^(-1 (1|25)\n){4}$")'
	want_denied ioctl
	[ -z "$(cat "$top/terminal")" ]
}

@test "B06: characters cannot be pushed into a terminal of the box's own either" {
	needs python3 script pty x86_64
	on_terminal "'$AGENTBOX' run --tty --result '$result' -- python3 -c '$tiocsti'"
	keep_result "$result"
	want '.exit_code == 0'
	want_denied ioctl
	[ "$(grep -cE '^-1 (1|25)$' "$top/terminal")" = 4 ]
	not grep -q '^i' "$top/terminal"
}

@test "B10: the caller's environment is read nowhere in /proc" {
	export TOKEN=t0ps-$$
	box -- sh -c 'cat /proc/*/environ /proc/*/task/*/environ /proc/*/cmdline 2>/dev/null | tr "\0" "\n" | grep -c "^TOKEN="; ls -d /proc/[0-9]* | wc -l'
	want '.stdout | split("\n") | .[0] == "0" and (.[1] | tonumber) < 10'
	box -- sh -c 'cat /proc/1/environ | tr "\0" "\n" | grep TOKEN; cat /proc/*/mem /proc/1/maps /proc/kcore /dev/mem 2>/dev/null | head -c 100 | grep -c t0ps'
	want ".stdout | contains(\"$TOKEN\") | not"
}

@test "B12: a command cannot signal, stop or kill anything that judges it" {
	needs python3
	box -- python3 -c 'import os,signal; os.kill(-1,signal.SIGKILL)'
	want '.status == "signaled"' '.signal == "SIGKILL"' '.error == null' '.limits_hit == []'
	box -- sh -c 'kill -9 $PPID; kill -9 1; kill -STOP 1; sleep 1; echo alive'
	want_exit 0 alive
}

@test "B12: a signal to everything ends the box with its caller; by name it is the kernel's own" {
	box -- sh -c 'sleep 60 & sh -c "kill -9 -1"; echo alive'
	want '.status == "signaled"' '.stdout == ""' '.duration_ms < 20000'
	box -- sh -c 'sleep 60 & kill -TERM -1; wait; echo alive'
	want_exit 0 alive
	policy_is <<<'syscalls: {allow: [kill]}'
	box -- sh -c 'sleep 60 & kill -9 -1; wait; echo alive'
	want_exit 0 alive
	policy_is <<<'syscalls: {deny: [kill]}'
	box -- sh -c 'kill -9 -1; echo alive'
	want_exit 0 alive
	want_denied kill
}

@test "B13: no socket of the host is reachable" {
	box -- sh -c 'ls -d /run/user/*/bus /run/docker.sock /var/run/docker.sock /run/systemd/private /run/dbus/system_bus_socket /tmp/.X11-unix /tmp/tmux-* 2>/dev/null'
	want '.stdout == ""'
	box -- sh -c 'systemd-run --user touch /tmp/esc; systemd-run touch /tmp/esc'
	[ ! -e /tmp/esc ]
}

@test "B13: granting a service's socket is refused unless the policy says that it is dangerous" {
	needs python3
	"$python" -c "import socket as s; q = s.socket(s.AF_UNIX); q.bind('$top/service.sock'); q.listen()"
	policy_is <<-END
		filesystem: {read: [$top/service.sock]}
	END
	box -- touch /tmp/ran
	want_error dangerous_grant
	want '.error.line == 2' '.error.file | endswith("policy.yaml")' '.error.hint | contains("dangerous: true")'
	policy_is <<-END
		filesystem: {write: [{path: $top/service.sock, dangerous: true}]}
	END
	box -- true
	want_exit 0
	want '.warnings | map(select(.message | contains("service.sock"))) | length == 1'
	policy_is <<-'END'
		filesystem: {write: [/var/run/docker.sock]}
	END
	box -- true
	want_error dangerous_grant
}

@test "B13: the whole root, the whole home and other wide grants are refused" {
	local grant
	for grant in / '"~"' /proc /sys /dev; do
		policy_is <<<"filesystem: {write: [$grant]}"
		box -- true
		want_error dangerous_grant
	done
}

@test "B14: abstract sockets of the host are out of reach, also with the host's network" {
	needs python3 landlock
	local name=agentbox-$$-$RANDOM listener
	"$python" -c "import socket as s, time; q = s.socket(s.AF_UNIX); q.bind('\0$name'); q.listen(); print('up', flush=True); time.sleep(60)" >"$top/up" &
	listener=$!
	for _ in $(seq 100); do [ ! -s "$top/up" ] || break; sleep 0.05; done
	local try="import socket as s
	try: s.socket(s.AF_UNIX).connect('\0$name'); print('connected')
	except OSError as e: print(e.errno)"
	try=${try//$'\t'/}
	box -- python3 -c "$try"
	want_exit 0 111
	policy_is <<<'network: host'
	box -- python3 -c "$try"
	want_exit 0 1
	"$python" -c "import socket as s; s.socket(s.AF_UNIX).connect('\0$name')" # it was there all the time
	kill "$listener"
}

@test "B16: only UNIX, Internet and route sockets can be made" {
	needs python3
	local network
	for network in none host; do
		policy_is <<<"network: $network"
		box -- python3 -c 'import socket as s
for f in (40, *range(1, 46)):
    for kind in (1, 2, 3):
        try: s.socket(f, kind).close(); print(f)
        except OSError: pass'
		want_exit 0
		want '.stdout | split("\n") | map(select(. != "") | tonumber) | unique | . - [1, 2, 10, 16] == []'
		want '[.violations[] | select(.operation == "socket" and (.target | contains("40")))] | length == 1'
	done
}

@test "B16: raw sockets and netlink other than routes are refused" {
	needs python3
	policy_is <<<'network: host'
	box -- python3 -c 'import socket as s
for args in ((2, 3, 1), (10, 3, 58), (17, 3), (16, 3, 4), (16, 3, 9), (16, 3, 15)):
    try: s.socket(*args); print("made", args)
    except OSError as e: print("no")'
	want_exit 0 $'no\nno\nno\nno\nno\nno'
}

@test "B18: 32-bit and x32 system calls never reach the kernel" {
	needs x86_64
	local way
	probe foreign
	for way in i386-socket i386-ptrace x32-socket; do
		box -- ./foreign "$way"
		want '(.status == "signaled" and (.signal == 31 or .signal == "SIGSYS")) or (.stdout | endswith("ENOSYS\n"))
			or (.status == "signaled" and (.signal == 11 or .signal == "SIGSEGV"))'
		want '.stdout | contains("answered") | not'
		[ "$way" != x32-socket ] || want '.violations | length == 1'
		want '.violations | all(.operation | test("[0-9]"))'
	done
}

@test "B18: a 32-bit call is listed with its architecture and number" {
	needs x86_64
	probe foreign
	"$AGENTBOX_PROBES/probe-foreign" i386-socket | grep -q answered || skip "this kernel runs no 32-bit calls"
	box -- ./foreign i386-socket
	want '.violations | length == 1 and .[0].certain and (.[0].operation | contains("359"))'
	box -- ./foreign i386-ptrace
	want '.violations | length == 1 and (.[0].operation | contains("26"))'
}

@test "B20: namespaces and mounts by old and by new calls are refused and listed" {
	probe newcalls
	box -- ./newcalls
	want_exit 0
	want '.stdout | split("\n") | map(select(. != "") | split(" ") | {(.[0]): .[1]}) | add
		| .clone3 == "ENOSYS" and .io_uring_setup == "ENOSYS" and .future == "ENOSYS"
		and (del(.clone3, .io_uring_setup, .future) | all(. == "EPERM" or . == "ENOSYS"))
		and .unshare == "EPERM" and .clone == "EPERM" and .mount == "EPERM" and .fsopen == "EPERM" and .open_tree == "EPERM"'
	local name
	for name in clone3 clone unshare fsopen open_tree mount; do
		want_denied "$name"
	done
	want '.violations[] | select(.operation == "clone3") | .target == "CLONE_NEWUSER" and .count == 1 and .rule == "nesting"'
}

@test "B20: also with nesting allowed, the host's mounts stay out of reach" {
	policy_is <<<'nesting: allow'
	box -- unshare -Urm --propagation unchanged sh -c 'mount -o remount,rw,bind / 2>/dev/null && echo remounted; mount -o remount,rw,bind /usr 2>/dev/null && touch /usr/x 2>/dev/null && echo written; umount -l /proc 2>/dev/null && echo unmounted; true'
	want_exit 0 ''
	[ ! -e /usr/x ]
}

@test "B21: a second thread that changes a path in flight wins nothing" {
	probe race
	mkdir deny
	echo 'ok and more' >./ok
	echo S3CRET >deny/key
	policy_is <<-'END'
		filesystem: {workspace: read, hide: [deny/key]}
	END
	box -- ./race .////////ok ./deny//key 100000
	want_exit 0
	want '.stdout | test("^opened [0-9]+ refused [0-9]+ leaked 0\n$")'
}

@test "B25: a hard link is no way around hide, protect or a read-only grant" {
	mkdir "$top/ro" deny
	echo orig >"$top/ro/f"
	echo S3CRET >deny/key
	policy_is <<-END
		filesystem: {workspace: write, read: [$top/ro], hide: [deny/key]}
	END
	box -- sh -c "ln $top/ro/f ./alias && echo x >alias; ln deny/key ./k; cat k; mv deny/key k2; cat k2; cp deny/key k3; cat k3; ln -s deny/key k4; cat k4; true"
	want '.stdout | contains("S3CRET") | not'
	[ "$(cat "$top/ro/f")" = orig ]
	[ "$(cat deny/key)" = S3CRET ]
}

@test "B26: renaming a parent directory uncovers nothing" {
	local mode
	mkdir -p sub/deep
	for mode in write read; do
		echo S3CRET >sub/.env
		echo S3CRET >sub/deep/.env
		policy_is <<<"filesystem: {workspace: $mode, hide: [sub/.env, sub/deep]}"
		box -- sh -c 'cat sub/.env; mv sub s2; cat s2/.env s2/deep/.env; mv s2/.env x; cat x; cp -r s2 s3; cat s3/.env s3/deep/.env; mv s2 sub; cat sub/.env; tar c . | grep -c S3C'
		want '.stdout | contains("S3CRET") | not'
		[ -e sub/.env ] || mv s2 sub
		rm -rf s3 x
		[ "$(cat sub/.env sub/deep/.env)" = $'S3CRET\nS3CRET' ]
	done
}

@test "B26: what one run renames uncovers nothing in the next" {
	mkdir -p sub/deep
	echo S3CRET >sub/deep/.env
	policy_is <<<'filesystem: {workspace: write, hide: [sub/deep/.env]}'
	box -- sh -c 'mv sub s2; mv s2/deep s3; mv sub/deep d; true'
	box -- sh -c 'cat */.env */*/.env'
	want '.stdout | contains("S3CRET") | not'
}

@test "B26: a directory that one run makes unreadable is no way around hide in the next" {
	mkdir sub
	echo S3CRET >sub/.env
	local pattern
	for pattern in sub/.env .env; do
		policy_is <<<"filesystem: {workspace: write, hide: [$pattern]}"
		box -- chmod 000 sub
		box -- sh -c 'chmod 755 sub; cat sub/.env'
		want '.stdout | contains("S3CRET") | not'
		chmod 755 sub
	done
}

@test "protect: a renamed parent does not make place for another file of that name" {
	mkdir -p .git/hooks
	echo orig >.git/hooks/pre-commit
	echo orig >.git/config
	policy_is <<<'filesystem: {workspace: write, protect: [.git/hooks, .git/config]}'
	box -- sh -c 'mv .git .g2; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; echo evil >.git/config; cp -r .g2 .g3; rm -rf .git; mv .g3 .git; echo evil >.git/config; true'
	box -- sh -c 'echo evil >.git/hooks/pre-commit; echo evil >.git/config; true'
	[ "$(cat .git/hooks/pre-commit .git/config)" = $'orig\norig' ]
}

@test "hide wins over read and write, for names at any depth, links included" {
	mkdir -p a/b "$top/data"
	echo S3CRET | tee .env a/.env a/b/x.key "$top/data/y.key" >/dev/null
	ln -s a/.env pointer
	policy_is <<-END
		filesystem: {workspace: write, write: [$top/data], hide: [".env", "**/*.key"]}
	END
	box -- sh -c "cat .env a/.env a/b/x.key $top/data/y.key pointer; head -c 5 a/.env; wc -c <a/b/x.key; grep -r S3C . $top/data; true"
	want_exit 0
	want '.stdout | contains("S3C") | not'
	[ "$(cat .env a/.env a/b/x.key "$top/data/y.key" | sort -u)" = S3CRET ]
}

@test "B31: a granted path that is a symbolic link is refused with its target named" {
	policy_is <<-'END'
		filesystem: {workspace: none, write: [work/out]}
	END
	ln -s /etc out
	box -- true
	want_error grant_is_symlink
	want '.error.message + .error.hint | contains("/etc")' '.error.line == 2'
	rm out
	ln -s "$top" through
	policy_is <<-'END'
		filesystem: {workspace: none, read: [work/through/work]}
	END
	box -- true
	want_error grant_is_symlink
}

@test "B31: a directory swapped for a link during the start is never written through" {
	needs python3
	local swapper i
	mkdir out victim
	ln -s "$work/victim" link
	policy_is <<-'END'
		filesystem: {workspace: none, write: [work/out]}
	END
	"$python" - <<-'END' &
		import ctypes, time
		libc, end = ctypes.CDLL(None), time.time() + 60
		while time.time() < end:
		    for _ in range(1000):
		        libc.renameat2(-100, b"out", -100, b"link", 2)
	END
	swapper=$!
	# Straight to agentbox: of a thousand starts, those that lose the race and those that win it.
	for i in $(seq 1000); do
		"$AGENTBOX" run -p "$top/policy.yaml" -- sh -c "echo x >$work/out/pwned-$i" 2>/dev/null || true
	done >"$top/results"
	[ -z "$(ls victim)" ] || fail "written through the link"
	cat "$top/results" >>"$AGENTBOX_RESULTS"
	run -0 jq -s -e 'length == 1000 and all(.[]; .status == "exited" or
		(.error.code | IN("grant_is_symlink", "sources_changed", "grant_not_found", "mount_failed")))' "$top/results"
	run -0 jq -s -e 'any(.[]; .status == "exited") and any(.[]; .status == "error")' "$top/results"
	kill "$swapper"
}

@test "B32: relative grants count from the policy, and --cwd widens nothing" {
	mkdir -p "$top/p/out" "$top/elsewhere"
	printf 'version: 1\nfilesystem: {workspace: none, write: [out]}\n' >"$top/p/policy.yaml"
	cd "$top/elsewhere"
	box -p "$top/p/policy.yaml" --cwd / -- touch /etc/agentbox-x
	want '.status == "exited" and .exit_code != 0 or .error.code == "bad_cwd"'
	[ ! -e /etc/agentbox-x ]
	box -p "$top/p/policy.yaml" -- touch "$top/elsewhere/y"
	want '.exit_code != 0'
	[ ! -e y ]
	box -p "$top/p/policy.yaml" -- touch "$top/p/out/z"
	want_exit 0
	[ -e "$top/p/out/z" ]
}

@test "B35: an empty list of hosts is no network, however it is written" {
	needs python3
	local spelling
	for spelling in 'network: {allow: []}' 'network: {}' 'network: null' 'name: absent' 'network: none'; do
		policy_is <<<"$spelling"
		box -- python3 -c 'import socket as s
try: s.create_connection(("192.0.2.1", 80), 3); print("connected")
except OSError as e: print(e.errno)'
		want_exit 0 101
		want '.enforcement.network == "none" and .enforcement.net_ns'
	done
}

@test "B35: nothing listens for the box on the host's loopback" {
	needs python3
	"$python" -u -m http.server --bind 127.0.0.1 0 >"$top/port" 2>&1 &
	local server=$! port='' _
	for _ in $(seq 100); do
		port=$(grep -oE 'port [0-9]+' "$top/port" | cut -d' ' -f2) && [ -n "$port" ] && break
		sleep 0.05
	done
	[ -n "$port" ] || fail "the host's server did not start"
	box -- python3 -c "import socket as s
try: s.create_connection(('127.0.0.1', $port), 3); print('connected')
except OSError as e: print(e.errno)"
	kill "$server"
	want_exit 0 111
}

@test "the box's own loopback works" {
	needs python3
	box -- python3 -c 'import socket as s; q=s.create_server(("127.0.0.1",0)); c=s.create_connection(q.getsockname()); a,_=q.accept(); c.send(b"hi"); print(a.recv(2).decode())'
	want_exit 0 hi
}

@test "on_violation: kill ends the box with status denied" {
	policy_is <<-'END'
		syscalls: {on_violation: kill}
	END
	box -- sh -c 'unshare -Ur true; echo went on'
	want '.status == "denied" and .stdout == ""'
	want_denied unshare
	[ "$code" != 0 ]
}

@test "system calls can be denied and allowed one by one" {
	needs python3
	policy_is <<-'END'
		syscalls: {deny: [symlink, symlinkat]}
	END
	box -- ln -s a /tmp/b
	want '.exit_code == 1'
	want_denied symlink
	want '.violations[0].rule | contains("syscalls")'
}

@test "set-user-id programs gain nothing" {
	box -- sh -c 'find /usr/bin -perm -4000 | head -n 1; su -c id 2>&1; id -u'
	want ".stdout | endswith(\"$(jq -r '.stdout' "$result" | tail -n 1)\n\")"
	[ "$(id -u)" = 0 ] || want ".stdout | endswith(\"$(id -u)\n\")"
}

@test "kernel settings and other kernel files cannot be changed or read" {
	box -- sh -c 'for f in /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sysrq-trigger /proc/1/oom_score_adj /sys/kernel/mm/ksm/run; do echo 1 2>/dev/null >$f && echo "wrote $f"; done; cat /proc/kcore 2>/dev/null | head -c 1 | wc -c; dmesg 2>/dev/null | head -n 1; ls /sys/kernel/debug /sys/fs/bpf 2>/dev/null; true'
	want_exit 0 0
}

@test "System V and POSIX objects of the host are not there" {
	needs python3 ipcmk
	local id
	id=$(ipcmk -M 4096 | grep -oE '[0-9]+$')
	box -- sh -c 'ipcs -m | grep -cE "^0x"; ls /dev/mqueue 2>/dev/null; true'
	ipcrm -m "$id"
	want_exit 0 0
}
