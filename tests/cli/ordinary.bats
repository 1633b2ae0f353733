# Ordinary programs do what they do outside.
# shellcheck shell=bash disable=SC2154,SC2016,SC2034
load helpers

@test "A01: a process pool's semaphores work, in a private /dev/shm" {
	needs python3
	echo host >"/dev/shm/agentbox-test-$$"
	box -- python3 -c 'import multiprocessing as m; m.Semaphore(); print("ok")'
	want_exit 0 ok
	box -- sh -c 'ls -A /dev/shm; stat -c %a /dev/shm; stat -f -c %T /dev/shm; echo x >/dev/shm/agentbox-inside'
	rm "/dev/shm/agentbox-test-$$"
	want_exit 0 $'1777\ntmpfs'
	[ ! -e /dev/shm/agentbox-inside ]
}

@test "A02: an asyncio program is woken through its socket pair without a network" {
	needs python3
	policy_is <<-'END'
		network: none
	END
	box -- python3 -c 'import asyncio,threading as t; l=asyncio.new_event_loop(); t.Thread(target=l.run_forever,daemon=True).start(); print(asyncio.run_coroutine_threadsafe(asyncio.sleep(0,7),l).result(3))'
	want_exit 0 7
	want '.duration_ms < 2500' '.violations == []'
}

@test "A04: UNIX sockets that are made inside work inside, whatever the network" {
	needs python3
	local network
	for network in none host; do
		policy_is <<<"network: $network"
		box -- python3 -c 'import socket as s,os; q=s.socket(s.AF_UNIX); q.bind("/tmp/q"); q.listen(); c=s.socket(s.AF_UNIX); c.connect("/tmp/q"); print("ok")'
		want_exit 0 ok
		want ".enforcement.network == \"$network\""
	done
}

@test "A05: /dev has what shells and programs expect, and no disk" {
	needs bash
	box -- bash -c 'n=0; while read -r x; do n=$((n+1)); done < <(printf "a\nb\n"); echo $n; echo e >/dev/stderr'
	want_exit 0 2
	want '.stderr == "e\n"'
	box -- sh -c 'cd /dev && ls -d fd stdin stdout stderr null zero full random urandom tty ptmx pts shm | wc -l; find . -type b; head -c 3 /dev/zero | wc -c; echo x >/dev/full || echo full; head -c 4 /dev/urandom | wc -c'
	want_exit 0 $'13\n3\nfull\n4'
}

@test "A17: HOME exists, is private and writable, and the caller's own stays as it was" {
	local before
	before=$(ls -A ~)
	box -- sh -c 'mkdir -p ~/.npm/_logs ~/.cache/pip && touch ~/.npm/x && test -w "$HOME" && echo ok'
	want_exit 0 ok
	want '.changes == []'
	[ "$(ls -A ~)" = "$before" ]
	box -- sh -c 'ls -A ~'
	want_exit 0 ''
}

@test "A17: what is written in the private home counts against the disk limit" {
	policy_is <<-'END'
		limits: {disk: 4MiB}
	END
	box -- sh -c 'head -c 8M /dev/zero >~/big 2>/dev/null || echo nospace; head -c 8M /dev/zero >/tmp/big 2>/dev/null || echo nospace; head -c 8M /dev/zero >/dev/shm/big 2>/dev/null || echo nospace'
	want_exit 0 $'nospace\nnospace\nnospace'
	want '.limits_hit == ["disk"]'
}

@test "A19: protecting a symbolic link protects the link and what it leads to" {
	mkdir -p "$top/dots" .git hooks
	echo rc >"$top/dots/bashrc"
	echo hook >hooks/pre-commit
	ln -s "$top/dots/bashrc" .bashrc
	ln -s ../hooks .git/hooks
	policy_is <<-'END'
		filesystem: {workspace: write, protect: [.bashrc, .git/hooks]}
	END
	box -- true
	want_exit 0
	box -- sh -c 'cat .git/hooks/pre-commit; echo x >.bashrc; rm -f .bashrc; ln -sfn /tmp .bashrc; mv .bashrc b; echo x >.git/hooks/pre-commit
		echo x >hooks/pre-commit; rm -rf hooks; mv hooks h2; rm -f .git/hooks; ln -sfn /tmp .git/hooks; touch free; true'
	want_exit 0 hook
	[ "$(readlink .bashrc)" = "$top/dots/bashrc" ]
	[ "$(readlink .git/hooks)" = ../hooks ]
	[ "$(cat hooks/pre-commit)" = hook ]
	[ "$(cat "$top/dots/bashrc")" = rc ]
	[ -e free ]
}

@test "A21: the root's links are made again, so that every program finds its loader" {
	policy_is <<-'END'
		filesystem: {read: [/usr], workspace: none}
	END
	box -- /bin/sh -c 'ls /lib64/ld-*.so* /lib/ld-*.so* 2>/dev/null | grep -q . && echo ok'
	want_exit 0 ok
	box -- /bin/sh -c 'if [ -L /bin ]; then readlink /bin; else echo directory; fi'
	if [ -L /bin ]; then
		want_exit 0 usr/bin
	else
		want_exit 0 directory
	fi
}

@test "A23: the caller has a name inside, and ssh accepts the system's configuration" {
	needs python3
	box -- sh -c 'id -un; python3 -c "import getpass; print(getpass.getuser())"'
	want_exit 0 "$(id -un)"$'\n'"$(id -un)"
	needs ssh
	box -- sh -c 'ssh -G localhost >/dev/null && echo ssh-ok'
	want_exit 0 ssh-ok
}

@test "A24: an archive with other people's ids unpacks, and its files are the caller's" {
	needs python3 tar
	"$python" - <<-'END'
		import io, tarfile
		with tarfile.open("foreign.tar", "w") as tar:
		    entry = tarfile.TarInfo("inner")
		    entry.uid, entry.gid, entry.uname, entry.gname, entry.size = 54321, 54321, "x", "x", 2
		    tar.addfile(entry, io.BytesIO(b"hi"))
	END
	policy_is <<-'END'
		filesystem: {workspace: write}
	END
	box -- sh -c 'id -u; tar xf foreign.tar; echo $?; touch f; cat inner'
	want_exit 0
	want '.stderr == ""' '.stdout | split("\n")[1:] == ["0", "hi"]'
	[ "$(stat -c %u:%g f inner | sort -u)" = "$(id -u):$(id -g)" ]
	[ "$(id -u)" = 0 ] || want ".stdout | startswith(\"$(id -u)\n\")"
}

@test "A38: unknown system calls and clone3 are answered ENOSYS, so that libraries fall back" {
	needs python3
	box -- python3 -c 'import ctypes as c,threading as t; l=c.CDLL(None,use_errno=True); l.syscall(600); print(c.get_errno()); l.syscall(435,0,0); print(c.get_errno()); x=t.Thread(target=print,args=(1,)); x.start(); x.join()'
	want_exit 0 $'38\n38\n1'
	want '.violations == []'
}

@test "A40: nesting is refused by default and listed, and works where the policy allows it" {
	box -- unshare -Ur id -u
	want '.status == "exited" and .exit_code == 1' '.stderr | test("not permitted")'
	want '.violations | length == 1'
	want_denied unshare
	want '.violations[0].hint | contains("nesting: allow")'
	policy_is <<-'END'
		nesting: allow
	END
	box -- unshare -Ur id -u
	want_exit 0 0
	want '.violations == []'
}

@test "A60: reserving much address space is not using memory" {
	needs python3
	policy_is <<-'END'
		limits: {memory: 256MiB}
		best_effort: [cgroup]
	END
	box -- python3 -c 'import mmap; m=mmap.mmap(-1,8<<30,flags=34); m[0]=1; print("ok")'
	want_exit 0 ok
	needs node
	box -- node -e 0
	want_exit 0 ''
}

@test "the workspace is where the command starts, at the same path as outside" {
	echo here >note
	box -- sh -c 'pwd -P; cat note; touch new 2>/dev/null || echo read-only'
	want_exit 0 "$(pwd -P)"$'\nhere\nread-only'
	[ ! -e new ]
}

@test "A29: started through a symbolic link, the workspace is the real directory" {
	mkdir -p "$top/real/p"
	ln -s "$top/real" "$top/link"
	policy_is <<-'END'
		filesystem: {workspace: write}
	END
	cd "$top/link/p"
	box -- sh -c 'pwd -P; touch x'
	want_exit 0 "$top/real/p"
	[ -e "$top/real/p/x" ]
}

@test "a file moves and is linked between directories of a written tree" {
	needs python3
	policy_is <<-'END'
		filesystem: {workspace: write}
	END
	box -- python3 -c 'import os; os.makedirs("a/n"); open("f","w"); os.rename("f","a/n/f"); os.link("a/n/f","g")'
	want_exit 0 ''
	[ "$(stat -c %h a/n/f g | sort -u)" = 2 ]
}

@test "a workspace in the caller's home is seen, its neighbours are not" {
	local place
	place=$(mktemp -d ~/agentbox-test.XXXXXX) || skip "no writable home"
	mkdir "$place/work"
	echo secret >"$place/neighbour"
	policy_is <<-'END'
		filesystem: {workspace: write}
	END
	box -C "$place/work" -- sh -c 'pwd; echo x >made; cat ../neighbour; ls -A ~'
	rm -rf "$place" # before any judgement, so that nothing stays
	want '.status == "exited"' '.stdout | contains("secret") | not'
	want ".stdout | startswith(\"$place/work\n\")"
}

@test "-C names the workspace, --cwd the directory to start in" {
	mkdir -p "$top/other/sub"
	box -C "$top/other" -- pwd
	want_exit 0 "$top/other"
	box -C "$top/other" --cwd sub -- pwd
	want_exit 0 "$top/other/sub"
	box -C "$top/other" --cwd /tmp -- pwd
	want_exit 0 /tmp
	box --cwd /no/such/place -- true
	want_error bad_cwd
	want_hint
	box -C "$top/missing" -- true
	want_error workspace_not_found
}

@test "grants are visible where they are, read-only or writable as they say" {
	mkdir "$top/in" "$top/out"
	echo in >"$top/in/f"
	policy_is <<-END
		filesystem: {read: [$top/in], write: [out], workspace: none}
	END
	box -- sh -c "cat $top/in/f; echo x >$top/in/f; echo y >$top/out/made && echo wrote; ls $work; pwd"
	want '.status == "exited"' '.stdout | startswith("in\nwrote\n")'
	[ "$(cat "$top/in/f")" = in ]
	[ "$(cat "$top/out/made")" = y ]
	[ "$(stat -c %u "$top/out/made")" = "$(id -u)" ]
}

@test "a single file can be granted for reading" {
	echo data >"$top/one"
	policy_is <<-END
		filesystem: {read: [$top/one], workspace: none}
	END
	box -- sh -c "cat $top/one; echo x >$top/one"
	want '.stdout == "data\n"' '.exit_code != 0'
	[ "$(cat "$top/one")" = data ]
}

@test "limits of open files, processes, file size and output hold and are named" {
	needs python3 bash
	policy_is <<-'END'
		limits: {open_files: 32, pids: 20, file_size: 1MiB, disk: 16MiB, output: 4KiB}
	END
	box -- sh -c 'ulimit -n'
	want_exit 0 32
	cat >forks.py <<-'END'
		import os, time
		n = 0
		try:
		    while n < 200:
		        if os.fork() == 0:
		            time.sleep(60)
		        n += 1
		except BlockingIOError:
		    print("stopped", n < 25)
	END
	box -- python3 forks.py
	want_exit 0 'stopped True'
	box -- sh -c 'head -c 2M /dev/zero >/tmp/f; stat -c %s /tmp/f'
	want '.status == "exited"' '.stdout == "1048576\n"'
	box -- sh -c 'seq 1 100000'
	want_exit 0
	want '.stdout_truncated and (.stdout | length) < 5000 and .stdout_bytes == 588895'
}
