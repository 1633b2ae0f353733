/* check: the unit tests' harness. A failed check is told and counted, and the test goes on. */
#ifndef AGENTBOX_TESTS_CHECK_H
#define AGENTBOX_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int check_failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			check_failures++;                                                          \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
		}                                                                                  \
	} while (0)

#define CHECK_TEXT(got, want)                                                                      \
	do {                                                                                       \
		const char *got_ = (got), *want_ = (want);                                         \
		if (!got_ || strcmp(got_, want_) != 0) {                                           \
			check_failures++;                                                          \
			fprintf(stderr, "%s:%d: got \"%s\", want \"%s\"\n", __FILE__, __LINE__,    \
				got_ ? got_ : "(null)", want_);                                    \
		}                                                                                  \
	} while (0)

/* Run one named test function. */
#define RUN(test)                                                                                  \
	do {                                                                                       \
		int before_ = check_failures;                                                      \
		test();                                                                            \
		printf("%s %s\n", check_failures == before_ ? "ok" : "not ok", #test);             \
	} while (0)

#define CHECK_STATUS() (check_failures ? 1 : 0)

#endif
