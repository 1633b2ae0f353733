# Real work: the tools that people run all day.
# shellcheck shell=bash disable=SC2154,SC2016
load helpers

write_workspace() {
	policy_is <<-'END'
		filesystem: {workspace: write}
	END
}

@test "python3 runs threads, processes, asyncio and sqlite" {
	needs python3
	cat >all.py <<-'END'
		import asyncio, concurrent.futures as f, os, sqlite3, subprocess, tempfile
		def square(n):
		    return n * n
		if __name__ == "__main__":
		    with f.ThreadPoolExecutor(4) as pool:
		        print("threads", sum(pool.map(square, range(10))))
		    with f.ProcessPoolExecutor(2) as pool:
		        print("processes", sum(pool.map(square, range(10))))
		    async def both():
		        child = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
		        return (await child.communicate())[0].decode().strip()
		    print("asyncio", asyncio.run(both()))
		    with tempfile.TemporaryDirectory() as place:
		        db = sqlite3.connect(os.path.join(place, "t.db"))
		        db.execute("pragma journal_mode=wal")
		        db.execute("create table t(x)")
		        db.executemany("insert into t values(?)", [(i,) for i in range(5)])
		        db.commit()
		        print("sqlite", db.execute("select sum(x) from t").fetchone()[0])
		    print("shell", subprocess.run("echo a | tr a b", shell=True, capture_output=True, text=True).stdout.strip())
	END
	box -- python3 all.py
	want_exit 0 $'threads 285\nprocesses 285\nasyncio child\nsqlite 10\nshell b'
	want '.violations == []' '.stderr == ""'
}

@test "node runs a script with workers, timers and child processes" {
	needs node
	cat >all.js <<-'END'
		const { Worker, isMainThread, parentPort } = require("worker_threads");
		if (!isMainThread) { parentPort.postMessage(40 + 2); return; }
		const { execFileSync } = require("child_process");
		const fs = require("fs");
		fs.writeFileSync("/tmp/x", "file");
		new Worker(__filename).on("message", (n) => {
			console.log(n, fs.readFileSync("/tmp/x", "utf8"), execFileSync("echo", ["child"]).toString().trim());
		});
	END
	box -- node all.js
	want_exit 0 '42 file child'
	want '.violations == []'
}

@test "npm starts and finds its cache and its home" {
	needs npm
	box -- npm --version
	want_exit 0
	want '.stdout | test("^[0-9]+\\.[0-9]+\\.[0-9]+\n$")'
}

@test "gcc and make build and run a program in the workspace" {
	needs gcc make
	write_workspace
	printf '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n' >main.c
	printf 'prog: main.c\n\t$(CC) -O1 -o $@ $<\n' >Makefile
	box -- sh -c 'make -s && ./prog'
	want_exit 0 built
	[ -x prog ]
	want '.violations == []'
}

@test "cmake configures and builds a project in the workspace" {
	needs cmake gcc make
	write_workspace
	printf 'int answer(void); int main(void) { return answer() - 42; }\n' >main.c
	printf 'int answer(void); int answer(void) { return 42; }\n' >lib.c
	cat >CMakeLists.txt <<-'END'
		cmake_minimum_required(VERSION 3.16)
		project(small C)
		add_library(answer STATIC lib.c)
		add_executable(main main.c)
		target_link_libraries(main answer)
	END
	box -- sh -c 'cmake -B build . >/dev/null && cmake --build build -j2 >/dev/null && build/main && echo ok'
	want_exit 0 ok
}

@test "git makes a repository, commits and shows its log" {
	needs git
	write_workspace
	box -e GIT_AUTHOR_NAME=a -e GIT_AUTHOR_EMAIL=a@b -e GIT_COMMITTER_NAME=a -e GIT_COMMITTER_EMAIL=a@b -- \
		sh -c 'git init -q . && echo x >f && git add f && git commit -qm first && git mv f g && git commit -qm second && git log --format=%s && git status --short'
	want_exit 0 $'second\nfirst'
	[ "$(git log --format=%s | head -n 1)" = second ]
}

@test "perl forks, pipes and prints" {
	needs perl
	box -- perl -e 'my $pid = open(my $in, "-|") // die; if (!$pid) { print "child\n"; exit 0 } print "got ", <$in>;'
	want_exit 0 'got child'
}

@test "strace traces a child inside the box" {
	needs strace
	box -- strace -f -e trace=openat -o /tmp/trace sh -c 'cat /etc/hostname >/dev/null; exit 3'
	want_exit 3 ''
	box -- sh -c 'strace -o /tmp/trace true; grep -c execve /tmp/trace'
	want_exit 0 1
}

@test "script makes a terminal inside the box" {
	needs script
	box -- script -qec 'tty; test -t 0 && echo terminal' /dev/null
	want_exit 0
	want '.stdout | test("/dev/pts/[0-9]+\r?\nterminal\r?\n")'
}

@test "compilers and archives: tar, gzip, find, xargs, sort, sed and awk in a pipeline" {
	write_workspace
	box -- sh -c 'mkdir d; for i in 3 1 2; do echo $i >d/$i; done; tar czf d.tgz d; rm -r d; tar xzf d.tgz; find d -type f | xargs cat | sort | sed s/^/n/ | awk "{print NR, \$0}"'
	want_exit 0 $'1 n1\n2 n2\n3 n3'
}

@test "--lang runs a snippet of a language that the policy names, from text and from stdin" {
	needs python3
	box --lang python --code 'import sys; print(6 * 7); sys.exit(5)'
	want_exit 5 42
	box --lang python --code - < <(echo 'print("from stdin")')
	want_exit 0 'from stdin'
	box --lang python --code 'import sys; print(sys.argv[1:])' -- one two
	want_exit 0 "['one', 'two']"
	policy_is <<-'END'
		code: {shout: {command: [sh, "{file}"], suffix: .sh}}
	END
	box --lang shout --code 'echo "$0" | grep -q "\.sh$" && echo yes'
	want_exit 0 yes
}

@test "--lang with a language that the policy does not name says which there are" {
	box --lang klingon --code x
	want '.status == "error"' '.error.message | test("klingon")'
	[ "$code" = 125 ]
}

@test "every shipped policy passes the examples that it carries" {
	local dir file count=0
	dir=${AGENTBOX%/bin/agentbox}/share/agentbox/policies
	for file in "$dir"/*.yaml; do
		[ -e "$file" ] || fail "no policies in $dir"
		plain check "$file"
		want_plain 0
		grep -q '^tests:' "$file" || fail "$file carries no examples"
		plain test "$file"
		want_plain 0
		count=$((count + 1))
	done
	[ "$count" -ge 2 ]
}

@test "agentbox test answers 1 when an example does not hold, and names it" {
	policy_is <<-'END'
		tests:
		  - {run: [sh, -c, "echo one"], expect: {stdout: "one\n", exit_code: 0}}
		  - {run: ["false"], expect: {exit_code: 0}}
		  - {syscall: mount, expect: denied}
		  - {path: /etc/passwd, access: write, expect: denied}
	END
	plain test "$policy"
	want_plain 1 'policy.yaml:4'
	policy_is <<-'END'
		tests:
		  - {run: [cat, /etc/shadow], expect: {exit_code: 1}}
		  - {host: "evil.test:443", expect: denied}
	END
	plain test "$policy"
	want_plain 0
}

@test "the README's examples print what the README shows" {
	needs python3
	[ -n "${AGENTBOX_README-}" ] || skip "AGENTBOX_README is not set"
	PATH=${AGENTBOX%/*}:$PATH "$python" "${BATS_TEST_DIRNAME}/readme.py" "$AGENTBOX_README"
}
