#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---- standard output ---- */

static int stdout_error; /* errno of the first write that failed */

static ssize_t write_stdout(void *cookie, const char *text, size_t len)
{
    size_t done = 0;

    (void)cookie;
    while (done < len) {
        ssize_t n = write(STDOUT_FILENO, text + done, len - done);
        if (n < 0 && errno != EINTR) {
            if (stdout_error == 0)
                stdout_error = errno;
            return 0; /* tells glibc that it failed */
        }
        if (n > 0)
            done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Runs at exit, because argp ends the program itself after --help. */
static void check_stdout(int code, void *unused)
{
    (void)unused;
    bool wrong = fflush(stdout) != 0 || ferror(stdout);
    if (wrong)
        fprintf(stderr, "tuck: standard output: %s\n", strerror(stdout_error ? stdout_error : EIO));
    wrong |= ferror(stderr) != 0;
    if (wrong && (code == EXIT_FINE || code == EXIT_FOUND))
        _exit(EXIT_FILE);
}

/* If a standard descriptor is closed, the next opened file would get its number, and messages would
 * be written into it. */
static void fill_closed(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR);
}

/* ---- signals ---- */

enum { MOST_OPEN = 8 };
static const char *volatile unfinished[MOST_OPEN];

static void end_by_signal(int sig)
{
    for (int i = 0; i < MOST_OPEN; i++)
        if (unfinished[i] != NULL && unfinished[i][0] != '\0')
            unlink(unfinished[i]);
    signal(sig, SIG_DFL);
    raise(sig);
}

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};
enum { N_ENDING = sizeof(ending) / sizeof(*ending) };

static void block(bool on, sigset_t *old)
{
    sigset_t all;

    sigemptyset(&all);
    for (int i = 0; i < N_ENDING; i++)
        sigaddset(&all, ending[i]);
    if (on)
        sigprocmask(SIG_BLOCK, &all, old);
    else
        sigprocmask(SIG_SETMASK, old, NULL);
}

void output_start(void)
{
    static const cookie_io_functions_t io = {.write = write_stdout};
    struct sigaction act = {.sa_handler = end_by_signal}, old;

    fill_closed();
    signal(SIGXFSZ, SIG_IGN); /* so that write() fails with EFBIG */
    sigfillset(&act.sa_mask);
    for (int i = 0; i < N_ENDING; i++)
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ending[i], &act, NULL);
    FILE *f = fopencookie(NULL, "w", io);
    if (f != NULL) {
        setvbuf(f, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, 1 << 16);
        stdout = f;
    }
    on_exit(check_stdout, NULL);
}

/* ---- files ---- */

static void remember(const char *temp, bool on)
{
    for (int i = 0; i < MOST_OPEN; i++)
        if (on ? unfinished[i] == NULL : unfinished[i] == temp) {
            unfinished[i] = on ? temp : NULL;
            return;
        }
}

static int complain_of(const char *name, int error)
{
    errno = error;
    return complain(name);
}

int output_open(struct output *o, const char *path)
{
    sigset_t old;

    o->name = path != NULL && strcmp(path, "-") != 0 ? path : NULL;
    if (o->name == NULL)
        return EXIT_FINE;
    block(true, &old);
    int error = file_begin(&o->file, path);
    if (error == 0)
        remember(o->file.temp, true);
    block(false, &old);
    return error == 0 ? EXIT_FINE : complain_of(path, error);
}

bool output_put(void *ctx, const char *text, size_t len)
{
    struct output *o = ctx;

    return o->name ? file_write(&o->file, text, len) : to_file(stdout, text, len);
}

int output_close(struct output *o, int code)
{
    sigset_t old;
    int error = 0;

    if (o->name == NULL)
        return code;
    block(true, &old);
    /* If the disk is full, that is the cause to report, whatever the writer returned. */
    if (code == EXIT_FINE || o->file.error != 0)
        error = file_finish(&o->file);
    else
        file_drop(&o->file);
    remember(o->file.temp, false);
    block(false, &old);
    return error != 0 ? complain_of(o->name, error) : code;
}

int outputs_apart(const struct output_name *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (list[i].path != NULL && list[k].path != NULL &&
                file_same(list[i].path, list[k].path)) {
                fprintf(stderr, "tuck: %s and %s would both write to '%s'\n", list[i].option,
                        list[k].option, list[k].path);
                return EXIT_USAGE;
            }
    return EXIT_FINE;
}
