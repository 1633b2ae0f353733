/*
 * keys: the table of every key (keys.def) and questions about it. What a key is called, which type
 * it has, what it defaults to and how it merges is said there and nowhere else.
 */
#ifndef AGENTBOX_POLICY_KEYS_H
#define AGENTBOX_POLICY_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_type {
	KEY_MAP,      /* a map with known keys */
	KEY_NAMES,    /* a map from names that the policy chooses; lo: enum key_names */
	KEY_LIST,     /* lo: least number of elements */
	KEY_INT,      /* lo..hi */
	KEY_BOOL,     /* true, false */
	KEY_DURATION, /* lo..hi microseconds */
	KEY_SIZE,     /* lo..hi bytes */
	KEY_CPUS,     /* lo..hi thousandths */
	KEY_WORD,     /* one of words */
	KEY_STRING,   /* one line of lo..hi bytes */
	KEY_TEXT,     /* lines of lo..hi bytes together */
	KEY_PATH,     /* absolute, ~/..., or relative to the file it is written in */
	KEY_PATTERN,  /* of paths */
	KEY_HOST,     /* with ports */
	KEY_PORT,     /* PORT of the box, or HOSTPORT:PORT */
	KEY_POLICY,   /* a policy's name or file */
	KEY_VARIABLE, /* name of an environment variable */
	KEY_SYSCALL,  /* name of a system call */
	KEY_WORD_OR_PATH,
	KEY_PATH_OR_MAP,
	KEY_HOST_OR_MAP,
	KEY_WORD_OR_MAP,
};

/* What the names in a KEY_NAMES map look like. */
enum key_names { NAMES_VARIABLE, NAMES_TOOL, NAMES_LANGUAGE };

enum key_merge { KEY_REPLACE, KEY_MERGE, KEY_APPEND, KEY_OWN, KEY_NONE };

struct key {
	const char *path;
	enum key_type type;
	enum key_merge merge;
	const char *def; /* "": nothing; "required" */
	uint64_t lo, hi;
	const char *words; /* "a|b", or NULL */
	const char *help;
};

enum key_id {
#define KEY(id, ...) K_##id,
#include "policy/keys.def"
#undef KEY
	K_COUNT_
};

/* The table; K_COUNT_ rows in the order of the ids. */
const struct key *key_row(enum key_id id);

/* The last part of the path: "wall", "*", "[]". Static. */
const char *key_name(const struct key *key);

/* The row of `name` below `parent` (NULL: the top), also by its "*"; NULL: there is none. */
const struct key *key_child(const struct key *parent, const char *name);

/* The row of the elements of a list. */
const struct key *key_element(const struct key *list);

/* The next direct child of `parent` behind `after` (NULL: the first one); NULL at the end. */
const struct key *key_next(const struct key *parent, const struct key *after);

/* The row with exactly this path, or NULL. */
const struct key *key_find(const char *path);

/* Is `word` one of key->words? */
bool key_has_word(const struct key *key, const char *word);

/*
 * What to say behind "unknown key 'NAME'": "; did you mean 'X'?", "; it belongs in 'X'", or the
 * keys that are known below `parent`. Always terminated, cut to size.
 */
void key_suggest(const struct key *parent, const char *name, char *text, size_t size);

/* How many slips of the hand make `word` of `other`; -1: more than one would make. */
int key_near(const char *word, const char *other);

/* The nearest of the words, or NULL when none is near. Static. `len` is its length. */
const char *key_nearest_word(const struct key *key, const char *word, size_t *ret_len);

/* Type with its range or words, as people read it: "duration 1ms..720h". */
struct buf;
int key_type_text(const struct key *key, struct buf *out);

/* `dump keys`: path TAB type TAB default TAB merge TAB help, a line for each key. 0 or -ENOSPC. */
int policy_dump_keys(struct buf *out);

#endif
