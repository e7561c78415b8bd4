/* The list of transports; those that need other libraries are plug-ins. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/comm/plugin.h"

struct row {
    const char *name, *needs;
};

static const struct row plugin[] = {
    {"mpi", "it is built where mpicc is (Debian: libopenmpi-dev)"},
    {"nccl", "it is built by `make NCCL_INCLUDE=… build/release/libtuck_nccl.so`, and needs a GPU"},
};

/* The folder of the file this code is in: the tool, or libtuck.so. */
static void own_folder(char *path)
{
    Dl_info info;
    path[0] = '\0';
    if (dladdr((const void *)&transport_shm, &info) == 0 || info.dli_fname == NULL ||
        realpath(info.dli_fname, path) == NULL) {
        path[0] = '\0';
        return;
    }
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
}

static const struct transport *use(void *file, const char *path, const char *name, char *error)
{
    const struct transport *t = NULL;
    tuck_transport_fn *fn = NULL;
    void *symbol = dlsym(file, TUCK_TRANSPORT_SYMBOL);
    memcpy(&fn, &symbol, sizeof(fn));
    if (fn != NULL)
        t = fn(TUCK_VERSION, sizeof(struct comm_call));
    if (t != NULL && strcmp(t->name, name) == 0)
        return t;
    snprintf(error, COMM_ERROR_BYTES, "%.500s is not a plug-in of Tuck %s", path, TUCK_VERSION);
    dlclose(file);
    return NULL;
}

/* Looks in one folder. *found: there was such a file. */
static const struct transport *load(const char *folder, const char *name, bool *found, char *error)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/libtuck_%s.so", folder, name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return NULL;
    fclose(f);
    *found = true;
    /* Open MPI's own plug-ins need its symbols. */
    void *file = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (file != NULL)
        return use(file, path, name, error);
    snprintf(error, COMM_ERROR_BYTES, "cannot load %.300s: %.600s", path, dlerror());
    return NULL;
}

static const struct transport *find_plugin(const struct row *row, char *error)
{
    char own[PATH_MAX], folder[3][PATH_MAX + 32];
    const char *set = getenv("TUCK_PLUGINS");
    bool found = false;
    own_folder(own);
    snprintf(folder[0], sizeof(folder[0]), "%.*s", PATH_MAX - 1, set != NULL ? set : "");
    snprintf(folder[1], sizeof(folder[1]), "%s", own);
    snprintf(folder[2], sizeof(folder[2]), "%s/%s", own, "tuck");
    const struct transport *t = NULL;
    for (int i = 0; i < 3 && !found; i++)
        if (folder[i][0] != '\0')
            t = load(folder[i], row->name, &found, error);
    if (!found && own[0] != '\0') { /* installed: bin/tuck and lib/tuck/libtuck_mpi.so */
        snprintf(folder[0], sizeof(folder[0]), "%s/../lib/tuck", own);
        t = load(folder[0], row->name, &found, error);
    }
    if (!found)
        snprintf(error, COMM_ERROR_BYTES,
                 "the transport %s needs the plug-in libtuck_%s.so, which is neither beside Tuck "
                 "nor in the folder TUCK_PLUGINS: %s",
                 row->name, row->name, row->needs);
    return t;
}

/* Variables that mpirun of Open MPI and of MPICH set. */
static bool under_mpirun(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMI_SIZE") != NULL ||
           getenv("PMIX_RANK") != NULL;
}

int transport_world(const char *name)
{
    static const char *const variable[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
    if (name != NULL && strcmp(name, "auto") != 0 && strcmp(name, "mpi") != 0)
        return 0;
    for (size_t i = 0; under_mpirun() && i < sizeof(variable) / sizeof(*variable); i++) {
        const char *text = getenv(variable[i]);
        long n = text != NULL ? strtol(text, NULL, 10) : 0;
        if (n > 0 && n <= INT_MAX)
            return (int)n;
    }
    return 0;
}

const struct transport *transport_find(const char *name, char *error)
{
    error[0] = '\0';
    if (name == NULL || strcmp(name, "auto") == 0)
        name = under_mpirun() ? "mpi" : "shm";
    if (strcmp(name, "shm") == 0)
        return &transport_shm;
    for (size_t i = 0; i < sizeof(plugin) / sizeof(*plugin); i++)
        if (strcmp(name, plugin[i].name) == 0)
            return find_plugin(&plugin[i], error);
    snprintf(error, COMM_ERROR_BYTES, "unknown transport '%s': there are shm, mpi and nccl", name);
    return NULL;
}
