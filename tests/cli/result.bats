# Where the result goes, when a box had the directory before or has it now, or nobody takes it.
# shellcheck shell=bash disable=SC2154,SC2030,SC2031

load helpers

write_policy() {
	policy_is <<<'filesystem: {workspace: write}'
}

@test "a named pipe that a box has left for the next run's --result is refused soon" {
	write_policy
	box -- mkfifo out.json
	want_exit 0
	[ -p out.json ]
	code=0
	timeout 20 "$AGENTBOX" run --result out.json -- true >"$result" 2>"$words" || code=$?
	want_error result_unwritable
	want_hint
	grep -q 'out.json is a named pipe that nobody reads' "$words"
}

@test "a link that a box has left among the directories of the next run's --result is refused" {
	write_policy
	mkdir "$top/outside"
	box -- ln -s "$top/outside" out
	want_exit 0
	local name
	for name in out/r.json ./out/r.json "$work/out/r.json"; do
		box --result "$name" -- true
		want_error result_unwritable
		grep -q "directory ${name%/r.json} of the result file is a symbolic link" "$words"
		grep -q 'real path' "$words"
	done
	# The workspace counts as much as the current directory.
	cd /
	box -C "$work" --result "$work/out/r.json" -- true
	want_error result_unwritable
	[ -z "$(ls "$top/outside")" ]
	# The same from elsewhere is the caller's own word.
	policy=$top/none
	"$AGENTBOX" run -C "$top/outside" --result "$work/out/r.json" -- true
	jq -e '.status == "exited"' "$top/outside/r.json"
}

@test "a pipe with a reader takes the result" {
	mkfifo "$top/pipe"
	timeout 60 cat "$top/pipe" >"$result" 3>&- &
	local reader=$!
	code=0
	timeout 60 "$AGENTBOX" run --result "$top/pipe" -- true 2>"$words" || code=$?
	# A reader that waits still, for want of a writer, is not to hold up a test that failed.
	[ "$code" = 0 ] || kill "$reader" || true
	wait "$reader" || true
	keep_result "$result"
	want_exit 0
}

@test "a signal ends agentbox while it waits for a pipe to get a reader" {
	mkfifo "$top/pipe"
	"$AGENTBOX" run --result "$top/pipe" -- touch mark >"$top/out" 2>&1 3>&- &
	local pid=$! status=0
	sleep 0.3
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status: $(cat "$top/out")"
	[ ! -e mark ]
}

@test "a result whose file became a directory is not lost: it is on stderr, beside live output" {
	write_policy
	code=0
	"$AGENTBOX" run -p "$policy" --result r.json -- sh -c 'rm r.json; mkdir r.json; echo live' \
		>"$top/out" 2>"$top/err" || code=$?
	[ "$code" = 125 ]
	[ "$(cat "$top/out")" = live ]
	grep '^{' "$top/err" >"$result"
	keep_result "$result"
	want '.status == "exited" and .exit_code == 0'
	grep -q 'cannot be written to r.json: Is a directory' "$top/err"
}

@test "a result that its place does not take is on stdout when nothing ran" {
	code=0
	"$AGENTBOX" run -p "$top/none.yaml" --result /dev/full -- true >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_error policy_not_found
	grep -q 'cannot be written to /dev/full' "$words"
}

@test "a result that stdout does not take is on stderr" {
	code=0
	"$AGENTBOX" run -- echo said >/dev/full 2>"$words" || code=$?
	[ "$code" = 125 ]
	grep '^{' "$words" >"$result"
	keep_result "$result"
	want '.stdout == "said\n"'
}

@test "a closed stdout is told once" {
	code=0
	"$AGENTBOX" run -- true >&- 2>"$words" || code=$?
	[ "$code" = 125 ]
	[ "$(grep -c 'cannot be written to stdout' "$words")" = 1 ]
}

# A pipe that is full and that nobody reads; a reader is there so that nothing ends by SIGPIPE.
full_pipe_ends_by_term() {
	"$python" - "$AGENTBOX" "$@" <<-'END'
		import fcntl, os, signal, subprocess, sys, time
		reader, writer = os.pipe()
		fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ
		os.set_blocking(writer, False)
		try:
		    while os.write(writer, b"x" * 4096):
		        pass
		except BlockingIOError:
		    pass
		os.set_blocking(writer, True)
		child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=writer)
		deadline = time.monotonic() + 20
		while time.monotonic() < deadline and child.poll() is None:
		    with open(f"/proc/{child.pid}/wchan") as f:
		        if "pipe" in f.read():
		            break
		    time.sleep(0.1)
		time.sleep(0.3)
		assert child.poll() is None, "it ended although nobody reads"
		child.send_signal(signal.SIGTERM)
		try:
		    status = child.wait(10)
		except subprocess.TimeoutExpired:
		    child.kill()
		    status = "none: it does not end"
		assert status == -signal.SIGTERM, status
	END
}

@test "a signal ends agentbox while it waits for a reader of the result" {
	full_pipe_ends_by_term run -- true
}

@test "a signal ends agentbox test while it waits for a reader" {
	policy_is <<<'tests: [{run: [sh, -c, "exit 1"], expect: {exit_code: 0}}]'
	export TMPDIR=$top/tmp
	mkdir "$TMPDIR"
	full_pipe_ends_by_term test "$policy"
	[ -z "$(ls "$TMPDIR")" ]
}
