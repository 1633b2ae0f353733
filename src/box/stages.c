/* stages: names of the steps in which a box is made. */
#include "box/stages.h"

static const struct stage_info table[] = {
	[STAGE_none] = { "none", "none", "", "" },
#define STAGE(name, process, needs, leaves) [STAGE_##name] = { #name, #process, needs, leaves },
#include "box/stages.def"
#undef STAGE
};

const struct stage_info *stage_info(int stage)
{
	return &table[stage > 0 && stage < STAGE_COUNT_ ? stage : STAGE_none];
}
