/* What is in a folder. */
#ifndef TUCK_JOB_FOLDER_H
#define TUCK_JOB_FOLDER_H

#include "base/vec.h"

struct folder_names {
    VEC(const char *) all; /* paths, sorted */
};

/* False and errno: it cannot be read. Names that begin with a dot are left out. When memory runs
 * out, jumps to the guard. */
bool folder_list(struct mem *m, const char *folder, struct folder_names *out);
void folder_drop(struct mem *m, struct folder_names *n);

/* Links are followed. */
bool folder_is(const char *path);

#endif
