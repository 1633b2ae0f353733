/* host_git: which ".git" files are believed, in layouts that the test makes without git. */
#define _GNU_SOURCE
#include "plan/host_git.h"
#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/agentbox-git-XXXXXX";

/* A shell command in the top directory, in which "$T" is it. */
static void sh(const char *command)
{
	char line[2048];
	snprintf(line, sizeof line, "cd %s && T=%s && %s", top, top, command);
	CHECK(system(line) == 0);
}

/* A repository and a worktree of it, as git makes them. */
static void make(void)
{
	sh("rm -rf -- * .[!.]* ; mkdir -p home wt repo/.git/objects repo/.git/refs "
	   "repo/.git/worktrees/w");
	sh("echo 'ref: refs/heads/main' >repo/.git/HEAD");
	sh("echo \"$T/wt/.git\" >repo/.git/worktrees/w/gitdir");
	sh("echo ../.. >repo/.git/worktrees/w/commondir");
	sh("echo \"gitdir: $T/repo/.git/worktrees/w\" >wt/.git");
}

/* What is found for a workspace below the top; "" for nothing. */
static void wants(const char *workspace, const char *admin, const char *common)
{
	struct arena arena = { 0 };
	struct host_git git = { 0 };
	char home[256];
	snprintf(home, sizeof home, "%s/home", top);
	host_git_probe(&arena, arena_join(&arena, top, "/", workspace), geteuid(), home, &git);
	size_t skip = strlen(top) + 1;
	CHECK_TEXT(git.admin ? git.admin + skip : "", admin);
	CHECK_TEXT(git.common ? git.common + skip : "", common);
	arena_free(&arena);
}

static void a_worktree_leads_to_its_repository(void)
{
	make();
	wants("wt", "repo/.git/worktrees/w", "repo/.git");
	/* Relative paths, as git can be told to write them. */
	sh("echo 'gitdir: ../repo/.git/worktrees/w' >wt/.git");
	sh("echo ../../../../wt/.git >repo/.git/worktrees/w/gitdir");
	wants("wt", "repo/.git/worktrees/w", "repo/.git");
	/* A worktree inside of the repository's own work tree. */
	sh("mv wt repo/in && echo \"gitdir: $T/repo/.git/worktrees/w\" >repo/in/.git && "
	   "echo \"$T/repo/in/.git\" >repo/.git/worktrees/w/gitdir");
	wants("repo/in", "repo/.git/worktrees/w", "repo/.git");
	/* An ordinary repository has a directory there. */
	wants("repo", "", "");
	wants("home", "", "");
}

static void without_the_way_back_nothing_is_believed(void)
{
	make();
	sh("mkdir other && echo \"gitdir: $T/repo/.git/worktrees/w\" >other/.git");
	wants("other", "repo/.git/worktrees/w", "");
	make();
	sh("rm repo/.git/worktrees/w/gitdir");
	wants("wt", "repo/.git/worktrees/w", "");
	make();
	sh("rm repo/.git/worktrees/w/commondir");
	wants("wt", "repo/.git/worktrees/w", "");
	make();
	sh("mkdir -p elsewhere && echo \"$T/elsewhere\" >repo/.git/worktrees/w/commondir");
	wants("wt", "repo/.git/worktrees/w", "");
	/* A link in the place of the files that prove it. */
	make();
	sh("mv repo/.git/worktrees/w/gitdir wt/g && ln -s $T/wt/g repo/.git/worktrees/w/gitdir");
	wants("wt", "repo/.git/worktrees/w", "");
	/* Any directory of the caller's; the repository itself (--separate-git-dir); a submodule.
	 */
	sh("mkdir -p secret && echo \"gitdir: $T/secret\" >wt/.git");
	wants("wt", "secret", "");
	sh("echo \"gitdir: $T/repo/.git\" >wt/.git");
	wants("wt", "repo/.git", "");
	sh("mkdir -p repo/.git/modules/s repo/s && echo 'gitdir: ../.git/modules/s' >repo/s/.git");
	wants("repo/s", "repo/.git/modules/s", "");
}

static void a_box_that_wrote_the_workspace_cannot_show_more(void)
{
	/* All of it made in the workspace, which is named so that its parent is the "repository".
	 */
	make();
	sh("mkdir -p mine/worktrees/w && cd mine && mkdir objects refs && echo x >HEAD && "
	   "cd worktrees && echo ../.. >w/commondir && echo \"$T/mine/worktrees/.git\" >w/gitdir "
	   "&& "
	   "echo \"gitdir: $T/mine/worktrees/w\" >.git");
	wants("mine/worktrees", "", "");
	/* A workspace in what would be shown. */
	sh("mkdir -p mine/tree && echo \"gitdir: $T/mine/worktrees/w\" >mine/tree/.git && "
	   "echo \"$T/mine/tree/.git\" >mine/worktrees/w/gitdir");
	wants("mine/tree", "mine/worktrees/w", "");
	/* A directory beside, written by another box, that is no repository. */
	sh("mkdir -p src/worktrees/w src/private && cd src/worktrees/w && echo ../.. >commondir && "
	   "echo \"$T/wt/.git\" >gitdir && echo \"gitdir: $T/src/worktrees/w\" >$T/wt/.git");
	wants("wt", "src/worktrees/w", "");
	/* One whose parts are links to those of another. */
	sh("cd src && ln -s ../repo/.git/objects objects && ln -s ../repo/.git/refs refs && "
	   "ln -s ../repo/.git/HEAD HEAD");
	wants("wt", "src/worktrees/w", "");
	/* The home directory, also where it is a repository. */
	sh("cd home && mkdir -p objects refs worktrees/w && echo x >HEAD && cd worktrees/w && "
	   "echo ../.. >commondir && echo \"$T/wt/.git\" >gitdir && "
	   "echo \"gitdir: $T/home/worktrees/w\" >$T/wt/.git");
	wants("wt", "home/worktrees/w", "");
}

static void odd_files_name_nothing(void)
{
	make();
	sh("rm wt/.git && mkfifo wt/.git");
	wants("wt", "", "");
	sh("rm wt/.git && ln -s ../repo/.git wt/.git");
	wants("wt", "", "");
	sh("rm wt/.git && head -c 100000 /dev/zero | tr '\\0' a >wt/.git");
	wants("wt", "", "");
	sh("printf 'gitdir: %s\\nmore\\n' $T/repo/.git/worktrees/w >wt/.git");
	wants("wt", "", "");
	sh("printf 'gitdir: %s\\0x' $T/repo/.git/worktrees/w >wt/.git");
	wants("wt", "", "");
	sh("printf 'gitdir: ' >wt/.git");
	wants("wt", "", "");
	sh("printf 'gitdir: /' >wt/.git");
	struct arena arena = { 0 };
	struct host_git git = { 0 };
	host_git_probe(&arena, arena_join(&arena, top, "/wt", ""), geteuid(), "/home/x", &git);
	CHECK_TEXT(git.admin, "/");
	CHECK(!git.common);
	arena_free(&arena);
	sh("printf 'gitdir: %s/gone' $T >wt/.git");
	wants("wt", "", "");
	sh(": >wt/.git");
	wants("wt", "", "");
}

static void another_owner_is_not_believed(void)
{
	if (geteuid() != 0)
		return;
	make();
	sh("chown -R 12345 repo/.git");
	wants("wt", "repo/.git/worktrees/w", "");
	sh("chown -R 0 repo/.git && chown 12345 repo/.git/worktrees/w");
	wants("wt", "repo/.git/worktrees/w", "");
}

int main(void)
{
	CHECK(mkdtemp(top) != NULL);
	RUN(a_worktree_leads_to_its_repository);
	RUN(without_the_way_back_nothing_is_believed);
	RUN(a_box_that_wrote_the_workspace_cannot_show_more);
	RUN(odd_files_name_nothing);
	RUN(another_owner_is_not_believed);
	sh("rm -rf \"$T\"");
	return CHECK_STATUS();
}
