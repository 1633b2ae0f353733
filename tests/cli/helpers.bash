# What all end-to-end tests share: one directory for each test, running a box, judging its result.
#
# From tests/run come: AGENTBOX (the program), AGENTBOX_PROBES (directory of the probe programs),
# AGENTBOX_RESULTS (file to which every result line is added, for the schema check), and
# AGENTBOX_MUST_RUN (what this machine has; a skip for one of these is a failure).
# In a virtual machine: AGENTBOX_SLOW (a whole number: how many times slower than others it is) and
# AGENTBOX_TEST_PLACE (v2-root, v2-user, v2-plain, v2-systemd: who runs there, with which groups).
# shellcheck shell=bash disable=SC2034

bats_require_minimum_version 1.5.0

: "${AGENTBOX:=agentbox}"
: "${AGENTBOX_PROBES:=/nonexistent}"
: "${AGENTBOX_RESULTS:=/dev/null}"
: "${AGENTBOX_SLOW:=1}"

# The workspace is the current directory of every test; what else a test makes stands beside it.
setup() {
	top=$BATS_TEST_TMPDIR
	work=$top/work
	mkdir "$work"
	cd "$work" || return
	result=$top/result.json
	words=$top/words
	policy=$top/policy.yaml
}

# Whatever a test left running in the background ends here.
teardown() {
	local pid
	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || true
	done
}

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	return 1
}

# not COMMAND...: fails when the command succeeds (a bare "!" would not end a test).
not() {
	! "$@"
}

# none_of PATTERN FILE: no byte of the file matches the Perl pattern.
none_of() {
	not env LC_ALL=C grep -qP "$1" "$2" || fail "matches $1: $(cat -v "$2" | head -c 1000)"
}

# needs WORD...: each is a command, or one of the kernel's features below. Skips the test when the
# machine lacks it, or fails it when AGENTBOX_MUST_RUN says that the machine has it. (Root, and
# control groups, it can have for root only: they must be there for root.)
needs() {
	local word must
	for word; do
		has "$word" && continue
		must=,${AGENTBOX_MUST_RUN-},
		[[ $word != @(root|cgroup*) || $(id -u) = 0 ]] || must=''
		case $must in
		*",$word,"*) fail "this machine must have: $word" || return ;;
		*) skip "this machine lacks: $word" ;;
		esac
	done
}

has() {
	case $1 in
	root) [ "$(id -u)" = 0 ] ;;
	user) [ "$(id -u)" != 0 ] ;;
	userns) unshare -Ur true 2>/dev/null ;;
	landlock) "$python" - <<-'END'
		import ctypes, sys
		sys.exit(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) < 6)
		END
		;;
	seccomp) grep -q '^Seccomp:' /proc/self/status ;;
	ptrace) "$AGENTBOX_PROBES/probe-fault" list true 2>/dev/null ;;
	pty) script -qec true /dev/null >/dev/null 2>&1 </dev/null ;;
	x86_64) [ "$(uname -m)" = x86_64 ] ;;
	idn) [ -x "$(libexec)/agentbox-idn" ] ;; # agentbox was built with libidn2
	cgroup) has cgroup1 || has cgroup2 ;;
	cgroup1) # the memory controller is one of version 1, and the own group there may be written
		[ -w "$(own_group memory)" ]
		;;
	cgroup2) # groups of version 2 with limits can be made
		case ${AGENTBOX_TEST_PLACE-} in
		v2-plain) false ;;
		v2-*) true ;;
		*) may_limit_v2 ;;
		esac
		;;
	*) PATH=$box_path command -v "$1" >/dev/null ;;
	esac
}

# The directory of agentbox's own helper programs.
libexec() {
	echo "$(dirname "$(dirname "$AGENTBOX")")/libexec/agentbox"
}

# own_group CONTROLLER: the directory of the group that this shell is in; "" for version 2.
own_group() {
	local path mount root group
	path=$(awk -F: -v c="$1" 'c == "" ? $1 == 0 : index("," $2 ",", "," c ",") {print $3; exit}' /proc/self/cgroup)
	read -r root mount < <(awk -v c="$1" 'c == "" ? / - cgroup2 / : / - cgroup / && index("," $NF ",", "," c ",") {
		print $4, $5; exit}' /proc/self/mountinfo)
	[ -n "$path" ] && [ -n "$mount" ] || return
	group=$mount${path#"${root%/}"}
	echo "${group%/}"
}

# Without the program's own words: a group from here up that is ours hands the controllers on to its children.
may_limit_v2() {
	local level
	level=$(own_group "") || return
	if [ "$(id -u)" = 0 ] && [ ! -e "$level/cgroup.type" ]; then
		grep -qw memory "$level/cgroup.controllers"
		return
	fi
	while [ -w "$level/cgroup.procs" ] && [ -e "$level/cgroup.type" ]; do
		! grep -qw memory "$level/cgroup.subtree_control" || return 0
		[ "$(id -u)" != 0 ] || delegated "$level" || return
		level=${level%/*}
	done
	return 1
}

delegated() {
	"$python" -c 'import os, sys
sys.exit(not any(n in ("trusted.delegate", "user.delegate") for n in os.listxattr(sys.argv[1])))' "$1"
}

box_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
python=/usr/bin/python3

# policy_is <<TEXT: the policy of this test, without its `version`.
policy_is() {
	{ echo 'version: 1' && cat; } >"$policy"
}

# box ARGS...: `agentbox run ARGS` with the test's policy if there is one. Leaves the JSON in
# $result, the words for people in $words, the exit status in $code and the time in $took_ms.
box() {
	local named=() start
	[ ! -e "$policy" ] || named=(-p "$policy")
	start=$(date +%s%3N)
	code=0
	"$AGENTBOX" run "${named[@]}" "$@" >"$result" 2>"$words" || code=$?
	took_ms=$(($(date +%s%3N) - start))
	keep_result "$result"
}

# A result is exactly one line of JSON; it is kept for the schema check.
keep_result() {
	if [ "$(wc -l <"$1")" != 1 ] || ! jq -es 'length == 1' "$1" >/dev/null 2>&1; then
		echo "not one line of JSON:" >&2
		head -c 2000 "$1" | cat -v >&2
		cat -v "$words" >&2
		return 1
	fi
	cat "$1" >>"$AGENTBOX_RESULTS"
}

# want FILTER...: each jq filter must be true of the result.
want() {
	local filter
	for filter; do
		jq -e "$filter" "$result" >/dev/null 2>&1 && continue
		echo "not so: $filter" >&2
		jq -c '{status, exit_code, signal, stdout: .stdout[0:1500]?, stderr: .stderr[0:1500]?,
			limits_hit, violations, error, duration_ms, leftover_killed}' "$result" >&2
		cat -v "$words" >&2
		return 1
	done
}

# The command ended by itself with this status (and stdout, when given).
want_exit() {
	want ".status == \"exited\" and .exit_code == $1 and .error == null"
	[ "$code" = "$1" ] || fail "exit status $code, expected $1"
	[ $# -lt 2 ] || want_stdout "$2"
}

want_stdout() {
	[ "$(jq -r .stdout "$result")" = "$1" ] || {
		printf 'expected stdout: %s\n' "$1" >&2
		want false
	}
}

# want_error CODE: the command never ran, and the result says why and what to do.
want_error() {
	want '.status == "error" and .exit_code == null and .signal == null' \
		'.error.message | length > 0'
	want "(.error.code | IN($(printf '"%s",' "$@" | sed 's/,$//')))"
	case $(jq -r .error.code "$result") in
	command_not_found) [ "$code" = 127 ] ;;
	not_executable | interpreter_missing | exec_failed) [ "$code" = 126 ] ;;
	*) [ "$code" = 125 ] ;;
	esac || fail "exit status $code"
}

want_hint() {
	want '.error.hint | type == "string" and length > 0'
}

# want_denied OPERATION: the result lists the refused call, for certain.
want_denied() {
	want "[.violations[] | select(.layer == \"syscall\" and .certain and .count >= 1
		and (.operation | startswith(\"$1\")))] | length > 0"
}

# quickly MS: the last box took less. The bounds leave room for a busy machine.
quickly() {
	[ "$took_ms" -lt "$(slow "$1")" ] || fail "took $took_ms ms, at most $(slow "$1") are right"
}

# slow N: a number of seconds or milliseconds, for a machine that is AGENTBOX_SLOW times slower.
slow() {
	echo $(($1 * AGENTBOX_SLOW))
}

# using WAY...: the command line inside for limits.py.
using() {
	cp "$BATS_TEST_DIRNAME/limits.py" "$work/limits.py"
	inside=("$python" -I -S limits.py "$@")
}

# A control group holds the box, and nothing of the policy is missing.
want_group() {
	want '.enforcement.cgroup == "v1" or .enforcement.cgroup == "v2"' '.enforcement.not_enforced == []' \
		'.error == null'
	case ${AGENTBOX_TEST_PLACE-} in
	v2-*) want '.enforcement.cgroup == "v2"' ;;
	esac
}

# limit_ended KEY: the limit, and only it, ended the command.
limit_ended() {
	want ".status == \"limit\" and .limits_hit == [\"$1\"] and .exit_code == null and .error == null"
	[ "$code" = 137 ] || fail "exit status $code"
}

# groups_left [PART]: every directory in any hierarchy that a box's group can be, and the records of them.
groups_left() {
	find /sys/fs/cgroup -type d -name "*agentbox*${1-}*" ! -name agentbox-self 2>/dev/null | sort
	find /run/agentbox "${XDG_RUNTIME_DIR-/nonexistent}/agentbox" "${XDG_STATE_HOME-$HOME/.local/state}/agentbox" \
		-type f -name "*agentbox*${1-}*" 2>/dev/null | sort
}

# in_background ARGS...: like box, but goes on at once; $runner is agentbox itself, whose number is in the
# name of its groups.
in_background() {
	"$AGENTBOX" run -p "$policy" "$@" >"$result" 2>"$words" &
	runner=$!
}

# Waits until the box in the background has its groups and has printed UP to the file that it writes.
until_there() {
	local _
	for _ in $(seq 200); do
		[ ! -e "$1" ] || return 0
		sleep "0.0$((AGENTBOX_SLOW > 1 ? 9 : 2))"
	done
	cat -v "$words" "$result" >&2
	fail "the box did not start"
}

# within SECONDS COMMAND...: waits until it succeeds.
within() {
	local end=$((SECONDS + $(slow "$1") + 1))
	shift
	until "$@"; do
		[ "$SECONDS" -le "$end" ] || fail "not in time: $*" || return
		sleep 0.02
	done
}

# plain ARGS...: any other command of agentbox; leaves its output in $output, its status in $code.
plain() {
	code=0
	output=$("$AGENTBOX" "$@" 2>&1) || code=$?
}

want_plain() {
	[ "$code" = "$1" ] || {
		printf 'exit status %s, expected %s:\n%s\n' "$code" "$1" "$output" >&2
		return 1
	}
	shift
	local part
	for part; do
		[[ $output == *"$part"* ]] || {
			printf 'without "%s":\n%s\n' "$part" "$output" >&2
			return 1
		}
	done
}

# probe NAME: a copy of a probe program, placed where the box sees it.
probe() {
	cp "$AGENTBOX_PROBES/probe-$1" "$work/$1"
	chmod 755 "$work/$1"
}

# A number of seconds that no other process of the machine sleeps, to recognise ours by.
odd_sleep() {
	echo "$((100000 + RANDOM)).$BASHPID"
}

running() {
	pgrep -f -- "$1" >/dev/null
}

# on_terminal COMMAND: run a line of shell with a terminal of its own; what appears there is kept. (As its
# stdin ends at once, script types an end-of-file character, which may be echoed as NUL or "^@".)
on_terminal() {
	script -qefc "$1" "$top/typescript" </dev/null >/dev/null 2>&1 || true
	sed '1d;$d' "$top/typescript" | tr -d '\0\r' | sed 's/\^@//g' >"$top/terminal"
}
