# What a hostile command might gain for later or for others: rights that stay behind on the host, secrets in
# the next run, its own judge.
# shellcheck shell=bash disable=SC2154,SC2016,SC2034
load helpers

written() {
	policy_is <<-END
		filesystem: {workspace: write$1}
	END
}

@test "no set-id file is left behind, whichever call makes it" {
	written ""
	box -- python3 -c '
import os
open("f", "w").write("x")
def no(call, *args):
    try:
        call(*args)
    except PermissionError:
        return
    print("possible:", call.__name__, args)
for mode in (0o4755, 0o2755, 0o6755, 0o2644):
    no(os.chmod, "f", mode)
    no(os.fchmod, os.open("f", os.O_RDWR), mode)
    no(os.open, "g%o" % mode, os.O_CREAT | os.O_RDWR, mode)
    no(os.mknod, "n%o" % mode, mode)
os.chmod("f", 0o1755)
os.mkdir("d", 0o2755)
'
	want_exit 0 ""
	want_denied chmod
	want_denied openat
	[ -z "$(find . -perm /6000)" ]
}

@test "hidden files stay hidden in the next run, whatever the box moved or closed" {
	mkdir -p sub/deep
	echo SECRET1 >sub/.env
	echo SECRET2 >sub/deep/.env
	written ', hide: [".env"]'
	box -- sh -c 'mv sub other; mv sub/deep sub/deeper; cat .env */.env */*/.env other/.env'
	want '.stdout | contains("SECRET") | not'
	box -- sh -c 'cat */.env */*/.env; cp -r sub copy; cat copy/.env copy/deep/.env'
	want '.stdout | contains("SECRET") | not'
	box -- chmod 311 sub
	box -- sh -c 'cat sub/.env sub/deep/.env'
	if [ "$(id -u)" = 0 ]; then
		want '.stdout | contains("SECRET") | not'
	else
		want_error pattern_unsearchable
	fi
	chmod 755 sub
	grep -q SECRET1 sub/.env
}

@test "a pattern's own limits are told: what can match anywhere covers what is there" {
	mkdir sub
	: >sub/.env
	written ', hide: [".env"], protect: ["*.lock"]'
	: >a.lock
	box -- sh -c 'echo x >a.lock'
	want '[.warnings[].code] | index("hide_existing_only") and index("protect_existing_only")' '.exit_code != 0'
}

@test "the policy's own file cannot be changed by the box that it judges" {
	mkdir conf
	printf 'version: 1\nfilesystem: {workspace: write}\n' >conf/policy.yaml
	cp conf/policy.yaml "$top/before"
	code=0
	"$AGENTBOX" run -p conf/policy.yaml -- sh -c \
		'echo "network: host" >>conf/policy.yaml; rm -f conf/policy.yaml; mv conf c2; echo x >conf/other; ls conf' \
		>"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_exit 0 "$(printf 'other\npolicy.yaml')"
	cmp conf/policy.yaml "$top/before"
}

@test "a read-only grant inside a written tree cannot be moved out of the way" {
	mkdir -p data/inner
	echo kept >data/inner/f
	written ", read: [$work/data/inner]"
	box -- sh -c 'echo x >data/inner/f; mv data d2; mv data/inner i2; echo new >data/g; cat data/inner/f'
	want_exit 0 kept
	[ "$(cat data/inner/f data/g)" = "$(printf 'kept\nnew')" ]
	[ ! -e d2 ]
}

@test "a root directory whose names are links gets nothing written through them" {
	mkdir -p image/usr image/etc "$top/victim"
	ln -s "$top/victim" image/var
	ln -s /usr/bin image/bin
	policy_is <<-END
		filesystem: {root: $work/image, read: [/usr], workspace: none}
	END
	box -- true
	[ -z "$(ls -A "$top/victim")" ]
}

@test "the command cannot weaken or stop its own init" {
	box -- python3 -c '
import ctypes, os, resource
def no(name, call):
    try:
        call()
        print("possible:", name)
    except (PermissionError, OSError):
        pass
no("prlimit", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
no("scheduler", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
no("affinity", lambda: os.sched_setaffinity(1, {0}))
no("priority", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
no("priority of all", lambda: os.setpriority(os.PRIO_USER, 0, 19))
no("kill", lambda: os.kill(1, 9))
print("end")
'
	want_exit 0 end
}

@test "init's command line tells nothing of agentbox's own" {
	box -e TOKEN=t0ps --wall 30s -- cat /proc/1/cmdline
	want_exit 0
	want '.stdout | test("[^\u0000]") | not'
}

@test "nothing in /proc is written, not even the score for the kernel's choice whom to kill" {
	box -- sh -c 'echo 0 >/proc/self/oom_score_adj; echo x >/proc/self/comm
		for f in $(find /proc/sys /proc/sysrq-trigger -type f -writable); do (: >>"$f") && echo "possible: $f"; done
		cat /proc/self/oom_score_adj' 2>/dev/null
	want_stdout 500
}

@test "the host's device nodes keep their times and modes" {
	local before
	before=$(stat -c '%Y %a %u' /dev/null /dev/zero)
	box -- sh -c 'sleep 1; touch /dev/null /dev/zero; chmod 600 /dev/null; echo x >/dev/null; exit 0'
	want_exit 0
	[ "$(stat -c '%Y %a %u' /dev/null /dev/zero)" = "$before" ]
}

@test "the host's root without the rights to leave its id gets no box" {
	if [ "$(id -u)" != 0 ]; then
		box -- id -u # whom this does not concern
		want_exit 0 "$(id -u)"
		return
	fi
	code=0
	setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$AGENTBOX" run -- true >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_error userns_denied
	want_hint
	code=0
	setpriv --bounding-set -setuid --inh-caps -setuid "$AGENTBOX" run -- true >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_error userns_denied
}

@test "clone3, keyrings and listeners: no word of a policy silently gives more than it says" {
	policy_is <<-END
		syscalls: {allow: [clone3]}
	END
	box -- true
	want_error policy_invalid
	policy_is <<-END
		syscalls: {allow: [socket, ioctl]}
	END
	box -- python3 -c '
import socket, fcntl
for call in (lambda: socket.socket(40, 1), lambda: fcntl.ioctl(0, 0x5412, b"x")):
    try:
        call()
        print("possible")
    except OSError:
        pass'
	want_exit 0 ""
}

@test "A19: every link on the way to a protected file is held, and what it leads to" {
	echo kept >f0
	mkdir real d2 hooks .git
	echo kept >real/f
	echo kept >hooks/pre-commit
	ln -s f0 f1
	ln -s f1 f2
	ln -s real l1
	ln -s l1 l2
	ln -s ../hooks .git/hooks
	written ', protect: [./f2, l2/f, .git/hooks/pre-commit]'
	sed -i 's,\./f2,/f2-here,' "$policy"
	sed -i "s,/f2-here,$work/f2," "$policy"
	box -- sh -c 'echo evil >e; rm -f f1 f2 l1 l2; ln -sfn e f1; ln -sfn d2 l1; ln -sfn /tmp l2; echo evil >f0
		echo evil >l2/f; echo evil >.git/hooks/pre-commit; mv .git g2; mv hooks h2; rm -f .git/hooks; cat f2 l2/f .git/hooks/pre-commit'
	want_stdout "$(printf 'kept\nkept\nkept')"
	[ "$(cat f2 l2/f .git/hooks/pre-commit)" = "$(printf 'kept\nkept\nkept')" ]
}

@test "a hidden link hides what it leads to; a pattern through a link is refused by name" {
	mkdir sec hooks .git
	echo SECRET >sec/key
	echo SECRET >hooks/pre-commit
	ln -s sec/key .env
	ln -s ../hooks .git/hooks
	written ', hide: [".env", ".git/hooks/pre-commit"]'
	box -- sh -c 'cat .env sec/key hooks/pre-commit .git/hooks/pre-commit'
	want '.stdout | contains("SECRET") | not' '.error == null'
	written ', hide: [".git/hooks/*"]'
	box -- true
	want_error pattern_unsearchable
	want '.error.hint | contains("hooks")'
}

@test "B25: another name of a hidden or protected file, made before, is no way to it" {
	echo SECRET >.env
	echo kept >Makefile
	written ""
	box -- sh -c 'ln .env alias; ln Makefile other'
	want_exit 0
	written ', hide: [".env"]'
	box -- cat alias
	want_error hard_linked
	written ', protect: [./Makefile]'
	sed -i "s,\./Makefile,$work/Makefile," "$policy"
	box -- sh -c 'echo evil >other'
	want_error hard_linked
	[ "$(cat Makefile)" = kept ]
}

@test "B04: agentbox's own program is not replaced by the box that it makes, wherever it stands" {
	cp "$AGENTBOX" ./agentbox
	written ""
	code=0
	./agentbox run -p "$policy" -- sh -c 'rm -f agentbox; cp /bin/true agentbox; echo x >agentbox; ls' >"$result" 2>"$words" || code=$?
	keep_result "$result"
	cmp agentbox "$AGENTBOX"
}

@test "B04: the place where agentbox is installed may be written, but what is agentbox's there is held" {
	needs unshare setpriv userns
	local prefix lib own=(unshare -m)
	prefix=$(realpath "$(dirname "$AGENTBOX")/..")
	lib=$(cd "$prefix" && find . -name agentbox-lookup -printf '%h\n')
	[ -d "$prefix/$lib" ] && [ -d "$prefix/share/agentbox/dev" ] || skip "agentbox is not installed in a prefix of its own"
	case $prefix in
	/usr | /usr/local) skip "agentbox is not installed in a prefix of its own" ;;
	esac
	[ "$(id -u)" = 0 ] || own=(unshare --map-current-user --keep-caps -m)
	# A copy that is the caller's own, at the same place, for this process alone.
	mkdir "$top/prefix" "$top/before"
	cp -r "$prefix/." "$top/prefix" && cp -r "$prefix/." "$top/before"
	mkdir "$top/prefix/other"
	printf '#!/bin/sh\nexec %s sh -c '\''mount --bind "$0" "$1" && shift && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"'\'' %q %q %q "$@"\n' \
		"${own[*]}" "$top/prefix" "$prefix" "$AGENTBOX" >"$top/agentbox"
	chmod 755 "$top/agentbox"
	AGENTBOX=$top/agentbox
	policy_is <<<"filesystem: {workspace: none, write: ['$prefix']}"
	box -- sh -c 'cd "$1" || exit
		for f in bin/agentbox "$2"/* share/agentbox/policies/*.yaml share/agentbox/dev/*; do
			echo "# x" >>"$f"; ln "$f" "$f.other"; mv "$f" "$f.was"; echo x >e; mv -f e "$f"; rm -f "$f" e
		done
		for d in "$2" share/agentbox/policies share/agentbox/dev; do
			echo x >"$d/new"; mkdir "$d/newer"; mv "$d" "$d.was"; ln -s /tmp "$d"; rm -rf "$d"; chmod 777 "$d"
		done
		mv share share.was; mv share/agentbox share/agentbox.was; mv bin bin.was; rm -rf "${2%/*}" share
		echo fine >other/f' sh "$prefix" "$lib" </dev/null
	want '.status == "exited"' '.error == null'
	# Only what is copied in place of being moved may be there as well.
	find "$top/prefix" \( -name '*.was' -o -name e \) -prune -exec rm -rf {} +
	[ "$(cat "$top/prefix/other/f")" = fine ]
	rm -r "$top/prefix/other"
	for part in bin/agentbox "$lib" share/agentbox/policies share/agentbox/dev; do
		diff -r --no-dereference "$top/before/$part" "$top/prefix/$part"
	done
	# And the next run is judged by it.
	box -- true
	want_exit 0
}

@test "a root directory is checked like any grant" {
	mkdir image
	: >file
	ln -s image link
	local kind
	for kind in none:grant_not_found file:grant_not_found link:grant_is_symlink; do
		policy_is <<-END
			filesystem: {root: $work/${kind%:*}, workspace: none}
		END
		box -- true
		want_error "${kind#*:}"
		want '.error.line == 2'
	done
}

@test "a home or system directory is never a written workspace, and says so" {
	written ""
	cd "$HOME"
	box -- true
	want_error dangerous_grant
	box -C /etc -- true
	want_error dangerous_grant
}

@test "what the box writes has the caller's umask" {
	written ""
	umask 077
	box -- touch private
	umask 022
	box -- touch public
	[ "$(stat -c %a private public)" = "$(printf '600\n644')" ]
}
