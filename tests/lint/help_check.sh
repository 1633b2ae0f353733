#!/bin/bash
# Every command's help: on stdout, status 0, at most 80 columns, nothing on stderr. And every
# command's answer to an unknown option: its usage status, and the nearest option.
#
# usage: help_check.sh AGENTBOX
set -u

agentbox=$1
failures=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out err=$scratch/err

fail() {
	echo "$*" >&2
	failures=$((failures + 1))
}

# call STATUS ARGS...: run it, hold its exit status against the expected one.
call() {
	local want=$1 status=0
	shift
	"$agentbox" "$@" >"$out" 2>"$err" </dev/null || status=$?
	[ "$status" = "$want" ] || fail "agentbox $*: status $status, expected $want"
}

check_help() {
	call 0 "$@"
	[ -s "$out" ] || fail "agentbox $*: nothing on stdout"
	[ ! -s "$err" ] || fail "agentbox $*: words on stderr"
	awk -v call="agentbox $*" 'length($0) > 80 { print call ": wider than 80: " $0; bad = 1 }
		/\t|[ ]$/ { print call ": tab or blank at the end: " $0; bad = 1 }
		END { exit bad }' "$out" >&2 || failures=$((failures + 1))
}

# The nearest option is named, and stdout has nothing but what the command must print.
check_unknown() {
	local command=$1 want=2
	[ "$command" != run ] || want=125
	call "$want" "$command" --hepl
	grep -q -- '--hepl' "$err" || fail "agentbox $command --hepl: the option is not named"
	grep -q -- '--help' "$err" || fail "agentbox $command --hepl: --help is not proposed"
	if [ "$command" = run ]; then
		jq -e '.status == "error" and .error.code == "usage" and .exit_code == null' "$out" \
			>/dev/null || fail "agentbox run --hepl: no result"
		[ "$(wc -l <"$out")" = 1 ] || fail "agentbox run --hepl: not one line"
	elif [ -s "$out" ]; then
		fail "agentbox $command --hepl: words on stdout"
	fi
}

check_help --help
check_help -h
check_help help
while IFS=$'\t' read -r command shown _; do
	check_help "$command" --help
	check_help "$command" -h
	[ "$shown" = hidden ] || check_help help "$command"
	check_unknown "$command"
done < <("$agentbox" dump commands)
[ -n "${command+set}" ] || fail "agentbox dump commands: nothing"

call 0 --version
grep -qE '^agentbox [0-9]+\.[0-9]+\.[0-9]+$' "$out" || fail "--version: $(cat "$out")"
call 2
grep -q usage: "$err" || fail "agentbox: no usage on stderr"
call 2 --hepl
grep -q -- '--help' "$err" || fail "agentbox --hepl: --help is not proposed"
call 2 chekc
grep -q 'agentbox check' "$err" || fail "agentbox chekc: check is not proposed"

# What cannot be delivered is a failure.
"$agentbox" --help >/dev/full 2>"$err" && fail "agentbox --help >/dev/full: status 0"
grep -q stdout "$err" || fail "agentbox --help >/dev/full: stdout is not named"

exit $((failures > 0))
