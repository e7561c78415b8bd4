/* Jobs in the public interface. */
#include "api/api.h"
#include "job/job_show.h"
#include "job/read_job.h"

struct tuck_job {
    struct job x;
    struct job_peak *peak; /* by rank, once it was asked for */
};

bool tuck_path_is_job(const char *path)
{
    return path != NULL && source_is_many(path);
}

bool tuck_path_is_job_log(const char *path)
{
    struct job j;
    bool yes = false;

    if (path == NULL)
        return false;
    job_init(&j, NULL, NULL);
    yes = job_is_log(&j, path);
    job_end(&j);
    return yes;
}

tuck_status tuck_job_read(const char *const *paths, size_t n, const tuck_allocator *alloc,
                          tuck_diags *diags, tuck_job **out)
{
    struct mem m;

    if (paths == NULL || n == 0 || out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_job *j = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*j));
    if (j == NULL)
        return TUCK_ENOMEM;
    job_init(&j->x, alloc, diags);
    j->peak = NULL;
    tuck_status st = job_read(&j->x, paths, n, diags);
    j->x.sources.diags = NULL;
    if (st == TUCK_OK)
        *out = j;
    else
        tuck_job_free(j);
    return st;
}

void tuck_job_free(tuck_job *j)
{
    if (j == NULL)
        return;
    tuck_allocator alloc = j->x.mem.alloc;
    struct mem m;

    mem_init(&m, &alloc);
    mem_free(&m, j->peak, j->peak ? (j->x.rank.len + 1) * sizeof(*j->peak) : 0);
    job_end(&j->x);
    mem_free(&m, j, sizeof(*j));
}

tuck_doc *tuck_job_parts(const tuck_job *j)
{
    return j->x.parts;
}

tuck_doc *tuck_job_steps(const tuck_job *j)
{
    return j->x.steps;
}

tuck_status tuck_job_join(tuck_job *j, tuck_diags *diags)
{
    return j != NULL ? job_steps(&j->x, diags) : TUCK_EINVAL;
}

tuck_status tuck_job_remember(tuck_job *j)
{
    return j == NULL ? TUCK_EINVAL : job_remember(&j->x);
}

size_t tuck_job_first_part(const tuck_job *j, size_t i, size_t *n_out)
{
    bool there = i < j->x.rank.len;

    if (n_out != NULL)
        *n_out = there ? j->x.rank.at[i].n : 0;
    return there ? j->x.rank.at[i].first : j->x.part.len;
}

static tuck_status find_peaks(tuck_job *j)
{
    size_t size = (j->x.rank.len + 1) * sizeof(*j->peak);
    tuck_status st = TUCK_OK;

    if (j->peak != NULL)
        return TUCK_OK;
    struct job_peak *peak = j->x.mem.alloc.resize(j->x.mem.alloc.ctx, NULL, 0, size);
    if (peak == NULL)
        return TUCK_ENOMEM;
    for (uint32_t i = 0; i < j->x.rank.len && st == TUCK_OK; i++)
        st = job_peak(&j->x, &j->x.rank.at[i], &peak[i]);
    if (st == TUCK_OK)
        j->peak = peak;
    else
        mem_free(&j->x.mem, peak, size);
    return st;
}

tuck_status tuck_job_pytorch_peak(tuck_job *j, size_t i, int64_t *bytes_out)
{
    if (j == NULL || i >= j->x.rank.len || bytes_out == NULL)
        return TUCK_EINVAL;
    tuck_status st = find_peaks(j);
    if (st == TUCK_OK)
        *bytes_out = j->peak[i].bytes;
    return st;
}

struct print_args {
    const tuck_job *j;
    const char *name;
    size_t step;
};

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const struct print_args *a = arg;

    if (how->form == TUCK_PRINT_JSON)
        job_json(&a->j->x, a->name, a->j->peak, b);
    else
        job_table(&a->j->x, a->name, a->j->peak, b);
}

tuck_status tuck_job_print(tuck_job *j, const char *name, const tuck_print_options *how,
                           tuck_write_fn write, void *ctx)
{
    if (j == NULL)
        return TUCK_EINVAL;
    tuck_status st = find_peaks(j);
    struct print_args a = {j, name ? name : "", 0};

    return st == TUCK_OK ? api_print(&j->x.mem.alloc, how, write, ctx, print, &a) : st;
}

static void print_line(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const struct print_args *a = arg;

    (void)how;
    job_line(&a->j->x, &a->j->x.rank.at[a->step], a->name, b);
}

tuck_status tuck_job_say(const tuck_job *j, size_t i, const char *name,
                         const tuck_print_options *how, tuck_write_fn write, void *ctx)
{
    struct print_args a = {j, name ? name : "", i};

    if (j == NULL || i >= j->x.rank.len)
        return TUCK_EINVAL;
    return api_print(&j->x.mem.alloc, how, write, ctx, print_line, &a);
}
