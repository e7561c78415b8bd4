/* usage: bench [-a BYTES_PER_SECOND] [-n RUNS] [-o FILE.json] [-r ROW] [-t TUCK] GRAPH...
 *
 * Measures what the library does with graphs of growing size. Each measurement is a row of the
 * table below; to add one, add a row.
 *
 * Each run is a separate process, so that none profits from the heap of the one before and the
 * operating system can report how much memory it used. The best of RUNS (3) counts, in CPU time:
 * everything runs in one thread, and wall-clock time would include other processes.
 * BYTES_PER_SECOND is the speed of Python's ast.parse, measured the same way, for comparison. The
 * exit status is 1 if a requirement is missed.
 */
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tuck_experimental.h"

enum { MAX_GRAPHS = 16 };

struct options {
    double ast_speed; /* bytes per second, 0 if unknown */
    int runs;
    const char *out, *row, *tuck;
};

struct graph_file {
    const char *path;
    double bytes, nodes;
};

/* One run of one row on one graph. */
struct job {
    const char *path, *tuck;
    tuck_doc *doc;
};

/* What a row must reach; 0 means no requirement. Speed and memory count for the largest graph. */
struct need {
    double times_ast; /* at least: speed as a multiple of ast.parse's */
    double exponent;  /* at most: growth of time with nodes */
    double memory;    /* at most: peak resident bytes per byte of text */
};

struct row {
    const char *name, *about;
    bool (*prepare)(struct job *); /* not timed; NULL if there is nothing to prepare */
    bool (*run)(struct job *);     /* timed */
    struct need need;
};

struct measure {
    double wall, cpu; /* wall-clock seconds; CPU seconds, user and system */
    double peak;      /* bytes */
};

/* ---- the rows ---- */

static bool sink(void *ctx, const char *text, size_t len)
{
    (void)text;
    *(size_t *)ctx += len;
    return true;
}

static bool read_and_print(struct job *j)
{
    size_t len = 0;

    if (tuck_doc_read_file(j->path, NULL, NULL, &j->doc) != TUCK_OK)
        return false;
    bool ok = tuck_doc_print(j->doc, TUCK_FORM_TEXT, NULL, sink, &len) == TUCK_OK && len > 0;
    tuck_doc_free(j->doc);
    return ok;
}

static bool read_infer_print(struct job *j)
{
    size_t len = 0;

    if (tuck_doc_read_file(j->path, NULL, NULL, &j->doc) != TUCK_OK)
        return false;
    bool ok = tuck_graph_infer(tuck_doc_graph(j->doc, 0), true, NULL) == TUCK_OK &&
              tuck_doc_print(j->doc, TUCK_FORM_TEXT, NULL, sink, &len) == TUCK_OK && len > 0;
    tuck_doc_free(j->doc);
    return ok;
}

/* Runs the tool as users do. */
static bool show_text(struct job *j)
{
    char show[] = "show", text[] = "--text", *path = strdup(j->path), *tuck = strdup(j->tuck);
    char *argv[] = {tuck, show, text, path, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t redirect;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&redirect);
    posix_spawn_file_actions_addopen(&redirect, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    bool ok = posix_spawn(&pid, tuck, &redirect, NULL, argv, env) == 0 &&
              waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    posix_spawn_file_actions_destroy(&redirect);
    free(path);
    free(tuck);
    return ok;
}

static bool read_graph(struct job *j)
{
    return tuck_doc_read_file(j->path, NULL, NULL, &j->doc) == TUCK_OK;
}

/* Passes over a graph that was read before: only the passes, with the copy, inference and lint
 * around each. */
static bool run_passes(struct job *j, const char *passes)
{
    tuck_pipeline *p = NULL;
    bool ok = tuck_pipeline_parse(passes, strlen(passes), "bench", NULL, NULL, &p) == TUCK_OK &&
              tuck_pipeline_run(p, tuck_doc_graph(j->doc, 0), NULL, NULL, NULL) == TUCK_OK;

    tuck_pipeline_free(p);
    tuck_doc_free(j->doc);
    return ok;
}

static bool fuse_ddp(struct job *j)
{
    return run_passes(j, "fuse_ddp_with_concat_op,schedule_comm_wait");
}

static bool bucket(struct job *j)
{
    return run_passes(j, "bucket_all_gather,bucket_reduce_scatter,bucket_all_reduce");
}

/* ---- lowering ---- */

/* Symbols of the generated graphs: each gets a value. */
enum { N_HINTS = 64 };

static bool lower(struct job *j, bool plan)
{
    static char name[N_HINTS][8];
    tuck_hint hint[N_HINTS];
    tuck_program *p = NULL;

    for (int i = 0; i < N_HINTS; i++) {
        snprintf(name[i], sizeof(name[i]), "s%d", i);
        hint[i] = (tuck_hint){name[i], 64};
    }
    tuck_machine machine = {.size = sizeof(machine), .hints = hint, .n_hints = N_HINTS};
    tuck_lower_options o = {.size = sizeof(o), .machine = &machine};
    bool ok = tuck_graph_lower(tuck_doc_graph(j->doc, 0), &o, NULL, &p) == TUCK_OK &&
              (!plan || tuck_program_plan(p, NULL, NULL) == TUCK_OK);
    tuck_program_free(p);
    tuck_doc_free(j->doc);
    return ok;
}

static bool read_and_infer(struct job *j)
{
    return read_graph(j) && tuck_graph_infer(tuck_doc_graph(j->doc, 0), false, NULL) == TUCK_OK;
}

static bool lower_only(struct job *j)
{
    return lower(j, false);
}

static bool lower_and_plan(struct job *j)
{
    return lower(j, true);
}

static const struct row rows[] = {
    {"read + print", "tuck_doc_read_file(), tuck_doc_print()", NULL, read_and_print, {20, 1.1, 8}},
    {"read + infer + print",
     "the same with tuck_graph_infer() between, every annotation checked",
     NULL,
     read_infer_print,
     {15, 1.1, 8}},
    {"tuck show", "tuck show --text GRAPH >/dev/null", NULL, show_text, {20, 1.1, 8}},
    {"DDP fusion",
     "fuse_ddp_with_concat_op,schedule_comm_wait",
     read_graph,
     fuse_ddp,
     {0, 1.15, 0}},
    {"bucketing",
     "bucket_all_gather,bucket_reduce_scatter,bucket_all_reduce",
     read_graph,
     bucket,
     {0, 1.15, 0}},
    {"lower",
     "tuck_graph_lower(): buffers, ops, loops, times",
     read_and_infer,
     lower_only,
     {0, 1.1, 0}},
    {"lower + plan",
     "the same and tuck_program_plan(): peak, arena",
     read_and_infer,
     lower_and_plan,
     {0, 1.1, 0}},
};

/* ---- measuring ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Includes child processes that it waited for. */
static double cpu_now(void)
{
    struct rusage own, others;
    struct timeval user, system, sum;

    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &others);
    timeradd(&own.ru_utime, &others.ru_utime, &user);
    timeradd(&own.ru_stime, &others.ru_stime, &system);
    timeradd(&user, &system, &sum);
    return (double)sum.tv_sec + 1e-6 * (double)sum.tv_usec;
}

/* Runs in a child; its times come back through a pipe, its memory from the operating system. */
static bool run_once(const struct row *row, struct job j, struct measure *m)
{
    int fd[2], status;
    struct rusage use;

    if (pipe(fd) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = row->prepare == NULL || row->prepare(&j);
        double wall = now(), cpu = cpu_now();
        ok = ok && row->run(&j);
        *m = (struct measure){.wall = now() - wall, .cpu = cpu_now() - cpu};
        ok = ok && write(fd[1], m, sizeof(*m)) == (ssize_t)sizeof(*m);
        _exit(!ok);
    }
    close(fd[1]);
    bool ok = pid > 0 && read(fd[0], m, sizeof(*m)) == (ssize_t)sizeof(*m);
    close(fd[0]);
    if (pid < 0 || wait4(pid, &status, 0, &use) != pid || status != 0)
        return false;
    m->peak = 1024.0 * (double)use.ru_maxrss;
    return ok;
}

static bool best_of(const struct row *row, const struct job *j, int runs, struct measure *best)
{
    for (int i = 0; i < runs; i++) {
        struct measure m;

        if (!run_once(row, *j, &m))
            return false;
        double peak = i > 0 && best->peak > m.peak ? best->peak : m.peak;
        if (i == 0 || m.cpu < best->cpu)
            *best = m;
        best->peak = peak;
    }
    return true;
}

/* The slope of log time over log nodes, by least squares. */
static double exponent(const struct graph_file *g, const struct measure *m, int n)
{
    double x = 0, y = 0, xx = 0, xy = 0;

    for (int i = 0; i < n; i++) {
        double u = log(g[i].nodes), v = log(m[i].cpu);
        x += u;
        y += v;
        xx += u * u;
        xy += u * v;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

/* ---- the graphs themselves ---- */

struct compare {
    FILE *file;
    size_t at;
};

/* Does the printed text equal the file? */
static bool same(void *ctx, const char *text, size_t len)
{
    struct compare *c = ctx;
    char piece[4096];

    for (size_t done = 0; done < len;) {
        size_t n = len - done < sizeof(piece) ? len - done : sizeof(piece);
        if (fread(piece, 1, n, c->file) != n || memcmp(piece, text + done, n) != 0)
            return false;
        done += n;
        c->at += n;
    }
    return true;
}

static bool to_stderr(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    return fwrite(text, 1, len, stderr) == len;
}

/* Gets its size, and checks that the library reads it, finds no errors and prints it back byte for
 * byte. */
static bool look_at(struct graph_file *g)
{
    tuck_diags *diags = tuck_diags_new(NULL);
    struct compare c = {.file = fopen(g->path, "rb")};
    struct stat st;
    tuck_doc *doc = NULL;

    if (c.file == NULL || fstat(fileno(c.file), &st) != 0) {
        perror(g->path);
        return false;
    }
    g->bytes = (double)st.st_size;
    bool ok = tuck_doc_read_file(g->path, NULL, diags, &doc) == TUCK_OK &&
              tuck_graph_lint(tuck_doc_graph(doc, 0), diags) == TUCK_OK;
    for (size_t i = 0; i < tuck_diags_count(diags) && i < 5; i++)
        tuck_diag_print(tuck_diags_at(diags, i), false, to_stderr, NULL);
    if (ok) {
        g->nodes = (double)tuck_graph_size(tuck_doc_graph(doc, 0));
        ok = tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, same, &c) == TUCK_OK &&
             c.at == (size_t)st.st_size;
        if (!ok)
            fprintf(stderr, "%s: printed differently, from byte %zu on\n", g->path, c.at);
    }
    tuck_doc_free(doc);
    tuck_diags_free(diags);
    fclose(c.file);
    return ok;
}

/* Runs in a child, so that this process stays small: a child's peak starts with what it
 * inherits. */
static bool look_in_child(struct graph_file *g)
{
    int fd[2], status;

    if (pipe(fd) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = look_at(g) && write(fd[1], g, sizeof(*g)) == (ssize_t)sizeof(*g);
        _exit(!ok);
    }
    close(fd[1]);
    bool ok = pid > 0 && read(fd[0], g, sizeof(*g)) == (ssize_t)sizeof(*g);
    close(fd[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && ok;
}

/* ---- the report ---- */

static bool verdict(const char *what, double got, const char *unit, double need, bool at_least)
{
    bool ok = need == 0 || (at_least ? got >= need : got <= need);

    printf("  %-10s %8.2f %-18s", what, got, unit);
    if (need != 0)
        printf(" needed: at %s %g   %s", at_least ? "least" : "most", need, ok ? "ok" : "MISSED");
    printf("\n");
    return ok;
}

static bool report(const struct options *o, const struct row *row, const struct graph_file *g,
                   const struct measure *m, int n, FILE *json)
{
    const struct measure *big = &m[n - 1];
    double speed = g[n - 1].bytes / big->cpu, memory = big->peak / g[n - 1].bytes;
    double times = o->ast_speed > 0 ? speed / o->ast_speed : 0;
    double slope = n > 1 ? exponent(g, m, n) : 0;
    bool ok = true;

    printf("\n%s: %s\n", row->name, row->about);
    printf("  %10s %10s %10s %10s %10s %10s\n", "nodes", "text MB", "cpu ms", "wall ms", "MB/s",
           "peak MB");
    for (int i = 0; i < n; i++)
        printf("  %10.0f %10.1f %10.1f %10.1f %10.1f %10.1f\n", g[i].nodes, g[i].bytes / 1e6,
               1e3 * m[i].cpu, 1e3 * m[i].wall, g[i].bytes / m[i].cpu / 1e6, m[i].peak / 1e6);
    if (o->ast_speed > 0)
        ok &= verdict("speed", times, "times ast.parse", row->need.times_ast, true);
    if (n > 1)
        ok &= verdict("exponent", slope, "of time over nodes", row->need.exponent, false);
    ok &= verdict("memory", memory, "times the text", row->need.memory, false);

    if (json != NULL) {
        fprintf(json, "    {\"name\": \"%s\", \"times_ast\": %.2f, \"exponent\": %.3f, ", row->name,
                times, slope);
        fprintf(json, "\"memory\": %.2f, \"ok\": %s, \"runs\": [", memory, ok ? "true" : "false");
        for (int i = 0; i < n; i++)
            fprintf(json,
                    "%s\n      {\"nodes\": %.0f, \"bytes\": %.0f, \"cpu_seconds\": %.6f, "
                    "\"wall_seconds\": %.6f, \"peak_bytes\": %.0f}",
                    i ? "," : "", g[i].nodes, g[i].bytes, m[i].cpu, m[i].wall, m[i].peak);
        fprintf(json, "\n    ]}");
    }
    return ok;
}

/* Rows are chosen by the beginning of their names. */
static bool picked(const struct options *o, const struct row *row)
{
    return o->row == NULL || strncmp(row->name, o->row, strlen(o->row)) == 0;
}

static int usage(void)
{
    fputs("usage: bench [-a BYTES_PER_SECOND] [-n RUNS] [-o FILE.json] [-r ROW] [-t TUCK] "
          "GRAPH...\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct options o = {.runs = 3};
    struct graph_file g[MAX_GRAPHS];
    FILE *json = NULL;
    bool ok = true, first = true;
    int c, n = 0;

    while ((c = getopt(argc, argv, "a:n:o:r:t:")) != -1) {
        switch (c) {
        case 'a': o.ast_speed = strtod(optarg, NULL); break;
        case 'n': o.runs = atoi(optarg); break;
        case 'o': o.out = optarg; break;
        case 'r': o.row = optarg; break;
        case 't': o.tuck = optarg; break;
        default: return usage();
        }
    }
    if (optind == argc || argc - optind > MAX_GRAPHS || o.runs < 1)
        return usage();
    for (; optind < argc; optind++, n++) {
        g[n] = (struct graph_file){.path = argv[optind]};
        if (!look_in_child(&g[n]))
            return 1;
    }
    if (o.out != NULL && (json = fopen(o.out, "w")) == NULL) {
        perror(o.out);
        return 1;
    }
    if (o.ast_speed > 0)
        printf("ast.parse: %.2f MB/s\n", o.ast_speed / 1e6);
    if (json != NULL)
        fprintf(json, "{\n  \"ast_parse_bytes_per_second\": %.0f,\n  \"rows\": [\n", o.ast_speed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *row = &rows[i];
        struct measure m[MAX_GRAPHS];
        bool ran = true;

        if (!picked(&o, row))
            continue;
        if (row->run == show_text && o.tuck == NULL) {
            printf("\n%s: skipped, there is no tool\n", row->name);
            continue;
        }
        for (int k = 0; k < n && ran; k++)
            ran = best_of(row, &(struct job){.path = g[k].path, .tuck = o.tuck}, o.runs, &m[k]);
        if (!ran) {
            printf("\n%s: FAILED\n", row->name);
            ok = false;
            continue;
        }
        if (json != NULL && !first)
            fputs(",\n", json);
        first = false;
        ok &= report(&o, row, g, m, n, json);
        fflush(stdout);
    }
    if (json != NULL && (fputs("\n  ]\n}\n", json) < 0 || fclose(json) != 0)) {
        perror(o.out);
        return 1;
    }
    return ok ? 0 : 1;
}
