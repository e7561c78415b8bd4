/* The main of a fuzz target that is built without libFuzzer: it feeds the target the files named on
 * the command line, and those below the directories named there. What fuzzing found is kept as a
 * seed, so every `make test` tests it. A finding ends the program, as with libFuzzer.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count;

static int replay(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)where;
    if (type != FTW_F)
        return 0;
    FILE *f = fopen(path, "rb");
    /* Exactly as large as the file, so that reading one byte too far is detected. */
    size_t size = (size_t)st->st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (f == NULL || data == NULL || fread(data, 1, size, f) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    /* Printed first, because a finding ends the program. */
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    count++;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (nftw(argv[i], replay, 16, FTW_PHYS) != 0) {
            perror(argv[i]);
            return 1;
        }
    }
    printf("%d passed, 0 failed\n", count);
    return 0;
}
