# Files of sessions from outside: read, write, list, put, get. Nothing runs inside, nothing is followed out,
# and what an archive brings is refused as a whole or taken as a whole.
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
load helpers
load sessions

# overlay [MORE]: the session s over $work, with a policy of which MORE is a part of `filesystem`.
overlay() {
	own_state
	# As root the workspace is somebody else's, as it is when root works for a user.
	[ "$(id -u)" != 0 ] || chown -R 1000:1000 "$work"
	policy_is <<<"filesystem: {workspace: overlay${1:+, $1}}
limits: {disk: 1MiB}"
	"$AGENTBOX" session new s -p "$policy"
	upper=$sessions/s/layer/upper
}

# Some tests make what even its owner cannot remove.
teardown() {
	[ -z "${holder-}" ] || kill -KILL "$holder" 2>/dev/null || true
	chmod -R u+rwX "$top"
}

archive() {
	"$python" "$BATS_TEST_DIRNAME/archives.py" "$@" 2>/dev/null
}

layers() {
	PYTHONIOENCODING=utf-8:surrogateescape "$python" "$BATS_TEST_DIRNAME/layers.py" "$@"
}

# in_overlay COMMAND...: run it where $top/merged is the session's overlay, as the kernel shows it.
in_overlay() {
	local how=(-m)
	[ "$(id -u)" = 0 ] || how=(-Urm)
	mkdir -p "$top/merged"
	# shellcheck disable=SC2016
	unshare "${how[@]}" sh -c 'mount -t overlay overlay -o "userxattr,lowerdir=$0,upperdir=$1/upper,workdir=$1/work" "$2" &&
		shift 2 && exec "$@"' "$work" "$sessions/s/layer" "$top/merged" "$@"
}

# What the host and the session have, to be compared with later.
fingerprint() {
	(cd "$top" && find work outside state/agentbox/sessions/s -mindepth 1 ! -path '*/lock' -printf '%p %y %m %U %s %T@ %l\n' | sort
		find work outside state -type f ! -name lock -exec sha256sum {} + | sort) 2>/dev/null
}

@test "read, write and list: bytes as they are, and the host's files as they were" {
	mkdir -p d/e
	head -c 100000 /dev/urandom >d/e/f
	overlay
	before=$(cd "$work" && find . -printf '%p %m %s %T@\n' && sha256sum d/e/f)
	"$AGENTBOX" read s d/e/f | cmp - d/e/f
	"$AGENTBOX" read s "$work/d/e/f" | cmp - d/e/f
	head -c 70000 /dev/urandom >"$top/new"
	plain write s d/e/f <"$top/new"
	want_plain 0
	[ -z "$output" ]
	"$AGENTBOX" read s d/e/f | cmp - "$top/new"
	printf '' | "$AGENTBOX" write s empty
	[ -z "$("$AGENTBOX" read s empty)" ]
	echo hi | "$AGENTBOX" write s --mode 750 d/script
	echo again | "$AGENTBOX" write s d/script
	plain list s d --json
	jq -e '[.entries[] | [.path, .type, .mode, .size]] == [["e", "directory", "0755", null],
		["script", "file", "0750", 6]] and .truncated == false and .unseen == 0' <<<"$output"
	plain write s a/b/c </dev/null
	want_plain 1 'does not exist'
	plain write s a/b/c --parents </dev/null
	want_plain 0
	plain write s d </dev/null
	want_plain 1 directory
	for mode in 4755 1777 8 '' -1 0x1; do
		plain write s x --mode="$mode" </dev/null
		want_plain 2
	done
	[ "$(cd "$work" && find . -printf '%p %m %s %T@\n' && sha256sum d/e/f)" = "$before" ]
	[ -z "$(ls -A "$sessions/s/stage" 2>/dev/null)" ]
	if [ "$(id -u)" = 0 ]; then
		[ -z "$(find "$upper" ! -uid 1000)" ]
	fi
}

@test "home and /tmp of a session are reached, and nothing else" {
	overlay
	echo t | "$AGENTBOX" write s /tmp/a/b --parents
	echo h | "$AGENTBOX" write s "$HOME/h"
	plain read s /tmp/a/b
	want_plain 0 t
	[ "$(cat "$sessions/s/tmp/a/b")" = t ]
	[ "$(cat "$sessions/s/home/h")" = h ]
	for path in /etc/passwd /proc/self/environ / "$top/words" ../words /tmp/../etc/passwd "$sessions/s/meta" ''; do
		plain read s "$path"
		want_plain 1
		plain write s "$path" </dev/null
		want_plain 1
		plain get --tar s "$path"
		want_plain 1
	done
	for words in "read s" "write s" "list" "put s" "get s" "read s a b" "list s a b" "get s --tar"; do
		# shellcheck disable=SC2086
		plain $words </dev/null
		want_plain 2
	done
	plain read none x
	want_plain 1 'no session'
	plain read ../s x
	want_plain 2
}

@test "what a policy says of the workspace holds from outside, too" {
	own_state
	echo x >x
	for kind in none read write; do
		policy_is <<<"filesystem: {workspace: $kind}"
		"$AGENTBOX" session new "$kind" -p "$policy"
	done
	plain read none "$work/x"
	want_plain 1 'does not exist'
	plain read read x
	want_plain 0 x
	plain write read x <<<y
	want_plain 1 'does not let'
	archive plain >"$top/plain.tar"
	plain put --tar read . <"$top/plain.tar"
	want_plain 1 'does not let'
	[ "$(cat x)" = x ]
	plain write write x <<<y
	want_plain 0
	[ "$(cat x)" = y ]
	plain put --tar write . <"$top/plain.tar"
	want_plain 0
	[ "$(cat d/f)" = hello ]
	[ "$(readlink l)" = /etc ]
	[ "$(find . -mindepth 1 -maxdepth 1 | LC_ALL=C sort | tr '\n' ' ')" = './d ./l ./q ./x ' ]
}

@test "B29: links a box left are followed inside only, and never written through" {
	mkdir in
	echo inside >in/f
	overlay
	mkdir "$top/outside"
	echo precious >"$top/outside/file"
	ln -s /etc "$upper/out"
	ln -s /etc/passwd "$upper/r"
	ln -s ../../../../../../../../etc "$upper/up"
	ln -s in/f "$upper/good"
	ln -s "$work/in" "$upper/gooddir"
	ln -s loop "$upper/loop"
	ln -s /proc/self/root/etc "$upper/magic"
	ln -s "$top/outside" "$upper/tmp"
	before=$(fingerprint)
	for path in out/passwd r up/passwd loop magic/passwd out/new; do
		plain read s "$path"
		want_plain 1
		plain write s "$path" <<<evil
		want_plain 1
		plain write s "$path" --parents <<<evil
		want_plain 1
		plain get s --tar "$path"
		want_plain 1
		plain put s --tar "$path" --parents < <(archive plain)
		want_plain 1
		plain list s "$path"
		want_plain 1
	done
	[ "$(fingerprint)" = "$before" ]
	plain read s good
	want_plain 0 inside
	plain read s gooddir/f
	want_plain 0 inside
	echo new | "$AGENTBOX" write s gooddir/f
	[ "$("$AGENTBOX" read s good)" = new ]
	[ "$(cat "$work/in/f")" = inside ]
	[ -L "$upper/good" ] && [ -L "$upper/gooddir" ]
	# What is in /tmp is in the session's own, as for the box.
	plain read s tmp/file
	want_plain 1
	echo own | "$AGENTBOX" write s --parents tmp/file || [[ $top != /tmp/* ]]
	[[ $top != /tmp/* ]] || [ "$(cat "$sessions/s/tmp${top#/tmp}/outside/file")" = own ]
	[ "$(cat "$top/outside/file")" = precious ]
}

@test "a FIFO, a socket or a device is listed and never opened" {
	mkfifo low
	overlay
	mkfifo "$upper/p"
	"$python" -c 'import socket, os, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("sock")' "$upper"
	for path in low p sock; do
		code=0
		timeout 10 "$AGENTBOX" read s "$path" 2>"$words" || code=$?
		[ "$code" = 1 ]
		grep -q 'not a regular file' "$words"
		code=0
		timeout 10 "$AGENTBOX" write s "$path" </dev/null 2>"$words" || code=$?
		[ "$code" = 1 ]
	done
	plain list s --json
	jq -e '[.entries[].type] == ["fifo", "fifo", "socket"]' <<<"$output"
	timeout 10 "$AGENTBOX" get --tar s . >"$top/x.tar" 2>"$words" && fail "nothing was left out"
	grep -q "'p' is left out" "$words"
	[ -z "$(tar tf "$top/x.tar")" ]
}

@test "hidden names do not exist and cannot be made; protected ones are read and not written" {
	mkdir -p .git/hooks sub
	echo secret | tee .env sub/.env >/dev/null
	echo hook >.git/hooks/pre-commit
	overlay 'hide: [".env"], protect: [".git/hooks"]'
	ln -s .env "$upper/link"
	for path in .env sub/.env sub/../.env link new/.env; do
		plain read s "$path"
		want_plain 1
		[[ $output != *secret* ]]
		plain write s --parents "$path" <<<x
		want_plain 1
	done
	plain list s -r --json
	jq -e '[.entries[].path] == [".git", ".git/hooks", ".git/hooks/pre-commit", "link", "sub"]' <<<"$output"
	plain read s .git/hooks/pre-commit
	want_plain 0 hook
	for path in .git/hooks/pre-commit .git/hooks/new; do
		plain write s "$path" <<<x
		want_plain 1 protected
	done
	"$AGENTBOX" get --tar s . >"$top/x.tar" 2>/dev/null
	not grep -aq secret "$top/x.tar"
	mkdir -p "$top/t/.git/hooks"
	touch "$top/t/.git/hooks/x" "$top/t/first"
	plain put --tar s . < <(tar -C "$top/t" -c .)
	want_plain 1 protected
	plain put --tar s sub < <(tar -C "$work" -c .env)
	want_plain 1 hidden
	[ "$(ls -A "$upper")" = link ]
}

@test "C02: twenty thousand hidden files cost nothing that grows, and all stay hidden" {
	"$python" -c 'import os
os.makedirs("data/a")
for i in range(20000):
    open(f"data/a/{i}.parquet", "w").close()
open("data/a/seen", "w").close()'
	overlay 'hide: ["data/**/*.parquet"]'
	start=$(date +%s)
	plain list s -r --json
	[ $(($(date +%s) - start)) -le "$(slow 8)" ]
	jq -e '[.entries[].path] == ["data", "data/a", "data/a/seen"]' <<<"$output"
	plain read s data/a/77.parquet
	want_plain 1 'does not exist'
}

@test "what is listed is what the kernel's overlayfs shows, and what is written shows there" {
	[ "$(id -u)" = 0 ] || needs userns
	mkdir -p a/b c d
	touch a/1 a/b/2 c/3 d/4 e
	overlay
	in_overlay true || skip "no overlay can be mounted here"
	for seed in $(seq 12); do
		in_overlay "$python" "$BATS_TEST_DIRNAME/layers.py" change "$seed" "$top/merged"
		PYTHONIOENCODING=utf-8:surrogateescape in_overlay "$python" "$BATS_TEST_DIRNAME/layers.py" look "$top/merged" >"$top/kernel"
		"$AGENTBOX" list s -r --json | layers listed >"$top/ours"
		diff "$top/kernel" "$top/ours" || fail "seed $seed"
		"$AGENTBOX" get --tar --allow-unsafe-links s . >"$top/all.tar" 2>/dev/null
		# From outside: into what was taken away, re-made, or is only below.
		"$python" "$BATS_TEST_DIRNAME/archives.py" plain | "$AGENTBOX" put --tar --parents s "new/$((seed % 3))"
		echo "$seed" | "$AGENTBOX" write s "c/x/$seed" --parents || true
		"$AGENTBOX" list s -r --json | layers listed >"$top/ours"
		PYTHONIOENCODING=utf-8:surrogateescape in_overlay "$python" "$BATS_TEST_DIRNAME/layers.py" look "$top/merged" >"$top/kernel"
		diff "$top/kernel" "$top/ours" || fail "seed $seed, after writing"
	done
	rm -rf "$sessions/s/layer/work/work"
}

@test "B34: an archive with one unsafe entry is refused as a whole, and the entry is named" {
	mkdir treedir
	echo x >treefile
	overlay
	mkdir "$top/outside"
	echo precious >"$top/outside/file"
	ln -s "$top/outside" "$upper/treelink"
	before=$(fingerprint)
	count=0
	for kind in $("$python" "$BATS_TEST_DIRNAME/archives.py" list 2>&1); do
		archive "$kind" >"$top/evil.tar"
		plain put --tar s . <"$top/evil.tar"
		want_plain 1 'unsafe archive' || fail "$kind"
		[ "$(fingerprint)" = "$before" ] || fail "$kind left something"
		count=$((count + 1))
	done
	[ "$count" -ge 29 ]
	[ ! -e "$top/a" ] && [ ! -e /tmp/agentbox-never ]
	archive dotdot >"$top/evil.tar"
	plain put --tar s . <"$top/evil.tar"
	want_plain 1 "'../a'"
	archive through-link >"$top/evil.tar"
	plain put --tar s . <"$top/evil.tar"
	want_plain 1 "'l/c'"
	# In home and /tmp likewise.
	plain put --tar s /tmp <"$top/evil.tar"
	want_plain 1
	[ -z "$(ls -A "$sessions/s/tmp")" ]
}

@test "B34: get --tar of a tree with a link that leads out is refused as a whole, and the link is named" {
	overlay
	mkdir -p "$upper/d/in" "$upper/ok"
	echo x >"$upper/d/a"
	ln -s in/../a "$upper/d/good"
	ln -s ../d/a "$upper/ok/good"
	for target in /etc ../.. in/../../.. /etc/passwd; do
		ln -s "$target" "$upper/d/in/out"
		code=0
		"$AGENTBOX" get --tar s d >"$top/x.tar" 2>"$words" || code=$?
		[ "$code" = 1 ] && grep -q 'unsafe archive' "$words" && grep -q "'in/out'" "$words"
		[ ! -s "$top/x.tar" ]
		"$AGENTBOX" get --tar --allow-unsafe-links s d 2>"$words" | tar t | grep -qx in/out
		rm "$upper/d/in/out"
	done
	"$AGENTBOX" get --tar s d | tar t | grep -qx good
	"$AGENTBOX" get --tar s . | tar t | grep -qx ok/good
	# From there it leads out; from the top it did not.
	plain get --tar s ok
	want_plain 1 "'good'"
	plain get --allow-unsafe-links s d/a
	want_plain 2
}

@test "what is no whole tar archive is refused, and nothing of it is left" {
	overlay
	archive plain >"$top/good.tar"
	before=$(fingerprint)
	for size in 100 512 700 1500; do
		plain put --tar s . < <(head -c "$size" "$top/good.tar")
		[ "$code" = 1 ] || [ "$size" = 512 ] || fail "cut at $size: $code $output"
	done
	for bytes in 'not an archive' "$(head -c 3000 /dev/urandom | base64)"; do
		plain put --tar s . <<<"$bytes"
		want_plain 1 'unsafe archive'
	done
	gzip -c "$top/good.tar" >"$top/good.tar.gz"
	plain put --tar s . <"$top/good.tar.gz"
	want_plain 1 'unsafe archive'
	rm -f "$upper"/d/f
	[ ! -e "$upper/x" ]
}

@test "put --tar: names, modes, links and hard links; get --tar gives the same back" {
	mkdir d
	echo below >d/below
	overlay
	for kind in plain twice bits names mode-last; do
		archive "$kind" >"$top/$kind.tar"
		plain put --tar s "in/$kind" --parents <"$top/$kind.tar"
		want_plain 0 || fail "$kind"
	done
	[ "$(cat "$upper/in/twice/f")" = third ]
	[ "$(cat "$upper/in/twice/h")" = new ]
	[ "$(readlink "$upper/in/plain/l")" = /etc ]
	[ "$upper/in/plain/d/h" -ef "$upper/in/plain/d/f" ]
	[ "$(stat -c %a "$upper/in/bits/s" "$upper/in/bits/t" "$upper/in/bits/ro" | tr '\n' ' ')" = '755 777 555 ' ]
	[ "$(stat -c %a "$upper/in/mode-last/z")" = 500 ]
	if [ "$(id -u)" = 0 ]; then
		[ -z "$(find "$upper" ! -uid 1000)" ]
	fi
	"$AGENTBOX" get --tar --allow-unsafe-links s in >"$top/one.tar" 2>"$words"
	grep -q '1 link in the archive leads out' "$words"
	"$AGENTBOX" get --tar --allow-unsafe-links s in 2>/dev/null | cmp - "$top/one.tar"
	mkdir "$top/unpacked"
	tar -C "$top/unpacked" -xpf "$top/one.tar"
	diff <(cd "$upper/in" && find . -printf '%p %y %m %l\n' | LC_ALL=C sort) \
		<(cd "$top/unpacked" && find . -printf '%p %y %m %l\n' | LC_ALL=C sort | sed '1s/ 7[0-9]*  *$/ 755 /')
	diff -r --no-dereference "$upper/in/names" "$top/unpacked/names"
	"$python" -c 'import sys, tarfile
names = tarfile.open(sys.argv[1]).getnames()
assert names == sorted(names, key=lambda n: n.encode("utf-8", "surrogateescape").replace(b"/", b"\0"))
assert not any(n.startswith("/") or ".." in n.split("/") for n in names), names
assert len(names) > 30' "$top/one.tar"
	"$python" -c 'import sys, tarfile
m = tarfile.open(sys.argv[1]).getmembers()
assert all(not x.uname and not x.gname and not x.mode & 0o7000 for x in m)' "$top/one.tar"
	# A round trip through agentbox itself.
	plain put --tar s /tmp <"$top/one.tar"
	want_plain 0
	"$AGENTBOX" get --tar --allow-unsafe-links s /tmp 2>/dev/null | cmp - "$top/one.tar"
	# A directory that is there keeps what is in it.
	mkdir -p "$top/more/d"
	touch "$top/more/d/new"
	tar -C "$top/more" -c d | "$AGENTBOX" put --tar s .
	plain list s d
	want_plain 0 below new
}

@test "what one call brings is bounded" {
	overlay
	before=$(fingerprint)
	plain write s big < <(head -c 1048577 /dev/zero)
	want_plain 1 'limits.disk'
	plain put --tar s . < <(archive large 1048577)
	want_plain 1 'larger than'
	plain put --tar s . < <(archive sparse 100000000000000)
	want_plain 1
	plain put --tar s . < <(archive many 100001)
	want_plain 1 'too many'
	[ "$(fingerprint)" = "$before" ]
	plain write s big < <(head -c 1048576 /dev/zero)
	want_plain 0
}

@test "while a command runs files are read, and not written" {
	echo x >x
	overlay
	hold s shared
	plain read s x
	want_plain 0 x
	plain list s
	want_plain 0 x
	"$AGENTBOX" get --tar s . | tar t | grep -qx x
	plain write s x <<<y
	want_plain 1 'in use'
	plain put --tar s . < <(archive plain)
	want_plain 1 'in use'
	let_go
	hold s exclusive
	plain read s x
	want_plain 1 'in use'
	let_go
	plain write s x <<<y
	want_plain 0
	[ "$("$AGENTBOX" read s x)" = y ]
}

@test "put that is killed leaves nothing that counts, and no process" {
	overlay
	mkfifo "$top/pipe"
	exec 7<>"$top/pipe"
	"$AGENTBOX" put --tar s . <"$top/pipe" 7>&- &
	runner=$!
	archive plain | head -c 3000 >&7
	for _ in $(seq 100); do
		[ ! -e "$sessions/s/stage/d/f" ] || break
		sleep 0.05
	done
	[ -e "$sessions/s/stage/d/f" ]
	helper=$(pgrep -P "$(pgrep -P "$runner" || echo "$runner")" -f agentbox-archive || pgrep -P "$runner" -f agentbox-archive)
	kill -KILL "$runner" $(pgrep -P "$runner")
	wait "$runner" 2>/dev/null || true
	for _ in $(seq 100); do
		kill -0 "$helper" 2>/dev/null || break
		sleep 0.05
	done
	exec 7>&-
	not kill -0 "$helper" 2>/dev/null
	[ -z "$(ls -A "$upper")" ]
	plain write s x <<<y
	want_plain 0
	[ ! -e "$sessions/s/stage" ]
	[ "$(ls -A "$upper")" = x ]
}

@test "the program that reads archives is confined before the first byte" {
	overlay
	mkfifo "$top/pipe"
	exec 7<>"$top/pipe"
	"$AGENTBOX" put --tar s . <"$top/pipe" 7>&- &
	runner=$!
	for _ in $(seq 100); do
		helper=$(pgrep -f "agentbox-archive 1048576" | head -n 1) && grep -q '^Seccomp:.*2$' "/proc/$helper/status" && break
		sleep 0.05
	done
	cp "/proc/$helper/status" "$top/status"
	exec 7>&-
	wait "$runner" || true
	grep -q '^NoNewPrivs:.*1$' "$top/status"
	grep -q '^Seccomp:.*2$' "$top/status"
	grep -q '^CapEff:.*0000000000000000$' "$top/status"
	grep -q '^CapPrm:.*0000000000000000$' "$top/status"
	if [ "$(id -u)" = 0 ]; then
		grep -qP '^Uid:\t1000\t1000\t1000\t1000$' "$top/status"
	fi
}
