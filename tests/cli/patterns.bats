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

@test "C02: twenty thousand hidden files cost no mounts and no arguments" {
	own_cache
	"$python" - <<-'END'
		import os
		for d in range(100):
		    os.makedirs(f"data/s{d}")
		    for f in range(200):
		        with open(f"data/s{d}/x{f}.parquet", "w") as out:
		            out.write("S3CRET")
		    open(f"data/s{d}/ok", "w").close()
	END
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
