# Sessions: made, listed, removed; what they keep, and what is refused. Their state is in a directory of the
# test's own: root's calls see it as /var/lib, in a mount namespace; a user's have it as $XDG_STATE_HOME.
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
load helpers
load sessions

@test "session new, ls and rm" {
	own_state
	policy_is <<<'name: mine'
	plain session ls
	want_plain 0 'NAME'
	[ ! -e "$sessions" ]
	plain session new one -p "$policy"
	want_plain 0
	[ -z "$output" ]
	plain session new two -p "$policy" -C "$top"
	want_plain 0
	plain session ls
	want_plain 0 one two mine ready "$work"
	plain session ls --json
	want_plain 0
	jq -e --arg work "$work" --arg top "$top" '[.sessions[] | {name, state, workspace, policy}] == [
		{name: "one", state: "ready", workspace: $work, policy: "mine"},
		{name: "two", state: "ready", workspace: $top, policy: "mine"}] and
		all(.sessions[]; .created <= .used and .created > 1600000000)' <<<"$output"
	plain session new one -p "$policy"
	want_plain 1 'already'
	plain session rm one none two
	want_plain 1 'no session "none"'
	plain session ls --json
	jq -e '.sessions == []' <<<"$output"
	[ -z "$(ls -A "$sessions")" ]
	[ -z "$(ls -A "$work")" ]
}

@test "mistakes on the command line" {
	own_state
	plain session
	want_plain 2 'new, exec, ls or rm'
	plain session nwe x
	want_plain 2 'agentbox session new'
	plain session new
	want_plain 2
	plain session new a b
	want_plain 2
	plain session new ../a
	want_plain 2 'cannot be the name'
	plain session new "$(printf 'a\033[2J')"
	want_plain 2 '\x1b'
	plain session rm
	want_plain 2
	plain session rm ../sessions
	want_plain 2
	plain session ls x
	want_plain 2
	plain session ls -p x
	want_plain 2 'no option --policy'
	plain session rm --json x
	want_plain 2 'no option --json'
	plain session new x -C /nonexistent
	want_plain 125 '/nonexistent'
	[ ! -e "$sessions" ] || [ -z "$(ls -A "$sessions")" ]
}

@test "a policy with a mistake makes no session, and says where" {
	own_state
	policy_is <<<'limits: {memroy: 1GiB}'
	plain session new s -p "$policy"
	want_plain 1 'policy.yaml:2:' 'memory'
	plain session new s -p nosuchpolicy
	want_plain 1 'nosuchpolicy'
	[ ! -e "$sessions" ] || [ -z "$(ls -A "$sessions")" ]
}

@test "a session keeps its policy as it was, with all that it extends" {
	own_state
	mkdir "$top/p"
	printf 'version: 1\nname: base\nfilesystem: {hide: [secret], read: [data]}\n' >"$top/p/base.yaml"
	printf 'version: 1\nname: mine\nextends: [./base.yaml]\nfilesystem: {workspace: read}\n' >"$top/p/mine.yaml"
	"$AGENTBOX" show "$top/p/mine.yaml" | sed 's/  # .*//' >"$top/before"
	plain session new s -p "$top/p/mine.yaml"
	want_plain 0
	rm -r "$top/p"
	"$python" - "$sessions/s/meta" >"$top/kept.yaml" <<-'END'
		import json, sys
		for line in open(sys.argv[1]):
		    if line.startswith("text "):
		        sys.stdout.write(json.loads(line[5:]))
		END
	cd /
	"$AGENTBOX" show "$top/kept.yaml" | sed 's/  # .*//' >"$top/after"
	diff "$top/before" "$top/after"
	grep -q "$top/p/data" "$top/after"
	echo x >"$work/secret"
	plain read s secret
	want_plain 1 'does not exist'
}

@test "every shipped policy can be kept" {
	own_state
	for name in default strict shell python node build; do
		plain session new "$name" -p "$name"
		want_plain 0
	done
	plain session ls --json
	jq -e '.sessions | length == 6 and all(.[]; .state == "ready")' <<<"$output"
}

@test "A29: the workspace is kept by its real path" {
	own_state
	mkdir -p "$top/real/p"
	ln -s real "$top/link"
	echo x >"$top/real/p/x"
	cd "$top/link/p"
	plain session new s
	want_plain 0
	plain session new t -C "$top/link/p"
	want_plain 0
	cd /
	plain session ls --json
	jq -e --arg real "$top/real/p" '[.sessions[].workspace] == [$real, $real]' <<<"$output"
	plain read s x
	want_plain 0 x
	mv "$top/real" "$top/moved"
	ln -s moved "$top/real"
	plain read s x
	want_plain 125 link
	rm "$top/real"
	plain read s x
	want_plain 125 "$top/real/p"
	plain session rm s t
	want_plain 0
}

@test "B59: control characters in a workspace's name are shown, not sent" {
	own_state
	mkdir "$top/$(printf 'a\033]0;t\007\xc2\x9b\xe2\x80\xae\xff\n')b"
	policy_is <<<'filesystem: {workspace: overlay}'
	cd "$top"/a*b
	"$AGENTBOX" session new s -p "$policy"
	for as in '' --json; do
		# shellcheck disable=SC2086
		"$AGENTBOX" session ls $as >"$top/list"
		none_of '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xff' "$top/list"
	done
	jq -e . "$top/list"
	[ "$("$AGENTBOX" session ls | wc -l)" = 2 ]
	echo x | "$AGENTBOX" write s "$(printf 'b\033[2J')"
	"$AGENTBOX" list s >"$top/list"
	grep -qF 'b\x1b[2J' "$top/list"
	not "$AGENTBOX" read s "$(printf 'c\033[2J')" 2>"$top/list"
	none_of '\x1b' "$top/list"
}

@test "B31: nothing in the state directory is believed before it was looked at" {
	own_state
	plain session new s
	mkdir "$top/outside"
	echo precious >"$top/outside/file"
	rm -r "$sessions/s/home"
	ln -s "$top/outside" "$sessions/s/home"
	plain session ls --json
	jq -e '.sessions[0].state == "broken"' <<<"$output"
	plain read s "$HOME/file"
	want_plain 1 broken
	plain session rm s
	want_plain 0
	[ "$(cat "$top/outside/file")" = precious ]
	ln -s "$top/outside" "$sessions/s"
	plain read s x
	want_plain 1 broken
	plain session rm s
	want_plain 0
	[ "$(cat "$top/outside/file")" = precious ]
	plain session new s
	chmod 755 "$sessions"
	plain session ls
	want_plain 125 'your own'
	plain read s x
	want_plain 125 'your own'
	chmod 700 "$sessions"
}

@test "a session in use is not removed, and is listed as running" {
	own_state
	plain session new s
	hold s shared
	plain session ls --json
	jq -e '.sessions[0].state == "running"' <<<"$output"
	plain session rm s
	want_plain 1 'in use'
	plain list s
	want_plain 0
	let_go
	plain session rm s
	want_plain 0
}

@test "a session that is made or removed by many at once is there or not" {
	own_state
	for round in 1 2 3; do
		for _ in 1 2 3 4 5 6; do
			"$AGENTBOX" session new s >/dev/null 2>&1 && echo made >>"$top/made" &
		done
		wait
		[ "$(wc -l <"$top/made")" = "$round" ]
		for _ in 1 2 3 4 5 6; do
			"$AGENTBOX" session rm s >/dev/null 2>&1 && echo gone >>"$top/gone" &
		done
		wait
		[ "$(wc -l <"$top/gone")" = "$round" ]
		[ -z "$(ls -A "$sessions")" ]
	done
}

@test "session rm removes what has no permissions, and trees of any depth" {
	own_state
	plain session new s
	"$python" - "$sessions/s/layer/upper" <<-'END'
		import os, sys
		os.chdir(sys.argv[1])
		os.makedirs("closed/in")
		os.chmod("closed", 0)
		for i in range(3000):
		    os.mkdir("deep")
		    os.chdir("deep")
		END
	plain session rm s
	want_plain 0
	[ -z "$(ls -A "$sessions")" ]
}

@test "what a command closed to everybody is listed, read and removed, and stays as it is" {
	own_state
	mkdir -p "$work/was"
	echo below >"$work/was/below"
	policy_is <<<'filesystem: {workspace: overlay}'
	plain session new s -p "$policy"
	"$AGENTBOX" session exec s -- sh -c 'rm -r was; mkdir was; echo new >was/new
		mkdir -p d/in ~/c && echo x >d/in/f && echo y >~/c/f && chmod 0 d/in/f d/in d was ~/c' >"$result"
	want '.exit_code == 0' '[.changes[].path] | index("d/in/f")'
	before=$(stat -c '%n %a' "$sessions/s/layer/upper/"{d,was} "$sessions/s/home/c")
	[[ $before = *' 0'*' 0'*' 0' ]]
	plain list s d/in
	want_plain 0 f
	plain read s d/in/f
	want_plain 0 x
	plain read s "$HOME/c/f"
	want_plain 0 y
	plain list s was
	want_plain 0 new
	[[ $output != *below* ]]
	"$AGENTBOX" get --tar s . | tar t >"$top/names"
	grep -qx d/in/f "$top/names"
	grep -qx was/new "$top/names"
	not grep -q below "$top/names"
	[ "$before" = "$(stat -c '%n %a' "$sessions/s/layer/upper/"{d,was} "$sessions/s/home/c")" ]
	plain diff s
	want_plain 0 d/in/f
	plain session rm s
	want_plain 0
	[ -z "$(ls -A "$sessions")" ]
}

@test "a session whose home, /tmp or workspace a command closed can be used again" {
	own_state
	policy_is <<<'filesystem: {workspace: overlay}'
	plain session new s -p "$policy"
	"$AGENTBOX" session exec s -- sh -c 'echo x >~/x; echo y >/tmp/y; echo z >z; chmod 0 ~ /tmp .' >"$result"
	want '.exit_code == 0'
	plain read s "$HOME/x"
	want_plain 0 x
	"$AGENTBOX" session exec s -- sh -c 'cat ~/x /tmp/y z; echo more >/tmp/more; echo more >more' >"$result"
	want '.exit_code == 0' '.stdout == "x\ny\nz\n"'
	plain write s "$HOME/new" <<<new
	want_plain 0
	plain session rm s
	want_plain 0
	[ -z "$(ls -A "$sessions")" ]
}

@test "B08: what cannot be a session's name is none, wherever it leads" {
	own_state
	plain session new s
	mkdir -p "$top/fake/layer/upper"
	for name in ../../tmp/fake "$top/fake" .hidden -- ../sessions/s; do
		code=0
		"$AGENTBOX" session exec "$name" -- id >"$result" 2>"$words" || code=$?
		case $name in
		--) [ "$code" = 125 ] ;;
		*)
			[ "$code" = 125 ]
			want '.error.code == "bad_session_name"'
			;;
		esac
	done
}
