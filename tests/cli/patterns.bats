#!/usr/bin/env bats
# Patterns in large trees, workspaces that are a part of something larger, and what stands in them.

load helpers

# An index of patterns is kept in the cache of whoever runs agentbox. These tests have their own: root's
# is mounted where it looks for it, in a mount namespace for each run.
own_cache() {
	mkdir "$top/cache"
	export XDG_CACHE_HOME=$top/cache
	cat >"$top/inside" <<-END
		#!/bin/sh
		[ \$(id -u) != 0 ] || mount --bind "$top/cache" /var/cache || exit
		exec \$TRACE "$AGENTBOX" "\$@"
	END
	cat >"$top/agentbox" <<-END
		#!/bin/sh
		exec $([ "$(id -u)" != 0 ] || echo unshare -m) "$top/inside" "\$@"
	END
	chmod +x "$top/inside" "$top/agentbox"
	AGENTBOX=$top/agentbox
}

# many DIRS FILES: that many directories with so many files each.
many() {
	"$python" - "$1" "$2" <<-'END'
		import os, sys
		for d in range(int(sys.argv[1])):
		    os.makedirs(f"m{d % 20}/n{d}")
		    for f in range(int(sys.argv[2])):
		        open(f"m{d % 20}/n{d}/f{f}.c", "w").close()
	END
}

# reads: how often the last run of `traced` asked for the names in a directory.
traced() {
	TRACE="strace -qq -o $top/trace -e trace=getdents64" box "$@"
}

reads() {
	grep -c getdents64 "$top/trace" || true
}

@test "C01: patterns in a large tree: a run reads only the directories that changed since the last" {
	needs strace ptrace
	own_cache
	many 400 20
	echo S3CRET | tee m3/.env m4/n4/x.key >/dev/null
	policy_is <<<'filesystem: {workspace: overlay, hide: ["**/.env", "**/*.key", "**/id_rsa"]}'
	sleep 2.2
	traced -- sh -c 'cat m3/.env m4/n4/x.key m5/n5/new.key; true'
	want_exit 0 ''
	[ "$(reads)" -gt 400 ]
	traced -- sh -c 'cat m3/.env m4/n4/x.key m5/n5/new.key; true'
	want_exit 0 ''
	[ "$(reads)" -lt 20 ]
	echo S3CRET >m5/n5/new.key
	touch -d '1 hour ago' m5/n5 m5/n5/new.key
	traced -- sh -c 'cat m3/.env m4/n4/x.key m5/n5/new.key; ls m5/n5 | grep new; true'
	want_exit 0 ''
	[ "$(reads)" -lt 30 ]
}

@test "C01: without a place for the index, or with a damaged one, the same is hidden" {
	own_cache
	many 300 20
	echo S3CRET >m3/n3/.env
	policy_is <<<'filesystem: {workspace: overlay, hide: [".env"]}'
	box -- sh -c 'cat m3/n3/.env; true'
	want_exit 0 ''
	local kept=("$top"/cache/agentbox/*)
	[ -s "${kept[0]}" ]
	head -c 3000 /dev/urandom >"${kept[0]}"
	box -- sh -c 'cat m3/n3/.env; true'
	want_exit 0 ''
	chmod 755 "$top/cache/agentbox"
	box -- sh -c 'cat m3/n3/.env; true'
	want_exit 0 ''
	rm -r "$top/cache/agentbox"
	[ "$(id -u)" = 0 ] || chmod 555 "$top/cache"
	box -- sh -c 'cat m3/n3/.env; true'
	want_exit 0 ''
}

@test "C01: the box cannot write where indexes are kept" {
	own_cache
	echo S3CRET >.env
	local grant
	if [ "$(id -u)" = 0 ]; then
		policy_is <<<'filesystem: {workspace: overlay, write: [/var/cache], hide: [".env"]}'
		grant=/var/cache/agentbox
	else
		policy_is <<<"filesystem: {workspace: overlay, write: [$top/cache], hide: ['.env']}"
		grant=$top/cache/agentbox
	fi
	box -- sh -c "touch $grant/x; mv $grant $grant.2; mkdir -p $grant; touch $grant/../y"
	want_exit 0
	[ -e "$top/cache/y" ]
	[ "$(ls -A "$top/cache/agentbox")" = '' ]
	[ ! -e "$top/cache/agentbox.2" ]
	policy_is <<<"filesystem: {workspace: overlay, write: [$grant], hide: ['.env']}"
	box -- true
	want_error dangerous_grant
}

# parquet: 20000 files below data/ that hold a secret, and 100 that do not.
parquet() {
	"$python" - <<-'END'
		import os
		for d in range(100):
		    os.makedirs(f"data/s{d}")
		    for f in range(200):
		        with open(f"data/s{d}/x{f}.parquet", "w") as out:
		            out.write("S3CRET")
		    open(f"data/s{d}/ok", "w").close()
	END
}

@test "C02: twenty thousand hidden files cost no mounts and no arguments" {
	own_cache
	parquet
	local memory=''
	! has cgroup || memory='limits: {memory: 64MiB}'
	policy_is <<<"filesystem: {workspace: overlay, hide: ['data/**/*.parquet']}
$memory"
	box -- sh -c 'find . -type f | wc -l; find . -name "*.parquet"; cat data/s1/x1.parquet data/s99/x199.parquet; wc -l </proc/self/mountinfo'
	want_exit 0
	want '.stdout | split("\n") | .[0] == "100" and (.[1] | tonumber) < 60 and length == 3' '.changes == []'
	quickly 20000
	[ "$(find . -name '*.parquet' | wc -l)" = 20000 ]
}

@test "C02: twenty thousand files are covered in a tree that is read or written, and 300 worktrees are no burden" {
	own_cache
	parquet
	local kind
	if has git; then
		git init -q . && git -c user.name=A -c user.email=a@b.test commit -q --allow-empty -m one
		"$python" - <<-'END'
			import os
			for n in range(300):
			    admin, tree = f".git/worktrees/w{n}", f"trees/w{n}"
			    os.makedirs(admin)
			    os.makedirs(tree)
			    for path, text in ((f"{admin}/HEAD", open(".git/HEAD").read()), (f"{admin}/commondir", "../..\n"),
			            (f"{admin}/gitdir", os.path.abspath(f"{tree}/.git") + "\n"),
			            (f"{tree}/.git", f"gitdir: {os.path.abspath(admin)}\n")):
			        with open(path, "w") as out:
			            out.write(text)
		END
	fi
	for kind in read write; do
		policy_is <<<"filesystem: {workspace: $kind, hide: ['data/**/*.parquet']}"
		box -- "$python" -I -S -c '
import os
files = [os.path.join(top, name) for top, _, names in os.walk("data") for name in names]
seen = 0
for path in files:
    try:
        with open(path) as file: seen += "S3CRET" in file.read()
    except OSError: pass
print(len(files), seen, sum(len(word) + 1 for word in os.environ))'
		want_exit 0
		want '.stdout | test("^20100 0 [0-9]{1,4}\n$")'
		# Less than a second; the bound has room for a busy machine.
		quickly 5000
		[ "$(jq '.timing.policy_us + .timing.setup_us' "$result")" -lt "$(slow 3000000)" ]
	done
	# Written: what is covered, and the directories that lead there, stay as they are.
	box -- sh -c 'rm data/s1/x1.parquet; mv data/s2 data/s2.other; mv data other; echo x >data/s3/x3.parquet; echo x >data/s3/more'
	[ "$(find data -name '*.parquet' | wc -l)" = 20000 ]
	[ -e data/s3/more ]
	[ "$(cat data/s3/x3.parquet)" = S3CRET ]
}

# repository: "$top/main", with the worktree "$top/wt", which becomes the workspace.
repository() {
	needs git
	export HOME=$top/home GIT_CONFIG_NOSYSTEM=1
	mkdir "$HOME"
	git config --global user.name A
	git config --global user.email a@b.test
	git init -q "$top/main"
	cd "$top/main" || return
	echo one >a
	git add a
	git commit -qm one
	git worktree add -q -b wt "$top/wt"
	cd "$top/wt" || return
	as_author='env: {set: {GIT_AUTHOR_NAME: A, GIT_AUTHOR_EMAIL: a@b.test, GIT_COMMITTER_NAME: A, GIT_COMMITTER_EMAIL: a@b.test}}'
}

# everything DIR: names, kinds, contents and times of all that is in it.
everything() {
	(cd "$1" && find . -printf '%p %y %m %T@ %i\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

@test "A08: in a linked git worktree add and commit work, and the repository stays as it is" {
	repository
	policy_is <<<"filesystem: {workspace: overlay}
$as_author"
	everything "$top/main" >"$top/before"
	echo x >f
	box -- sh -c 'git add f && git commit -qm two && git log --oneline -1; git status --short'
	want_exit 0
	want '.stdout | endswith(" two\n")' '.warnings == []' '.enforcement.workspace | IN("overlay", "copy")' \
		"[.changes[].path | select(startswith(\"$top/main/.git/\"))] | length > 2"
	everything "$top/main" | cmp "$top/before" -
	# The policy's patterns hold there, too.
	policy_is <<<"filesystem: {workspace: overlay, hide: [config]}"
	box -- sh -c "ls $top/main/.git; ls $top/main"
	want '.stdout | contains("objects\n") and (contains("config") | not)' '.stdout | contains("a\n") | not'
}

@test "A18: what is protected in a repository with 300 worktrees is held in each, and no more is made" {
	repository
	cd "$top/main" || return
	local n kind
	for n in $(seq 300); do
		git worktree add -q --no-checkout --detach "trees/w$n"
	done
	everything . >"$top/before"
	for kind in overlay write; do
		policy_is <<<"filesystem: {workspace: $kind, protect: [.git, 'trees/*/.git']}"
		# A .git that is moved away, replaced by way of its directory or another link, or written.
		# shellcheck disable=SC2016 # for the box
		box -- sh -c 'for n in 1 150 300; do
				echo x >trees/w$n/.git; rm trees/w$n/.git; mv trees/w$n/.git g$n; ln trees/w$n/.git l$n && echo x >l$n
				mv trees/w$n trees/v$n; rm -r trees/w$n; echo x >e && mv e trees/w$n/.git
			done; mv trees other; mv .git other.git; echo x >.git/hooks/post-commit; rm -f e g*
			ls -A; ls -A trees | wc -l; find trees -name .git | wc -l; git -C trees/w7 rev-parse HEAD' 2>/dev/null
		want_exit 0 ".git
a
trees
300
300
$(git rev-parse HEAD)"
		quickly 5000
		want '.changes == []' '.timing.policy_us + .timing.setup_us < 1000000 * '"$AGENTBOX_SLOW"
		everything . | grep -v '^\. ' | cmp <(grep -v '^\. ' "$top/before") -
	done
	want '[.warnings[].code] | unique == ["protect_existing_only"]'
	# From one of them git works, and the other 299 are seen and not touched.
	cd trees/w300 && git reset -q --hard && everything ../.. >"$top/before"
	policy_is <<<"filesystem: {workspace: overlay, protect: [.env, '.git/hooks']}
$as_author"
	box -- sh -c 'echo x >f; git add f && git commit -qm two && git log --format=%s -1; git worktree list | wc -l; ls -A'
	want_exit 0 "two
302
.git
a
f"
	quickly 5000
	want '.warnings == []' "[.changes[].path | select(test(\"/worktrees/w(?!300/)\"))] == []"
	everything ../.. | cmp "$top/before" -
}

@test "A08: what a session committed in a linked git worktree is applied with its repository" {
	load sessions
	repository
	own_state
	[ "$(id -u)" != 0 ] || git config --global safe.directory '*'
	policy_is <<<"filesystem: {workspace: overlay}
$as_author"
	plain session new s -p "$policy"
	want_plain 0
	everything "$top/main" >"$top/before"
	"$AGENTBOX" session exec s -- sh -c 'echo x >f && git add f && git commit -qm two' >"$result"
	want '.exit_code == 0' "[.changes[].path | select(startswith(\"$top/main/.git/\"))] | length > 2"
	"$AGENTBOX" session exec s -- sh -c 'git log --format=%s -1; echo y >g && git add g && git commit -qm three' >"$result"
	want '.stdout == "two\n"'
	everything "$top/main" | cmp "$top/before" -
	plain diff s
	want_plain 0 "$top/main/.git/" 'A f'
	plain apply s --allow-sensitive
	want_plain 0
	[ "$(git log --format=%s -1)" = three ]
	[ -z "$(git --no-optional-locks status --short)" ]
	git fsck --strict
	# Its own work is no conflict to it.
	"$AGENTBOX" session exec s -- sh -c 'echo z >h && git add h && git commit -qm four' >"$result"
	want '.exit_code == 0'
	plain apply s --allow-sensitive
	want_plain 0
	[ "$(git log --format=%s -1)" = four ]
	# A layer lies over the tree that it was made over, and over no other.
	git clone -q "$top/main" "$top/other"
	git -C "$top/other" worktree add -q "$top/wt2"
	cp "$top/wt2/.git" .git
	echo "$top/wt/.git" >"$top/other/.git/worktrees/wt2/gitdir"
	"$AGENTBOX" session exec s -- true >"$result" 2>"$words" || true
	want '.error.code == "session_broken"' ".error.message | contains(\"$top/other/.git\")"
	plain session rm s
	want_plain 0
}

@test "A08: a repository that the policy forbids or does not grant is named" {
	repository
	policy_is <<<"filesystem: {workspace: overlay, hide: [$top/main]}"
	box -- true
	want_error gitdir_outside_workspace
	want ".error.message | contains(\"$top/main/.git\")" '.error.line == 2'
	policy_is <<<"filesystem: {workspace: write}"
	box -- true
	want_exit 0
	want ".warnings[] | select(.code == \"gitdir_not_shown\") | .message | contains(\"write: [$top/main/.git]\")"
	policy_is <<<"filesystem: {workspace: write, write: [$top/main/.git]}
$as_author"
	echo x >f
	box -- sh -c 'git add f && git commit -qm two'
	want_exit 0
	want '.warnings == []'
	[ "$(git log --format=%s -1)" = two ]
	policy_is <<<"filesystem: {workspace: read}"
	box -- true
	want '.warnings == []'
}

@test "A08: a .git file that a box made shows nothing else of the caller's" {
	repository
	mkdir -p "$top/private/worktrees/w"
	echo S3CRET >"$top/private/key"
	policy_is <<<"filesystem: {workspace: write}"
	box -- sh -c "echo 'gitdir: $top/private/worktrees/w' >.git"
	policy_is <<<"filesystem: {workspace: overlay}"
	box -- sh -c "cat $top/private/key; ls $top/main $top/private; echo"
	want '.stdout == "\n"' '[.warnings[].code] == ["gitdir_not_shown"]'
	# Another worktree's directory, which names another place back.
	echo "gitdir: $top/main/.git/worktrees/wt" >"$work/.git"
	cd "$work"
	box -- sh -c "ls $top/main; echo"
	want '.stdout == "\n"' '[.warnings[].code] == ["gitdir_not_shown"]'
}

@test "A16: a single file that is granted for writing is refused before anything runs" {
	mkdir "$top/settings"
	echo old >"$top/settings/tool.json"
	policy_is <<<"filesystem: {workspace: none, write: [$top/settings/tool.json]}"
	box -- touch mark
	want_error file_grant_not_replaceable
	want '.error.line == 2' ".error.hint | contains(\"$top/settings\")"
	policy_is <<<"filesystem: {workspace: none, read: [$top/settings/tool.json]}"
	box -- cat "$top/settings/tool.json"
	want_exit 0 old
	policy_is <<<"filesystem: {workspace: none, write: [$top/settings]}"
	box -- sh -c "cd $top/settings && echo new >t && mv t tool.json"
	want_exit 0
	[ "$(cat "$top/settings/tool.json")" = new ]
}

# mounted COMMANDS: from now on agentbox runs, as root or as a user, in a mount namespace that root made and
# in which these commands mounted things.
mounted() {
	needs root unshare setpriv
	mkdir "$top/source"
	echo data >"$top/source/data"
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nset -e\n%s\nexec $BOX_AS "%s" "$@"\n' "$1" "$AGENTBOX" >"$top/inside"
	printf '#!/bin/sh\nexec unshare -m "%s" "$@"\n' "$top/inside" >"$top/agentbox"
	chmod +x "$top/inside" "$top/agentbox"
	AGENTBOX=$top/agentbox
}

@test "what is mounted in a layer's workspace is shown read-only, and named" {
	mounted "mount --bind '$top/source' 'a/m nt'; mount -t tmpfs none deep; mkdir deep/in; mount -t tmpfs none deep/in; echo in >deep/in/f"
	mkdir -p 'a/m nt' deep
	echo under >'a/m nt/under'
	policy_is <<<'filesystem: {workspace: overlay}'
	box -- sh -c 'cat "a/m nt/data" deep/in/f; ls "a/m nt"; touch "a/m nt/x" || touch deep/in/x || touch new'
	want_exit 0 $'data\nin\ndata'
	want '[.warnings[] | select(.code == "nested_mount_readonly")] | length == 2' \
		'[.warnings[].message] | any(contains("'"$work"'/a/m nt")) and any(contains("'"$work"'/deep"))' \
		'[.changes[].path] == ["new"]'
	[ "$(ls "$top/source")" = data ]
	policy_is <<<'filesystem: {workspace: overlay, hide: [a, "**/f"]}'
	box -- sh -c 'ls; cat deep/in/f; ls deep/in'
	want '.stdout == "deep\nf\n"' '.stderr | test("deep/in/f: (Permission denied|No such)")'
}

@test "the same for a user, for whom the workspace is copied" {
	mounted "mount --bind '$top/source' m; mount -t tmpfs none t; echo in >t/f"
	mkdir m t
	echo own >own
	chmod a+x "$BATS_RUN_TMPDIR" "$(dirname "$top")" "$top" # the user must get there
	chown -R 65534:65534 "$work"
	policy_is <<<'filesystem: {workspace: overlay}'
	chmod 644 "$policy"
	BOX_AS='setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent' box -- \
		sh -c 'cat own m/data t/f; touch m/x || touch t/x || touch new'
	want_exit 0 $'own\ndata\nin'
	want '.enforcement.workspace == "copy"' '[.changes[].path] == ["new"]' \
		'[.warnings[] | select(.code == "nested_mount_readonly")] | length == 2'
	[ "$(ls "$top/source")" = data ]
}

@test "a file that is mounted on another one is no change, in a layer and in a copy" {
	mounted "mount --bind '$top/source/data' f; mount --bind '$top/source/data' d/same; mount --bind /dev/null d/null"
	mkdir d
	touch f d/same d/null own
	echo under >f
	chmod a+x "$BATS_RUN_TMPDIR" "$(dirname "$top")" "$top"
	local backend as
	for backend in auto copy; do
		for as in '' 'setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent'; do
			[ -z "$as" ] || chown -R 65534:65534 "$work" "$top/source"
			policy_is <<<"filesystem: {workspace: overlay, backend: $backend}"
			chmod 644 "$policy"
			BOX_AS=$as box -- sh -c 'cat f d/same; echo x >f; rm f; rm -f d/same; cat f; echo new >new; ls d'
			want '.stdout | startswith("data\ndata\ndata\n")' '[.changes[].path] == ["new"]' \
				'[.warnings[] | select(.code == "nested_mount_readonly") | .message | select(contains("work/f") or contains("d/same"))] | length == 2'
		done
	done
	[ "$(cat "$top/source/data")" = data ]
}

@test "a file system of the kernel's own in the workspace is not shown, nor searched for patterns" {
	mounted "mount -t proc proc p; mount -t tmpfs none outer; mkdir outer/p; mount -t proc proc outer/p"
	mkdir p outer
	policy_is <<<'filesystem: {workspace: overlay, hide: ["**/.env"]}'
	box -- sh -c 'ls p outer/* 2>&1; true'
	want_exit 0
	want '.stdout | contains("1") | not' \
		'[.warnings[] | select(.code == "nested_mount_not_shown")] | length == 2'
}

@test "more mounts in a workspace than are shown one by one are refused" {
	# shellcheck disable=SC2016 # for the script
	mounted 'for i in $(seq 33); do mount -t tmpfs none d$i; done'
	mkdir $(seq -f 'd%g' 33)
	policy_is <<<'filesystem: {workspace: overlay}'
	box -- true
	want_error unsupported
	want '.error.message | contains("32 mounts")'
}
