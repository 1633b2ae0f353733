/*
 * ready_gen: writes policy/ready_shipped.h, the trees of the policies named on the command line.
 * Runs when agentbox is built, never after; reads them as agentbox itself reads any policy.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/ready.h"

static void print_string(const char *text, size_t len)
{
	putchar('"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '\n')
			fputs("\\n\"\n\t\"", stdout);
		else if (c == '"' || c == '\\' || c == '?' || c < 0x20 || c >= 0x7f)
			printf("\\%03o", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_text(const char *text)
{
	if (text)
		print_string(text, strlen(text));
	else
		fputs("NULL", stdout);
}

/* Returns the number of nodes so far. */
static int print_node(const struct node *node, int parent, int index)
{
	printf("\t{ %d, %d, %d, %d, %d, %d, %d, ", (int)node->kind, node->plain, node->line,
		node->column, node->key_line, node->key_column, parent);
	print_text(node->key);
	fputs(", ", stdout);
	print_text(node->text);
	fputs(" },\n", stdout);
	int self = index++;
	for (const struct node *child = node->first; child; child = child->next)
		index = print_node(child, self, index);
	return index;
}

static int print_policy(const char *path, int number)
{
	static char text[POLICY_FILE_MAX];
	FILE *file = fopen(path, "r");
	size_t len = file ? fread(text, 1, sizeof text, file) : 0;
	bool whole = file && !ferror(file) && feof(file);
	if (file)
		fclose(file);
	struct arena arena = { 0 };
	struct source source = { .file = path };
	struct node *root = NULL;
	struct err err = { 0 };
	if (!whole || tree_parse(&arena, &source, text, len, &root, &err) < 0) {
		fprintf(stderr, "ready_gen: %s:%d: %s\n", path, err.line, err.text);
		return -1;
	}
	printf("static const struct ready_node ready_nodes_%d[] = {\n", number);
	print_node(root, -1, 0);
	printf("};\n\nstatic const char ready_text_%d[] =\n\t", number);
	print_string(text, len);
	printf(";\n\n");
	arena_free(&arena);
	return 0;
}

int main(int argc, char **argv)
{
	printf("/* Made by ready_gen from the shipped policies. */\n\n");
	for (int i = 1; i < argc; i++)
		if (print_policy(argv[i], i) < 0)
			return EXIT_FAILURE;
	printf("static const struct ready_policy ready_policies[] = {\n");
	for (int i = 1; i < argc; i++)
		printf("\t{ ready_text_%d, sizeof ready_text_%d - 1, ready_nodes_%d,\n"
		       "\t\tsizeof ready_nodes_%d / sizeof *ready_nodes_%d },\n",
			i, i, i, i, i);
	printf("};\n");
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
