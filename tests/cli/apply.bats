# Kept results: `agentbox diff` shows them, `agentbox apply` brings them to the host. What a run would have
# kept is made by probe-keep from two trees; state is in a directory of the test's own, which root's calls
# see as /var/lib, in a mount namespace.
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
load helpers

id=01K9WZ3T5R8Y4B6N7C2D1E0F9G

# own_state: from here on agentbox keeps its state below $top; $state is the name that probe-keep uses for it.
own_state() {
	mkdir -m 755 "$top/lib"
	real=$AGENTBOX
	if [ "$(id -u)" = 0 ]; then
		inside=(unshare -m sh -c 'mount --bind "$0" /var/lib && exec "$@"' "$top/lib")
		printf '#!/bin/sh\nexec unshare -m sh -c '\''mount --bind "$0" /var/lib && exec "$@"'\'' %q %q "$@"\n' \
			"$top/lib" "$AGENTBOX" >"$top/agentbox"
		chmod 755 "$top/agentbox"
		AGENTBOX=$top/agentbox
	else
		inside=()
		export XDG_STATE_HOME=$top/lib
	fi
	state=$top/lib/agentbox
	after=$top/after
}

# keep [ARGS...]: $after against $work, as the result $id.
keep() {
	"$AGENTBOX_PROBES/probe-keep" "$state" "$id" "$work" "$after" "$@"
}

# both NAME TEXT: a file that is the same before and after.
both() {
	mkdir -p "$after"
	printf %s "$2" | tee "$work/$1" >"$after/$1"
}

# apart ARGS...: like plain, with what goes to stdout in $output and to stderr in $noted.
apart() {
	code=0
	output=$("$AGENTBOX" "$@" 2>"$top/noted") || code=$?
	noted=$(cat "$top/noted")
}

model() {
	mkdir "$top/model"
	"${inside[@]}" env "AGENTBOX=$real" "AGENTBOX_PROBES=$AGENTBOX_PROBES" \
		"$python" "$BATS_TEST_DIRNAME/apply_model.py" "$top/model" "$@"
}

@test "without a kept result diff and apply say so, with status 1, and make nothing" {
	local command
	own_state
	for command in diff apply; do
		plain "$command"
		want_plain 1 'no kept result' 'hint: '
		plain "$command" "$id"
		want_plain 1 'no kept result'
		plain "$command" -C "$top/nowhere"
		want_plain 125 'nowhere'
	done
	plain diff --json --stat
	want_plain 2
	plain apply --keep --drop
	want_plain 2
	[ -z "$(ls -A "$top/lib")" ]
}

@test "diff lists what changed, for people and as JSON, and takes patterns" {
	own_state
	both same x
	both text $'old\n'
	both gone x
	mkdir -p "$after/d/e" "$after/.git/hooks"
	echo new >"$after/text"
	rm "$after/gone"
	echo x >"$after/d/e/f"
	echo x >"$after/.git/hooks/post-checkout"
	ln -s /etc/passwd "$after/link"
	mkfifo "$after/fifo"
	keep --held 'e'
	apart diff
	[ "$code" = 0 ] && [ -z "$noted" ]
	printf '%s\n' "$output"
	for line in 'M text' 'D gone' 'A d/' 'A d/e/f  [held back by the policy]' \
		'A .git/hooks/post-checkout  [sensitive]' 'A link -> /etc/passwd  [leads out of the tree]' \
		'A fifo  [special file, never applied]'; do
		grep -qxF -- "$line" <<<"$output" || fail "no line: $line"
	done
	not grep -q same <<<"$output"
	apart diff "$id" --json
	jq -e --arg id "$id" '.result == $id and (.changes | length == 10)' <<<"$output"
	jq -e '.changes[] | select(.path == "text") | . == {path: "text", change: "modified", type: "file", size: 4,
		mode, sensitive: false, target: null, escapes: false} and (.mode | test("^06[0-7]{2}$"))' <<<"$output"
	jq -e '.changes[] | select(.path == "link") | .escapes and .target == "/etc/passwd" and .size == null' <<<"$output"
	apart diff 'd/e' text
	[ "$(sort <<<"$output")" = "$(printf '%s\n' 'A d/e/  [held back by the policy]' 'A d/e/f  [held back by the policy]' 'M text')" ]
	apart diff --stat
	grep -q ' text .*| 2 +-' <<<"$output"
	grep -q 'files changed' <<<"$output"
	cd "$top"
	plain diff
	want_plain 1 'no kept result of the workspace'
	plain diff -C work
	want_plain 0 'M text'
}

@test "B59: control characters of names and links are shown, never sent" {
	local name=$'a\033]0;t\007\302\233\342\200\256\nb'
	own_state
	both same x
	echo x >"$after/$name"
	ln -s $'\033[2J' "$after/link"
	keep
	plain diff
	want_plain 0 '\x1b]0;t'
	printf '%s' "$output" >"$top/out"
	none_of '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$top/out"
	plain diff --stat
	printf '%s' "$output" >"$top/out"
	none_of '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$top/out"
	echo changed >"$work/$name"
	apart apply
	[ "$code" = 1 ]
	none_of '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$top/noted"
	grep -qF 'conflict' "$top/noted"
	[ "$(cat "$work/$name")" = changed ]
}

@test "A11: a directory that was removed and made again holds the new files only" {
	own_state
	mkdir -p "$work/d" "$after/d"
	echo x >"$work/d/old"
	echo x >"$after/d/new"
	keep
	plain diff
	[ "$output" = $'A d/new\nD d/old' ]
	plain apply
	want_plain 0 'applied: 2 changes'
	[ "$(ls -A "$work/d")" = new ]
	plain diff
	want_plain 1
}

@test "A16: a file that was replaced by renaming keeps its mode" {
	own_state
	both .tool.json old
	chmod 600 "$work/.tool.json"
	printf new >"$after/.tool.json"
	chmod 600 "$after/.tool.json"
	keep
	plain apply
	want_plain 0
	[ "$(stat -c %a "$work/.tool.json") $(cat "$work/.tool.json")" = '600 new' ]
}

@test "A24: files belong to the caller, and root's to the tree's owner" {
	own_state
	both kept x
	mkdir "$after/d"
	echo x | tee "$after/d/f" >"$after/f"
	echo y >"$after/kept"
	ln -s f "$after/l"
	if [ "$(id -u)" = 0 ]; then
		chown 4321:4322 "$work"
		chown 1234:1235 "$work/kept"
	fi
	keep
	plain apply
	want_plain 0
	if [ "$(id -u)" = 0 ]; then
		[ "$(stat -c %u:%g "$work"/{d,d/f,f,l,kept} | tr '\n' ' ')" = \
			'4321:4322 4321:4322 4321:4322 4321:4322 1234:1235 ' ]
	else
		[ "$(stat -c %u "$work"/{d,d/f,f,l,kept} | sort -u)" = "$(id -u)" ]
	fi
}

@test "root acts in a directory as its owner, and nowhere that the owner could have put in it" {
	[ "$(id -u)" = 0 ] || skip 'for root only'
	own_state
	mkdir -p "$work/u/roots" "$work/top"
	for name in u/f u/chmod u/roots/g top/h; do
		echo old >"$work/$name"
	done
	chown 4321:4322 "$work/u" "$work/u/f"
	chmod 777 "$work/top"
	cp -a "$work" "$after"
	for name in u/f u/new u/roots/g top/h top/new; do
		echo new >"$after/$name"
	done
	chmod 600 "$after/u/chmod"
	mkdir "$after/u/made"
	echo new >"$after/u/made/in"
	keep
	apart apply
	[ "$code" = 125 ]
	# What is root's and lies in theirs is not written to: they may have moved it there.
	[ "$(grep -c '^agentbox: left out (failed): u/\(roots/g\|chmod\): ' <<<"$noted")" = 2 ]
	[ "$(cat "$work/u/roots/g")" = old ] && [ "$(ls -A "$work/u/roots")" = g ]
	[ "$(stat -c %a "$work/u/chmod")" = 644 ]
	[ "$(stat -c %u:%g "$work"/u/{f,new,made,made/in} | sort -u)" = 4321:4322 ]
	[ "$(stat -c %u "$work"/top/{h,new} | sort -u)" = 0 ]
	[ "$(cat "$work"/u/{f,new,made/in} "$work"/top/{h,new} | sort -u)" = new ]
}

@test "B27: what runs later is left out and named until it is allowed; the rest is applied" {
	local name
	own_state
	mkdir -p "$after"/{.claude,.vscode,.husky/_,.git/hooks}
	for name in .claude/settings.json .vscode/tasks.json .husky/_/pre-commit .git/hooks/post-checkout .envrc Makefile; do
		echo x >"$after/$name"
	done
	keep
	apart apply
	[ "$code" = 1 ]
	for name in .claude/settings.json .vscode/tasks.json .husky/_/pre-commit .git/hooks/post-checkout .envrc; do
		grep -qF "left out (sensitive): $name: " <<<"$noted" || fail "not named: $name"
		[ ! -e "$work/$name" ]
	done
	grep -q -- --allow-sensitive <<<"$noted"
	[ -e "$work/Makefile" ]
	grep -qx "still kept: $id" <<<"$output"
	apart apply --allow-sensitive -q
	[ "$code" = 0 ] && [ -z "$output$noted" ]
	[ -z "$(diff -r "$work" "$after")" ]
	plain diff
	want_plain 1
}

@test "B29: links are made and never followed, not even one that takes a directory's place" {
	own_state
	mkdir "$top/ssh" "$work/dir"
	echo precious | tee "$top/ssh/authorized_keys" >"$top/passwd"
	mkdir -p "$after/dir"
	ln -s "$top/ssh" "$after/out"
	ln -s "$top/passwd" "$after/r"
	echo evil >"$after/dir/authorized_keys"
	keep
	rmdir "$work/dir"
	ln -s "$top/ssh" "$work/dir"
	plain apply
	want_plain 1 'left out (conflict): dir/authorized_keys'
	[ "$(readlink "$work/out") $(readlink "$work/r")" = "$top/ssh $top/passwd" ]
	[ "$(cat "$top/ssh/authorized_keys" "$top/passwd" | sort -u)" = precious ]
	[ "$(ls "$top/ssh")" = authorized_keys ]
}

@test "conflicts are named and left alone, the rest is applied; --json tells each outcome" {
	own_state
	both a old
	both b old
	both c old
	printf new | tee "$after/a" "$after/b" >"$after/made"
	rm "$after/c"
	keep
	printf host >"$work/a"
	printf host >"$work/made"
	apart apply -n --json
	[ "$code" = 1 ]
	jq -e '.dry_run and .applied == 2 and .left_out == 2' <<<"$output"
	[ "$(cat "$work/b" "$work/c")" = oldold ]
	apart apply --json
	[ "$code" = 1 ]
	jq -e '[.entries[] | {(.path): .outcome}] | add ==
		{a: "conflict", b: "done", c: "done", made: "conflict"}' <<<"$output"
	jq -e '.kept and (.dry_run | not) and all(.entries[]; .outcome != "conflict" or (.reason | length > 0))' <<<"$output"
	[ "$(cat "$work/a" "$work/made")" = hosthost ]
	[ "$(cat "$work/b")" = new ] && [ ! -e "$work/c" ]
	# The host gives way: what is the same is no conflict.
	printf new | tee "$work/a" >"$work/made"
	plain apply
	want_plain 0 'on the host already: 4'
	[ -z "$(ls -A "$state/kept")" ]
}

@test "a file that the host changed while the command ran is a conflict from the beginning" {
	own_state
	both a old
	printf new >"$after/a"
	keep --started 1000
	plain apply
	want_plain 1 'changed on the host while the command ran'
	[ "$(cat "$work/a")" = old ]
	plain apply --drop
	want_plain 1
	plain diff
	want_plain 1 'no kept result'
}

@test "patterns apply a part; what was not chosen stays kept" {
	own_state
	mkdir -p "$after/src/new" "$work/src"
	echo x | tee "$after/src/new/a.c" "$after/src/b.c" >"$after/top.txt"
	keep
	plain apply 'src/new/*.c'
	want_plain 0 'applied: 2 changes' 'not chosen: 2' 'still kept'
	[ -e "$work/src/new/a.c" ] && [ ! -e "$work/src/b.c" ] && [ ! -e "$work/top.txt" ]
	plain apply ./src/
	want_plain 0
	[ -e "$work/src/b.c" ]
	plain apply --keep
	want_plain 0 'applied: 1 change,' 'still kept'
	plain apply "$id"
	want_plain 0
	[ ! -e "$state/kept/$id" ]
}

@test "special files are skipped with a note; set-id bits are dropped" {
	own_state
	both f x
	mkfifo "$after/fifo"
	"$python" -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$after/s"
	printf y >"$after/f"
	chmod 6755 "$after/f"
	keep
	apart apply
	[ "$code" = 0 ]
	grep -q 'left out (skipped): fifo' <<<"$noted"
	grep -q 'left out (skipped): s:' <<<"$noted"
	[ ! -e "$work/fifo" ] && [ ! -e "$work/s" ]
	[ "$(stat -c %a "$work/f")" = 755 ]
}

@test "C09: a sparse file stays sparse" {
	own_state
	mkdir "$after"
	truncate -s 4G "$after/big"
	printf x | dd of="$after/big" bs=1 seek=3000000000 conv=notrunc status=none
	keep
	plain apply
	want_plain 0
	[ "$(stat -c %s "$work/big")" = 4294967296 ]
	[ "$(stat -c %b "$work/big")" -lt 4096 ]
	cmp "$work/big" "$after/big"
}

@test "a patch is taken by git: binary, modes, links, odd names, a large file" {
	needs git
	local name=$'\303\244 "\\\t'
	own_state
	both text $'a\nb\nc'
	both moded x
	printf 'a\nB\nc\nd' >"$after/text"
	chmod +x "$after/moded"
	printf 'x\0y' >"$after/$name"
	: >"$after/empty"
	ln -s /nowhere "$after/link"
	head -c 9000000 /dev/urandom >"$after/large"
	keep
	"$AGENTBOX" diff --patch >"$top/patch"
	(cd "$work" && GIT_CEILING_DIRECTORIES=$top git apply "$top/patch")
	[ -z "$(diff -r --no-dereference "$work" "$after")" ]
	[ -x "$work/moded" ]
}

@test "a patch does not wait for the end of a file that is huge and empty" {
	own_state
	mkdir "$after"
	both text old
	echo new >"$after/text"
	for at in "$work" "$after"; do
		truncate -s 4T "$at/same"
		truncate -s 4T "$at/other"
		printf x | dd of="$at/other" bs=1 seek=3000000000000 conv=notrunc status=none
	done
	chmod 755 "$after/same"
	printf y | dd of="$after/other" bs=1 seek=3000000000000 conv=notrunc status=none
	truncate -s 3T "$after/new"
	keep
	apart diff --patch
	[ "$code" = 0 ]
	grep -qxF 'Binary files a/other and b/other differ' <<<"$output"
	grep -qxF 'Binary files /dev/null and b/new differ' <<<"$output"
	grep -qx 'new mode 100755' <<<"$output"
	[ "$(grep -c 'Binary files' <<<"$output")" = 2 ] && [ "${#output}" -lt 2000 ]
	grep -qF '2 changes cannot be written as a patch' <<<"$noted"
	apart diff --stat
	grep -qF '0 -> 3298534883328 bytes' <<<"$output"
	plain apply
	want_plain 0
	[ "$(stat -c %s "$work/new")" = 3298534883328 ] && [ "$(stat -c %b "$work/new")" -lt 4096 ]
	cmp -n 10 -i 2999999999995 "$work/other" "$after/other"
}

@test "damaged and hostile kept results are errors" {
	local file how
	own_state
	both a old
	printf new >"$after/a"
	keep
	for file in meta base; do
		cp "$state/kept/$id/$file" "$top/saved"
		for how in 'truncate -s 0' 'truncate -s -3' 'sed -i s/0/../g' 'sed -i s,a$,/etc/passwd,;1s,1$,x,' \
			'truncate -s 3G' 'chmod 644' 'sed -i 1q'; do
			$how "$state/kept/$id/$file"
			plain apply "$id"
			want_plain 125 damaged || fail "$file, $how"
			rm "$state/kept/$id/$file"
			(umask 077 && cp "$top/saved" "$state/kept/$id/$file")
		done
		rm "$state/kept/$id/$file"
		mkfifo -m 600 "$state/kept/$id/$file"
		plain diff "$id"
		want_plain 125 'it is not yours alone'
		rm "$state/kept/$id/$file"
		ln -s "$top/saved" "$state/kept/$id/$file"
		plain diff "$id"
		want_plain 125 damaged
		rm "$state/kept/$id/$file"
		(umask 077 && cp "$top/saved" "$state/kept/$id/$file")
	done
	chmod 755 "$state/kept"
	plain diff
	want_plain 125 'state directory' || want_plain 125 'nobody else'
	chmod 700 "$state/kept"
	[ "$(cat "$work/a")" = old ]
	plain apply ../../etc
	want_plain 1 'no change is of such a name'
	plain apply
	want_plain 0
}

@test "random trees: apply makes the host what the box saw, and git makes the same of the patch" {
	needs git
	own_state
	model random 1 "${AGENTBOX_SEEDS-20}"
}

@test "random work in real boxes: after apply the host is what the box saw, with modes, times and links" {
	needs userns
	own_state
	model box 1 "${AGENTBOX_SEEDS-12}"
}

@test "what others write between apply's last look and its deed is there in the end" {
	own_state
	model moment 4
}

@test "what others write while apply is at work is there in the end" {
	own_state
	model race "${AGENTBOX_SEEDS-12}"
}

@test "where others move directories while apply is at work, nothing of it is left in them" {
	own_state
	model swap "${AGENTBOX_SEEDS-12}"
}

@test "apply killed before any of its system calls: each file is as before or as after, and the next ends it" {
	own_state
	model kill 5 "${AGENTBOX_STEP-7}"
}

@test "a tree that is thousands of directories deep is applied, and removed" {
	own_state
	model deep 3000
}
