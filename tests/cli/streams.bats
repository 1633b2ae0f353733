# stdin, stdout, stderr, terminals, and where the result goes.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

@test "A47: a stdin that never closes holds nothing up" {
	local way
	for way in '' -i; do
		# shellcheck disable=SC2086
		box $way -- echo hi < <(exec sleep 30)
		want_exit 0 hi
		quickly 3000
	done
}

@test "A47: the wall limit holds while stdin stays open" {
	box -i --wall 1s -- sleep 60 < <(exec sleep 30)
	want '.status == "timeout" and .limits_hit == ["wall"]'
	[ "$code" = 124 ]
	quickly 5000
}

@test "A48: without --stdin the command reads end of file, and the caller's bytes stay" {
	{
		box -- cat
		cat >"$top/rest"
	} < <(printf 'm1\nm2\n')
	want_exit 0 ''
	[ "$(cat "$top/rest")" = $'m1\nm2' ]
}

@test "A48: with --stdin bytes pass unchanged, and the end of file too" {
	head -c 20000000 /dev/urandom >"$top/data"
	box -i -- sha256sum <"$top/data"
	want_exit 0 "$(sha256sum <"$top/data")"
	rm "$top/data"
	box -i -- wc -c < <(head -c 1G /dev/zero)
	want_exit 0 1073741824
	box -i -- od -An -c < <(printf 'a\0b')
	want_exit 0 '   a  \0   b'
	box -i -- cat </dev/null
	want_exit 0 ''
}

@test "A48: a command that reads no stdin does not stop the caller" {
	box -i -- true < <(yes | head -c 10000000)
	want_exit 0
	box -i -- echo hi <&-
	want_exit 0 hi
}

@test "A50: huge output is truncated to head and tail, in little memory" {
	needs python3
	"$python" - "$AGENTBOX" run -- sh -c 'yes | head -c 2000000000; echo END; exit 3' >"$result" 2>"$top/cost" <<-'END' || code=$?
		import resource, subprocess, sys
		status = subprocess.call(sys.argv[1:])
		print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
		sys.exit(status)
	END
	: >"$words"
	keep_result "$result"
	[ "$(tail -n 1 "$top/cost")" -lt 65536 ]
	want_exit 3
	want '.stdout_truncated and .stdout_bytes == 2000000004' '.stdout | startswith("y\ny\n") and endswith("y\nEND\n")'
	want '.stdout | length < 1100000 and contains("bytes")' '.limits_hit == []'
}

@test "A50: output_action: kill ends the box at the limit" {
	policy_is <<<'limits: {output: 64KiB, output_action: kill}'
	box -- sh -c 'yes; echo never >&2'
	want '.status == "limit" and .limits_hit == ["output"]' '.stdout | startswith("y\n")' '.stderr == ""'
	[ "$code" = 137 ]
}

@test "A50: output is cut between characters" {
	needs python3
	policy_is <<<'limits: {output: 1001B}'
	box -- python3 -c 'print("ä€😀" * 5000)'
	want_exit 0
	want '.stdout_encoding == "utf-8" and .stdout_truncated' '.stdout | contains("\ufffd") | not'
}

@test "A51: bytes that are not UTF-8 come as base64, text as text" {
	needs python3
	box -- python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256))); print("plain ä", file=sys.stderr)'
	want_exit 0
	want '.stdout_encoding == "base64" and .stdout_bytes == 256' '.stderr_encoding == "utf-8" and .stderr == "plain ä\n"'
	jq -r .stdout "$result" | base64 -d >"$top/bytes"
	"$python" -c 'import sys; sys.exit(open(sys.argv[1], "rb").read() != bytes(range(256)))' "$top/bytes"
	"$python" -c 'import json, sys; json.loads(open(sys.argv[1], "rb").read().decode("utf-8", "strict"))' "$result"
}

@test "A51: odd UTF-8 (surrogates, overlong, cut, beyond the last) never breaks the JSON" {
	local bytes
	for bytes in '\355\240\200' '\300\200' '\360\237\230' '\364\220\200\200' '\357\277\277' '\000' '\342\200\250' '\303'; do
		box -- printf "$bytes"
		want_exit 0
		"$python" -c 'import json, sys; json.loads(open(sys.argv[1], "rb").read().decode("utf-8", "strict"))' "$result"
	done
}

@test "B03: the caller's files are never the command's stdin" {
	echo orig >hf
	box -i -- sh -c 'cat; echo pwn >/proc/self/fd/0' <hf
	want '.stdout == "orig\n"'
	[ "$(cat hf)" = orig ]
	mkdir dir
	box -i -- ls /proc/self/fd/0/.. </etc
	want '.exit_code != 0' '.stdout == ""'
	exec 5<>hf
	box -i -- sh -c 'echo pwn >&0; echo pwn >/proc/self/fd/0' <&5
	exec 5>&-
	[ "$(cat hf)" = orig ]
}

@test "B03: the caller's files are never the command's stdout or stderr" {
	echo head >out
	echo head >err
	code=0
	"$AGENTBOX" run --result "$result" -- sh -c 'echo o; echo e >&2; true >/proc/self/fd/1; true >/proc/self/fd/2; ls -lL /proc/self/fd/1 /proc/self/fd/2' >>out 2>>err || code=$?
	: >"$words"
	keep_result "$result"
	[ "$(head -n 2 out)" = $'head\no' ]
	[ "$(head -n 2 err)" = $'head\ne' ]
	[ "$(grep -c '^p' out)" = 2 ]
}

@test "--result: the output passes through live, the result goes to the file" {
	code=0
	output=$("$AGENTBOX" run --result "$result" -- sh -c 'echo out; echo err >&2; exit 4' 2>"$words") || code=$?
	[ "$output" = out ]
	[ "$(cat "$words")" = err ]
	keep_result "$result"
	[ "$code" = 4 ]
	want '.status == "exited" and .exit_code == 4'
	want '.stdout_bytes == 4 and .stderr_bytes == 4'
}

@test "--result-fd: the same with an open descriptor" {
	output=$("$AGENTBOX" run --result-fd 5 -- echo out 5>"$result")
	[ "$output" = out ]
	: >"$words"
	keep_result "$result"
	want_exit_in_file 0
}

want_exit_in_file() {
	want ".status == \"exited\" and .exit_code == $1 and .error == null"
}

@test "with --result agentbox stands in a pipeline, binary data unchanged" {
	head -c 5000000 /dev/urandom >"$top/data"
	"$AGENTBOX" run -i --result "$result" -- cat <"$top/data" |
		"$AGENTBOX" run -i --result "$top/second" -- gzip | gzip -d >"$top/copy"
	cmp "$top/copy" "$top/data"
	: >"$words"
	keep_result "$result"
	want_exit_in_file 0
	keep_result "$top/second"
}

@test "with --result output arrives as it is written, not at the end" {
	"$AGENTBOX" run --result "$result" -- sh -c 'echo first; sleep 30' >"$top/live" &
	local runner=$! _
	for _ in $(seq 200); do [ ! -s "$top/live" ] || break; sleep 0.05; done
	kill -TERM "$runner"
	wait "$runner" || true
	[ "$(cat "$top/live")" = first ]
	: >"$words"
	keep_result "$result"
	want '.status == "cancelled"'
}

@test "a reader that goes away ends the command as in any pipeline" {
	local start=$SECONDS
	"$AGENTBOX" run --result "$result" -- sh -c 'yes; exit 0' | head -n 1 >/dev/null
	[ $((SECONDS - start)) -lt 10 ]
	: >"$words"
	keep_result "$result"
}

@test "A53: a closed or full stdout is no hang and no success" {
	code=0
	"$AGENTBOX" run -- true >/dev/full 2>/dev/null || code=$?
	[ "$code" != 0 ]
	code=0
	timeout 20 "$AGENTBOX" run -- true >&- 2>/dev/null || code=$?
	[ "$code" != 0 ] && [ "$code" != 124 ]
	timeout 20 "$AGENTBOX" run -- true | true
}

@test "a result that cannot be written is an error before anything runs" {
	code=0
	policy_is <<<'filesystem: {workspace: write}'
	"$AGENTBOX" run -p "$policy" --result "$top/no/such/dir" -- touch "$work/mark" >"$top/out" 2>"$words" || code=$?
	[ "$code" = 125 ]
	[ ! -e mark ]
	grep -q 'no/such/dir' "$words"
}

@test "B59: control characters in output are escaped in the result" {
	box -- printf '\033]52;c;eA==\007\033[6n\2332J\177'
	want_exit 0
	none_of '[\x00-\x09\x0b-\x1f\x7f]' "$result"
	box -- printf '\033[6n\302\2332J\342\200\256\177'
	want_exit 0
	want '.stdout == "\u001b[6n\u009b2J\u202e\u007f"'
	none_of '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]' "$result"
}

@test "B59: control characters in names and messages are visible to people, never raw" {
	local odd=$'a\033]0;t\007\u202eb\u009bc'
	box -v -- "$odd"
	want_error command_not_found
	none_of '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' "$words"
	none_of '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' "$result"
	printf 'version: 1\n"bad\\u001b]0;key\\u0007": 1\n' >"$policy"
	box -- true
	want_error policy_invalid
	none_of '[\x00-\x08\x0b-\x1f\x7f]' "$words"
	plain check "$policy"
	want_plain 1
	[[ $output != *$'\033'* ]]
	plain explain --path "/tmp/$odd" "$policy"
	[[ $output != *$'\033'* ]]
	plain "$odd"
	[[ $output != *$'\033'* ]]
}

@test "--tty: the command has a terminal of its own, of the caller's size" {
	needs script pty
	on_terminal "stty rows 33 cols 77; '$AGENTBOX' run --tty --result '$result' -- sh -c 'test -t 0 && test -t 1 && test -t 2 && echo three; stty size; tty; exit 6'; echo status \$?"
	keep_result "$result"
	want '.status == "exited" and .exit_code == 6'
	grep -q '^three' "$top/terminal"
	grep -q '^33 77' "$top/terminal"
	grep -q '^/dev/pts/' "$top/terminal"
	grep -q '^status 6' "$top/terminal"
}

@test "--tty: what is typed arrives, and Ctrl-C interrupts the command, not agentbox" {
	needs script pty python3
	"$python" "$BATS_TEST_DIRNAME/terminal.py" "$AGENTBOX" run --tty --result "$result" -- \
		sh -c 'trap "echo interrupted; exit 9" INT; echo ready; read -r line; echo "got $line"; while :; do sleep 0.1; done' >"$top/seen"
	keep_result "$result"
	want '.status == "exited" and .exit_code == 9'
	grep -q '^got typed' "$top/seen"
	grep -q 'interrupted$' "$top/seen"
}

@test "--tty puts the caller's terminal back as it was" {
	needs script pty
	on_terminal "stty -g >'$top/before'; '$AGENTBOX' run --tty --result '$result' -- sh -c 'stty raw -echo'; stty -g >'$top/after'"
	keep_result "$result"
	want '.status == "exited"'
	cmp "$top/before" "$top/after"
}

@test "-q is silent, -v tells the outcome on stderr" {
	box -q -- sh -c 'exit 3'
	want_exit 3
	[ ! -s "$words" ]
	box -v -- sh -c 'exit 3'
	want_exit 3
	[ -s "$words" ]
	box -q -- nosuchcommand
	want_error command_not_found
	[ ! -s "$words" ]
}
