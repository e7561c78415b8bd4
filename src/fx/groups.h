/* Process groups: which ranks a collective runs over, as far as anything says so. */
#ifndef TUCK_FX_GROUPS_H
#define TUCK_FX_GROUPS_H

#include "fx/graph.h"

/* Later ones override earlier ones. */
enum group_source { GROUP_UNKNOWN, GROUP_TEXT, GROUP_SCRIPT, GROUP_SIDECAR, GROUP_USER };

/* What the collectives of every graph of a document say themselves. */
void groups_collect(tuck_doc *doc, tuck_diags *diags, const char *file);

#endif
