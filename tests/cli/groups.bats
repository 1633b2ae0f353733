# Control groups: where they are made and where they cannot, what the command sees of its own, and that none
# stays behind. Tagged `vm`: what also runs in the virtual machine.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

MiB=1048576

# without_groups: from here on agentbox sees no control groups, as in a container that shows none.
without_groups() {
	if [ "$(id -u)" = 0 ]; then
		export REAL_AGENTBOX=$AGENTBOX
		printf '%s\n' '#!/bin/sh' 'exec unshare -m sh -c '\''umount -R /sys/fs/cgroup; exec "$REAL_AGENTBOX" "$@"'\'' sh "$@"' \
			>"$top/agentbox"
		chmod 755 "$top/agentbox"
		AGENTBOX=$top/agentbox
	elif has cgroup; then
		skip "this user has control groups"
	fi
}

# bats test_tags=vm, vm:v2-plain, vm:v2-session,vm:v2-systemd
@test "A35: with memory and pids asked, the group is made or the error says what to do" {
	policy_is <<<'limits: {memory: 128MiB, pids: 64}'
	box -- true
	if has cgroup; then
		want_exit 0
		want_group
	else
		want_error cgroup_unavailable
		want '.error.line == 2 and (.error.file | endswith("policy.yaml"))'
		want_hint
	fi
	policy_is <<<$'limits: {memory: 128MiB, pids: 64}\nbest_effort: [cgroup]'
	box -- true
	want_exit 0
	if has cgroup; then
		want_group
	else
		want '.enforcement.cgroup == "none" and .enforcement.not_enforced == ["limits.memory"]'
	fi
}

# alone COMMAND...: runs it as the only process of a new group of version 2, which has all controllers and is
# removed afterwards. $leaf says whether it was moved into a group below.
alone() {
	local group status=0
	group=$(own_group "")
	while ! grep -qw memory "$group/cgroup.subtree_control" || ! mkdir "$group/abtest.$$" 2>/dev/null; do
		[ "$group" != /sys/fs/cgroup ] || skip "no group can be made here"
		group=${group%/*}
	done
	group=$group/abtest.$$
	sh -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$group" "$@" || status=$?
	leaf=no
	! rmdir "$group/agentbox-self" 2>/dev/null || leaf=yes
	rmdir "$group" || fail "left in it: $(find "$group" -type d)" || return
	return "$status"
}

# bats test_tags=vm
@test "A35: alone in its group, agentbox moves to a leaf and makes the box's group beside it" {
	needs cgroup2
	policy_is <<<'limits: {memory: 128MiB, pids: 64}'
	code=0
	alone "$AGENTBOX" run -p "$policy" -- true >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_exit 0
	want '.enforcement.cgroup == "v2"'
	[ "$leaf" = yes ]
}

# bats test_tags=vm:v2-root
@test "A35: in a container whose group is its root, alone or beside others" {
	needs cgroup2 root
	policy_is <<<'limits: {memory: 128MiB, pids: 64}'
	local start
	for start in 'exec "$@"' '"$@"; exit $?'; do
		code=0
		alone unshare -mC sh -c "umount /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; $start" sh \
			"$AGENTBOX" run -p "$policy" -- true >"$result" 2>"$words" || code=$?
		keep_result "$result"
		if [ "$(jq -r .status "$result")" = error ]; then
			want_error cgroup_unavailable
			want_hint
			[[ $start != exec* ]] || fail "alone, agentbox moves itself"
		else
			want_exit 0
			want '.enforcement.cgroup == "v2"'
		fi
	done
}

@test "A35: control groups that are shown read-only are none" {
	needs cgroup1 root
	policy_is <<<'limits: {memory: 128MiB}'
	code=0
	unshare -m sh -c 'for m in /sys/fs/cgroup/*; do mountpoint -q "$m" && mount -o remount,bind,ro "$m"; done; exec "$@"' sh \
		"$AGENTBOX" run -p "$policy" -- true >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_error cgroup_unavailable
	want_hint
	want '.error.line == 2'
}

@test "A35: a container shows its own group as the root of the mount; the limit holds there too" {
	needs cgroup1 root
	policy_is <<<'limits: {memory: 64MiB}'
	using memory
	local group
	group=$(own_group memory)/abtest.$$
	mkdir "$group"
	code=0
	sh -c 'echo 0 >"$0/cgroup.procs"; exec unshare -m sh -c '\''mount --bind "$0" /sys/fs/cgroup/memory; exec "$@"'\'' "$0" "$@"' \
		"$group" "$AGENTBOX" run -p "$policy" -- "${inside[@]}" >"$result" 2>"$words" || code=$?
	rmdir "$group"
	keep_result "$result"
	want_group
	limit_ended memory
}

@test "somebody else's KILL of the command is no limit" {
	needs cgroup
	policy_is <<<$'filesystem: {workspace: write}\nlimits: {memory: 128MiB}'
	local long
	long=$(odd_sleep)
	in_background -- sh -c "touch up; exec sleep ${long%.*}"
	until_there up
	sleep 0.2
	kill -KILL "$(pgrep -f "^sleep ${long%.*}")"
	code=0
	wait "$runner" || code=$?
	keep_result "$result"
	want '.status == "signaled" and .signal == "SIGKILL" and .limits_hit == []'
	[ "$code" = 137 ]
}

# bats test_tags=vm
@test "B62: the command sees its own group, and can write nothing of it" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, wall: 600s}'
	box -- sh -c 'for f in $(find /sys/fs/cgroup -name "*.max" -o -name "*limit_in_bytes"); do echo max >$f; echo -1 >$f; done
		find /sys/fs/cgroup \( -name cgroup.procs -o -name tasks \) -exec sh -c "echo 0 >{} && echo moved" \;
		'"$python"' -c "x = bytearray(400 << 20)"'
	want '.limits_hit == ["memory"]' '.stdout == ""'
	using pry
	box -- "${inside[@]}"
	want_exit 0 end
}

# bats test_tags=vm
@test "B62: with namespaces of its own inside, a mount of the groups changes nothing" {
	needs cgroup userns
	policy_is <<-'END'
		nesting: allow
		syscalls: {allow: [mount, umount2, setns, fsopen, fsmount, fsconfig, move_mount]}
		limits: {memory: 128MiB, wall: 600s}
	END
	box -- sh -c 'unshare -UrmCp --fork sh -c "mkdir /tmp/m; mount -t cgroup2 none /tmp/m
		echo max >/tmp/m/memory.max; echo 1000000000 >/tmp/m/memory.max; mkdir /tmp/m/sub; echo 0 >/tmp/m/sub/cgroup.procs
		echo 0 >/tmp/m/../cgroup.procs"
		'"$python"' -c "x = bytearray(400 << 20)"; echo rc=$?'
	want '.limits_hit == ["memory"]' '.stdout | contains("rc=137")'
	[ -z "$(groups_left "-$$-")" ]
}

# bats test_tags=vm, vm:v2-session
@test "inside, the own group is the root, and shows the limits" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, pids: 64}'
	box -- sh -c 'grep -v ":/$" /proc/self/cgroup; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null
		true'
	want_exit 0 $((128 * MiB))
	want_group
	# Read-only, without devices, programs and set-id, each of them, and nothing of the host's.
	box -- sh -c 'grep cgroup /proc/self/mountinfo'
	want_exit 0
	want '.stdout | split("\n") | map(select(. != "")) | length > 0 and all(.[];
		split(" ") | .[3] == "/" and (.[5] | split(",") | index("ro") and index("nosuid") and index("nodev") and index("noexec")))'
	box -- ls -A /sys
	want_exit 0 fs
	box -- sh -c 'find /sys/fs/cgroup -mindepth 1 -type d | grep -c agentbox'
	want '.stdout == "0\n"'
}

# bats test_tags=vm:v2-plain
@test "where there are no groups, the error names key, file and line, and best_effort the rest" {
	without_groups
	local key value
	while read -r key value; do
		policy_is <<<$'name: x\nlimits:\n  wall: 50s\n'"  $key: $value"
		box -- touch "$work/mark"
		want_error cgroup_unavailable
		want '.error.line == 5 and (.error.file | endswith("/policy.yaml"))' \
			".error.message | contains(\"limits.$key\")" '.error.hint | contains("best_effort")' \
			'.enforcement.cgroup == "none"'
		[ ! -e mark ]
	done <<-'END'
		memory 64MiB
		cpu 1s
		cpus 1.5
	END
	policy_is <<<$'limits: {memory: 64MiB, cpu: 10s, cpus: 1, pids: 64}\nbest_effort: [cgroup]'
	box -- echo ran
	want_exit 0 ran
	want '.enforcement.cgroup == "none"' \
		'.enforcement.not_enforced | sort == ["limits.cpu", "limits.cpus", "limits.memory"]' '.limits_hit == []'
	rm "$policy"
	box --memory 64MiB -- echo ran
	want_error cgroup_unavailable
	want '.error.message + (.error.file // "") | contains("memory")'
	want_hint
}

@test "a share of processors that the group above does not have is refused by name" {
	needs root cgroup1
	local group status
	group=$(own_group cpu)/abtest.$$
	mkdir "$group"
	policy_is <<<$'limits:\n  cpus: 1.5'
	status=0
	# Half a processor for all below it.
	sh -c 'echo 50000 >"$0/cpu.cfs_quota_us" && echo 0 >"$0/cgroup.procs" && exec "$@"' "$group" \
		"$AGENTBOX" run -p "$policy" -- touch /tmp/ran >"$result" 2>"$words" || status=$?
	keep_result "$result"
	code=$status
	[ -z "$(find "$group" -mindepth 1 -type d)" ]
	want_error limit_refused
	want '.error.stage == "cgroup" and (.error.message | contains("limits.cpus"))'
	want_hint
	policy_is <<<'limits: {cpus: 0.5}'
	status=0
	sh -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$group" \
		"$AGENTBOX" run -p "$policy" -- true >"$result" 2>"$words" || status=$?
	keep_result "$result"
	code=$status
	rmdir "$group" || fail "left in it: $(find "$group" -type d)"
	want_exit 0
	want_group
}

# watched KEY: the run ended by a limit that nothing but agentbox itself has watched.
watched() {
	limit_ended "$1"
	want '.enforcement.cgroup == "none"' ".enforcement.not_enforced | index(\"limits.$1\") != null" '.warnings == []'
}

# bats test_tags=vm:v2-plain
@test "best_effort: memory that no group holds is watched, of one process and of several" {
	without_groups
	policy_is <<<$'limits: {memory: 128MiB, wall: 600s}\nbest_effort: [cgroup]'
	using memory
	box -- "${inside[@]}"
	watched memory
	want ".usage.memory_peak_bytes >= $((128 * MiB))" ".usage.cpu_system_ms > 0"
	local reached
	reached=$(jq -r .stdout "$result" | grep . | tail -n 1)
	[ "$reached" -ge $((127 * MiB)) ] || fail "killed at $reached bytes"
	[ "$reached" -lt $((1000 * MiB)) ] || fail "not killed before $reached bytes"
	# None of them has so much.
	box -- "$python" -c '
import os, time
for i in range(4):
    if os.fork() == 0:
        x = bytearray(40 << 20)
        time.sleep(900)
time.sleep(900)'
	watched memory
}

@test "best_effort: what is watched is memory, not address space, shared pages or the files of others" {
	without_groups
	policy_is <<<$'filesystem: {workspace: read}\nlimits: {memory: 128MiB, wall: 600s}\nbest_effort: [cgroup]'
	head -c 200M /dev/zero >large
	box -- "$python" -c '
import mmap, os, time
m = mmap.mmap(-1, 8 << 30, flags=34)
m[0] = 1
file = open("large", "rb")
f = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(f[i] for i in range(0, len(f), 4096))
x = bytearray(80 << 20)
for i in range(5):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
for i in range(5):
    os.wait()
print("ok")'
	want_exit 0 ok
	want '.limits_hit == []' '.enforcement.not_enforced == ["limits.memory"]'
}

@test "best_effort: files in /tmp count for the memory that is watched" {
	without_groups
	policy_is <<<$'limits: {memory: 128MiB, wall: 600s}\nbest_effort: [cgroup]'
	box -- sh -c "head -c 100M /dev/zero >/tmp/f; exec $python -c 'import time; x = bytearray(60 << 20); time.sleep(900)'"
	watched memory
}

@test "best_effort: one that makes itself unreadable, has threads or leaves its parent is watched all the same" {
	without_groups
	policy_is <<<$'limits: {memory: 128MiB, wall: 600s}\nbest_effort: [cgroup]'
	box -- "$python" -c '
import ctypes, os, threading, time
def child():
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        ctypes.CDLL(None).prctl(4, 0)
        x = bytearray(200 << 20)
        time.sleep(900)
    time.sleep(900)
threading.Thread(target=child).start()
time.sleep(900)'
	watched memory
}

@test "best_effort: processor time that no group counts is watched, of ended processes too" {
	without_groups
	policy_is <<<$'limits: {cpu: 1s, wall: 600s}\nbest_effort: [cgroup]'
	using spin 2
	box -- "${inside[@]}"
	watched cpu
	want '.usage.cpu_user_ms + .usage.cpu_system_ms | . >= 1000 and . <= 1300'
	box -- sh -c 'while :; do timeout -s KILL 0.3 "$@"; done' sh "${inside[@]}"
	watched cpu
	want '.usage.cpu_user_ms + .usage.cpu_system_ms | . >= 1000 and . <= 1400'
	# What takes no signal of a limit for an answer.
	box -- "$python" -c 'import signal
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True: pass'
	watched cpu
	box -- sh -c 'kill -9 $$'
	want '.status == "signaled" and .limits_hit == []'
}

# bats test_tags=vm:v2-plain
@test "a limit of processes alone never needs a group" {
	without_groups
	policy_is <<<'limits: {pids: 20}'
	using fork
	box -- "${inside[@]}"
	want_exit 0
	want '.stdout | fromjson | .started == 19' '.enforcement.cgroup == "none" and .enforcement.not_enforced == []'
}

# bats test_tags=vm, vm:v2-plain
@test "without such limits no group is made, and none is looked for" {
	local text
	box -- true
	want_exit 0
	want '.enforcement.cgroup == "none" and .enforcement.not_enforced == []'
	for text in 'limits: {wall: 30s, disk: 32MiB, output: 1KiB, open_files: 100, file_size: 1MiB}' 'best_effort: [cgroup]' 'name: x'; do
		policy_is <<<"$text"
		box -- sh -c 'test ! -e /sys/fs/cgroup; cat /proc/self/cgroup >/dev/null'
		want_exit 0
		want '.enforcement.cgroup == "none" and .enforcement.not_enforced == []'
	done
	needs strace
	rm "$policy"
	strace -f -o "$top/trace" "$AGENTBOX" run -- true >"$result" 2>"$words"
	keep_result "$result"
	want_exit 0
	grep -q execve "$top/trace"
	not grep -E '"[^"]*(cgroup|memory\.|cpu\.)[^"]*"' "$top/trace"
}

# bats test_tags=vm, vm:v2-session,vm:v2-systemd
@test "no group is left, however a run ends" {
	needs cgroup
	policy_is <<-END
		filesystem: {workspace: write}
		limits: {memory: 32MiB, cpu: 20s, cpus: 1, pids: 64, wall: $(slow 1)s}
	END
	local end ends
	ends=('true' 'sleep 99' 'exit 3' 'sleep 99 & setsid sleep 99 & true' 'kill -9 $$' "$python -c 'x = bytearray(99 << 20)'"
		'for i in $(seq 80); do sleep 99 & done 2>/dev/null; wait')
	# Boxes of others come and go meanwhile: ours are known by agentbox's number.
	for end in "${ends[@]}"; do
		in_background -- sh -c "$end"
		wait "$runner" || true
		keep_result "$result"
		want '.enforcement.cgroup != "none"'
		[ -z "$(groups_left "-$runner-")" ] || fail "left by '$end': $(groups_left "-$runner-")"
	done
	in_background -- sh -c 'touch up; sleep 99'
	until_there up
	[ -n "$(groups_left "-$runner-")" ]
	kill -TERM "$runner"
	wait "$runner" || true
	keep_result "$result"
	want '.status == "cancelled"'
	[ -z "$(groups_left "-$runner-")" ]
	in_background -- ./missing
	wait "$runner" || true
	keep_result "$result"
	want '.error.code == "command_not_found"'
	[ -z "$(groups_left "-$runner-")" ]
}

# bats test_tags=vm, vm:v2-session
@test "what a killed agentbox left goes with the next run, and what lives is left alone" {
	needs cgroup
	policy_is <<-END
		filesystem: {workspace: write}
		limits: {memory: 64MiB, cpu: 60s, cpus: 1, pids: 64, wall: $(slow 60)s}
	END
	local long killed=() i living _
	in_background -- sh -c 'touch living; while [ ! -e stop ]; do sleep 0.1; done; '"$python"' -c "x = bytearray(99 << 20)"; echo rc=$?'
	living=$runner
	cp /dev/null "$top/living.words"
	until_there living
	mv "$result" "$top/living.json"
	long=$(odd_sleep)
	for i in 1 2 3; do
		"$AGENTBOX" run -p "$policy" -- sh -c "touch up.$i; sleep ${long%.*}" >/dev/null 2>"$words" &
		killed+=($!)
		until_there "up.$i"
		[ -n "$(groups_left "-${killed[i - 1]}-")" ] || fail "agentbox ${killed[i - 1]} has no group while it runs"
		kill -KILL "${killed[i - 1]}"
		wait "${killed[i - 1]}" || true
	done
	for _ in $(seq 100); do
		running "^sleep ${long%.*}" || break
		sleep 0.05
	done
	not running "^sleep ${long%.*}"
	box -- true
	want_exit 0
	for i in "${killed[@]}"; do
		[ -z "$(groups_left "-$i-")" ] || fail "left: $(groups_left "-$i-")"
	done
	[ -n "$(groups_left "-$living-")" ] || fail "the group of a living run is gone"
	touch stop
	code=0
	wait "$living" || code=$?
	cp "$top/living.json" "$result"
	keep_result "$result"
	want_exit 0 rc=137
	want '.limits_hit == ["memory"]'
	[ -z "$(groups_left "-$living-")" ]
}

# own_records: a directory for the records of this test alone, as other runs of the same user would collect what is
# dead here. $records is where they are.
own_records() {
	mkdir -m 700 "$top/run"
	if [ "$(id -u)" = 0 ]; then
		[ -d /run/agentbox ] || mkdir -m 700 /run/agentbox
		export REAL_AGENTBOX=$AGENTBOX OWN_RUN=$top/run
		printf '%s\n' '#!/bin/sh' \
			'exec unshare -m sh -c '\''mount --bind "$OWN_RUN" /run/agentbox && exec "$REAL_AGENTBOX" "$@"'\'' sh "$@"' >"$top/agentbox"
		chmod 755 "$top/agentbox"
		AGENTBOX=$top/agentbox
		records=$top/run/runs
	else
		export XDG_RUNTIME_DIR=$top/run
		records=$top/run/agentbox/runs
	fi
}

# bats test_tags=vm
@test "gc removes what a killed run left and says so, and does not touch a living one" {
	needs cgroup
	policy_is <<<$'filesystem: {workspace: write}\nlimits: {memory: 64MiB, pids: 64, wall: 600s}'
	local dead living long
	own_records
	in_background -- sh -c 'touch living; while [ ! -e stop ]; do sleep 0.1; done; exit 9'
	living=$runner
	until_there living
	mv "$result" "$top/living.json"
	long=$(odd_sleep)
	in_background -- sh -c "touch up; sleep ${long%.*}"
	dead=$runner
	until_there up
	kill -KILL "$dead"
	wait "$dead" || true
	[ -n "$(groups_left "-$dead-")" ]
	plain gc --dry-run
	want_plain 0 "/agentbox-$dead-"
	[ -n "$(groups_left "-$dead-")" ]
	[[ $output != *-$living-* ]]
	plain gc
	want_plain 0 "removed: control group /sys/fs/cgroup/" "/agentbox-$dead-" "removed: record "
	[ -z "$(groups_left "-$dead-")" ]
	[[ $output != *-$living-* ]]
	plain gc --json
	want_plain 0 '"removed"'
	jq -e '.left == [] and .running >= 1' <<<"$output"
	[[ $output != *-$dead-* ]]
	touch stop
	code=0
	wait "$living" || code=$?
	cp "$top/living.json" "$result"
	keep_result "$result"
	want_exit 9
}

# bats test_tags=vm
@test "gc removes no group that a record has no right to name" {
	needs cgroup
	local name=agentbox-999999999-1 group
	own_records
	box --memory 64MiB -- true # makes the directory
	want_exit 0
	group=$(own_group memory) || group=$(own_group "")
	while ! mkdir "$group/abtest.$$" 2>/dev/null; do
		group=${group%/*}
		[ -n "$group" ]
	done
	group=$group/abtest.$$
	mkdir "$group/agentbox-999999999-2"
	printf 'cgroup %s\n' "$group" "$group/agentbox-999999999-2" /etc "$top" "$group/agentbox-999999999-1/.." >"$records/$name"
	code=0
	"$AGENTBOX" gc >"$words" 2>&1 || code=$?
	rmdir "$group/agentbox-999999999-2" "$group"
	[ -e "$records/$name" ]
	[ -d "$top" ] && [ -d /etc ]
	[ "$code" = 1 ]
	grep -q "$name" "$words"
}

@test "every system call of the groups made to fail in turn leaves a clear error, or the same limits" {
	needs cgroup1 ptrace
	# In a group of its own, so that what stays behind is seen.
	local group
	group=$(own_group memory)/abtest.$$
	mkdir "$group"
	sh -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$group" \
		"$python" "$BATS_TEST_DIRNAME/faults.py" "$AGENTBOX_PROBES" "$AGENTBOX" "$AGENTBOX_RESULTS" \
		'memory: 64MiB, cpu: 20s, cpus: 1'
	"$AGENTBOX" gc || true
	rmdir "$group" || fail "left: $(find "$group" -type d)"
}

# bats test_tags=vm:v2-root
@test "C05: runs with limits, one after the other, do not become slower" {
	needs cgroup
	policy_is <<<'limits: {memory: 64MiB, cpu: 10s, pids: 32}'
	local count=200 i part took first=99999999 last=99999999
	[ "$AGENTBOX_SLOW" = 1 ] || count=40
	part=$((count / 10))
	# The fastest of each tenth: what else the machine does makes some slower, a slope makes all slower.
	for i in $(seq "$count"); do
		took=$(date +%s%6N)
		"$AGENTBOX" run -p "$policy" -- true >"$result"
		took=$(($(date +%s%6N) - took))
		[ "$i" -gt "$part" ] || [ "$took" -ge "$first" ] || first=$took
		[ "$i" -le $((count - part)) ] || [ "$took" -ge "$last" ] || last=$took
	done
	keep_result "$result"
	want_group
	echo "the fastest of the first $part: $first us, of the last: $last us"
	[ "$last" -lt $((first * 3 / 2 + 2000)) ]
}

# bats test_tags=vm:v2-root
@test "C05: 30 boxes with limits at once: each has its own, and all end" {
	needs cgroup
	local i count=30 pids=() memory
	[ "$AGENTBOX_SLOW" = 1 ] || count=8
	using memory
	for i in $(seq "$count"); do
		memory=$((32 + i % 3 * 8))
		"$AGENTBOX" run --memory "${memory}MiB" --cpu 60s --pids 40 --wall 600s -- "${inside[@]}" >"$top/many.$i" 2>"$words" &
		pids+=($!)
	done
	for i in $(seq "$count"); do
		code=0
		wait "${pids[i - 1]}" || code=$?
		cp "$top/many.$i" "$result"
		keep_result "$result"
		limit_ended memory
		memory=$((32 + i % 3 * 8))
		want ".stdout | split(\"\\n\") | .[-2] | tonumber | . > $(((memory - 4) * MiB)) and . <= $((memory * MiB))"
		[ -z "$(groups_left "-${pids[i - 1]}-")" ]
	done
}
