/*
 * Runs golden tests: commands with the output they must give, in one readable file.
 *
 *     # What is shown. Lines before the first command or file are comments.
 *     --- file graph.txt
 *     ...content...
 *     $ tuck show graph.txt
 *     --- stdin
 *     ...what the command reads...
 *     --- stdout
 *     ...expected...
 *     --- stderr
 *     ...expected...
 *     --- exit 1
 *
 * Everything below a command is optional: no output and exit status 0 are what is expected then.
 * Text right after the command is its standard output, so that a test may read like a terminal:
 *
 *     $ tuck --version
 *     tuck 0.2.0
 *
 * The commands of a file run one after another in one fresh directory. Files that stand before a
 * command, or between it and what it must give, are written just before it runs. A command is split
 * into words as a shell does it, with quotes; there is no shell. It may start with NAME=value. In
 * it, @ROOT@ is the root of the repository; in outputs the root is shown as @ROOT@, and the fresh
 * directory is left out of paths. The environment is empty but for what it takes to run; `tuck` is
 * the program under test (-t), `golden_run` this one.
 *
 * A section ends at the next line that starts with "--- " or "$ ". At the end of what belongs to a
 * command, one blank line only separates. Text that itself starts with "--- ", "$ ", "```" or "\\"
 * gets a backslash before it. "--- stdout (no newline)" says that the last line does not end. "---
 * # words" is a comment between commands.
 *
 * In Markdown the tests are the blocks fenced as ```tuck-test; all blocks of a page share one
 * directory, in which `examples` is the one of the repository.
 */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/runner.h"

struct runner_options opt = {.seconds = 20, .wall = 600};

typedef struct {
    int passed, failed;
    bool done; /* its process ran to the end */
} tally;

/* ---------------------------------------------------------------- one test file */

static void write_section(const section *s, const char *dir)
{
    char *path = format("%s/%s", dir, s->name);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
    if (!write_file(path, content(s)))
        die("%s: %s", path, strerror(errno));
}

/* Runs one command and writes what is wrong with it to f. */
static bool run_case(const testfile *t, const testcase *c, const char *dir, FILE *f, changes *ch)
{
    words argv = {0}, env = environment(dir);
    const section *in = find(c, TO_STDIN), *out = find(c, STDOUT), *err = find(c, STDERR);
    const section *status = find(c, EXIT);
    const char *wrong = split(c->command, &argv);
    size_t first = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->sections[i].kind == TO_FILE)
            write_section(&c->sections[i], dir);
    while (wrong == NULL && argv.word[first] != NULL && is_assignment(argv.word[first]))
        *PUSH(env.word, env.count) = argv.word[first++];
    *PUSH(env.word, env.count) = NULL;
    if (wrong == NULL && argv.word[first] == NULL)
        wrong = "there is no command behind the variables";
    if (wrong != NULL) {
        fprintf(f, "FAIL %s:%d: $ %s\n  %s\n", t->path, c->line, c->command, wrong);
        return false;
    }

    outcome o = run(argv.word + first, env.word, dir, in ? content(in) : (span){"", 0});
    o.out = normalise(o.out, dir);
    o.err = normalise(o.err, dir);
    span want_out = out ? content(out) : (span){"", 0};
    span want_err = err ? content(err) : (span){"", 0};
    int want = status ? status->status : 0;
    bool same_out = span_eq(want_out, o.out), same_err = span_eq(want_err, o.err);
    bool ok = o.trouble == NULL && o.status == want && same_out && same_err;
    if (ok || (opt.bless && o.trouble == NULL)) {
        if (!ok)
            bless(t, c, &o, ch);
        if (opt.verbose || !ok)
            fprintf(f, "%s %s:%d: $ %s\n", ok ? "ok  " : "blessed", t->path, c->line, c->command);
        return true;
    }
    fprintf(f, "FAIL %s:%d: $ %s\n", t->path, c->line, c->command);
    if (o.trouble != NULL)
        fprintf(f, "  %s\n", o.trouble);
    else if (o.status != want)
        fprintf(f, "  exit status: expected %d, got %d\n", want, o.status);
    if (!same_out)
        print_difference(f, "stdout", want_out, o.out);
    if (!same_err)
        print_difference(f, "stderr", want_err, o.err);
    return false;
}

static void run_file(testfile *t, const char *dir, FILE *f, tally *sum)
{
    changes ch = {0};
    parse(t);
    if (t->error != NULL) {
        fprintf(f, "FAIL %s:", t->path);
        if (t->error_line > 0)
            fprintf(f, "%d:", t->error_line);
        fprintf(f, " %s\n", t->error);
        sum->failed++;
    } else if (t->count > 0) {
        char *examples = format("%s/examples", opt.root), *link = format("%s/examples", dir);
        if (mkdir(dir, 0777) != 0 || (t->markdown && symlink(examples, link) != 0))
            die("%s: %s", dir, strerror(errno));
        for (size_t i = 0; i < t->count; i++) {
            bool ok = run_case(t, &t->cases[i], dir, f, &ch);
            sum->passed += ok;
            sum->failed += !ok;
        }
        if (ch.count > 0)
            rewrite(t, &ch);
    }
    fflush(f);
    sum->done = true;
}

/* ---------------------------------------------------------------- all of them */

static char **paths;
static size_t path_count;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int collect(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    const char *name = path + where->base, *dot = strrchr(name, '.');
    bool is_test = dot != NULL && (strcmp(dot, ".txt") == 0 || strcmp(dot, ".md") == 0);
    if (type == FTW_F && (where->level == 0 || (is_test && name[0] != '.')))
        *PUSH(paths, path_count) = strdup(path);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static volatile sig_atomic_t interrupted;

static void interrupt(int sig)
{
    interrupted = sig;
}

/* One process per test file, at most `jobs` at a time; their output is printed in order. */
static tally run_all(int jobs)
{
    tally sum = {0};
    tally *each = mmap(NULL, (path_count + 1) * sizeof *each, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *pid = grow(NULL, path_count + 1, sizeof *pid);
    int *fd = grow(NULL, path_count + 1, sizeof *fd);
    size_t started = 0, printed = 0;
    int running = 0;
    if (each == MAP_FAILED)
        die("mmap: %s", strerror(errno));
    while (printed < path_count && !interrupted) {
        if (started < path_count && running < jobs) {
            size_t i = started++;
            fd[i] = memory_file((span){0});
            fflush(NULL);
            pid[i] = fork();
            if (pid[i] == 0) {
                sigset_t child;
                sigemptyset(&child);
                sigaddset(&child, SIGCHLD);
                sigprocmask(SIG_BLOCK, &child, NULL);
                signal(SIGINT, SIG_DFL);
                signal(SIGTERM, SIG_DFL);
                FILE *f = fdopen(fd[i], "w");
                testfile t = {.path = paths[i]};
                run_file(&t, format("%s/%zu", opt.temp, i), f, &each[i]);
                _exit(0);
            }
            if (pid[i] < 0)
                die("fork: %s", strerror(errno));
            running++;
            continue;
        }
        pid_t ended = wait(NULL);
        if (ended < 0)
            continue; /* interrupted */
        running--;
        for (size_t i = 0; i < started; i++)
            if (pid[i] == ended)
                pid[i] = 0;
        for (; printed < started && pid[printed] == 0; printed++) {
            buf b = {0};
            const tally *r = &each[printed];
            lseek(fd[printed], 0, SEEK_SET);
            read_fd(fd[printed], &b);
            close(fd[printed]);
            fwrite(b.p, 1, b.n, stdout);
            free(b.p);
            if (!r->done)
                printf("FAIL %s: the test runner gave up on it\n", paths[printed]);
            sum.passed += r->passed;
            sum.failed += r->failed + !r->done;
        }
    }
    for (size_t i = 0; i < started && interrupted; i++)
        if (pid[i] > 0)
            kill(pid[i], SIGKILL); /* and the commands with them */
    munmap(each, (path_count + 1) * sizeof *each);
    free(pid);
    free(fd);
    return sum;
}

static char *absolute_path(const char *path)
{
    char *absolute = realpath(path, NULL);
    if (absolute == NULL)
        die("%s: %s", path, strerror(errno));
    return absolute;
}

static void link_program(const char *name, const char *absolute)
{
    if (symlink(absolute, format("%s/bin/%s", opt.temp, name)) != 0)
        die("%s: %s", name, strerror(errno));
}

static const char usage[] =
    "usage: golden_run [-uv] [-j N] [-s SECONDS] [-w SECONDS] [-r ROOT] -t TUCK PATH...\n"
    "Runs the golden tests in files, and in all .txt and .md files below directories.\n"
    "  -t TUCK     the program under test\n"
    "  -u          bless: write what the commands give into the tests\n"
    "  -v          name each command that is right, too, and show differences in full\n"
    "  -j N        run N test files at once (default: one for each processor)\n"
    "  -s SECONDS  of processor time that one command may take (default: 20)\n"
    "  -w SECONDS  after which it is ended in any case (default: 600)\n"
    "  -r ROOT     what @ROOT@ stands for (default: the current directory)\n";

int main(int argc, char **argv)
{
    const char *tuck = NULL, *root = ".";
    int jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), o;
    while ((o = getopt(argc, argv, "uvt:j:s:w:r:h")) != -1) {
        switch (o) {
        case 'u': opt.bless = true; break;
        case 'v': opt.verbose = true; break;
        case 't': tuck = optarg; break;
        case 'j': jobs = atoi(optarg); break;
        case 's': opt.seconds = atoi(optarg); break;
        case 'w': opt.wall = atoi(optarg); break;
        case 'r': root = optarg; break;
        default: fputs(usage, o == 'h' ? stdout : stderr); return o == 'h' ? 0 : 2;
        }
    }
    if (tuck == NULL || optind == argc || jobs < 1 || opt.seconds < 1 || opt.wall < 1) {
        fputs(usage, stderr);
        return 2;
    }
    for (int i = optind; i < argc; i++) {
        size_t first = path_count;
        if (nftw(argv[i], collect, 16, FTW_PHYS) != 0)
            die("%s: %s", argv[i], strerror(errno));
        if (path_count > first)
            qsort(paths + first, path_count - first, sizeof *paths, by_name);
    }

    const char *tmp = getenv("TMPDIR");
    char *program = absolute_path(tuck), *self = absolute_path("/proc/self/exe");
    char *temp = format("%s/golden.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    opt.root = absolute_path(root);
    if (mkdtemp(temp) == NULL)
        die("%s: %s", temp, strerror(errno));
    opt.temp = absolute_path(temp);
    if (mkdir(format("%s/bin", opt.temp), 0777) != 0)
        die("%s: %s", opt.temp, strerror(errno));
    link_program("tuck", program);
    link_program("golden_run", self);

    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    tally sum = run_all(jobs);
    nftw(opt.temp, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (interrupted)
        leave(128 + interrupted);
    printf("%d passed, %d failed\n", sum.passed, sum.failed);
    leave(sum.failed == 0 && sum.passed > 0 ? 0 : 1);
}
