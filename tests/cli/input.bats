# What goes in: policies with mistakes, environment, command line.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

# wrong PLACE WORDS <<POLICY: the policy is refused at LINE:COLUMN, by `run` and by `check`, and the
# message has the words.
wrong() {
	local place=$1 part=$2
	cat >"$policy"
	rm -f mark
	box -- touch mark
	[ ! -e mark ]
	want_error policy_invalid
	want '.error.file | endswith("policy.yaml")' ".error.line == ${place%:*}" ".error.column == ${place#*:}"
	want "(.error.message + \" \" + (.error.hint // \"\")) | contains($(jq -Rn --arg x "$part" '$x'))"
	plain check "$policy"
	want_plain 1 "policy.yaml:$place: "
}

@test "B46: a mistyped key is named with its place and the nearest known key" {
	wrong 2:1 network <<<$'version: 1\nnetwrok: none'
	wrong 2:1 network <<<$'version: 1\nnetwrok: {allow: [a.test]}'
	wrong 3:10 memory <<<$'version: 1\nname: x\nlimits: {memroy: 1MiB}'
	wrong 3:3 workspace <<<$'version: 1\nfilesystem:\n  worksapce: read'
	wrong 2:12 profile <<<$'version: 1\nsyscalls: {profil: default}'
	wrong 3:16 expect <<<$'version: 1\ntests:\n  - {run: [x], expct: {}}'
}

@test "B46: a known key at the wrong level is refused" {
	wrong 2:1 filesystem <<<$'version: 1\nhide: [".env"]'
	wrong 2:1 memory <<<$'version: 1\nmemory: 1MiB'
	wrong 3:3 network <<<$'version: 1\nfilesystem:\n  network: none'
	wrong 3:3 deny <<<$'version: 1\nnetwork:\n  deny: [a.test]'
}

@test "B46: values of a wrong type, form or range are refused where they stand" {
	wrong 2:18 memory <<<$'version: 1\nlimits: {memory: [1]}'
	wrong 2:18 1MB2 <<<$'version: 1\nlimits: {memory: 1MB2}'
	wrong 2:16 wall <<<$'version: 1\nlimits: {wall: -1s}'
	wrong 2:16 wall <<<$'version: 1\nlimits: {wall: soon}'
	wrong 2:16 pids <<<$'version: 1\nlimits: {pids: 1e3}'
	wrong 2:16 pids <<<$'version: 1\nlimits: {pids: 0}'
	wrong 2:16 pids <<<$'version: 1\nlimits: {pids: 99999999999999999999}'
	wrong 2:9 limits <<<$'version: 1\nlimits: lots'
	wrong 2:10 network <<<$'version: 1\nnetwork: on'
	wrong 2:10 nesting <<<$'version: 1\nnesting: yes'
	wrong 2:25 workspace <<<$'version: 1\nfilesystem: {workspace: wirte}'
	wrong 2:20 frobnicate <<<$'version: 1\nsyscalls: {allow: [frobnicate]}'
	wrong 2:15 best_effort <<<$'version: 1\nbest_effort: [everything]'
	wrong 2:20 syscalls <<<$'version: 1\nsyscalls: {allow: [[read]]}'
}

@test "B46: the version is asked for, and only the known one is taken" {
	wrong 1:1 version <<<'name: x'
	wrong 1:10 version <<<'version: 2'
	wrong 1:10 version <<<'version: one'
	: >empty.yaml
	plain check empty.yaml
	want_plain 1 empty.yaml:1 version
}

@test "B47: doubled keys are named with both lines" {
	wrong 4:1 2 <<<$'version: 1\nnetwork: none\nname: x\nnetwork: host'
	wrong 4:3 3 <<<$'version: 1\nlimits:\n  pids: 3\n  pids: 4'
}

@test "B47: tabs, anchors, aliases, merge keys, tags and second documents are refused" {
	want_refused() {
		printf '%b' "$1" >"$policy"
		box -- true
		want_error policy_invalid
		want '.error.line >= 1' '.error.column >= 1'
	}
	want_refused 'version: 1\nlimits:\n\tpids: 3\n'
	want_refused 'version: 1\nname: &a x\ndescription: *a\n'
	want_refused 'version: 1\nname: *nothing\n'
	want_refused 'version: 1\nname: &a [*a]\n'
	want_refused 'version: 1\nlimits: {<<: {pids: 3}}\n'
	want_refused 'version: 1\nname: !!python/object x\n'
	want_refused 'version: 1\n---\nversion: 1\n'
	want_refused 'version: 1\nname: [x\n'
	want_refused 'version: 1\nname: "x\n'
	want_refused '- version\n'
	want_refused 'version: 1\nname: "a\\0b"\n'
	want_refused 'version: 1\nname: \xff\xfe\n'
	want_refused 'version: 1\nname: a\x00b\n'
	want_refused '%YAML 3.0\n---\nversion: 1\n'
}

@test "B47: bombs of aliases, nesting, size and number are refused at once and in little memory" {
	needs python3
	"$python" - <<-'END'
		levels = ["version: 1", "a: &a [x,x,x,x,x,x,x,x,x,x]"]
		for i in range(1, 9):
		    c, d = chr(96 + i), chr(97 + i)
		    levels.append("%s: &%s [%s]" % (d, d, ",".join(["*" + c] * 10)))
		open("laughs.yaml", "w").write("\n".join(levels) + "\n")
		open("deep.yaml", "w").write("version: 1\nname: " + "[" * 10000 + "]" * 10000 + "\n")
		open("deepmap.yaml", "w").write("version: 1\nname: " + "{a: " * 10000 + "}" * 10000 + "\n")
		open("many.yaml", "w").write("version: 1\nfilesystem: {read: [" + "/usr," * 100000 + "]}\n")
		open("keys.yaml", "w").write("version: 1\nenv: {set: {" + ",".join("A%d: x" % i for i in range(90000)) + "}}\n")
		with open("huge.yaml", "w") as f:
		    f.write("version: 1\nname: ")
		    for _ in range(100):
		        f.write("x" * (1 << 20))
		open("long.yaml", "w").write("version: 1\ndescription: " + "x" * 900000 + "\n")
	END
	local file
	for file in laughs deep deepmap many keys huge long; do
		"$python" - "$AGENTBOX" run -p "./$file.yaml" -- true >"$result" 2>"$top/cost" <<-'END' || code=$?
			import resource, subprocess, sys, time
			start = time.monotonic()
			status = subprocess.call(sys.argv[1:], stderr=subprocess.DEVNULL)
			took = time.monotonic() - start
			used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
			print("%s: %d ms, %d KiB" % (sys.argv[3], took * 1000, used), file=sys.stderr)
			sys.exit(status if took < 2 and used < 50 << 10 else 99)
		END
		: >"$words"
		keep_result "$result"
		cat "$top/cost"
		want_error policy_invalid policy_unreadable
	done
}

@test "a policy that is not there or cannot be read has a code of its own" {
	box -p missing.yaml -- true
	want_error policy_not_found
	box -p nosuchname -- true
	want_error policy_not_found
	want_hint
	mkdir dir.yaml
	box -p ./dir.yaml -- true
	want_error policy_unreadable policy_invalid
	box -p ./dir.yaml/x -- true
	want_error policy_not_found policy_unreadable
	mkfifo pipe.yaml
	timeout 10 "$AGENTBOX" run -p ./pipe.yaml -- true >"$result" 2>"$words" || code=$?
	keep_result "$result"
	want_error policy_unreadable
}

@test "extends: loops, missing parents and too deep chains are refused with the place" {
	printf 'version: 1\nextends: [./b.yaml]\n' >a.yaml
	printf 'version: 1\nextends: [./a.yaml]\n' >b.yaml
	box -p ./a.yaml -- true
	want_error policy_invalid
	want '.error.line == 2'
	printf 'version: 1\nextends: [./nothere.yaml]\n' >a.yaml
	box -p ./a.yaml -- true
	want_error policy_not_found policy_invalid
	local i
	for i in $(seq 12); do
		printf 'version: 1\nextends: [./c%d.yaml]\n' $((i + 1)) >"c$i.yaml"
	done
	echo 'version: 1' >c13.yaml
	box -p ./c1.yaml -- true
	want_error policy_invalid
	want '.error.message | contains("8")'
}

@test "extends and later -p: lists append, maps merge, scalars are replaced" {
	printf 'version: 1\nname: base\nlimits: {pids: 30, open_files: 64}\nenv: {set: {A: base, B: base}}\n' >base.yaml
	printf 'version: 1\nextends: [./base.yaml]\nlimits: {open_files: 65}\nenv: {set: {B: child}}\n' >child.yaml
	printf 'version: 1\nenv: {set: {C: later}}\n' >later.yaml
	box -p ./child.yaml -p ./later.yaml --open-files 66 -- sh -c 'echo $A $B $C; ulimit -n'
	want_exit 0 $'base child later\n66'
	plain show child.yaml
	want_plain 0 'pids: 30' base.yaml:3 'open_files: 65' child.yaml:3
	plain show --json child.yaml
	want_plain 0
	echo "$output" | jq -e '.. | objects | select(has("pids")) | .pids | tostring | contains("30")'
}

@test "a policy in the workspace is read only when it is named" {
	printf 'version: 1\nnetwork: host\nenv: {set: {FOUND: it}}\n' | tee default.yaml .agentbox.yaml agentbox.yaml >/dev/null
	box -- sh -c 'echo "[$FOUND]"'
	want_exit 0 '[]'
	want '.enforcement.network == "none"'
}

@test "named policies come from XDG_CONFIG_HOME first" {
	mkdir -p "$top/config/agentbox/policies"
	printf 'version: 1\nenv: {set: {FOUND: mine}}\n' >"$top/config/agentbox/policies/special.yaml"
	XDG_CONFIG_HOME=$top/config box -p special -- sh -c 'echo $FOUND'
	want_exit 0 mine
	want '.policy.name == "special"' ".policy.sources | any(contains(\"special.yaml\"))"
}

@test "B52: of the environment only the listed names pass" {
	export API_KEY=k SSH_AUTH_SOCK=/x GIT_ASKPASS=z BASH_ENV=/q MYVAR=1 LC_TIME=C TZ=UTC TERM=dumb PYTHONPATH=/p
	box -- env -0
	want '.stdout | split("\u0000") | map(select(. != "") | split("=")[0])
		| . - ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TERM", "TMPDIR"] | map(select(test("^(LC_|AGENTBOX)") | not)) == []'
	want '.stdout | split("\u0000") | index("TZ=UTC") != null and index("TERM=dumb") != null and index("LC_TIME=C") != null'
	policy_is <<<'env: {pass: [MYVAR], set: {FIXED: "a b"}}'
	box -e API_KEY -e GIVEN='x=y' -- env -0
	want '.stdout | split("\u0000") | index("MYVAR=1") != null and index("FIXED=a b") != null and index("API_KEY=k") != null and index("GIVEN=x=y") != null'
	want '.stdout | contains("SSH_AUTH_SOCK") | not'
}

@test "B52: exported functions and odd names never pass" {
	needs python3
	evil() { :; }
	export -f evil
	box -- env
	want '.stdout | contains("BASH_FUNC") or contains("evil") | not'
	policy_is <<<'env: {pass: ["BASH_FUNC_evil%%"]}'
	box -- env
	want_error policy_invalid
	policy_is <<<'env: {set: {"A=B": x}}'
	box -- env
	want_error policy_invalid
	rm "$policy"
	box -e '=x' -- true
	want_error usage
	box -e 'A B=x' -- env
	want_error usage
}

@test "LD_PRELOAD and other loader variables of the caller have no effect inside" {
	policy_is <<<'name: x'
	LD_PRELOAD=/nonexistent-preload.so LD_LIBRARY_PATH=/nowhere box -- sh -c 'echo "[$LD_PRELOAD$LD_LIBRARY_PATH]"'
	want_exit 0 '[]'
	want '.stderr == ""'
}

@test "arguments pass as they are: empty, spaces, newlines, many, dashes after --" {
	box -- printf '[%s]' '' 'a b' $'c\nd' -- --help '*' '~'
	want_exit 0 $'[][a b][c\nd][--][--help][*][~]'
	box printf '[%s]' --wall -p
	want_exit 0 '[--wall][-p]'
	local many=()
	mapfile -t many < <(seq 20000)
	box -- sh -c 'echo $#' x "${many[@]}"
	want_exit 0 20000
}

@test "mistakes on the command line are told in the result too, and nothing runs" {
	local args
	for args in '' '--nonsense -- touch mark' '--wall -- touch mark' '--wall soon -- touch mark' '--wall 0s -- touch mark' \
		'-p' '--lang python' '--code x' '--result-fd x -- touch mark' '--result-fd 77 -- touch mark' '--tty -- touch mark' '-- '; do
		# shellcheck disable=SC2086
		box $args
		want '.status == "error" and .exit_code == null' '.error.code | IN("usage", "policy_invalid", "result_unwritable")'
		[ "$code" = 125 ] || fail "$args: $code"
		[ ! -e mark ]
	done
	box --walll 3s -- true
	want_error usage
	want '.error.message + (.error.hint // "") | contains("--wall")'
}

@test "other commands answer 2 for a mistake on the command line, and 0 for --help" {
	local command
	plain
	want_plain 2
	plain nosuchcommand
	want_plain 2 nosuchcommand
	for command in run check show explain test doctor; do
		plain "$command" --help
		want_plain 0 "agentbox $command"
		[ -z "$(printf '%s\n' "$output" | awk 'length > 80')" ] || fail "$command --help is wider than 80 columns"
		"$AGENTBOX" "$command" --help 2>/dev/null | grep -q . || fail "$command --help is not on stdout"
		[ "$command" = run ] && continue
		plain "$command" --nonsense
		want_plain 2
	done
	plain --version
	want_plain 0 agentbox
}

@test "check, show and explain of a good policy answer 0, of a bad one 1" {
	policy_is <<-'END'
		network: {allow: [pypi.org]}
		limits: {memory: 1GiB}
	END
	local command
	for command in check show explain; do
		plain "$command" "$policy"
		want_plain 0
	done
	policy_is <<<'netwrok: none'
	for command in check show explain; do
		plain "$command" "$policy"
		[ "$code" = 1 ] || [ "$command" != check ] || fail "check: $code"
		[ "$code" != 0 ] || fail "$command: 0"
		[[ $output == *policy.yaml:2:1* ]] || fail "$command: $output"
	done
}

@test "check names every policy's mistake, and 1 is its answer when one of many is wrong" {
	printf 'version: 1\n' >good.yaml
	printf 'version: 1\nnope: 1\n' >bad.yaml
	plain check good.yaml bad.yaml
	want_plain 1 'bad.yaml:2:1'
	plain check bad.yaml good.yaml
	want_plain 1
	plain check good.yaml
	want_plain 0
}

@test "explain answers for a path, a host and a system call, with the line that decides" {
	policy_is <<-END
		filesystem: {workspace: none, read: [$top], hide: [.env]}
		network: none
	END
	echo x >"$top/.env"
	plain explain --path "$top/words" "$policy"
	want_plain 0 policy.yaml:2
	plain explain --path "$top/.env" "$policy"
	want_plain 1 policy.yaml:2
	plain explain --path /etc/shadow "$policy"
	want_plain 1
	plain explain --host evil.test:443 "$policy"
	want_plain 1
	plain explain --syscall openat "$policy"
	want_plain 0
	plain explain --syscall mount "$policy"
	want_plain 1
}

@test "--dry-run prints the plan and runs nothing" {
	code=0
	output=$("$AGENTBOX" run --dry-run -- touch "$work/mark") || code=$?
	want_plain 0
	[ ! -e mark ]
	printf '%s' "$output" | jq -e 'type == "object"' >/dev/null
}

@test "--pretty prints the same result on many lines" {
	code=0
	"$AGENTBOX" run --pretty -- echo hi >"$result" || code=$?
	[ "$code" = 0 ]
	[ "$(wc -l <"$result")" -gt 10 ]
	jq -e '.stdout == "hi\n" and .status == "exited"' "$result"
	jq -c . "$result" >>"$AGENTBOX_RESULTS"
}

@test "what this version cannot enforce is refused with the key and the line" {
	local text
	for text in 'audit: {trace: [exec]}' 'audit: {log: ~/log}' \
		'tools: {t: {command: [/bin/true]}}' 'secrets: {S: {env: S}}'; do
		policy_is <<<"$text"
		box -- touch "$work/mark"
		want_error unsupported
		want '.error.line == 2' '.error.file | endswith("policy.yaml")'
		want "(.error.message + (.error.hint // \"\")) | contains(\"${text%%:*}\")"
	done
}

@test "best_effort lets a missing control group pass, and the result says what is not enforced" {
	policy_is <<-'END'
		limits: {memory: 64MiB, cpu: 10s, cpus: 1}
		best_effort: [cgroup]
	END
	box -- echo ran
	want_exit 0 ran
	if has cgroup; then
		want_group
	else
		want '.enforcement.cgroup == "none"' \
			'.enforcement.not_enforced | sort == ["limits.cpu", "limits.cpus", "limits.memory"]'
	fi
}

@test "check -v notes what run refuses in this version, and check alone is silent" {
	policy_is <<-'END'
		network: {allow: [pypi.org], publish: [8080]}
		limits: {memory: 1GiB, cpu: 1s, cpus: 1.5, pids: 20}
		audit: {log: log}
	END
	plain check -v "$policy"
	want_plain 0 'policy.yaml: valid' 'refuses audit.log in this version' 'policy.yaml:4)'
	[[ $output != *limits* && $output != *network* ]]
	plain check "$policy"
	want_plain 0
	[ -z "$output" ]
	policy_is <<<'limits: {memory: 1GiB}'
	plain check -v "$policy"
	want_plain 0 valid
	[[ $output != *refuses* ]]
}

@test "a host may be a map: shown as it stands, explained with what it lets go" {
	policy_is <<-'END'
		network:
		  allow:
		    - a.test
		    - {host: "*.b.test:443", any_name: true}
	END
	plain check "$policy"
	want_plain 0
	plain show "$policy"
	want_plain 0 '- {host: "*.b.test:443", any_name: true}  #' 'policy.yaml:5'
	plain show --json "$policy"
	jq -e '.policy.network.allow == ["a.test", {host: "*.b.test:443", any_name: true}]' <<<"$output"
	plain explain "$policy"
	want_plain 0 'Network: only what is listed' '*.b.test:443 port 443 for any name'
	plain explain --host x.b.test --host a.test "$policy"
	want_plain 0 'allowed: x.b.test' 'policy.yaml:5)' 'allowed: a.test' 'policy.yaml:4)'
	plain explain --host b.test "$policy"
	want_plain 1 'denied: b.test' 'not listed'
	policy_is <<<'network: {allow: [{host: 10.0.0.0/8, any_name: true}]}'
	plain check "$policy"
	want_plain 1 'policy.yaml:2:38' 'switches nothing off for an address'
	policy_is <<<'network: {allow: [{host: "host.internal:80", any_name: true}]}'
	plain check "$policy"
	want_plain 1 'policy.yaml:2:' 'switches nothing off for host.internal'
}

@test "a loopback address is no entry of an allow-list, and the message names host.internal" {
	local address
	for address in 127.0.0.1:5432 127.0.0.0/8 0.0.0.0 '"[::1]:80"' '"[::]"'; do
		policy_is <<<"network: {allow: [$address]}"
		plain check "$policy"
		want_plain 1 'policy.yaml:2:19' host.internal:PORT
	done
	policy_is <<<'network: {allow: [0.0.0.0/0, "[::/0]"]}'
	plain check "$policy"
	want_plain 0
	plain explain --host 192.0.2.1 "$policy"
	want_plain 0
	for address in 127.0.0.1 0.0.0.0 '[::1]' '[::ffff:127.0.0.1]' host.internal; do
		plain explain --host "$address:443" "$policy"
		want_plain 1 "denied: $address:443"
	done
}

@test "published ports are checked, shown and explained" {
	policy_is <<-'END'
		network:
		  publish: [8080, "9000:3000"]
	END
	plain check "$policy"
	want_plain 0
	plain show "$policy"
	want_plain 0 '- 8080  #' '- "9000:3000"  #'
	plain show --json "$policy"
	jq -e '.policy.network == {publish: [8080, "9000:3000"]}' <<<"$output"
	plain explain "$policy"
	want_plain 0 "port 8080 at the host's 127.0.0.1:(any free port)" \
		"port 3000 at the host's 127.0.0.1:9000"
	plain explain --host a.test "$policy"
	want_plain 1 'denied: a.test: network.allow: not listed'
	policy_is <<<'network: {publish: [80, "90:80"]}'
	plain check "$policy"
	want_plain 1 'policy.yaml:2:25' 'port 80 of the box is published a second time'
	policy_is <<<'network: {publish: [0]}'
	plain check "$policy"
	want_plain 1 'policy.yaml:2:21' 'from 1 to 65535'
}

# hint WORDS COMMAND...: the command cannot be started, and the hint has the words.
hint() {
	local part=$1
	shift
	box "$@"
	want '.status == "error"'
	want "(.error.hint // \"\") | contains($(jq -Rn --arg x "$part" '$x'))"
	grep -qF -- "$part" "$words" || fail "not on stderr: $part"
}

@test "a command that cannot be started says what was probably meant" {
	echo 'print(1)' >sum.py
	printf '#!/bin/sh\n' >run.sh
	chmod +x run.sh
	mkdir dir
	hint 'leave out the quotes, or use sh -c' -- 'ls -l'
	hint "the shell's own: sh -c 'cd ...'" -- cd dir
	hint 'write ./sum.py' -- sum.py
	hint 'write ./run.sh' -- run.sh
	hint 'chmod +x ./sum.py' -- ./sum.py
	hint 'PATH in the box, set by -e, is /nowhere' -e PATH=/nowhere -- ls
	local name
	for name in . .. ./dir "$work" /usr /tmp; do
		box -- "$name"
		want_error not_executable
		want ".error.message == \"'$name' is a directory\"" '.error.hint | contains("chmod") | not'
	done
	mkdir "$top/bin"
	cp run.sh "$top/bin/own-tool"
	PATH=$PATH:$top/bin hint "on the host it is $top/bin/own-tool" -- own-tool
	hint 'on the host, but not granted' -- "$top/bin/own-tool"
	policy_is <<<'env: {set: {PATH: /nowhere}}'
	hint "policy.yaml:2, is /nowhere" -- ls
}

@test "no chmod is proposed for a file that is not the caller's, or not part of the work" {
	local file
	for file in /usr/include/*.h /usr/share/*/* /usr/lib/*/*; do
		[ ! -f "$file" ] || [ -x "$file" ] || [ -L "$file" ] || break
	done
	[ -f "$file" ] || skip "no plain file below /usr"
	box -- "$file"
	want_error not_executable
	want '.error.hint | contains("interpreter") and (contains("chmod") | not)'
}

@test "a workspace that is not shown is told on stderr without a terminal, unless -q" {
	cd /
	box -- true
	want '.warnings | any(.code == "workspace_skipped")'
	grep -q 'warning: .*is not shown; -C DIR' "$words"
	[ "$(wc -l <"$words")" = 1 ]
	box -q -- true
	[ ! -s "$words" ]
	# With an error, which the missing workspace may be the reason of.
	box -- ./script
	[ "$(grep -c 'is not shown' "$words")" = 1 ]
	cd "$work"
	box -- true
	[ ! -s "$words" ]
}

@test "names of policies, options and pages that lead nowhere have a hint" {
	hint "did you mean 'python'?" -p pyton -- true
	hint 'names are lower-case: python' -p Python -- true
	hint '-p python -p build' -p python,build -- true
	hint 'by its name alone: -p python' -p python.yaml -- true
	hint 'counts from the current directory' -p ./nope.yaml -- true
	hint 'did you mean --wall?' --timeout 5s -- true
	plain help policy
	want_plain 2 'man agentbox-policy'
	local command
	for command in explain check show test; do
		plain "$command" -p work.yaml
		want_plain 2 "agentbox $command work.yaml"
	done
}

@test "B37: names that are not ASCII count in their ASCII form, also in the examples of a policy" {
	needs idn
	policy_is <<-'END'
		network: {allow: [bücher.test, "*.Bücher.TEST:8443", аllowed.test, faß.test., 日本語。test:22, allowed.test]}
		tests: [{host: "bücher.test:443", expect: allowed}]
	END
	plain show --json "$policy"
	[ "$(jq -c .policy.network.allow <<<"$output")" = '["xn--bcher-kva.test","*.xn--bcher-kva.test:8443","xn--llowed-2nf.test","xn--fa-hia.test","xn--wgv71a119e.test:22","allowed.test"]' ] || fail "$output"
	plain check "$policy"
	want_plain 0
	# The look-alike of a listed name is another name.
	policy_is <<<'network: {allow: [аllowed.test]}'
	plain explain "$policy" --host allowed.test:443
	want_plain 1 denied
	plain explain "$policy" --host xn--llowed-2nf.test:443
	want_plain 0 allowed
}

@test "B37: what has no ASCII form is an error with its place, and no other name is made of it" {
	needs idn
	local name
	for name in '☃.test' 'b ü.test' 'bü*cher.test' 'ü_a.test' 'a℀ü.test' 'a／ü.test' 'a≠b.test' 'ü..test' '.ü' '*ü.test' '-ü.test' \
		'１２７.0.0.1' 'ü.0x7f' 'ü.1' 'ü/a' 'üa..' '1א.test' "$(printf 'ü%.0s' {1..70})" "$(printf 'ü.%.0s' {1..200})a"; do
		wrong 2:19 xn-- <<<$'version: 1\nnetwork: {allow: ["'"$name"'"]}'
	done
	wrong 2:19 port <<<$'version: 1\nnetwork: {allow: ["ü.test:0"]}'
	wrong 2:16 xn-- <<<$'version: 1\ntests: [{host: "☃.test:443", expect: denied}]'
	{
		printf 'version: 1\nnetwork:\n  allow:\n' && printf -- '  - ü%d.test\n' {1..65}
	} >"$top/many"
	wrong 68:5 'too many' <"$top/many"
}
