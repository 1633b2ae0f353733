# What a hostile command might gain for later or for others: rights that stay behind on the host, secrets in
# the next run, its own judge.
# shellcheck shell=bash disable=SC2154,SC2016,SC2034

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
	needs root
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
