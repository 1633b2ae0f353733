# Renames in a workspace that is shown by overlayfs, which the kernel alone would answer with EXDEV.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

overlay_policy() {
	policy_is <<-END
		filesystem: {workspace: overlay${1:+, $1}}
		${2-}
	END
}

# Skips where this machine has no overlayfs for a box: then renames are the kernel's own.
needs_overlay() {
	needs userns python3
	overlay_policy "backend: overlay"
	box true
	[ "$(jq -r .error.code "$result")" != overlay_unsupported ] || skip "overlayfs cannot be used here"
	want_exit 0
}

# renames ARGS...: tests/cli/renames.py in the box.
renames() {
	[ -e renames.py ] || cp "$BATS_TEST_DIRNAME/renames.py" .
	box -- "$python" -I -S renames.py "$@"
}

# changed PATH CHANGE
changed() {
	want "[.changes[] | select(.path == \"$1\" and .change == \"$2\")] | length == 1"
}

@test "A12 git mv and os.rename move a directory that comes from below" {
	needs git
	needs_overlay
	overlay_policy
	git init -q . && mkdir src && echo a >src/a && git add src
	git -c user.name=x -c user.email=x@x commit -qm x
	box sh -c 'git mv src lib && git status --short && cat lib/a'
	want_exit 0 $'R  src/a -> lib/a\na'
	changed src/a deleted
	changed lib/a created
	want '.violations == []' '.leftover_killed == 0' '.enforcement.workspace == "overlay"'
	[ "$(cat src/a)" = a ] && [ ! -e lib ]
	box python3 -c 'import os; os.rename("src", "s2"); print(open("s2/a").read(), os.listdir("."))'
	want_exit 0
	changed src/a deleted
	changed s2/a created
}

@test "A14 a file moves between directories of one tree, and is linked there" {
	needs_overlay
	overlay_policy
	mkdir below
	box python3 -c 'import os; os.makedirs("a/n"); open("f", "w"); os.rename("f", "a/n/f"); os.link("a/n/f", "g")
os.rename("g", "below/g"); os.rename("a", "below/a"); print(os.stat("below/a/n/f").st_nlink, os.listdir("below"))'
	want_exit 0
	want '.stdout | startswith("2 ")'
}

@test "every rename is answered as on a plain file system" {
	needs_overlay
	overlay_policy
	cp "$BATS_TEST_DIRNAME/renames.py" .
	"$python" -I -S renames.py make cases
	renames table cases
	chmod -R u+rwx cases
	want_exit 0
	want '.stdout | endswith(" cases, 0 differ\n")'
}

@test "B21 hostile requests: changing paths, bad pointers, closed descriptors, callers that die" {
	needs_overlay
	overlay_policy
	renames hostile 2
	want_exit 0 '0 wrong'
	want '.violations == []' '.warnings == []'
}

@test "2000 renames in a loop" {
	needs_overlay
	local there
	policy_is <<<'filesystem: {workspace: write}'
	renames loop 2000
	want_exit 0
	there=$(jq -r .stdout "$result")
	overlay_policy
	renames loop 2000
	want_exit 0
	echo "# a rename takes $(jq -r .stdout "$result") us, with workspace: write $there us" >&3
	quickly 20000
}

@test "renames from 50 processes and from 100 threads at once" {
	needs_overlay
	overlay_policy
	renames crowd 50 10
	want_exit 0 '0 of 50 went wrong'
	renames threads 100 20
	want_exit 0
	want '.stdout | startswith("20 ")'
}

@test "a directory of 5000 files is renamed" {
	needs_overlay
	overlay_policy
	mkdir -p big/deep && (cd big && seq 4000 | xargs touch) && (cd big/deep && seq 1000 | xargs touch)
	box python3 -c 'import os; os.rename("big", "huge")
print(os.path.exists("big"), len(os.listdir("huge")), len(os.listdir("huge/deep")))'
	want_exit 0 'False 4001 1000'
	quickly 20000
}

@test "trees of packages are moved aside and put in place as npm and pip do it" {
	needs_overlay
	overlay_policy
	local n
	for n in $(seq 40); do
		mkdir -p "node_modules/p$n/lib" "site-packages/q$n/sub"
		echo "$n" | tee "node_modules/p$n/package.json" "node_modules/p$n/lib/x" "site-packages/q$n/sub/y" >/dev/null
	done
	cat >packages.py <<-'END2'
		import os, shutil
		for n in range(1, 41):
		    # npm: the old one aside, the new one in its place, the old one away
		    old, aside = "node_modules/p%d" % n, "node_modules/.p%d-Xy12" % n
		    os.rename(old, aside)
		    os.makedirs(old + ".new/lib")
		    open(old + ".new/package.json", "w").write("new")
		    os.rename(old + ".new", old)
		    shutil.rmtree(aside)
		    # pip: aside with a tilde, and back when the installation fails
		    old, aside = "site-packages/q%d" % n, "site-packages/~q%d" % n
		    os.rename(old, aside)
		    os.rename(aside, old)
		print(sorted(os.listdir("node_modules")) == sorted("p%d" % n for n in range(1, 41)),
		      all(open("node_modules/p%d/package.json" % n).read() == "new" for n in range(1, 41)),
		      all(open("site-packages/q%d/sub/y" % n).read() == "%d\n" % n for n in range(1, 41)))
	END2
	box -- "$python" -I -S packages.py
	want_exit 0 'True True True'
}

@test "what may not be renamed with workspace: write may not be renamed in an overlay" {
	needs_overlay
	local there places=(kept.d kept.d/x in/kept /etc/passwd /usr/bin/env /proc/version /dev/null ../work/plain2
		/tmp/none none "$top/granted/f" "$top/granted/new" /new /home/new)
	mkdir -p kept.d in/kept "$top/granted"
	touch kept.d/x plain2 "$top/granted/f"
	more="read: [$top/granted, $work/kept.d, $work/in/kept]"
	policy_is <<<"filesystem: {workspace: write, $more}"
	renames places "${places[@]}"
	there=$(jq -r .stdout "$result")
	touch plain2
	rm -f moved plain none
	overlay_policy "$more"
	renames places "${places[@]}"
	want_exit 0 "$there"
}

@test "the process that renames is out of the command's reach, and has no right that it lacks" {
	needs landlock
	needs_overlay
	overlay_policy
	cp "$BATS_TEST_DIRNAME/renames.py" .
	box sh -c "touch a && mv a b && $python -I -S renames.py touch agentbox-rename && mv b c && ls c"
	want_exit 0 $'0 wrong\nc'
}

@test "the process that renames is none of the command's" {
	needs_overlay
	overlay_policy "" "limits: {pids: 3}"
	box sh -c 'touch a; mv a b; sleep 100 & ls'
	want_exit 0
	want '.leftover_killed == 1' '.stderr == ""'
	# Nothing of it is there when nothing was renamed.
	box sh -c 'cat /proc/[0-9]*/comm'
	want_exit 0
	want '.stdout | contains("agentbox-rename") | not'
}

@test "renames go on while the command is asked to end" {
	needs_overlay
	overlay_policy "" "limits: {wall: 1s}"
	mkdir below
	box sh -c 'trap "mv below after; ls; exit 3" TERM; touch a; mv a b; while :; do sleep 0.1; done'
	want '.status == "timeout"' '.stdout | contains("after")'
	changed after created
}

@test "a rename that the policy denies is refused and recorded" {
	needs_overlay
	overlay_policy "" "syscalls: {deny: [rename, renameat, renameat2]}"
	mkdir below
	box python3 -c 'import os; os.rename("below", "x")'
	want '.exit_code == 1' '.stderr | contains("Operation not permitted")' \
		'[.violations[] | select(.rule == "syscalls.deny" and (.operation | startswith("rename")))] | length == 1'
	overlay_policy "" "syscalls: {on_violation: kill}"
	box sh -c 'mv below x && ls'
	want_exit 0 x
}

@test "a process with a root directory of its own renames below that" {
	needs_overlay
	overlay_policy "" "nesting: allow"
	mkdir -p cell/lower && touch cell/lower/x
	renames jail cell
	want_exit 0
	want '.stdout | endswith(" 0\n")'
}

@test "with backend: copy renames stay the kernel's" {
	needs userns
	overlay_policy "backend: copy"
	mkdir below
	box sh -c 'mv below x && ls; cat /proc/[0-9]*/comm'
	want_exit 0
	want '.stdout | contains("agentbox-rename") | not'
	plain explain --json "$policy"
	want_plain 0 '"renames":false'
	overlay_policy
	plain explain --json "$policy"
	want_plain 0 '"renames":true'
	plain explain --syscall rename "$policy"
	[[ $output == *"does it for the caller"* ]] || [ "$(uname -m)" != x86_64 ] || fail "$output"
}

@test "renames are held by the limits of files, as the command itself" {
	needs_overlay
	overlay_policy "" "limits: {file_size: 1MiB, open_files: 20}"
	mkdir below && head -c 100000 /dev/zero >below/x
	box sh -c 'mv below x && ls'
	want_exit 0 x
	# What cannot be copied up cannot be renamed: as for the caller itself.
	truncate -s 2M large
	box sh -c 'mv large x'
	want '.exit_code != 0' '.stderr | contains("File too large")'
}

# renamer_of: the process that renames for the box of $runner, as the host sees it.
renamer_of() {
	local init
	init=$(pgrep -P "$runner" -x agentbox-init) && pgrep -P "$init" -x agentbox-rename
}

# until_renamer [OTHER]: waits until there is one, and not OTHER; its number is in $renamer.
until_renamer() {
	local _
	for _ in $(seq "$(slow 300)"); do
		renamer=$(renamer_of) && [ "$renamer" != "${1-}" ] && return
		sleep 0.02
	done
	fail "no process renames"
}

@test "a renamer that is killed fails the renames under way, and the next one has another" {
	needs_overlay
	overlay_policy "" "limits: {wall: 20s}"
	cat >on.py <<-'END'
		import os, time
		open("a", "w").close()
		until, wrong, done, kinds = time.monotonic() + 8, 0, 0, set()
		while time.monotonic() < until:
		    try:
		        os.rename("a", "b") if os.path.exists("a") else os.rename("b", "a")
		        done += 1
		    except OSError as e:
		        wrong += 1
		        kinds.add(e.errno)
		print(wrong <= 5, kinds <= {5}, done > 20)
	END
	in_background -- "$python" -I -S on.py
	renamer=none
	for _ in 1 2 3; do
		until_renamer "$renamer"
		kill -KILL "$renamer"
	done
	wait "$runner"
	want '.status == "exited" and .exit_code == 0'
	want_stdout 'True True True'
	want '.leftover_killed == 0' '.warnings == []'
}

@test "a renamer that is stopped holds up renames and no limit" {
	needs_overlay
	overlay_policy "" "limits: {wall: 8s}"
	in_background -- sh -c 'touch a; mv a b; sleep 4; echo before; mount -t tmpfs x /tmp; mv b c'
	until_renamer
	kill -STOP "$renamer"
	wait "$runner" || true
	want '.status == "timeout"' '.stdout == "before\n"' '.leftover_killed == 0' '.duration_ms < 20000'
}

@test "what a command does to its renamer fails its own renames, and nothing else" {
	needs_overlay
	overlay_policy "" "limits: {wall: 20s}"
	cat >reach.py <<-'END'
		import ctypes, os, resource, signal
		def renamer():
		    for pid in filter(str.isdigit, os.listdir("/proc")):
		        try:
		            if open(f"/proc/{pid}/comm").read() == "agentbox-rename\n":
		                return int(pid)
		        except OSError:
		            pass
		def refused(what):
		    try:
		        what()
		    except OSError:
		        return True
		def rename():
		    os.rename("a", "b") if os.path.exists("a") else os.rename("b", "a")
		open("a", "w").close()
		rename()
		pid = renamer()
		libc = ctypes.CDLL(None, use_errno=True)
		print(refused(lambda: os.kill(pid, signal.SIGSTOP)), refused(lambda: open(f"/proc/{pid}/mem", "wb")),
		      refused(lambda: os.listdir(f"/proc/{pid}/fd")), libc.ptrace(16, pid, 0, 0) == -1)
		for limit in "NOFILE", "FSIZE", "AS", "STACK", "DATA", "CPU", "NPROC", "MEMLOCK":
		    rename_failed = refused(rename)
		    pid = renamer()
		    if pid:
		        resource.prlimit(pid, getattr(resource, "RLIMIT_" + limit), (0, 0))
		    refused(rename)
		    # What the command itself does is as before.
		    with open("mine", "w") as f:
		        f.write(limit * 1000)
		    os.link("mine", "other")
		    assert open("other").read() == limit * 1000
		    os.unlink("mine")
		    os.unlink("other")
		    os.waitpid(os.fork() or os._exit(0), 0)
		print(sorted(x for x in os.listdir(".") if x in "ab"))
	END
	box -- "$python" -I -S reach.py
	want_exit 0
	[[ $(jq -r .stdout "$result") =~ ^"True True True True"$'\n'"['"[ab]"']"$'\n'*$ ]]
	want '.leftover_killed == 0'
	quickly 10000
}

@test "a command that ends while others still rename ends at once" {
	needs_overlay
	overlay_policy
	cp "$BATS_TEST_DIRNAME/renames.py" .
	box sh -c "touch x; $python -I -S renames.py loop 1000000 & $python -I -S renames.py crowd 20 100000 & sleep 0.5"
	want_exit 0
	want '.leftover_killed >= 2'
	quickly 5000
}
