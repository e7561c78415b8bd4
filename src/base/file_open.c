#include "base/file_open.h"

#include <errno.h>
#include <sys/stat.h>

FILE *file_open(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");

    if (f != NULL && fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(f);
        errno = EISDIR;
        return NULL;
    }
    return f;
}
