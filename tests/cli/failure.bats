# Hosts that refuse something: agentbox says which, and never runs the command without it.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

# refused CODE... -- WRAPPER...: a run under WRAPPER must fail with one of the codes and leave no mark.
refused() {
	local codes=()
	while [ "$1" != -- ]; do
		codes+=("$1")
		shift
	done
	shift
	[ -e "$policy" ] || policy_is <<<'filesystem: {workspace: write}'
	rm -f mark
	code=0
	"$@" "$AGENTBOX" run -p "$policy" -- touch "$work/mark" >"$result" 2>"$words" || code=$?
	[ ! -e mark ] || fail "the command ran"
	keep_result "$result"
	want '.status == "error" and .exit_code == null' '.error.message | length > 0'
	want_hint
	[ "$code" = 125 ] || fail "exit status $code"
	want "(.error.code | IN($(printf '"%s",' "${codes[@]}" | sed 's/,$//')))"
}

deny() {
	"$AGENTBOX_PROBES/probe-deny" "$@"
}

@test "A32: without user namespaces nothing runs, and the hint leads to the setting" {
	needs seccomp
	refused userns_denied -- "$AGENTBOX_PROBES/probe-deny" clone3=EPERM clone+ns=EPERM unshare=EPERM --
	want '.error.errno == "EPERM"' '.error.stage | IN("spawn", "ids", "sources")'
	refused userns_denied -- "$AGENTBOX_PROBES/probe-deny" clone3=ENOSYS clone+ns=EPERM unshare=EPERM --
}

@test "A32: a namespace whose rights are taken away is told as such" {
	needs seccomp
	local mounts=(mount=EACCES fsopen=EACCES fsmount=EACCES open_tree=EACCES move_mount=EACCES mount_setattr=EACCES pivot_root=EACCES)
	local codes=(userns_denied)
	[ "$(id -u)" != 0 ] || codes+=(mount_failed) # root opens the grants itself, before there is a namespace
	refused "${codes[@]}" -- "$AGENTBOX_PROBES/probe-deny" sethostname=EPERM "${mounts[@]}" --
	want '.error.stage != null and .error.errno != null'
	refused userns_denied mount_failed -- "$AGENTBOX_PROBES/probe-deny" "${mounts[@]}" --
	refused userns_denied -- "$AGENTBOX_PROBES/probe-deny" sethostname=EPERM --
}

# inside ARGS... -- COMMAND...: unshare(1) for the caller: as root it stays the host's root, as another
# user it keeps its number in a user namespace of its own, since a mapped root is a case by itself.
inside() {
	if [ "$(id -u)" = 0 ]; then
		unshare "$@"
	else
		unshare -Uc --keep-caps "$@"
	fi
}

@test "A32: no user namespace left is an error with its own words" {
	needs userns
	refused userns_denied no_resources -- unshare -Uc --keep-caps sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh
	[ "$(id -u)" = 0 ] || want '.error.errno == "ENOSPC"'
}

@test "A32: doctor tells the same before any run, and answers 1" {
	needs seccomp
	code=0
	output=$(deny clone3=EPERM clone+ns=EPERM unshare=EPERM -- "$AGENTBOX" doctor 2>&1) || code=$?
	want_plain 1
	[[ ${output,,} == *"user namespace"* ]]
	plain doctor
	[ "$code" = 0 ] || [ "$code" = 1 ]
	[[ ${output,,} == *landlock* && ${output,,} == *seccomp* ]]
}

@test "A33: without capabilities and without new privileges it works, or says why not" {
	local drop=(setpriv --no-new-privs --inh-caps=-all)
	[ "$(id -u)" != 0 ] || drop+=(--bounding-set=-all --ambient-caps=-all)
	code=0
	"${drop[@]}" "$AGENTBOX" run -- sh -c 'echo ran' >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want '.stdout == "ran\n" and .status == "exited" or .status == "error" and .error.code != null and (.error.hint | length > 0)'
	if [ "$code" = 0 ]; then want_stdout ran; else [ "$code" = 125 ]; fi
}

@test "A33: inside another user namespace it works, or says why not" {
	needs userns
	code=0
	unshare -Ur "$AGENTBOX" run -- sh -c 'echo ran' >"$result" 2>"$words" || code=$?
	keep_result "$result"
	if [ "$code" = 0 ]; then want_stdout ran; else want_error userns_denied idmap_unsupported && want_hint; fi
}

@test "A33: a container's masked /proc is named, with what to do" {
	needs userns
	refused proc_masked -- inside -m sh -c 'mount -t tmpfs -o ro none /proc/fs && exec "$@"' sh
	want '.error.stage == "mounts"'
}

@test "B50: a seccomp filter that cannot be set stops the run" {
	needs seccomp
	refused seccomp_unavailable -- "$AGENTBOX_PROBES/probe-deny" seccomp=EINVAL --
	refused seccomp_unavailable -- "$AGENTBOX_PROBES/probe-deny" seccomp=ENOSYS --
	refused seccomp_unavailable -- "$AGENTBOX_PROBES/probe-deny" seccomp=EPERM --
}

@test "B50: a filter whose listener is taken already (a box in a box) stops the run" {
	local inner
	inner=${AGENTBOX%/bin/*}
	policy_is <<-END
		nesting: allow
		filesystem: {workspace: none, read: [$inner]}
		syscalls: {allow: [mount, umount2, pivot_root, sethostname, setns, seccomp, fsopen, fsmount, fsconfig, move_mount, open_tree, mount_setattr]}
	END
	box -- "$AGENTBOX" run -- sh -c 'echo inner ran'
	# Whichever way it ends, the inner box is whole or did not run.
	want '.status == "exited" or .error.code == "unsupported"'
	want '.stdout | if contains("inner ran") then (fromjson | .status == "exited" and .enforcement.seccomp != "none") else true end'
}

@test "B50: missing memory, descriptors and processes are errors, not half a box" {
	(ulimit -n 8; box -- touch /tmp/x; [ "$code" = 125 ] || [ "$code" = 0 ]) || return
	code=0
	bash -c 'ulimit -n 12; exec "$0" run -- echo ran' "$AGENTBOX" >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want '.status == "error" and .error.code != null or .stdout == "ran\n"'
	code=0
	bash -c 'ulimit -v 3000; exec "$0" run -- echo ran' "$AGENTBOX" >"$result" 2>"$words" || code=$?
	[ "$code" != 0 ] || jq -e '.stdout == "ran\n"' "$result"
}

@test "B51: without Landlock a run is refused, or best_effort names what is missing" {
	needs seccomp
	policy_is <<<'filesystem: {workspace: write}'
	refused landlock_insufficient -- "$AGENTBOX_PROBES/probe-deny" landlock_create_ruleset=ENOSYS --
	refused landlock_insufficient -- "$AGENTBOX_PROBES/probe-deny" landlock_create_ruleset=EPERM --
	policy_is <<-'END'
		filesystem: {workspace: write}
		best_effort: [landlock]
	END
	code=0
	deny landlock_create_ruleset=ENOSYS -- "$AGENTBOX" run -p "$policy" -- echo ran >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_exit 0 ran
	want '.enforcement.landlock_abi == 0 or .enforcement.landlock_abi == null' '.enforcement.not_enforced | any(contains("landlock"))'
}

@test "B51: a Landlock that fails when it is used stops the run, best effort or not" {
	needs seccomp landlock
	refused landlock_insufficient -- "$AGENTBOX_PROBES/probe-deny" landlock_restrict_self=EPERM --
	want '.error.stage == "landlock"'
	policy_is <<<'best_effort: [landlock]'
	refused landlock_insufficient -- "$AGENTBOX_PROBES/probe-deny" landlock_add_rule=EINVAL --
}

@test "B51: a Landlock too old for the policy is told with what is needed and what was found" {
	needs strace ptrace landlock
	policy_is <<-'END'
		network: host
		filesystem: {workspace: write}
	END
	refused landlock_insufficient -- strace -f -o /dev/null -e trace=landlock_create_ruleset -e inject=landlock_create_ruleset:retval=1
	want '.error.message | test("[0-9]")'
}

@test "a limit that the host refuses is an error with its stage" {
	needs seccomp
	refused limit_refused -- "$AGENTBOX_PROBES/probe-deny" prlimit64=EPERM setrlimit=EPERM --
	want '.error.stage == "limits"'
}

@test "missing grants are named with their line" {
	policy_is <<-'END'
		filesystem:
		  read:
		    - /no/such/place
	END
	box -- true
	want_error grant_not_found
	want '.error.line == 4 and (.error.message | contains("/no/such/place"))'
}

@test "a protected path that does not exist cannot be protected in a written workspace" {
	policy_is <<<'filesystem: {workspace: write, protect: [.mcp.json]}'
	box -- true
	want_error protect_missing
	[ ! -e .mcp.json ]
	policy_is <<<'filesystem: {workspace: read, protect: [.mcp.json]}'
	box -- true
	want_exit 0
}

@test "every system call of the set-up made to fail in turn leaves a clear error and nothing else" {
	needs python3 ptrace
	"$python" "$BATS_TEST_DIRNAME/faults.py" "$AGENTBOX_PROBES" "$AGENTBOX" "$AGENTBOX_RESULTS"
}
