/* The files of a job: of folders, of archives, and single ones. */
#ifndef TUCK_JOB_SOURCE_H
#define TUCK_JOB_SOURCE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"

struct source {
    const char *path; /* as shown; of a member of an archive, "job.tar.gz/rank0.log" */
    char *text;       /* text[len] is NUL */
    size_t len, size; /* size: bytes allocated */
};

struct sources {
    struct mem *mem;
    struct arena *arena; /* of paths */
    tuck_diags *diags;
    VEC(struct source) all; /* in the order of their paths within each argument */
    uint32_t n_binary;      /* files that are not text */
    struct unpacked {       /* files of an archive, until they are in the list */
        struct unpacked *next;
        char *text;
        size_t len, size;
        char name[];
    } * unpacked;
    bool failed;  /* with an error in the diagnostics */
    bool no_file; /* that error: a path could not be read */
};

/* Adds a file, everything below a folder, or everything in an archive (tar, tar.gz, zip; a
 * file that is only compressed counts as itself).
 * Of folders and archives only what may have graphs or facts about them is read. When memory runs
 * out, jumps to the guard. */
void sources_add(struct sources *s, const char *path);
void sources_free(struct sources *s);

/* Is it a folder or an archive? Reads only the beginning of a file. */
bool source_is_many(const char *path);

#endif
