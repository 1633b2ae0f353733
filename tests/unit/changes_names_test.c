/* changes_names_test: which names are sensitive or held, and which links lead out. */
#define _GNU_SOURCE
#include "layer_trees.h"

static void test_names(void)
{
	static const char *const yes[] = { ".claude/settings.json", ".vscode/tasks.json",
		".husky/_/pre-commit", ".git/hooks/post-checkout", ".envrc", ".git/config",
		".git/config.worktree", ".git/info/attributes", ".git/modules/a/b/config",
		".git/modules/a/hooks/post-merge", ".git/worktrees/w/config.worktree",
		".git/worktrees/w/commondir", ".git/rebase-merge/git-rebase-todo", ".gitmodules",
		".gitattributes", "deep/er/.gitattributes", "sub/.git/hooks/x/y", "bare.git/config",
		"HEAD", "docs/fixture/HEAD", "bare.git/hooks/post-receive", "scripts/pre-push",
		".GIT/Hooks/pre-commit", ".Git/CONFIG", ".bashrc", "home/.zshenv", ".profile",
		".config/fish/config.fish", ".direnv/x", ".idea/workspace.xml", "x.code-workspace",
		"a/b.sublime-project", ".vimrc", ".exrc", ".nvim.lua", ".dir-locals.el",
		".mcp.json", ".cursor/mcp.json", ".codex/config.toml", ".gemini/settings.json",
		".aider.conf.yml", ".continue/config.json", ".github/workflows/ci.yml",
		".github/actions/a/action.yml", ".gitlab-ci.yml", ".circleci/config.yml",
		"Jenkinsfile", ".travis.yml", "azure-pipelines.yml", ".drone.yml",
		".buildkite/pipeline.yml", "bitbucket-pipelines.yml", ".pre-commit-config.yaml",
		"lefthook.yml", ".lefthook/pre-push/x", ".npmrc", ".yarnrc", ".yarnrc.yml",
		".pnpmfile.cjs", "lib/sitecustomize.py", "usercustomize.py",
		"v/lib/python3.11/site-packages/evil.pth", ".pypirc", ".devcontainer/Dockerfile",
		".tool-versions", ".mise.toml", "mise.toml", ".ssh/authorized_keys",
		".gnupg/gpg.conf", ".config/autostart/x.desktop", ".config/systemd/user/x.service",
		"x.desktop", ".gdbinit", ".lldbinit", ".Rprofile", ".irbrc", ".pryrc", ".inputrc",
		".netrc", ".curlrc", ".wgetrc", ".gitconfig", ".config/git/config" };
	static const char *const no[] = { "Makefile", "src/main.c", "package.json", ".env",
		".editorconfig", "README.md", "CLAUDE.md", "AGENTS.md", ".gitignore", ".git",
		".git/HEAD", "sub/.git/HEAD", "bare.git/HEAD", ".git/index", ".git/logs/HEAD",
		".git/refs/heads/main", ".git/objects/ab/cdef", ".git/objects/pack/pack-1.pack",
		".git/COMMIT_EDITMSG", ".git/ORIG_HEAD", ".git/packed-refs", ".git/info/exclude",
		".git/worktrees/w/HEAD", ".git/worktrees/w/index", ".git/modules/a/HEAD",
		".git/refs/heads/config", ".git/refs/heads/hooks/x", "config", "hooks/useThing.ts",
		"src/hooks/index.ts", ".github/CODEOWNERS", "x.pth", "git/hooks/x", "bashrc",
		".bashrc.d", "envrc", "vscode/tasks.json", ".vscodex/tasks.json", "pre-commit.md",
		"" };
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
		if (!changes_sensitive(yes[i], NULL))
			CHECK_TEXT(yes[i], "sensitive");
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
		if (changes_sensitive(no[i], NULL))
			CHECK_TEXT(no[i], "not sensitive");
}

static void test_extra(void)
{
	static const char *const extra[] = { "*.sh", "deploy/**/run", "ops", NULL };
	CHECK(changes_sensitive("a/b.sh", extra));
	CHECK(changes_sensitive("a/B.SH", extra));
	CHECK(changes_sensitive("deploy/run", extra));
	CHECK(changes_sensitive("deploy/a/b/run", extra));
	CHECK(!changes_sensitive("x/deploy/run", extra));
	CHECK(changes_sensitive("ops/what/ever", extra));
	CHECK(changes_sensitive("in/ops", extra));
	CHECK(!changes_sensitive("a/b.shx", extra));
	CHECK(changes_sensitive(".envrc", extra));
	/* Of a pattern that is longer than any the beginning counts: rather too much than less. */
	char pattern[400] = "a", path[400] = "a";
	for (int i = 0; i < 90; i++) {
		strcat(pattern, "/a");
		strcat(path, "/a");
	}
	const char *const longer[] = { pattern, NULL };
	CHECK(changes_sensitive(path, longer));
	CHECK(!changes_sensitive("a/a/a", longer));
	char name[300];
	memset(name, 'x', sizeof name - 4);
	memcpy(name + sizeof name - 4, ".sh", 4);
	CHECK(!changes_sensitive(name, extra));
}

/* A command's answer to a fixed list: everything in a layer, and what is marked. */
static void test_layer(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper;
	put_dir(up, ".claude");
	put_file(up, ".claude/settings.json", 0644, "x");
	put_file(up, ".envrc", 0644, "x");
	put_dir(up, ".git");
	put_dir(up, ".git/hooks");
	put_file(up, ".git/hooks/post-checkout", 0644, "x");
	put_file(up, ".git/index", 0644, "x");
	put_dir(up, ".husky");
	put_dir(up, ".husky/_");
	put_file(up, ".husky/_/pre-commit", 0644, "x");
	put_file(up, "Makefile", 0644, "x");
	CHECK_CHANGES(&t, "C .claude/755\n"
			  "C .claude/settings.json 644 1 sensitive\n"
			  "C .envrc 644 1 sensitive\n"
			  "C .git/755\n"
			  "C .git/hooks/755\n"
			  "C .git/hooks/post-checkout 644 1 sensitive\n"
			  "C .git/index 644 1\n"
			  "C .husky/755\n"
			  "C .husky/_/755 sensitive\n"
			  "C .husky/_/pre-commit 644 1 sensitive\n"
			  "C Makefile 644 1\n");
	trees_remove(&t);
}

/* A link or file in the place of a directory on the way to a sensitive one, and the other way. */
static void test_prefixes(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper, low = t.layer.lower;
	put_dir(up, "a");
	put_link(up, "a/.vscode", "elsewhere");
	put_dir(up, "b");
	put_file(up, "b/.git", 0644, "gitdir: x");
	put_dir(up, "c");
	put_dir(up, "c/.GIT");
	put_link(up, "c/.GIT/hooks", "../evil");
	put_dir(up, "c/.GIT/modules");
	put_link(up, "c/.GIT/modules/m", "../evil");
	put_file(up, "c/.GIT/modules/n", 0644, "");
	put_dir(low, "d");
	put_link(low, "d/.vscode", "was");
	put_dir(up, "d");
	put_dir(up, "d/.vscode");
	put_dir(low, "e");
	put_dir(low, "e/.git");
	put_dir(low, "e/.git/hooks");
	put_dir(low, "e/.git/objects");
	put_dir(up, "e");
	put_whiteout(up, "e/.git");
	put_dir(low, "f");
	put_file(low, "f/.bashrc", 0644, "");
	put_dir(up, "f");
	put_whiteout(up, "f/.bashrc");
	put_dir(up, "g");
	put_dir(up, "g/pre-commit");
	put_file(up, "g/pre-commit/main.py", 0644, "");
	put_link(up, "g/post-commit", "x");
	CHECK_CHANGES(&t, "C a/755\n"
			  "C a/.vscode@777 -> elsewhere sensitive\n"
			  "C b/755\n"
			  "C b/.git 644 9 sensitive\n"
			  "C c/755\n"
			  "C c/.GIT/755\n"
			  "C c/.GIT/hooks@777 -> ../evil sensitive\n"
			  "C c/.GIT/modules/755\n"
			  "C c/.GIT/modules/m@777 -> ../evil sensitive\n"
			  "C c/.GIT/modules/n 644 0\n"
			  "M d/.vscode/755 sensitive\n"
			  "D e/.git/755 sensitive\n"
			  "D e/.git/hooks/755 sensitive\n"
			  "D e/.git/objects/755\n"
			  "D f/.bashrc 644 0 sensitive\n"
			  "C g/755\n"
			  "C g/post-commit@777 -> x sensitive\n"
			  "C g/pre-commit/755\n"
			  "C g/pre-commit/main.py 644 0\n");
	trees_remove(&t);
}

/* The tree itself may be the inside of a repository: that of a worktree, for instance. */
static void test_root(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper;
	put_file(up, "config", 0644, "");
	put_dir(up, "hooks");
	put_file(up, "hooks/x", 0644, "");
	put_file(up, "HEAD", 0644, "");
	put_file(up, "index", 0644, "");
	t.layer.root = "/srv/r/.git/";
	CHECK_CHANGES(&t, "C HEAD 644 0\n"
			  "C config 644 0 sensitive\n"
			  "C hooks/755\n"
			  "C hooks/x 644 0 sensitive\n"
			  "C index 644 0\n");
	t.layer.root = "/srv/r/.git/modules/sub";
	CHECK_CHANGES(&t, "C HEAD 644 0\n"
			  "C config 644 0 sensitive\n"
			  "C hooks/755\n"
			  "C hooks/x 644 0 sensitive\n"
			  "C index 644 0\n");
	/* Worktrees of agents lie in such places, and their files are ordinary ones. */
	t.layer.root = "/srv/r/.claude/worktrees/one";
	CHECK_CHANGES(&t, "C HEAD 644 0 sensitive\nC config 644 0\nC hooks/755\nC hooks/x 644 0\nC "
			  "index 644 0\n");
	t.layer.root = "/";
	CHECK_CHANGES(&t, "C HEAD 644 0 sensitive\nC config 644 0\nC hooks/755\nC hooks/x 644 0\nC "
			  "index 644 0\n");
	trees_remove(&t);
}

static void test_held(void)
{
	struct trees t = trees_make();
	int up = t.layer.upper;
	put_dir(up, "a");
	put_file(up, "a/.env", 0644, "");
	put_file(up, "a/.ENV", 0644, "");
	put_dir(up, "keep");
	put_dir(up, "keep/in");
	put_file(up, "keep/in/f", 0644, "");
	put_file(up, "k.key", 0644, "");
	put_dir(up, "x");
	put_dir(up, "x/keep");
	t.held[0] = ".env";
	t.held[1] = "keep/in";
	t.held[2] = TREE_ROOT "/*.key";
	CHECK_CHANGES(&t, "C a/755\n"
			  "C a/.ENV 644 0\n"
			  "C a/.env 644 0 held\n"
			  "C k.key 644 0 held\n"
			  "C keep/755\n"
			  "C keep/in/755 held\n"
			  "C keep/in/f 644 0 held\n"
			  "C x/755\n"
			  "C x/keep/755\n");
	/* One that holds the whole tree. */
	t.held[0] = "/home/x";
	t.held[1] = t.held[2] = NULL;
	AUTO_BUF all = trees_changes(&t);
	CHECK(strncmp(buf_text(&all), "C a/755 held\nC a/.ENV 644 0 held\n", 33) == 0);
	trees_remove(&t);
}

/* A name that the policy holds is not to be had through a link, either. */
static void test_held_links(void)
{
	static const struct {
		const char *pattern, *link, *says;
	} rows[] = {
		{ "conf/sub/x", "conf", "held" },
		{ "conf/sub/x", "conf/sub", "held" },
		{ "conf/sub/x", "other/conf", "" },
		{ "conf/sub/x", "conf/other", "" },
		{ "conf/sub/x", "conf/sub/other", "" },
		{ "**/conf/x", "a/b/conf", "held" },
		{ "**/conf/x", "a/b", "" },
		{ "x", "a/b", "" },
		{ TREE_ROOT "/conf/x", "conf", "held" },
		{ TREE_ROOT "/conf/x", "other", "" },
		{ TREE_ROOT "/**/x", "other", "" },
		/* Any directory below one, or in the top: told, but not more. */
		{ "conf/**/x", "conf/a/b", "sensitive" },
		{ "conf/**/x", "conf", "held" },
		{ "*/x", "a", "sensitive" },
		{ "a*/x", "ab", "held" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct trees t = trees_make();
		char path[64] = "", want[64];
		for (const char *p = rows[i].link; (p = strchr(p, '/')); p++) {
			snprintf(path, sizeof path, "%.*s", (int)(p - rows[i].link), rows[i].link);
			put_dir(t.layer.upper, path);
			put_dir(t.layer.lower, path);
		}
		put_link(t.layer.upper, rows[i].link, "end");
		t.held[0] = rows[i].pattern;
		AUTO_BUF all = trees_changes(&t);
		snprintf(want, sizeof want, "C %s@777 -> end%s%s\n", rows[i].link,
			*rows[i].says ? " " : "", rows[i].says);
		CHECK_TEXT(buf_text(&all), want);
		trees_remove(&t);
	}
}

static void test_escapes(void)
{
	static const struct {
		const char *text;
		bool top, deep; /* as a link in the tree's top, and in a/b */
	} rows[] = {
		{ "a", false, false },
		{ "./a//b/.", false, false },
		{ "..", true, false },
		{ "../x", true, false },
		{ "../../x", true, false },
		{ "../../../x", true, true },
		{ ".././../..", true, true },
		{ "...", false, false },
		{ "..x/y", false, false },
		/* What is named may itself be a link, and then ".." leads anywhere. */
		{ "a/../b", true, true },
		{ "../a/../../x", true, true },
		{ "/", true, true },
		{ "/etc/passwd", true, true },
		{ TREE_ROOT, false, false },
		{ TREE_ROOT "/a/b", false, false },
		{ "//home/./x///tree/a", false, false },
		{ "/../home/x/tree", true, true },
		{ TREE_ROOT "/..", true, true },
		{ TREE_ROOT "/a/../b", true, true },
		{ TREE_ROOT "x", true, true },
		{ "/home/x", true, true },
		{ "/home/x/other/../tree/a", true, true },
		{ "/proc/self/root", true, true },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct trees t = trees_make();
		put_link(t.layer.upper, "l", rows[i].text);
		put_dir(t.layer.upper, "a");
		put_dir(t.layer.upper, "a/b");
		put_link(t.layer.upper, "a/b/l", rows[i].text);
		char want[200];
		snprintf(want, sizeof want,
			"C a/755\nC a/b/755\nC a/b/l@777 -> %s%s\nC l@777 -> %s%s\n", rows[i].text,
			rows[i].deep ? " escapes" : "", rows[i].text,
			rows[i].top ? " escapes" : "");
		CHECK_CHANGES(&t, want);
		trees_remove(&t);
	}
}

int main(void)
{
	RUN(test_names);
	RUN(test_extra);
	RUN(test_layer);
	RUN(test_prefixes);
	RUN(test_root);
	RUN(test_held);
	RUN(test_held_links);
	RUN(test_escapes);
	return CHECK_STATUS();
}
