/* stages: names of the steps in which a box is made; the table is stages.def. */
#ifndef AGENTBOX_BOX_STAGES_H
#define AGENTBOX_BOX_STAGES_H

enum stage {
	STAGE_none,
#define STAGE(name, process, needs, leaves) STAGE_##name,
#include "box/stages.def"
#undef STAGE
	STAGE_COUNT_
};

struct stage_info {
	const char *name, *process, *needs, *leaves;
};

/* Never NULL; an unknown stage is "none". */
const struct stage_info *stage_info(int stage);

#endif
