# Beginning and end: limits of time, what is left, signals, what happens when agentbox is killed.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

@test "A42: a server left in the background does not hold up the result" {
	local long
	long=$(odd_sleep)
	box -- sh -c "sleep ${long%.*} & echo done"
	want_exit 0 'done'
	want '.leftover_killed == 1'
	quickly 3000
	not running "sleep ${long%.*}"
}

@test "A43: a detached grandchild ends with the box and writes nothing later" {
	policy_is <<<'filesystem: {workspace: write}'
	box -- sh -c 'setsid sh -c "sleep 2; date >late; echo late >&2" & exit 0'
	want_exit 0
	want '.leftover_killed >= 1'
	sleep 3
	[ ! -e late ]
	not grep -q late "$words"
}

@test "A46: at the wall limit everything ends, and what was printed is kept" {
	policy_is <<<'filesystem: {workspace: write}'
	box --wall 1s -- sh -c 'trap "" TERM; echo early; (sleep 3; touch late) & wait; sleep 300'
	want '.status == "timeout" and .limits_hit == ["wall"] and .stdout == "early\n"' '.duration_ms < 4500'
	[ "$code" = 124 ]
	sleep 3
	[ ! -e late ]
}

@test "A46: TERM comes before KILL, so that a command can tidy up" {
	box --wall 1s -- sh -c 'trap "echo tidied; exit 0" TERM; echo up; while :; do sleep 0.05; done'
	want '.status == "timeout" and .stdout == "up\ntidied\n"'
	[ "$code" = 124 ]
}

@test "A56: the command's 125 and agentbox's own are told apart" {
	box -- sh -c 'exit 125'
	want_exit 125
	box -p missing.yaml -- true
	want_error policy_not_found
	box -- sh -c 'exit 127'
	want_exit 127
	box -- sh -c 'exit 255'
	want_exit 255
}

@test "A57: missing, not executable, without #!, and with a missing interpreter" {
	box -- nosuch
	want_error command_not_found
	want_hint
	box -- ./nosuch
	want_error command_not_found
	touch f
	box -- ./f
	want_error not_executable
	box -- /tmp
	want_error not_executable
	printf 'echo hi $1\n' >g
	chmod +x g
	box -- ./g you
	want_exit 0 'hi you'
	printf '#!/no/such/interpreter\n' >h
	chmod +x h
	box -- ./h
	want_error interpreter_missing
	printf '\177ELF' >i
	chmod +x i
	box -- ./i
	want '.status == "error" or .exit_code != 0'
}

@test "A59: a signal of the command's own is signaled, with its number" {
	box -- sh -c 'kill -9 $$'
	want '.status == "signaled" and .limits_hit == [] and .exit_code == null and (.signal | . == 9 or . == "SIGKILL")'
	[ "$code" = 137 ]
	box -- sh -c 'kill -SEGV $$'
	want '.status == "signaled"'
	[ "$code" = 139 ]
}

@test "a command is not pid 1: its orphans are reaped and its default signals act" {
	needs python3
	box -- sh -c 'echo $$ >/tmp/p; test $$ != 1 && (sh -c "sleep 0.1 & exit 0"); sleep 0.5; ls -d /proc/[0-9]* | wc -l'
	want_exit 0
	want '.stdout | tonumber < 6'
}

# start: a box in the background; $runner is agentbox, $long marks its sleep.
start() {
	long=$(odd_sleep)
	long=${long%.*}
	# What the caller ignores (nohup does HUP) agentbox ignores as well; here nothing shall be.
	env --default-signal=INT,TERM,HUP \
		"$AGENTBOX" run -- sh -c "echo up; sleep $long & sleep $long" >"$result" 2>"$words" &
	runner=$!
	local _
	for _ in $(seq 200); do
		[ "$(pgrep -fc "^sleep $long")" != 2 ] || return 0
		sleep 0.05
	done
	fail "the box did not start"
}

gone() {
	local _
	for _ in $(seq 100); do
		running "^sleep $long" || return 0
		sleep 0.05
	done
	fail "processes of the box are left"
}

@test "INT, TERM and HUP cancel the run, with a result and nothing left" {
	local signal
	for signal in INT TERM HUP; do
		# A background job of a shell ignores INT; as a job with its own group it does not.
		set -m
		start
		set +m
		kill -"$signal" "$runner"
		code=0
		wait "$runner" || code=$?
		keep_result "$result"
		want '.status == "cancelled" and .stdout == "up\n"'
		[ "$code" != 0 ]
		gone
	done
}

@test "when agentbox is killed the box dies too" {
	start
	kill -KILL "$runner"
	wait "$runner" || true
	gone
}

@test "stopping and continuing agentbox loses nothing" {
	policy_is <<<'limits: {wall: 30s}'
	"$AGENTBOX" run -p "$policy" -- sh -c 'sleep 1; echo end; exit 7' >"$result" 2>"$words" &
	local runner=$!
	sleep 0.3
	kill -STOP "$runner"
	sleep 1.5
	kill -CONT "$runner"
	code=0
	wait "$runner" || code=$?
	keep_result "$result"
	want_exit 7 end
}

@test "a fork bomb is held by the limit of processes, and the host goes on" {
	needs bash
	policy_is <<<'limits: {pids: 64, wall: 2s}'
	box -- bash -c 'f(){ f|f& }; f 2>/dev/null; sleep 60'
	want '.status == "timeout" or .status == "limit" or .status == "exited"'
	quickly 15000
	true & wait $!
}

@test "runs leave no process, mount, file in /tmp or shared memory behind" {
	local before after i attempt
	export AGENTBOX_TEST_MARK=mark-$$-$RANDOM # init keeps the caller's environment until its end
	traces() {
		wc -l </proc/self/mountinfo
		find /tmp /dev/shm /run -maxdepth 1 -user "$(id -u)" -newer "$top/start" ! -name 'bats*' ! -name 'cc*' | sort
		find /sys/fs/cgroup -name '*agentbox*' -user "$(id -u)" 2>/dev/null
		grep -lz "AGENTBOX_TEST_MARK=$AGENTBOX_TEST_MARK" /proc/[0-9]*/environ 2>/dev/null |
			grep -vE "/($$|$BASHPID)/" | xargs -r dirname | xargs -rI{} cat {}/comm 2>/dev/null | grep -vE '^(bash|bats|grep|xargs)'
	}
	# What others do in /tmp meanwhile is not ours; what is ours comes back each time.
	for attempt in 1 2 3; do
		touch "$top/start"
		before=$(traces) || true
		for i in $(seq 20); do
			"$AGENTBOX" run -- sh -c 'touch /tmp/x /dev/shm/x ~/x; sleep 60 & true' >"$result"
		done
		for i in $(seq 5); do
			timeout -s KILL 0.0"$i" "$AGENTBOX" run -- sleep 60 >/dev/null 2>&1 || true
		done
		sleep 0.3
		after=$(traces) || true
		[ "$before" != "$after" ] || return 0
		echo "attempt $attempt:"
		diff <(echo "$before") <(echo "$after") || true
	done
	false
}

@test "many boxes at once do not disturb each other" {
	local i pids=()
	for i in $(seq 30); do
		"$AGENTBOX" run -- sh -c "echo $i >/tmp/same; sleep 0.2; cat /tmp/same; exit $i" >"$top/many.$i" &
		pids+=($!)
	done
	for i in $(seq 30); do
		code=0
		wait "${pids[i - 1]}" || code=$?
		[ "$code" = "$i" ]
		cp "$top/many.$i" "$result"
		: >"$words"
		keep_result "$result"
		want ".exit_code == $i and .stdout == \"$i\n\""
	done
	[ "$(jq -r .id "$top"/many.* | sort -u | wc -l)" = 30 ]
}

@test "times and usage are plausible numbers" {
	needs python3
	box -- python3 -c 'import time; s=time.process_time()
while time.process_time() - s < 0.3: pass
x = bytearray(30 << 20)
time.sleep(0.3)'
	want_exit 0
	want '.duration_ms >= 600 and .duration_ms < 20000' '.usage.cpu_user_ms + .usage.cpu_system_ms >= 280' \
		'.usage.cpu_user_ms + .usage.cpu_system_ms <= .duration_ms * 2' '.usage.memory_peak_bytes == null or .usage.memory_peak_bytes > 30000000' \
		'.timing.setup_us > 0 and .timing.run_us >= 600000' '.timing.policy_us >= 0 and .timing.teardown_us >= 0'
}

@test "ids are different and sortable by time" {
	local first
	box -- true
	first=$(jq -r .id "$result")
	sleep 0.01
	box -- true
	want '.id | test("^[0-9A-HJKMNP-TV-Z]{26}$")'
	[[ $first < $(jq -r .id "$result") ]]
}
