/*
 * stage: the words for the stages in which a box is made. Only the names: the table is the box's,
 * and report/ needs no more of it.
 */
#ifndef AGENTBOX_REPORT_STAGE_H
#define AGENTBOX_REPORT_STAGE_H

#include <stddef.h>

/* NULL for 0 and for a number that no stage has. */
static inline const char *stage_word(int stage)
{
	static const char *const names[] = {
		NULL,
#define STAGE(name, process, needs, leaves) #name,
#include "box/stages.def"
#undef STAGE
	};
	return stage > 0 && (size_t)stage < sizeof names / sizeof *names ? names[stage] : NULL;
}

#endif
