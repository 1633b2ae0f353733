# workspace: overlay: private writes over the workspace, and the list of what changed.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers
load sessions

overlay() {
	policy_is <<-END
		filesystem: {workspace: overlay$1}
	END
}

# The workspace as a list of names, types, modes, times and contents.
picture() {
	find . -printf '%p %y %m %T@ %l\n' | sort
	find . -type f -exec sha256sum {} + | sort
}

# changed [PATH=CHANGE...]: exactly these are listed, in any order.
changed() {
	local want have
	want=$(printf '%s\n' "$@" | sort)
	have=$(jq -r '.changes[] | "\(.path)=\(.change)"' "$result" | sort)
	[ "$want" = "$have" ] || fail "changes: $have; expected: $want"
}

@test "writes are seen inside, listed, and not on the host" {
	overlay ''
	mkdir -p sub/deep && echo one >a && echo two >sub/b && echo three >sub/c && ln -s a link
	local before
	before=$(picture)
	box -- sh -c 'echo more >>a; rm sub/b; chmod 600 sub/c; mkdir new; echo x >new/f; ln -s /etc/passwd out
		mkfifo new/p; ls -R; cat a new/f'
	want_exit 0
	want '.enforcement.workspace == "overlay"' '.stdout | contains("one\nmore\nx\n")' '.warnings == []'
	changed a=modified sub/b=deleted sub/c=modified new=created new/f=created new/p=created out=created
	want '.changes[] | select(.path == "out") | .target == "/etc/passwd" and .escapes' \
		'.changes[] | select(.path == "sub/c") | .mode == "0600" and .size == 6' \
		'.changes[] | select(.path == "sub/b") | .mode == null and .size == null'
	[ "$(picture)" = "$before" ]
}

@test "nothing changed is an empty list, whatever was read or written back the same" {
	overlay ''
	echo same >f && mkdir d && echo x >d/g
	box -- sh -c 'cat f d/g; cp f f2; cat f2 >f; rm f2; touch d/g; chmod 700 d; chmod 755 d'
	want_exit 0
	changed
}

@test "A11: a directory that is removed and made again has only its real changes" {
	overlay ''
	mkdir d && touch d/old d/same
	box -- sh -c 'rm -r d; mkdir d; touch d/new d/same'
	want_exit 0
	changed d/old=deleted d/new=created
}

@test "A09: a commit in the box leaves the host's repository as it was" {
	needs git
	overlay ''
	git init -q . && git config user.email a@b && git config user.name n && echo 1 >f && git add f && git commit -qm 1
	local head
	head=$(git rev-parse HEAD)
	box -- sh -c 'echo 2 >f; git add f; git -c core.fsync=none commit -qm 2; git rev-parse HEAD; echo x >.git/hooks/post-commit; git config a.b c'
	want_exit 0
	[ "$(git rev-parse HEAD)" = "$head" ]
	[ -z "$(git status --porcelain)" ]
	want '.changes[] | select(.path == ".git/hooks/post-commit") | .sensitive' \
		'.changes[] | select(.path == ".git/config") | .sensitive' \
		'[.changes[] | select(.path | startswith(".git/refs/")) | .sensitive] | length > 0 and all(not)' \
		'.changes[] | select(.path == "f") | .sensitive | not' \
		'[.changes[] | select(.path | startswith(".git/objects/")) | .sensitive] | length > 0 and all(not)'
}

# The listing of the workspace and the home, with inode numbers and times.
listing() {
	find "$work" "$HOME" -printf '%p %y %m %i %T@ %C@\n' | sort
}

@test "A18: what is protected or hidden and not there leaves no trace, on the host or in the box" {
	export HOME=$top/home
	mkdir "$HOME"
	! has git || git init -q .
	overlay ', protect: [.bashrc, .env, .gitmodules, ".claude/settings.json"], hide: [.mcp.json]'
	echo x >f
	local before nap
	before=$(listing)
	box -- sh -c 'ls -A; ! [ -d .git ] || git status --porcelain'
	want_exit 0
	want '.stdout | test("^(.git\n)?f\n([?]{2} f\n)?$")'
	changed
	[ "$(listing)" = "$before" ]
	# While it runs, and when agentbox is killed.
	nap=$(odd_sleep)
	in_background -- sh -c 'ls -A >seen; echo made >.env; echo x >.gitmodules; exec sleep "$1"' sh "$nap"
	within 10 running "^sleep $nap"
	[ "$(listing)" = "$before" ]
	kill -KILL "$runner"
	wait "$runner" || true
	within 10 not running "^sleep $nap"
	[ "$(listing)" = "$before" ]
}

@test "A18: what the box makes of such a name is listed, and held back from the host" {
	own_state
	overlay ', protect: [.env, ".git/hooks"]'
	local before
	before=$(picture)
	box --keep-changes -- sh -c 'echo made >.env; mkdir -p .git/hooks d; echo x >.git/hooks/pre-commit; echo y >d/f'
	want_exit 0
	changed .env=created .git=created .git/hooks=created .git/hooks/pre-commit=created d=created d/f=created
	[ "$(picture)" = "$before" ]
	code=0
	"$AGENTBOX" apply "$(jq -r .id "$result")" >"$words" 2>&1 || code=$?
	[ "$code" = 1 ]
	grep -q held "$words"
	[ "$(grep -c held "$words")" = 3 ]
	[ ! -e .env ]
	[ ! -e .git/hooks ]
	[ "$(cat d/f)" = y ]
	# Whatever else is allowed.
	code=0
	"$AGENTBOX" apply --allow-sensitive "$(jq -r .id "$result")" >"$words" 2>&1 || code=$?
	[ "$code" = 1 ]
	[ ! -e .env ]
	[ ! -e .git/hooks ]
}

@test "B26: a name that is protected and not there yet cannot be had by moving or linking" {
	own_state
	overlay ', protect: [conf/start, "**/.agent/tasks", .env]'
	mkdir .agent and && echo f >and/f
	box --keep-changes -- sh -c 'mkdir evil && echo x >evil/start && echo x >evil/tasks && echo x >e
		ln -s evil conf; mv .agent was; ln -s evil .agent; ln -s ../evil and/.agent; mv e .env; ln evil/start and/.env'
	want_exit 0
	want '[.changes[] | select(.path | IN("conf", ".agent", "and/.agent", ".env", "and/.env")) | .sensitive] == [true, true, true, true, true]'
	code=0
	"$AGENTBOX" apply --allow-sensitive "$(jq -r .id "$result")" >"$words" 2>&1 || code=$?
	[ "$code" = 1 ]
	[ "$(grep -c 'held' "$words")" = 5 ]
	for name in conf .agent and/.agent .env and/.env; do
		[ ! -L "$name" ]
		[ ! -f "$name" ]
	done
	[ -e evil/start ]
	[ -e was ]
}

@test "A18: in a written tree what cannot be held is refused before anything is made" {
	export HOME=$top/home
	mkdir "$HOME"
	local before
	before=$(listing)
	policy_is <<<'filesystem: {workspace: write, protect: [.bashrc, .env, .gitmodules, .mcp.json]}'
	box -- touch ran
	want_error protect_missing
	want_hint
	want '.error.hint | contains("overlay")'
	[ "$(listing)" = "$before" ]
	# What is there is held; of what is not there nothing is promised, and that is said.
	mkdir sub && echo mine >sub/.env
	policy_is <<<'filesystem: {workspace: write, protect: [.env]}'
	box -- sh -c 'echo box >sub/.env; mv sub other; echo box >.env'
	want '[.warnings[].code] == ["protect_existing_only"]'
	[ "$(cat sub/.env)" = mine ]
}

@test "hidden names are not even listed, and are never changes" {
	overlay ', hide: [".env", "keys/**", private]'
	mkdir -p sub keys private && echo S >.env && echo S >sub/.env && echo S >keys/k && echo S >private/p && echo x >sub/f
	box -- sh -c 'ls -AR; cat .env sub/.env keys/k private/p; find . -name .env; mv sub s2; cat s2/.env; cp -r s2 s3; cat s3/.env; ls -A s2'
	want '.status == "exited"' '.stdout | contains("S") | not' '.stdout | contains(".env") | not' \
		'.stdout | contains("private") | not'
	want '[.changes[] | select(.path | test("env|keys/|private"))] == []'
	[ "$(cat sub/.env)" = S ]
}

@test "B26: a hidden file cannot be reached by moving its directory, and one of its name is held back" {
	overlay ', hide: ["sub/.env"]'
	mkdir sub && echo S >sub/.env && echo f >sub/f
	box -- sh -c 'echo mine >sub/.env && cat sub/.env; mv sub s2 && cat s2/.env'
	want '.stdout | contains("S") | not' '.stdout | contains("mine")'
	want '[.changes[] | select(.path == "sub/.env") | .sensitive] | all'
	[ "$(cat sub/.env)" = S ]
}

@test "a protected file can be read and not be written, moved or replaced" {
	overlay ', protect: [conf]'
	mkdir conf && echo keep >conf/f
	box -- sh -c 'cat conf/f; echo x >conf/f; rm conf/f; mv conf c2; rm -rf conf; ln -sf a conf/f; echo y >conf/new; cat conf/f; ls conf'
	want '.stdout == "keep\nkeep\nf\n"'
	changed
}

@test "A14: files move and link between directories" {
	overlay ''
	mkdir a b && echo x >a/f
	box -- "$python" -c 'import os; os.makedirs("a/n"); open("f","w").close(); os.rename("f","a/n/f"); os.link("a/n/f","g")
os.rename("a/f","b/f"); print(os.stat("g").st_nlink)'
	want_exit 0 2
	changed a/n=created a/n/f=created g=created a/f=deleted b/f=created
	# Written directly, with a second rule about a part of it.
	policy_is <<-'END'
		filesystem: {workspace: write, read: [/usr], protect: [b/keep]}
	END
	touch b/keep
	box -- "$python" -c 'import os; os.makedirs("c/n"); open("f","w").close(); os.rename("f","c/n/f"); os.link("c/n/f","h")
os.rename("a/f","c/f"); print(os.stat("h").st_nlink)'
	want_exit 0 2
	[ "$(stat -c %h c/n/f)" = 2 ]
	[ -e c/f ]
}

@test "A24: files are the caller's inside, also after being written" {
	overlay ''
	echo x >f
	box -- sh -c 'echo y >>f; touch n; stat -c %u f n . | uniq; id -u'
	want_exit 0
	want '(.stdout | split("\n") | .[0]) == (.stdout | split("\n") | .[1])'
	local uid
	uid=$(stat -c %u f)
	[ "$uid" = "$(stat -c %u .)" ]
}

@test "A29: a workspace that is reached through a link has its real path" {
	overlay ''
	mkdir "$top/real" && ln -s "$top/real" "$top/link"
	box -C "$top/link" -- sh -c 'pwd -P; touch x'
	want_exit 0 "$(realpath "$top/real")"
	changed x=created
}

@test "names with any byte, and odd ones for overlayfs" {
	mkdir "$top/a:b,c\\d=e" && cd "$top/a:b,c\\d=e" || return
	overlay ''
	echo x >$'new\nline' && echo y >$'\xff\xfe'
	box -- sh -c 'cat *; rm ./*; echo z > "a:b,c"; printf w > "$(printf "\001\033[2J")"'
	want_exit 0
	want '[.changes[].path] | length == 4' '.changes[] | select(.path == "a:b,c") | .change == "created"'
	none_of '[\x00-\x09\x0b-\x1f]' "$result"
}

# $public: a directory that everybody can reach (the tests' own is root's), with the policy in it.
make_public() {
	public=$(mktemp -d /tmp/agentbox-overlay.XXXXXX)
	chmod 755 "$public"
	cp "$policy" "$public/policy.yaml"
}

@test "A31: the workspace can lie on an overlay itself" {
	needs root
	overlay ''
	make_public
	mkdir "$public"/{l,u,w,m} && echo x >"$public/l/f" && chown -R 1000:1000 "$public"/{l,u,w}
	for id in 1000 0; do
		code=0
		unshare -m sh -c 'mount -t overlay o -o "lowerdir=$1/l,upperdir=$1/u,workdir=$1/w" "$1/m" && cd "$1/m" &&
			exec setpriv --reuid "$2" --regid "$2" --clear-groups env HOME=/nonexistent "$3" run -p ../policy.yaml -- sh -c "echo y >>f; cat f"' \
			sh "$public" "$id" "$AGENTBOX" >"$result" 2>"$words" || code=$?
		keep_result "$result"
		want_exit 0 $'x\ny'
		changed f=modified
		if [ "$id" = 1000 ]; then
			want '.enforcement.workspace == "overlay"' '.warnings == []'
		else
			# As root it cannot be id-mapped, so it is copied, as its owner sees it.
			want '.enforcement.workspace == "copy"' \
				'[.warnings[] | select(.code == "workspace_copied") | .message | test("id map.* [0-9]+ ms")] == [true]'
		fi
	done
	rm -rf "$public"
}

@test "A31: root's copy of a workspace on an overlay has the owner's files, and is one" {
	needs root
	overlay ', hide: [.env], protect: [keep]'
	make_public
	mkdir -p "$public"/{l,u,w,m} "$public/l/d/e"
	cd "$public/l" || return
	echo private >d/own && chmod 600 d/own && ln d/own d/e/again && ln -s own d/link && chmod 700 d/e
	echo S3CRET >.env && echo keep >keep && mkfifo d/p && touch -d @1000000000 d/own
	on_overlay() {
		code=0
		unshare -m sh -c 'mount -t overlay o -o "lowerdir=$1/l,upperdir=$1/u,workdir=$1/w" "$1/m" && cd "$1/m" && shift && exec "$@"' \
			sh "$public" "$AGENTBOX" run -p "$public/policy.yaml" "$@" >"$result" 2>"$words" || code=$?
		keep_result "$result"
	}
	local before
	before=$(picture)
	on_overlay -- sh -c 'cat d/e/again d/link; stat -c "%a %h %Y" d/own; ls -A . d; cat .env; echo x >keep; echo x >>d/own; mv d g; id -u >n'
	want '.status == "exited"' '.enforcement.workspace == "copy"' '.stdout | contains("S3CRET") | not'
	want '.stdout | startswith("private\nprivate\n600 2 1000000000\n.:\nd\nkeep\n")'
	want '[.changes[] | select(.path | startswith("d/") or startswith("g/") | not) | "\(.path)=\(.change)"] == ["d=deleted", "g=created", "n=created"]'
	[ "$(picture)" = "$before" ]
	[ -z "$(ls -A "$public/u")" ]
	# What is only another's is not root's to show; a disk that is too small is no way, either.
	echo other >d/other && chmod 600 d/other && chown 1000:1000 d/other
	on_overlay -- true
	want_error overlay_unsupported
	want '.error.hint | contains("owner")'
	rm d/other
	head -c 16M /dev/zero >d/big
	echo 'limits: {disk: 8MiB}' >>"$public/policy.yaml"
	on_overlay -- true
	want_error no_resources
	# Where the policy asks for overlayfs there is no copy.
	{ echo 'version: 1' && echo 'filesystem: {workspace: overlay, backend: overlay}'; } >"$public/policy.yaml"
	on_overlay -- true
	want_error overlay_unsupported
	want_hint
	cd "$work" || return
	rm -rf "$public"
}

@test "the layer counts as disk, and a full one is ENOSPC" {
	policy_is <<-'END'
		filesystem: {workspace: overlay}
		limits: {disk: 8MiB}
	END
	head -c 16M /dev/zero >big
	box -- sh -c 'printf x >>big; echo $?; dd if=/dev/zero of=n bs=1M count=16 2>&1 | tail -1 >/dev/null; rm n; echo ok >s && cat s'
	want '.stdout | startswith("2\n") or startswith("1\n")' '.stdout | endswith("ok\n")'
	[ "$(stat -c %s big)" = 16777216 ]
}

@test "C09: a byte added to a file larger than the disk: ENOSPC, and the limit is named" {
	policy_is <<-'END'
		filesystem: {workspace: overlay}
		limits: {disk: 128MiB}
	END
	head -c 256M /dev/zero >big
	box -- sh -c 'printf x >>big'
	want '.exit_code != 0' '.stderr | contains("No space left")' '.limits_hit == ["disk"]' \
		'.usage.disk_bytes < 1048576' '.changes == []'
	[ "$(stat -c %s big)" = 268435456 ]
}

@test "C09: a disk that was nearly full was no limit that was hit" {
	policy_is <<-'END'
		filesystem: {workspace: overlay}
		limits: {disk: 64MiB}
	END
	head -c 60M /dev/zero >big
	box -- sh -c 'printf x >>big && rm big && head -c 60M /dev/zero >again && sleep 0.1 && rm again'
	want_exit 0
	want '.limits_hit == []'
}

@test "C09: a byte added to a large file, in memory and on disk" {
	head -c 128M /dev/urandom >real
	policy_is <<-'END'
		filesystem: {workspace: overlay}
		limits: {disk: 160MiB}
	END
	box -- sh -c 'printf x >>real && stat -c %s real'
	want_exit 0 134217729
	changed real=modified
	want '.limits_hit == []'
	policy_is <<-'END'
		filesystem: {workspace: overlay, scratch: disk}
	END
	own_state
	box -- sh -c 'printf x >>real && stat -c %s real'
	want_exit 0 134217729
	changed real=modified
	want '.enforcement.not_enforced == ["limits.disk"]'
	[ -z "$(ls -A "$top/state/agentbox/scratch")" ]
}

@test "a copy where the policy says so: the same changes" {
	overlay ', backend: copy, hide: [.env]'
	mkdir -p d/e && echo a >a && echo b >d/b && echo S >d/.env && ln -s a l && chmod 751 d
	box -- sh -c 'cat d/.env; ls -A d; stat -c %a d; readlink l; echo x >>a; mv d d2; touch n'
	want '.stdout == "b\ne\n751\na\n"' '.enforcement.workspace == "copy"'
	changed a=modified d=deleted d/b=deleted d/e=deleted d2=created d2/b=created d2/e=created n=created
	[ "$(cat a)" = a ]
	[ -e d/b ]
}

@test "mounts in the workspace make an unprivileged box copy it, and say so" {
	needs root
	overlay ''
	make_public
	mkdir -p "$public/ws/m" && echo x >"$public/ws/f" && chown -R 1000:1000 "$public/ws"
	code=0
	unshare -m sh -c 'cd "$1/ws" && mount -t tmpfs t m &&
		exec setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/nonexistent "$2" run -p ../policy.yaml -- sh -c "cat f; echo y >n"' \
		sh "$public" "$AGENTBOX" >"$result" 2>"$words" || code=$?
	keep_result "$result"
	rm -rf "$public"
	want_exit 0 x
	want '.enforcement.workspace == "copy"' '.warnings[] | select(.code == "workspace_copied")'
	changed n=created
}

@test "after a time-out and a kill what was written is still listed" {
	overlay ''
	box --wall 1s -- sh -c 'echo x >f; sleep 60'
	want '.status == "timeout"'
	changed f=created
	box -- sh -c 'echo x >f; kill -KILL $$'
	want '.status == "signaled"'
	changed f=created
}

@test "changes are bounded, and what is left out is counted" {
	overlay ''
	box -- "$python" -c 'for i in range(10100): open(f"f{i}", "w").close()'
	want_exit 0
	want '.changes | length == 10000' '.warnings[] | select(.code == "changes_left_out") | .message | startswith("100 ")'
}

@test "files that nobody may read are listed all the same" {
	overlay ''
	box -- sh -c 'mkdir d; echo x >d/f; chmod 000 d/f; chmod 000 d'
	want_exit 0
	changed d=created d/f=created
	want '.changes[] | select(.path == "d") | .mode == "0000"'
}

@test "two sessions' commands, what is kept between them, and what is not" {
	own_state
	overlay ''
	echo host >f
	"$AGENTBOX" session new one -p "$policy"
	for part in 'echo a >>f; echo h >~/h; echo t >/tmp/t; sleep 300 & echo done' 'cat f ~/h /tmp/t; pgrep sleep; ls /dev/shm'; do
		"$AGENTBOX" session exec one -- sh -c "$part" >"$result" 2>"$words" || true
		keep_result "$result"
	done
	want_stdout $'host\na\nh\nt'
	changed f=modified
	[ "$(cat f)" = host ]
	[ ! -e ~/h ]
	"$AGENTBOX" session exec one --wall 1s -- sleep 60 >"$result" || true
	want '.status == "timeout"'
	"$AGENTBOX" session exec one -- cat f >"$result"
	want_stdout $'host\na'
	"$AGENTBOX" session rm one
	[ -z "$(ls -A "$sessions")" ]
}

@test "commands of one session take turns and do not mix" {
	own_state
	overlay ''
	"$AGENTBOX" session new one -p "$policy"
	for i in 1 2 3 4 5; do
		"$AGENTBOX" session exec one -- sh -c "echo $i >>log; sleep 0.1; echo $i >>log; echo $i" >"$top/out$i" &
	done
	wait
	for i in 1 2 3 4 5; do
		[ "$(jq -r .stdout "$top/out$i")" = "$i" ]
	done
	[ "$("$AGENTBOX" read one log | uniq | sort | tr -d '\n')" = 12345 ]
	"$AGENTBOX" session rm one
}

@test "a session's command has the session's policy, and takes no other" {
	own_state
	overlay ''
	"$AGENTBOX" session new one -p "$policy"
	code=0
	"$AGENTBOX" session exec one -p strict -- true >"$result" 2>"$words" || code=$?
	[ "$code" = 125 ]
	want '.error.code == "usage"'
	"$AGENTBOX" session exec none -- true >"$result" 2>"$words" || true
	want '.error.code == "session_not_found"'
	rm "$policy"
	"$AGENTBOX" session exec one -- pwd >"$result"
	want_stdout "$work"
	"$AGENTBOX" session rm one
}

@test "a link that a command leaves in its session's home or /tmp is not followed" {
	own_state
	mkdir "$HOME/ws" && cd "$HOME/ws" && echo x >f
	overlay ''
	"$AGENTBOX" session new one -p "$policy"
	"$AGENTBOX" session exec one -- sh -c 'cat f; ls -A ~' >"$result"
	want '.stdout == "x\nws\n"'
	local kept=$top/state/agentbox/sessions/one/home
	rmdir "$kept/ws" && ln -s /etc "$kept/ws"
	code=0
	"$AGENTBOX" session exec one -- ls >"$result" 2>"$words" || code=$?
	want '.status == "error"'
	[ "$code" = 125 ]
}

@test "--keep-changes, diff and apply: what a box changed comes to the host when told" {
	own_state
	overlay ', hide: [.env], protect: [keep]'
	mkdir -p d && echo a >a && echo b >d/b && echo k >keep && echo S >.env
	box --keep-changes -- sh -c 'echo x >>a; mv d e; mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; ln -s a l; chmod 700 e; echo mine >.env'
	want '.status == "exited"' '.warnings | map(.code) | index("changes_not_kept") | not'
	[ "$(cat a)" = a ]
	[ -d d ]
	"$AGENTBOX" diff | grep -qx 'M a'
	code=0
	"$AGENTBOX" apply >"$top/out" 2>"$words" || code=$?
	[ "$code" = 1 ]
	grep -q 'pre-commit' "$words"
	grep -q '.env' "$words"
	[ "$(cat a)" = $'a\nx' ]
	[ "$(cat e/b)" = b ]
	[ ! -e d ]
	[ "$(readlink l)" = a ]
	[ "$(stat -c %a e)" = 700 ]
	[ ! -e .git/hooks/pre-commit ]
	[ "$(cat .env)" = S ]
}

@test "--apply brings changes over when the command succeeded, and only then" {
	own_state
	overlay ''
	echo a >a
	box --apply -- sh -c 'echo x >a; exit 3'
	[ "$(cat a)" = a ]
	box --apply -- sh -c 'echo y >a; mkdir n; echo z >n/f'
	want_exit 0
	want '.warnings == []'
	[ "$(cat a)" = y ]
	[ "$(cat n/f)" = z ]
	[ -z "$(ls -A "$top/state/agentbox/kept")" ]
	box --apply -- sh -c 'echo x >.envrc; echo ok >b'
	want '.warnings[] | select(.code == "apply_incomplete") | .message | contains(".envrc")'
	[ "$(cat b)" = ok ]
	[ ! -e .envrc ]
	policy_is <<<'filesystem: {workspace: read}'
	box --apply -- true
	want_error usage
	want_hint
}

@test "a session is shown by diff and brought over by apply, and stays" {
	own_state
	overlay ''
	echo a >a
	"$AGENTBOX" session new one -p "$policy"
	"$AGENTBOX" session exec one -- sh -c 'echo x >>a; echo n >n' >"$result"
	"$AGENTBOX" diff one | grep -qx 'A n'
	"$AGENTBOX" apply one
	[ "$(cat a)" = $'a\nx' ]
	[ "$(cat n)" = n ]
	[ -z "$("$AGENTBOX" diff one)" ]
	"$AGENTBOX" session exec one -- sh -c 'cat a n; echo m >m' >"$result"
	want_stdout $'a\nx\nn'
	"$AGENTBOX" apply one
	[ "$(cat m)" = m ]
	# Its own work is no conflict, that of others is.
	"$AGENTBOX" session exec one -- sh -c 'echo again >>a; echo again >>n' >"$result"
	echo other >n
	code=0
	"$AGENTBOX" apply one 2>"$words" || code=$?
	[ "$code" = 1 ]
	grep -q 'conflict.*: n' "$words"
	[ "$(cat a)" = $'a\nx\nagain' ]
	[ "$(cat n)" = other ]
	"$AGENTBOX" session rm one
}

@test "the workspace's own mode and time are the session's, from its first command to the apply" {
	own_state
	overlay ', hide: [.env]'
	chmod 750 .
	echo S >.env
	touch -d 2001-02-03T04:05:06.789 .
	"$AGENTBOX" session new one -p "$policy"
	[ -z "$("$AGENTBOX" diff one)" ]
	"$AGENTBOX" session exec one -- stat -c '%a %Y' . >"$result"
	want_stdout '750 981173106'
	[ -z "$("$AGENTBOX" diff one)" ]
	"$AGENTBOX" session exec one -- sh -c 'chmod 711 . && touch -d 2002-02-03T04:05:06.789 .' >"$result"
	"$AGENTBOX" session exec one -- stat -c '%a %Y' . >"$result"
	want_stdout '711 1012709106'
	[ "$("$AGENTBOX" diff one)" = 'M ./' ] && [ "$(stat -c '%a %Y' .)" = '750 981173106' ]
	"$AGENTBOX" apply one
	[ "$(stat -c '%a %.9Y' .)" = '711 1012709106.789000000' ] && [ "$(cat .env)" = S ]
	"$AGENTBOX" session rm one
}

@test "changes are what comparing two full trees finds, for random work" {
	needs python3 userns
	"$python" "$BATS_TEST_DIRNAME/changes_model.py" "$AGENTBOX_PROBES/probe-changes_dump" "$((AGENTBOX_SLOW > 1 ? 3 : 40))" ||
		{ [ $? = 77 ] && skip "no overlay can be mounted here"; }
}

@test "apply changes no other name of a file, wherever that is" {
	own_state
	overlay ''
	echo secret >"$top/outside" && chmod 600 "$top/outside" && ln "$top/outside" in
	box --keep-changes -- chmod 666 in
	"$AGENTBOX" apply
	[ "$(stat -c %a "$top/outside")" = 600 ]
	[ "$(stat -c %a in)" = 666 ]
	[ "$(cat in)" = secret ]
}

@test "a pattern that matches nothing applies nothing, says so, and drops nothing" {
	own_state
	overlay ''
	box --keep-changes -- touch f
	for how in '' --drop; do
		code=0
		"$AGENTBOX" apply $how 'nomatch*' 2>"$words" || code=$?
		[ "$code" = 1 ]
		grep -q 'no change is of such a name' "$words"
	done
	"$AGENTBOX" apply f
	[ -e f ]
}

@test "a session cannot have a copy, and exec wants the name first" {
	own_state
	overlay ', backend: copy'
	"$AGENTBOX" session new one -p "$policy"
	code=0
	"$AGENTBOX" session exec one -- true >"$result" 2>"$words" || code=$?
	want_error overlay_unsupported
	for wrong in '' -q '-- true'; do
		code=0
		# shellcheck disable=SC2086 # several words
		"$AGENTBOX" session exec $wrong >"$result" 2>"$words" || code=$?
		[ "$code" = 125 ]
		want '.error.code == "usage"' '.error.message | contains("--session")'
	done
}

@test "A72: a time limit ends one command, and its session goes on with what it has" {
	own_state
	overlay ''
	"$AGENTBOX" session new one -p "$policy"
	in_session() {
		code=0
		"$AGENTBOX" session exec "$@" >"$result" 2>"$words" || code=$?
		keep_result "$result"
	}
	in_session one -- touch /tmp/keep
	want_exit 0
	in_session one --wall 1s -- sleep 99
	want '.status == "timeout"'
	[ "$code" = 124 ]
	in_session one -- ls /tmp/keep
	want_exit 0 /tmp/keep
	"$AGENTBOX" session rm one
}

@test "A53: a session that goes on keeps no pipeline open" {
	own_state
	overlay ''
	"$AGENTBOX" session new one -p "$policy" | cat
	local from=$SECONDS
	"$AGENTBOX" session exec one -- sh -c 'sleep 300 & true' | cat >"$result"
	keep_result "$result"
	want '.status == "exited" and .exit_code == 0'
	[ $((SECONDS - from)) -le "$(slow 10)" ]
	"$AGENTBOX" session exec one -- true | true
	"$AGENTBOX" session exec one -- true >"$result"
	want_stdout ''
	"$AGENTBOX" session rm one
}

@test "B08: every command of a session has the whole box, whatever the one before it wrote over" {
	own_state
	overlay ''
	"$AGENTBOX" session new one -p "$policy"
	local before show='grep -E "^(Seccomp|NoNewPrivs|CapEff|CapPrm|CapBnd)" /proc/self/status; id -u
		for n in user mnt net pid ipc uts cgroup; do [ "$(readlink /proc/self/ns/$n)" = "$(readlink /proc/1/ns/$n)" ] || echo "$n differs"; done
		cat /proc/self/cgroup | tr -dc "a-z\n" | sort'
	"$AGENTBOX" session exec one -- sh -c "$show" >"$result"
	before=$(jq -r .stdout "$result")
	grep -qP 'CapEff:\t0{16}$' <<<"$before"
	grep -qP 'NoNewPrivs:\t1$' <<<"$before"
	grep -qP 'Seccomp:\t2$' <<<"$before"
	"$AGENTBOX" session exec one -- sh -c 'find / -xdev -writable -name "*agentbox*" 2>/dev/null -exec truncate -s0 {} +
		for f in meta policy policy.yaml layer home tmp lock; do echo x >~/$f; echo x >/tmp/$f; echo x >$f; done
		ln -s / ~/root; rm -rf ~/.config; mkdir -p ~/.config/agentbox/policies; echo "version: 1" >~/.config/agentbox/policies/default.yaml' >"$result"
	want '.status == "exited"'
	"$AGENTBOX" session exec one -- sh -c "$show" >"$result"
	want_stdout "$before"
	# What is no session of the caller's is none, whatever its name leads to.
	mkdir -p "$top/fake"
	cp -r "$sessions/one/." "$top/fake/" 2>/dev/null || true # the kernel has a directory of its own in it
	for name in ../../../fake "$top/fake" ../one one/ . .. ''; do
		code=0
		"$AGENTBOX" session exec "$name" -- id >"$result" 2>"$words" || code=$?
		[ "$code" = 125 ]
		want '.status == "error"' '.error.code | IN("bad_session_name", "usage")'
	done
	chmod 777 "$sessions/one"
	code=0
	"$AGENTBOX" session exec one -- id >"$result" 2>"$words" || code=$?
	[ "$code" = 125 ]
	want '.status == "error"'
	chmod 700 "$sessions/one"
	"$AGENTBOX" session rm one
}
