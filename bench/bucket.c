/* usage: bucket -p PASS [-s SECONDS] [-x TIMES] [-y TIMES] TUCK GRAPH
 *
 * CPU time of one pass over a graph, compared with PyTorch's (SECONDS): the pass alone, the best of
 * RUNS in one process, and the tool with reading and printing, the best of RUNS processes. The exit
 * status is 1 if Tuck is less than TIMES faster (-x: the pass alone, -y: with everything).
 */
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "study/runner.h"
#include "study/pass_table.h"

enum { RUNS = 25 };

/* Milliseconds of the pass itself, from its report; < 0 if it failed. */
static double run_pass(tuck_doc *doc, const char *text)
{
    struct pipeline p;
    struct tuck_report report = {.mem = {.trap = NULL}};
    struct machine machine;
    struct evaluate_options eval;
    struct study study;
    struct runner r = {.study = &study};
    tuck_graph *g = NULL;
    double ms = -1;

    pipeline_init(&p, &all_passes, NULL);
    mem_init(&report.mem, NULL);
    tuck_cluster *cluster = NULL;
    if (tuck_cluster_preset("h100x8", NULL, NULL, &cluster) != TUCK_OK)
        return -1;
    machine_init(&machine, cluster);
    evaluate_defaults(&eval, &machine);
    study_begin(&study, &eval, &report.mem.alloc);
    arena_init(&report.arena, &report.mem);
    if (pipeline_parse(&p, text, strlen(text), "bench", NULL) == TUCK_OK &&
        tuck_graph_copy(tuck_doc_graph(doc, 0), &g) == TUCK_OK &&
        pipeline_run(&p, g, &r, &report, NULL) == TUCK_OK)
        ms = report.pass.at[0].ms;
    tuck_graph_free(g);
    tuck_cluster_free(cluster);
    arena_destroy(&report.arena);
    pipeline_destroy(&p);
    return ms;
}

static double children_cpu(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Seconds of `tuck optimize GRAPH -p PASS`; < 0 if it failed. */
static double run_tool(char *tuck, char *graph, char *pass)
{
    char optimize[] = "optimize", p[] = "-p", o[] = "-o", null[] = "/dev/null";
    char *argv[] = {tuck, optimize, graph, p, pass, o, null, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t redirect;
    double before = children_cpu();
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&redirect);
    posix_spawn_file_actions_addopen(&redirect, STDOUT_FILENO, null, O_WRONLY, 0);
    bool ok = posix_spawn(&pid, tuck, &redirect, NULL, argv, env) == 0 &&
              waitpid(pid, &status, 0) == pid && status == 0;
    posix_spawn_file_actions_destroy(&redirect);
    return ok ? children_cpu() - before : -1;
}

static bool verdict(const char *what, double ms, double seconds, double need)
{
    double times = 1e3 * seconds / ms;
    bool ok = times >= need;

    printf("  %-25s %9.3f ms", what, ms);
    if (seconds > 0)
        printf("   torch %8.3f s   %7.0f times", seconds, times);
    if (need > 0)
        printf("   needed: %g   %s", need, ok ? "ok" : "MISSED");
    printf("\n");
    return ok;
}

int main(int argc, char **argv)
{
    char *pass = NULL;
    double seconds = 0, alone = 0, all = 0, best = 1e9, whole = 1e9;
    tuck_doc *doc = NULL;
    int c;

    while ((c = getopt(argc, argv, "p:s:x:y:")) != -1) {
        switch (c) {
        case 'p': pass = optarg; break;
        case 's': seconds = strtod(optarg, NULL); break;
        case 'x': alone = strtod(optarg, NULL); break;
        case 'y': all = strtod(optarg, NULL); break;
        default: return 2;
        }
    }
    if (pass == NULL || argc - optind != 2) {
        fputs("usage: bucket -p PASS [-s SECONDS] [-x TIMES] [-y TIMES] TUCK GRAPH\n", stderr);
        return 2;
    }
    if (tuck_doc_read_file(argv[optind + 1], NULL, NULL, &doc) != TUCK_OK ||
        tuck_graph_read_sidecar(tuck_doc_graph(doc, 0), argv[optind + 1], -1, NULL) != TUCK_OK) {
        fprintf(stderr, "bucket: cannot read %s\n", argv[optind + 1]);
        return 1;
    }
    for (int i = 0; i < RUNS && best >= 0; i++) {
        double ms = run_pass(doc, pass);
        best = ms < best ? ms : best;
    }
    for (int i = 0; i < RUNS && whole >= 0; i++) {
        double s = run_tool(argv[optind], argv[optind + 1], pass);
        whole = s < whole ? s : whole;
    }
    if (best < 0 || whole < 0) {
        fprintf(stderr, "bucket: %s failed\n", pass);
        return 1;
    }
    printf("%s, %zu nodes\n", pass, tuck_graph_size(tuck_doc_graph(doc, 0)));
    tuck_doc_free(doc);
    bool ok = verdict("the pass alone", best, seconds, alone);
    ok &= verdict("with reading and printing", 1e3 * whole, seconds, all);
    return !ok;
}
