#include "job/folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool folder_list(struct mem *m, const char *folder, struct folder_names *out)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    if (d == NULL)
        return false;
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        size_t n = strlen(folder), k = strlen(e->d_name);
        /* No jump may pass by closedir(). */
        char *path = m->alloc.resize(m->alloc.ctx, NULL, 0, n + k + 2);
        void *more = out->all.at;
        if (path != NULL && out->all.len == out->all.cap) {
            more = m->alloc.resize(m->alloc.ctx, out->all.at, out->all.cap * sizeof(char *),
                                   ((size_t)out->all.cap * 2 + 16) * sizeof(char *));
            if (more != NULL) {
                out->all.at = more;
                out->all.cap = out->all.cap * 2 + 16;
            }
        }
        if (path == NULL || more == NULL) {
            mem_free(m, path, path ? n + k + 2 : 0);
            closedir(d);
            mem_exhausted(m);
        }
        memcpy(path, folder, n);
        path[n] = '/';
        memcpy(path + n + 1, e->d_name, k + 1);
        out->all.at[out->all.len++] = path;
    }
    closedir(d);
    if (out->all.len > 0)
        qsort(out->all.at, out->all.len, sizeof(*out->all.at), by_name);
    return true;
}

void folder_drop(struct mem *m, struct folder_names *n)
{
    for (uint32_t i = 0; i < n->all.len; i++)
        mem_free(m, (char *)(uintptr_t)n->all.at[i], strlen(n->all.at[i]) + 1);
    vec_free(m, &n->all);
}

bool folder_is(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
