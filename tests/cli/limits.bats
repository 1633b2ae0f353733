# Limits: what holds memory, processor time, processors, processes and disk, to what size, and how the result
# tells which one was hit. Tagged `vm`: what also runs in the virtual machine.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

MiB=1048576

@test "A42: under a group, a server left in the background does not hold up the result" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, wall: 60s}'
	local long
	long=$(odd_sleep)
	box -- sh -c "sleep ${long%.*} & echo done"
	want_exit 0 'done'
	want_group
	want '.leftover_killed == 1 and .limits_hit == []'
	quickly 2000
	not running "sleep ${long%.*}"
}

@test "A43: under a group, a detached grandchild ends with the box and writes nothing later" {
	needs cgroup
	policy_is <<<$'filesystem: {workspace: write}\nlimits: {memory: 128MiB, wall: 60s}'
	local long=3
	long=$(slow 2)
	box -- sh -c "setsid sh -c 'sleep $long; date >late; echo late >&2' & exit 0"
	want_exit 0
	want_group
	want '.leftover_killed >= 1'
	sleep "$((long + 1))"
	[ ! -e late ]
	not grep -q late "$words"
}

# bats test_tags=vm:v2-user
@test "A46: under a group, everything ends at the wall limit, and what was printed is kept" {
	needs cgroup
	policy_is <<-END
		filesystem: {workspace: write}
		limits: {memory: 128MiB, wall: $(slow 1)s}
	END
	local long
	long=$(slow 4)
	box -- sh -c "trap '' TERM; echo early; (sleep $long; touch late) & wait; sleep 300"
	want '.status == "timeout" and .limits_hit == ["wall"] and .stdout == "early\n"' \
		".duration_ms < $(slow 1000) + 3000"
	[ "$code" = 124 ]
	sleep "$(slow 3)"
	[ ! -e late ]
}

# bats test_tags=vm, vm:v2-session
@test "A59: the memory limit, a KILL of its own and the wall limit are told apart" {
	needs cgroup
	policy_is <<-END
		limits: {memory: 128MiB, wall: $(slow 2)s}
	END
	box -- "$python" -c 'x = bytearray(512 << 20)'
	limit_ended memory
	want_group
	box -- sh -c 'kill -9 $$'
	want '.status == "signaled" and .signal == "SIGKILL" and .limits_hit == [] and .exit_code == null'
	[ "$code" = 137 ]
	box -- sh -c 'trap "" TERM; sleep 99'
	want '.status == "timeout" and .limits_hit == ["wall"]'
	[ "$code" = 124 ]
}

# bats test_tags=vm
@test "A59: when only a child was killed for memory, the command's own end is the result" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB}'
	box -- sh -c "$python -c 'x = bytearray(512 << 20)'; echo rc=\$?; exit 5"
	want_exit 5 rc=137
	want '.limits_hit == ["memory"]'
}

# bats test_tags=vm
@test "what the command does to itself is no limit, whatever it looks like" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, cpu: 20s, pids: 64, cpus: 1}'
	box -- sh -c 'exit 137'
	want_exit 137
	want '.limits_hit == []'
	box -- sh -c 'sh -c "kill -9 \$\$"; echo $?'
	want_exit 0 137
	want '.limits_hit == []'
	box -- sh -c 'kill -XCPU $$'
	want '.status == "signaled" and .signal == "SIGXCPU" and .limits_hit == []'
	box -- sh -c 'kill -9 -1; exit 0'
	want '.limits_hit == []'
	# An allocation that is refused, and a process that has its own limit, are the program's own matter.
	box -- "$python" -c '
import resource, os
resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))
try:
    bytearray(512 << 20)
except MemoryError:
    print("refused", flush=True)'
	want_exit 0 refused
	want '.limits_hit == []'
}

@test "A60: under a limit of memory, reserving much address space is not using it" {
	needs cgroup
	policy_is <<<'limits: {memory: 256MiB}'
	box -- "$python" -c 'import mmap; m=mmap.mmap(-1,8<<30,flags=34); m[0]=1; print("ok")'
	want_exit 0 ok
	want_group
	needs node
	box -- node -e 0
	want_exit 0 ''
}

# bats test_tags=vm:v2-user
@test "A62: processor time and wall time are two limits, and all processes count for the first" {
	needs cgroup
	policy_is <<-END
		limits: {cpu: 2s, wall: $(slow 2)s}
	END
	box -- sleep 60
	want '.status == "timeout" and .limits_hit == ["wall"]' \
		".usage.cpu_user_ms + .usage.cpu_system_ms < $(slow 200)"
	policy_is <<-END
		limits: {cpu: 2s, wall: $(slow 8)s}
	END
	box -- sh -c 'for i in 1 2 3 4; do timeout 90 sh -c "while :; do :; done" & done; wait'
	limit_ended cpu
	want_group
	want '.usage.cpu_user_ms + .usage.cpu_system_ms | . >= 2000 and . < 2600'
}

# bats test_tags=vm
@test "cpu: 2s ends between 2.0 and 2.3 s, over one process and over two" {
	needs cgroup
	policy_is <<<'limits: {cpu: 2s, wall: 600s}'
	local count
	for count in 1 2; do
		using spin "$count"
		box -- "${inside[@]}"
		limit_ended cpu
		want '.usage.cpu_user_ms + .usage.cpu_system_ms | . >= 2000 and . <= 2300'
	done
}

@test "processes that have ended count for the processor time" {
	needs cgroup
	policy_is <<<'limits: {cpu: 2s, wall: 600s}'
	using spin 1
	# None of them uses half of it; the sum does.
	box -- sh -c 'while :; do timeout -s KILL 0.3 "$@"; done' sh "${inside[@]}"
	limit_ended cpu
	want '.usage.cpu_user_ms + .usage.cpu_system_ms | . >= 2000 and . <= 2300'
}

# bats test_tags=vm:v2-user
@test "cpus: 0.5 gives half a processor, to one process and to two together" {
	needs cgroup
	policy_is <<<'limits: {cpus: 0.5, wall: 600s}'
	local count attempt share=''
	for count in 1 2; do
		using burn 4 "$count"
		# Never more; that it is not less can be seen only while the machine has half a processor to give.
		for attempt in 1 2 3; do
			box -- "${inside[@]}"
			want_exit 0
			want_group
			want '(.stdout | fromjson | .processors) <= 0.55' '.limits_hit == []'
			share=$(jq -r '.stdout | fromjson | .processors >= 0.45' "$result")
			[ "$share" != true ] || break
			echo "attempt $attempt: $(jq -r .stdout "$result")"
		done
		[ "$share" = true ]
	done
}

@test "cpus: 1.5 does not hold back one process, cpus: 0.5 does" {
	needs cgroup
	using burn 1 1
	# The kernel's count of the times that it did: unlike a share, it does not depend on what else runs here.
	local throttled='"$@" >/dev/null; grep -h nr_throttled /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat 2>/dev/null; true'
	policy_is <<<'limits: {cpus: 1.5, wall: 600s}'
	box -- sh -c "$throttled" sh "${inside[@]}"
	want_exit 0 'nr_throttled 0'
	policy_is <<<'limits: {cpus: 0.5, wall: 600s}'
	box -- sh -c "$throttled" sh "${inside[@]}"
	want_exit 0
	want '.stdout | test("nr_throttled [1-9]")'
}

# bats test_tags=vm
@test "with a whole number of cpus the command sees that many processors" {
	needs cgroup
	local here
	here=$(nproc)
	policy_is <<<'limits: {cpus: 1}'
	box -- nproc
	want_group
	if [ "$(jq -r .enforcement.cgroup "$result")" = v1 ] || grep -qw cpuset "$(own_group "")/cgroup.controllers"; then
		want_exit 0 1
	fi
	policy_is <<<'limits: {cpus: 1.5}'
	box -- nproc
	want_exit 0 "$here"
	policy_is <<-END
		limits: {cpus: $here}
	END
	box -- nproc
	want_exit 0 "$here"
	policy_is <<<'limits: {cpus: 1024}'
	box -- nproc
	want_exit 0 "$here"
}

@test "boxes of one processor each are spread over the processors" {
	needs cgroup
	[ "$(nproc)" -gt 1 ] || skip "needs two processors"
	policy_is <<<'limits: {cpus: 1}'
	local _
	box -- true
	[ "$(jq -r .enforcement.cgroup "$result")" = v1 ] || grep -qw cpuset "$(own_group "")/cgroup.controllers" ||
		skip "no processors are assigned here"
	# Started as scripts do it: with a program of their own beside each.
	for _ in $(seq 24); do
		box -- grep Cpus_allowed_list: /proc/self/status
		jq -r .stdout "$result" >>"$top/processors"
	done
	sort "$top/processors" | uniq -c | grep Cpus
	[ "$(grep Cpus "$top/processors" | sort | uniq -c | awk '$1 > most {most = $1} END {print most}')" -lt 20 ]
}

# bats test_tags=vm
@test "memory: 128MiB kills one process at 128 MiB within 4" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, wall: 600s}'
	using memory
	box -- "${inside[@]}"
	limit_ended memory
	want_group
	local reached
	reached=$(jq -r .stdout "$result" | grep . | tail -n 1)
	[ "$reached" -ge $((124 * MiB)) ] || fail "killed at $reached bytes"
	[ "$reached" -le $((128 * MiB)) ] || fail "killed at $reached bytes"
	want ".usage.memory_peak_bytes | . == null or (. >= $((124 * MiB)) and . <= $((128 * MiB)))"
}

# bats test_tags=vm
@test "memory: 128MiB kills at 128 MiB within 4 for children together" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, wall: 600s}'
	using together 3
	box -- "${inside[@]}"
	want_exit 0
	want '.limits_hit == ["memory"]'
	want '.stdout | fromjson | .signal == -9'
	# What the others took after the first one was gone, and before anybody could see that, is in the sum.
	want ".stdout | fromjson | .bytes | . >= $((124 * MiB)) and . <= $((132 * MiB))"
}

# bats test_tags=vm
@test "memory: below the limit nothing is killed, and files in /tmp count too" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, disk: 64MiB, wall: 600s}'
	box -- "$python" -c 'x = bytearray(100 << 20); print("ok")'
	want_exit 0 ok
	want '.limits_hit == []' ".usage.memory_peak_bytes | . == null or . >= $((100 * MiB))"
	box -- sh -c 'dd if=/dev/zero of=/tmp/f bs=1M count=50 2>/dev/null; echo rc=$?; '"$python"' -c "x = bytearray(90 << 20)"'
	want '.limits_hit == ["memory"]' '.stdout == "rc=0\n"'
}

@test "A64: without a limit of disk in the policy, a small memory is not used up by files in /tmp" {
	needs cgroup
	policy_is <<<'limits: {memory: 128MiB, wall: 600s}'
	box -- sh -c 'dd if=/dev/zero of=/tmp/f bs=1M count=300 2>/dev/null; echo rc=$?'
	want_exit 0 rc=1
	want '.limits_hit == ["disk"]'
}

# bats test_tags=vm:v2-user
@test "the smallest and the largest values run, or are refused in clear words" {
	needs cgroup
	local limit
	for limit in 'cpus: 0.01' 'cpu: 720h' 'memory: 64TiB' 'cpus: 1024' 'memory: 1GiB, pids: 1'; do
		policy_is <<<"limits: {$limit}"
		box -- true
		want_exit 0
		want_group
	done
	# The caller's own hard limit of processes may be lower; the kernel of the groups takes it.
	policy_is <<<'limits: {pids: 4194304}'
	box -- true
	want '.status == "exited" or .error.code == "limit_refused" and .error.stage == "limits"'
	policy_is <<<'limits: {memory: 1MiB}'
	box -- true
	# So little may not even do for the start; then the limit is named.
	want '.error == null or (.error.code | IN("limit_refused", "no_resources", "cgroup_unavailable"))' \
		'.status != "limit" or .limits_hit == ["memory"]'
	policy_is <<<'limits: {cpu: 1ms}'
	box -- sh -c 'while :; do :; done'
	limit_ended cpu
}

# bats test_tags=vm:v2-root
@test "pids: 64 is 64 processes of the command, its own included, to the last one" {
	local limits
	for limits in 'pids: 64' 'pids: 64, memory: 256MiB'; do
		if [[ $limits == *memory* ]] && ! has cgroup; then
			continue
		fi
		policy_is <<<"limits: {$limits}"
		using fork
		box -- "${inside[@]}"
		want_exit 0
		want '.stdout | fromjson | .started == 63 and .error == "EAGAIN"'
		if has cgroup; then
			want_group
			want '.limits_hit == ["pids"]' '.usage.pids_peak | . == null or . == 64'
		fi
		using threads
		box -- "${inside[@]}"
		want_exit 0
		want '.stdout | fromjson | .started == 63'
	done
}

# bats test_tags=vm
@test "pids: one process more than the limit allows is not reached by starting them slowly" {
	policy_is <<<'limits: {pids: 3}'
	box -- sh -c 'sleep 60 & sleep 60 & kill $!; wait $!; sleep 60 & echo three; sleep 60 & echo four'
	want '.stdout == "three\n"'
}

# bats test_tags=vm
@test "A64: a full /tmp is told to the program, not answered with a kill" {
	needs cgroup
	policy_is <<<'limits: {disk: 64MiB, memory: 512MiB, wall: 600s}'
	box -- sh -c 'dd if=/dev/zero of=/tmp/f bs=1M count=300 2>/dev/null; echo rc=$?
		fallocate -l 10G /dev/shm/w || echo nospace; (echo more >~/f) || echo full'
	want_exit 0 $'rc=1\nnospace\nfull'
	want_group
	want '.limits_hit == ["disk"]'
}

# bats test_tags=vm
@test "disk: 64MiB is exact to a page, over /tmp, /dev/shm and home together" {
	local more
	for more in '' ', memory: 256MiB'; do
		if [ -n "$more" ] && ! has cgroup; then
			continue
		fi
		policy_is <<<"limits: {disk: 64MiB$more}"
		using fill /tmp /dev/shm "$HOME"
		[ -w "$HOME" ] || inside=("${inside[@]::6}")
		box -- "${inside[@]}"
		want_exit 0
		want ".stdout | fromjson | .size == $((64 * MiB)) and .left == 0 and .ends == [\"ENOSPC\"]
			and .free - .written < 4096 and .free - .written >= 0 and .free > $((63 * MiB))" \
			".usage.disk_bytes == $((64 * MiB))" '.limits_hit == ["disk"]'
	done
}

# bats test_tags=vm:v2-user
@test "A66: a fork bomb is held and named, and the host starts processes all the time" {
	needs cgroup
	policy_is <<-END
		limits: {pids: 64, wall: $(slow 3)s}
	END
	local started=0 failures=0 bomb
	in_background -- bash -c 'f(){ f|f& }; f 2>/dev/null; sleep 60'
	bomb=$runner
	took_ms=$(date +%s%3N)
	while kill -0 "$bomb" 2>/dev/null; do
		if /bin/true; then started=$((started + 1)); else failures=$((failures + 1)); fi
		sleep 0.05
	done
	took_ms=$(($(date +%s%3N) - took_ms))
	wait "$bomb" || true
	keep_result "$result"
	want '.limits_hit | index("pids") != null'
	want '.status == "timeout" or .status == "limit" or .status == "exited"'
	quickly 5000
	[ "$failures" = 0 ] && [ "$started" -gt 5 ]
	[ -z "$(groups_left "-$bomb")" ]
}

# bats test_tags=vm
@test "where a group counts, no figure of the usage is missing" {
	needs cgroup
	policy_is <<<'limits: {memory: 256MiB, cpu: 60s, pids: 64, cpus: 1}'
	box -- "$python" -c 'import os, time
x = bytearray(50 << 20)
c = [os.fork() for _ in range(2)]
while time.process_time() < 0.2: pass
if 0 not in c: [os.wait() for _ in c]'
	want_exit 0
	want_group
	want '[.usage.cpu_user_ms, .usage.cpu_system_ms] | all(. != null)' \
		'.usage.cpu_user_ms + .usage.cpu_system_ms >= 390' '.usage.disk_bytes != null'
	# The kernel's own counters: not all versions have each.
	if [ "$(jq -r .enforcement.cgroup "$result")" = v1 ] || [ -e "$(own_group "")/memory.peak" ]; then
		want ".usage.memory_peak_bytes | . != null and . > $((50 * MiB)) and . < $((256 * MiB))"
	fi
	if find /sys/fs/cgroup -name pids.peak 2>/dev/null | grep -q .; then
		want '.usage.pids_peak | . != null and . >= 3 and . <= 6'
	fi
	if grep -qsw io "$(own_group "")/cgroup.controllers"; then
		want '.usage.read_bytes != null or .usage.write_bytes != null or .enforcement.cgroup == "v2"'
	fi
}

@test "the limits can be given on the command line" {
	needs cgroup
	rm -f "$policy"
	using memory
	box --memory 64MiB --wall 600s -- "${inside[@]}"
	limit_ended memory
	want_group
	box --cpu 1s --wall 600s -- sh -c 'while :; do :; done'
	limit_ended cpu
	box --cpus 1 -- true
	want_exit 0
	want_group
	using fork
	box --pids 10 -- "${inside[@]}"
	want_exit 0
	want '.stdout | fromjson | .started == 9' '.limits_hit == ["pids"]'
	want_group
}
