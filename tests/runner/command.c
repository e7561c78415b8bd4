/* Runs a command of a test, in its own directory and environment. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner/runner.h"

/* Splits as a shell does; rejects what only a shell could do. NULL, or what is wrong. */
const char *split(const char *s, words *w)
{
    buf b = {0};
    bool inside = false; /* in a word */
    char quote = 0;
    for (;; s++) {
        if (*s == '\0' || (quote == 0 && (*s == ' ' || *s == '\t'))) {
            if (quote != 0)
                return "a quote is not closed";
            if (inside)
                *PUSH(w->word, w->count) = b.p;
            if (*s == '\0')
                break;
            b = (buf){0};
            inside = false;
            continue;
        }
        if (!inside)
            buf_add(&b, "", 0);
        inside = true;
        if (quote != 0 && *s == quote) {
            quote = 0;
        } else if (quote == 0 && (*s == '\'' || *s == '"')) {
            quote = *s;
        } else if (*s == '\\' && quote != '\'' && s[1] != '\0' &&
                   (quote == 0 || strchr("\"\\$`", s[1]) != NULL)) {
            buf_add(&b, ++s, 1);
        } else if ((quote == 0 && strchr("|&;<>()*?[", *s) != NULL) ||
                   (quote != '\'' && strchr("$`", *s) != NULL)) {
            return "there is no shell to interpret |&;<>()$`*?[; quote them";
        } else if (strncmp(s, "@ROOT@", 6) == 0) {
            buf_str(&b, opt.root);
            s += 5;
        } else {
            buf_add(&b, s, 1);
        }
    }
    *PUSH(w->word, w->count) = NULL;
    w->count--;
    return w->count > 0 ? NULL : "the command is empty";
}

bool is_assignment(const char *word)
{
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return n > 0 && word[n] == '=';
}

/* Nothing of the user's environment may affect a test. */
words environment(const char *dir)
{
    static const char *const kept[] = {"LD_LIBRARY_PATH", "TMPDIR",        "ASAN_OPTIONS",
                                       "LSAN_OPTIONS",    "UBSAN_OPTIONS", "TSAN_OPTIONS"};
    words env = {0};
    const char *path = getenv("PATH");
    *PUSH(env.word, env.count) = format("PATH=%s/bin:%s", opt.temp, path ? path : "/usr/bin:/bin");
    *PUSH(env.word, env.count) = format("HOME=%s", dir);
    *PUSH(env.word, env.count) = format("LC_ALL=C");
    *PUSH(env.word, env.count) = format("TZ=UTC");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (getenv(kept[i]) != NULL)
            *PUSH(env.word, env.count) = format("%s=%s", kept[i], getenv(kept[i]));
    return env;
}

int memory_file(span s)
{
    int fd = memfd_create("golden", MFD_CLOEXEC);
    if (fd < 0)
        die("memfd_create: %s", strerror(errno));
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0)
            die("write: %s", strerror(errno));
        s.p += n;
        s.n -= (size_t)n;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* In the child. */
_Noreturn static void become(char **argv, char **env, const char *dir, const int fd[3])
{
    const struct rlimit no_core = {0, 0};
    const struct rlimit gigabyte = {1u << 30, 1u << 30}; /* for a command that prints without end */
    const struct rlimit cpu = {(rlim_t)opt.seconds, (rlim_t)opt.seconds + 5};
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &gigabyte);
    setrlimit(RLIMIT_CPU, &cpu);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < 3; i++)
        dup2(fd[i], i);
    if (chdir(dir) == 0) {
        environ = env; /* execvp looks for the program in this PATH */
        execvp(argv[0], argv);
    }
    dprintf(2, "golden_run: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Waits until the child has ended; false if that took too long. SIGCHLD is blocked. */
static bool wait_for(pid_t pid, int *status)
{
    sigset_t child;
    struct timespec now, end;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += opt.wall;
    while (waitpid(pid, status, WNOHANG) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= end.tv_sec)
            return false;
        struct timespec left = {end.tv_sec - now.tv_sec, 0};
        sigtimedwait(&child, NULL, &left);
    }
    return true;
}

outcome run(char **argv, char **env, const char *dir, span input)
{
    outcome o = {0};
    buf out = {0}, err = {0};
    int status = 0;
    const int fd[3] = {memory_file(input), memory_file((span){0}), memory_file((span){0})};
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0)
        become(argv, env, dir, fd);
    setpgid(pid, pid);
    if (!wait_for(pid, &status)) {
        o.trouble = format("still running after %d s", opt.wall);
        kill(-pid, SIGKILL);
        waitpid(pid, &status, 0);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
        o.trouble = format("took more than %d s of processor time", opt.seconds);
    } else if (WIFSIGNALED(status)) {
        o.trouble = format("killed by signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    }
    kill(-pid, SIGKILL); /* anything it left running */
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    lseek(fd[1], 0, SEEK_SET);
    lseek(fd[2], 0, SEEK_SET);
    read_fd(fd[1], &out);
    read_fd(fd[2], &err);
    o.out = buf_span(&out);
    o.err = buf_span(&err);
    for (int i = 0; i < 3; i++)
        close(fd[i]);
    return o;
}

/* Replaces the path `from`, unless it is the beginning of a longer name. */
static span replace_path(span s, const char *from, const char *to)
{
    buf b = {0};
    size_t n = strlen(from);
    buf_add(&b, "", 0);
    while (s.n > 0) {
        const char *hit = memmem(s.p, s.n, from, n);
        size_t before = hit ? (size_t)(hit - s.p) : s.n;
        buf_add(&b, s.p, before);
        s.p += before;
        s.n -= before;
        if (hit == NULL)
            break;
        bool whole = s.n == n || from[n - 1] == '/' || strchr("/:,;.)'\" \n", s.p[n]) != NULL;
        buf_str(&b, whole ? to : from);
        s.p += n;
        s.n -= n;
    }
    return buf_span(&b);
}

span normalise(span s, const char *dir)
{
    s = replace_path(s, format("%s/", dir), "");
    s = replace_path(s, dir, ".");
    s = replace_path(s, format("%s/bin/", opt.temp), "");
    return replace_path(s, opt.root, "@ROOT@");
}
