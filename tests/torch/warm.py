"""Processes that need not import torch: forks of one that has.

Importing torch, Dynamo and Inductor takes 5 s of CPU, more than most ranks then work. So the runner
starts a server first, which imports them and does nothing else: a fork of it has no thread, lock or
compiler of anybody else. For a script it looks like a new process: its own environment, arguments,
output, process group. What is asked for ends with whoever asked.

Where there is no server (a test that is run by itself), a process is a new interpreter.
"""

import contextlib
import ctypes
import gc
import multiprocessing.connection as connection
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import traceback
import warnings

SERVER = "TUCK_TORCH_SERVER"  # in the environment: the address of the server
PR_SET_PDEATHSIG = 1
# What torch reads later than at import, or what the fork reads again: the others must be as they were when
# the server began.
READ_LATE = ("TORCH_TRACE", "TORCH_LOGS", "TORCHINDUCTOR_CACHE_DIR")
_began = {}  # the environment of the server


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# ---- for those who start processes ----


def _at_import(env):
    return {k: v for k, v in env.items() if k.startswith("TORCH") and k not in READ_LATE}


class Process:
    """As subprocess.Popen: pid, poll(), wait(), returncode; and stop(), which ends its whole group."""

    def __init__(self, script, arguments=(), env=None, cwd=None, output=os.devnull):
        """Output is appended to, so that processes can share it."""
        arguments = [str(a) for a in arguments]
        env = dict(os.environ if env is None else env)
        self.returncode = None
        if SERVER in os.environ and _at_import(env) == _at_import(_began):
            self.server = connection.Client("\0" + os.environ[SERVER], "AF_UNIX")
            self.server.send((str(script), arguments, env, str(cwd or os.getcwd()), str(output)))
            self.pid = self.server.recv()
            return
        with open(output, "ab") as out:
            self.server = None
            self.process = subprocess.Popen(
                [sys.executable, str(script), *arguments], env=env, cwd=cwd,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        self.pid = self.process.pid

    def wait(self, seconds=None):
        """The exit code; negative: a signal; None: it runs still."""
        if self.returncode is None and self.server is None:
            try:
                self.returncode = self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
        elif self.returncode is None and self.server.poll(seconds):
            self.returncode = self.server.recv()
            self.server.close()
        return self.returncode

    def poll(self):
        return self.wait(0)

    def stop(self):
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- the server ----


def serve():
    """Imports torch, starts the server in a fork of this process, and puts its address into the
    environment. It ends with this process."""
    import torch._inductor.compile_fx
    import torch._inductor.cpu_vec_isa
    import torch.distributed.tensor.parallel  # noqa: F401

    torch._inductor.cpu_vec_isa.valid_vec_isa_list()  # compiles and loads something for each

    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("importing torch starts threads: forks of such a process hang")
    _began.update(os.environ)
    gc.freeze()
    door = socket.socket(socket.AF_UNIX)
    name = f"tuck-warm-{os.getpid()}"
    door.bind("\0" + name)
    door.listen(64)
    if os.fork() == 0:
        try:
            end_with_parent()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _Server(door).run()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    door.close()
    os.environ[SERVER] = name


class _Server:
    def __init__(self, door):
        self.door = door
        self.clients = {}  # by pid
        self.ready = selectors.DefaultSelector()
        self.ready.register(door, selectors.EVENT_READ, self.accept)

    def run(self):
        while True:
            for key, _ in self.ready.select():
                key.data()

    def accept(self):
        client = connection.Connection(self.door.accept()[0].detach())
        given = client.recv()
        pid = os.fork()
        if pid == 0:
            _run(*given)
        os.setpgid(pid, pid)  # before anybody knows it: it may be slower to do so itself
        self.clients[pid] = client
        client.send(pid)
        ended = os.pidfd_open(pid)
        self.ready.register(ended, selectors.EVENT_READ, lambda: self.ended(pid, ended))
        self.ready.register(client, selectors.EVENT_READ, lambda: self.left(pid))

    def left(self, pid):
        """Nobody waits for it any more."""
        client = self.clients.pop(pid, None)
        if client is not None:
            self.ready.unregister(client)
            client.close()
            os.killpg(pid, signal.SIGKILL)

    def ended(self, pid, pidfd):
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.ready.unregister(pidfd)
        os.close(pidfd)
        client = self.clients.pop(pid, None)
        if client is not None:
            self.ready.unregister(client)
            with contextlib.suppress(OSError):
                client.send(code)
            client.close()


def _warn_as_usual():
    """The server may have been told to ignore warnings; what is tested says something by them."""
    warnings.resetwarnings()
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)


def _run(script, arguments, env, cwd, output):
    """In the fork: as an interpreter that was started with these."""
    import torch

    code = 0
    try:
        os.setpgid(0, 0)
        end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _warn_as_usual()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        for fd in (1, 2):
            os.dup2(out, fd)
        os.closerange(3, 1024)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        sys.argv = [script, *arguments]
        sys.path[:0] = [os.path.dirname(script), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
        logs = torch._logging._internal
        logs.LOG_TRACE_HANDLER = None  # or it stays that of the server, which has none
        logs._init_logs()
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
