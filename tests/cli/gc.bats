# What a killed run leaves, and who removes it: `gc`, or the next run. The records are in a directory of the
# test's own: root's calls see it as /run, in a mount namespace; a user's have it as $XDG_RUNTIME_DIR.
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
load helpers

name=agentbox-4194305-1 # of no process

# own_records: from here on agentbox keeps its records below $top/run, in $records, which is empty.
own_records() {
	records=$top/run/agentbox/runs
	(umask 077 && mkdir -p "$records")
	real=$AGENTBOX
	if [ "$(id -u)" = 0 ]; then
		printf '#!/bin/sh\nexec unshare -m sh -c '\''mount --bind "$0" /run && exec "$@"'\'' %q %q "$@"\n' \
			"$top/run" "$real" >"$top/agentbox"
		chmod 755 "$top/agentbox"
		AGENTBOX=$top/agentbox
		shown=/run/agentbox/runs
	else
		export XDG_RUNTIME_DIR=$top/run XDG_STATE_HOME=$top/state
		shown=$records
	fi
}

# record NAME LINE...: as a run writes one.
record() {
	(umask 077 && printf '%s\n' "${@:2}" >"$records/$1")
}

# gc ARGS...: its status in $code, its output in $output.
gc() {
	plain gc "$@"
}

# A group below the test's own, as a run would make it; $group and, if it has processes, their $inside.
make_group() {
	group=$(own_group memory)/$1
	mkdir "$group"
}

teardown() {
	local pid
	for pid in ${inside-} $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || true
	done
	for _ in $(seq 50); do
		[ -n "${group-}" ] && [ -d "$group" ] || return 0
		rmdir "$group" 2>/dev/null || sleep 0.1
	done
}

@test "gc with nothing to do says so, and makes nothing" {
	own_records
	rmdir "$records" "$top/run/agentbox"
	gc
	want_plain 0 'nothing is left'
	gc -q
	want_plain 0
	[ -z "$output" ]
	gc --json
	want_plain 0
	jq -e '. == {agentbox, dry_run: false, removed: [], left: [], running: 0}' <<<"$output"
	box -- true
	want_exit 0
	[ -z "$(ls -A "$top/run")" ]
	[ ! -e "$top/state" ]
	gc now
	want_plain 2
}

@test "a dead run's record whose groups are gone is removed by gc, and by the next run" {
	own_records
	record "$name" "cgroup /sys/fs/cgroup/gone/$name" "cgroup /nowhere/$name"
	gc --dry-run
	want_plain 0 "would be removed: record $shown/$name"
	[ -e "$records/$name" ]
	gc
	want_plain 0 "removed: record $shown/$name"
	[ ! -e "$records/$name" ]
	record "$name" "cgroup /sys/fs/cgroup/gone/$name"
	box -- true
	want_exit 0
	[ ! -e "$records/$name" ]
	[ ! -s "$words" ]
	record "$name" "cgroup /sys/fs/cgroup/gone/$name"
	box -v -- true
	want_exit 0
	[ ! -e "$records/$name" ]
	grep -q "removed what a killed run left: record $shown/$name" "$words"
	record "$name" "cgroup /sys/fs/cgroup/gone/$name"
	gc -q
	want_plain 0
	[ -z "$output" ] && [ ! -e "$records/$name" ]
}

@test "what a crash can leave before a record is complete is removed" {
	own_records
	record ".new-$name" "cgroup /sys/fs/cg"
	: >"$records/$name"
	chmod 600 "$records/$name"
	gc
	want_plain 0
	[ -z "$(ls -A "$records")" ]
}

@test "a living run's record is left alone" {
	local file
	own_records
	for file in "$name" ".new-$name"; do
		record "$file" "cgroup /sys/fs/cgroup/gone/$name"
		exec {lock}<>"$records/$file"
		flock "$lock"
		gc --json
		want_plain 0
		jq -e '.running == 1 and .removed == [] and .left == []' <<<"$output"
		gc
		want_plain 0 'left alone: 1 living run with control groups'
		box -- true
		want_exit 0
		[ -e "$records/$file" ]
		exec {lock}>&-
		gc
		want_plain 0
		[ ! -e "$records/$file" ]
	done
}

# refused FILE: neither gc nor a run removes the record, and gc says why; $kept is there as before.
refused() {
	local file=$records/$1 reason=$2
	gc --json
	want_plain 1
	jq -e --arg r "$reason" '.removed == [] and (.left | length >= 1) and any(.left[]; .reason | contains($r))' \
		<<<"$output" >/dev/null || fail "$output"
	box -- true
	want_exit 0
	[ ! -s "$words" ]
	gc
	want_plain 1 "not removed: " "$reason"
	gc --dry-run
	want_plain 1 "not removed: " "$reason"
	[ -d "$kept" ]
	[ -e "$file" ] || [ -L "$file" ] || fail "$file was removed"
	rm -rf "$file"
}

@test "hostile records remove nothing" {
	local path
	own_records
	kept=$top/$name
	mkdir "$kept"
	umask 077
	# What is no control group of that very run.
	for path in "$kept" "/sys/fs/cgroup/../../..$kept" "/proc/self/cwd/../$name" "${kept#/}" "/$name" \
		"/sys/fs/cgroup/memory/other" "/sys/fs/cgroup/memory/agentbox-4194305-2" /sys/fs/cgroup/. \
		"/sys/fs/cgroup/memory/$name/.." "$top/."; do
		record "$name" "cgroup $path"
		refused "$name" 'it is no control group of that run'
	done
	ln -s /sys/fs/cgroup "$top/link"
	record "$name" "cgroup $top/link/$name"
	refused "$name" 'it is no control group of that run'
	# What is no record's content.
	for path in '' 'cgroup' 'cgroup ' '../rm -rf /' $'cgroup /a\n\ncgroup /b' $'\xff\xfe' "cgroup /gone/$name"$'\r\n#'; do
		record "$name" "$path"
		refused "$name" 'its content is no record'
	done
	printf 'cgroup /gone/%s' "$name" >"$records/$name"
	refused "$name" 'its content is no record'
	printf 'cgroup /gone/%s\0\n' "$name" >"$records/$name"
	refused "$name" 'its content is no record'
	(yes "cgroup /gone/$name" || true) | head -c 30000 >"$records/$name"
	refused "$name" 'its content is no record'
	truncate -s 3G "$records/$name"
	refused "$name" 'too large'
	# What is no file of ours.
	ln -s "$policy" "$records/$name"
	refused "$name" 'it is a symbolic link'
	mkdir "$records/$name"
	refused "$name" directory
	mkfifo -m 600 "$records/$name"
	refused "$name" 'it is no file that is yours alone'
	record "$name" "cgroup /gone/$name"
	chmod 620 "$records/$name"
	refused "$name" 'it is no file that is yours alone'
	[ "$(id -u)" != 0 ] || {
		record "$name" "cgroup /gone/$name"
		chown 65534 "$records/$name"
		refused "$name" 'it is no file that is yours alone'
	}
	# What is not named as a record is nobody's business.
	record other 'cgroup /gone/other'
	record "$name.old" "cgroup /gone/$name.old"
	gc
	want_plain 0
	[ -e "$records/other" ] && [ -e "$records/$name.old" ]
}

@test "a record that has a second name is nobody's, and is left as it is" {
	own_records
	kept=$records
	record "$name" "cgroup /gone/$name"
	ln "$records/$name" "$top/second"
	refused "$name" 'it is no file that is yours alone'
	[ "$(stat -c %a "$top/second")" = 600 ]
}

@test "no grant makes the records writable for a box" {
	local path text grant=$top/run/agentbox home=$top/home
	own_records
	[ "$(id -u)" != 0 ] || grant=/run/agentbox
	export HOME=$home
	for path in "$grant" "$grant/runs" "$home/.local/state/agentbox" "$home/.local/state/agentbox/runs"; do
		(umask 077 && mkdir -p "$path")
		for text in "$path" "{path: $path, dangerous: true}"; do
			policy_is <<<"filesystem: {workspace: none, write: [$text]}"
			box -- touch "$path/$name"
			want_error dangerous_grant unsupported # as root the box has its own /run/agentbox
			want '.error.line == 2 and (.error.message | contains("agentbox"))'
			want_hint
			[ ! -e "$path/$name" ]
		done
		policy_is <<<'filesystem: {workspace: write}'
		box -C "$path" -- touch "$path/$name"
		want_error dangerous_grant
		[ ! -e "$path/$name" ]
	done
}

@test "a grant that holds the records is refused, or, marked as dangerous, does not show them" {
	needs user
	own_records
	local path mine=$top/state/agentbox/runs
	(umask 077 && mkdir -p "$mine")
	record "$name" "cgroup /gone/$name"
	for path in "$top/run" "$top/state" "$top"; do
		policy_is <<<"filesystem: {workspace: none, write: [$path]}"
		box -- true
		want_error dangerous_grant
		policy_is <<<'filesystem: {workspace: write}'
		box -C "$path" -- true
		want_error dangerous_grant
	done
	# By a link, too.
	mkdir "$top/real"
	mv "$top/state" "$top/real/state"
	ln -s "$top/real/state" "$top/state"
	policy_is <<<"filesystem: {workspace: none, write: [$top/real]}"
	box -- true
	want_error dangerous_grant
	# What is not there yet as well.
	rm -r "$top/real/state/agentbox"
	box -- mkdir -p "$top/real/state/agentbox/runs"
	want_error dangerous_grant
	(umask 077 && mkdir -p "$top/real/state/agentbox/runs")
	policy_is <<<"filesystem: {workspace: none, write: [{path: $top/run, dangerous: true}, {path: $top/real, dangerous: true}]}"
	box -- sh -c 'for d in "$@"; do
			ls -A "$d"; touch "$d/'"$name"'"; mv "$d" "$d.old"; rmdir "$d"; mv "${d%/*}" "${d%/*}.old"
		done; touch "$0/free"; echo end' "$top/run" "$top/run/agentbox" "$top/real/state/agentbox"
	want_exit 0 end
	[ -e "$top/run/free" ] && [ -d "$mine" ] && [ -z "$(ls -A "$mine")" ]
	# Done by the run itself, which is the next one.
	[ ! -e "$records/$name" ]
}

@test "a record of a later version stays, without what is known of it" {
	own_records
	kept=$records
	record "$name" "cgroup /gone/$name" "mount /somewhere else"
	refused "$name" 'what this version does not know'
}

@test "a directory of records that others could have written is not used" {
	local elsewhere=$top/elsewhere
	own_records
	kept=$elsewhere
	mkdir -m 700 "$elsewhere" "$elsewhere/runs"
	mv "$records" "$top/old"
	(umask 077 && echo "cgroup /gone/$name" >"$elsewhere/$name" && cp "$elsewhere/$name" "$elsewhere/runs")
	untouched() {
		gc
		want_plain 1 "not removed: directory $shown: $1"
		box -- true
		want_exit 0
		[ -e "$elsewhere/$name" ] && [ -e "$elsewhere/runs/$name" ]
	}
	ln -s "$elsewhere" "$records"
	untouched 'a part of it is a symbolic link'
	rm -r "$top/run/agentbox"
	ln -s "$elsewhere" "$top/run/agentbox"
	untouched 'a part of it is a symbolic link'
	rm "$top/run/agentbox"
	mkdir "$top/run/agentbox"
	: >"$records"
	untouched 'Not a directory'
	rm "$records"
	mv "$elsewhere/runs" "$records"
	ln -s "$records" "$elsewhere/runs"
	chmod 770 "$records"
	untouched 'it is not yours alone'
	if [ "$(id -u)" = 0 ]; then
		chmod 700 "$records"
		chown 65534 "$records"
		untouched 'it is not yours alone'
	fi
}

@test "without a usable runtime directory the records are in the state directory" {
	needs user
	own_records
	chmod 755 "$XDG_RUNTIME_DIR"
	record "$name" "cgroup /gone/$name"
	(umask 077 && mkdir -p "$XDG_STATE_HOME/agentbox/runs")
	cp "$records/$name" "$XDG_STATE_HOME/agentbox/runs/"
	gc
	want_plain 0 "removed: record $XDG_STATE_HOME/agentbox/runs/$name"
	[ -e "$records/$name" ]
	unset XDG_STATE_HOME XDG_RUNTIME_DIR
	export HOME=$top/home
	(umask 077 && mkdir -p "$HOME/.local/state/agentbox/runs")
	cp "$records/$name" "$HOME/.local/state/agentbox/runs/"
	gc
	want_plain 0 "removed: record $HOME/.local/state/agentbox/runs/$name"
	HOME=/dev/null gc
	want_plain 0
}

@test "a run looks at a bounded number of records" {
	local i
	own_records
	for i in $(seq 200); do
		record "agentbox-4194305-$i" "cgroup /gone/agentbox-4194305-$i"
	done
	box -- true
	want_exit 0
	[ "$(find "$records" -type f | wc -l)" = 136 ]
	gc
	want_plain 0
	[ -z "$(ls -A "$records")" ]
}

@test "a dead run's control group is removed by gc, and by the next run" {
	needs root cgroup1
	own_records
	make_group "$name"
	record "$name" "cgroup $group"
	gc --dry-run
	want_plain 0 "would be removed: control group $group"
	[ -d "$group" ] && [ -e "$records/$name" ]
	gc --json
	want_plain 0
	jq -e --arg g "$group" '[.removed[] | .kind] == ["cgroup", "record"] and .removed[0].path == $g' <<<"$output"
	[ ! -e "$group" ] && [ ! -e "$records/$name" ]
	make_group "$name"
	record "$name" "cgroup $group"
	box -- true
	want_exit 0
	[ ! -e "$group" ] && [ ! -e "$records/$name" ]
}

@test "a control group of another name, or of a living run, is left" {
	needs root cgroup1
	own_records
	make_group "agentbox-4194305-2"
	kept=$group
	record "$name" "cgroup $group"
	refused "$name" 'it is no control group of that run'
	record "$name" "cgroup $group/../$name"
	rmdir "$group"
	make_group "$name"
	kept=$group
	refused "$name" 'it is no control group of that run'
	record "$name" "cgroup $group"
	exec {lock}<>"$records/$name"
	flock "$lock"
	gc
	want_plain 0
	[ -d "$group" ]
	exec {lock}>&-
}

@test "a group that cannot be removed is told, is not waited for twice, and goes once it can" {
	needs root cgroup1
	local start
	own_records
	make_group "$name"
	record "$name" "cgroup $group"
	sleep 100 3>&- &
	inside=$!
	echo "$inside" >"$group/cgroup.procs"
	gc
	want_plain 1 "not removed: control group $group: " "not removed: record $shown/$name: "
	box -v -- true
	want_exit 0
	grep -q "not removed: control group $group" "$words"
	[ -e "$records/$name" ]
	start=$(date +%s%3N)
	box -- true
	[ $(($(date +%s%3N) - start)) -lt "$(slow 900)" ]
	want_exit 0
	[ ! -s "$words" ]
	kill -KILL "$inside"
	wait "$inside" || true
	box -- true
	want_exit 0
	[ ! -e "$group" ] && [ ! -e "$records/$name" ]
}

# bats test_tags=vm
@test "a run with control groups has a record while it lives; killed, the next one cleans up" {
	needs cgroup
	local file groups path _
	own_records
	policy_is <<<'limits: {memory: 64MiB}'
	"$AGENTBOX" run -p "$policy" -- sleep 100 >"$result" 2>"$words" 3>&- &
	runner=$!
	for _ in $(seq 100); do
		file=$(find "$records" -type f -name 'agentbox-*')
		[ -z "$file" ] || break
		sleep 0.05
	done
	sleep 0.3
	groups=$(sed -n 's/^cgroup //p' "$file")
	[ -n "$groups" ]
	for path in $groups; do [ -d "$path" ]; done
	gc
	want_plain 0 'left alone: 1 living run with control groups'
	for path in $groups; do [ -d "$path" ]; done
	kill -KILL "$runner"
	wait "$runner" || true
	sleep 0.3
	[ -e "$file" ]
	rm "$policy"
	box -- true
	want_exit 0
	[ ! -e "$file" ]
	for path in $groups; do [ ! -e "$path" ]; done
	policy_is <<<'limits: {memory: 64MiB}'
	box -- true
	want_exit 0
	want '[.warnings[].code] | index("run_not_recorded") == null'
	[ -z "$(ls -A "$records")" ]
}

# bats test_tags=vm
@test "a run whose record cannot be written goes on, and says so" {
	needs cgroup
	own_records
	rm -r "$top/run/agentbox"
	: >"$top/run/agentbox"
	: >"$top/state"
	policy_is <<<'limits: {memory: 64MiB}'
	box -- true
	want_exit 0
	want 'any(.warnings[]; .code == "run_not_recorded")'
}
