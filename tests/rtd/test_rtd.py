#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""neuron-rtd, as clients in another language see it.

usage: test_rtd.py BUILD	(the directory of the Makefile)

The daemon runs on a driver in its own process (mock.c), with ASan and UBSan.
"""

import array
import contextlib
import errno
import fcntl
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import grpc

BUILD = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(BUILD))
import neuron_rtd_pb2 as pb  # noqa: E402  pylint: disable=wrong-import-position

MOCK = str(BUILD / 'asan/mock')
WORK = pathlib.Path(tempfile.mkdtemp(prefix='rtd-'))
NEFF = WORK / 'model.neff'
METHODS = {
    'CreateGroup': (pb.CreateGroupRequest, pb.Handle), 'DestroyGroup': (pb.Handle, pb.Empty),
    'Load': (pb.LoadRequest, pb.LoadResponse), 'Unload': (pb.Handle, pb.Empty),
    'Start': (pb.Handle, pb.Empty), 'Stop': (pb.Handle, pb.Empty),
    'Infer': (pb.InferRequest, pb.InferResponse), 'Post': (pb.InferRequest, pb.Handle),
    'Wait': (pb.WaitRequest, pb.InferResponse), 'ReleaseMemory': (pb.Handle, pb.Empty),
    'Status': (pb.Empty, pb.StatusResponse)}
C = grpc.StatusCode
BYTES = 1024
BAD_ENDPOINTS = ('127.0.0.1:', '127.0.0.1:0', '127.0.0.1:99999', '127.0.0.1:-1', '[::1]', ':http')
SO_PASSRIGHTS = 83


class Failed(Exception):
    """A test that failed."""


def check(good, text='is not so'):
    if not good:
        raise Failed(text)


def refused(code, function, *args, **kwargs):
    """The call is to fail with this code, or one of these."""
    codes = code if isinstance(code, tuple) else (code,)
    try:
        function(*args, **kwargs)
    except grpc.RpcError as error:
        check(error.code() in codes, f'{error.code()}: {error.details()}')
        return
    raise Failed(f'{function} did not fail')


def part(suffix):
    return NEFF.with_name(NEFF.name + suffix).read_bytes()


def eventually(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        check(time.monotonic() < end, 'too late')
        time.sleep(0.02)


class Client:
    """A connection of its own to a daemon."""

    def __init__(self, path):
        self.path = path
        self.channel = grpc.insecure_channel(
            f'unix:{path}', options=[('grpc.use_local_subchannel_pool', 1)])
        for name, (request, response) in METHODS.items():
            setattr(self, name, self.method(name, request, response))

    def method(self, name, request, response):
        call = self.channel.unary_unary(f'/rtd.Runtime/{name}', request.SerializeToString,
                                        response.FromString)
        return lambda timeout=30, **fields: call(request(**fields), timeout=timeout,
                                                 wait_for_ready=True)

    def later(self, name, **fields):
        """The same without waiting."""
        request, response = METHODS[name]
        call = self.channel.unary_unary(f'/rtd.Runtime/{name}', request.SerializeToString,
                                        response.FromString)
        return call.future(request(**fields), timeout=60)

    def load(self, **fields):
        return self.Load(neff=NEFF.read_bytes(), **fields).model

    def infer(self, model, seed=1):
        x = pattern(seed)
        r = self.Infer(model=model, inputs=[pb.Tensor(name='x', data=x)])
        check(r.status == 0 and r.outputs[0].data == expected(x), str(r.errors))

    def free(self):
        return self.Status().free_cores


def pattern(seed):
    return bytes((i * 7 + seed) & 255 for i in range(BYTES))


def expected(x):
    return bytes(200 - i if i < 200 else 0 for i in range(256)) + x[256:]


def environment(**extra):
    return {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=1', **extra}


def listens(path):
    """A socket has its name before it can be connected to."""
    with open('/proc/net/unix', encoding='utf-8') as sockets:
        return any(fields[3] == '00010000' and fields[-1] == path
                   for fields in map(str.split, sockets))


class Daemon:
    """One on a socket of its own."""

    count = 0
    ends = (0, -9)

    def __init__(self, *options, config='', **env):
        Daemon.count += 1
        self.path = str(WORK / f'{Daemon.count}.sock')
        conf = WORK / f'{Daemon.count}.conf'
        conf.write_text(config)
        self.errors = WORK / f'{Daemon.count}.log'
        with open(self.errors, 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [MOCK, '-x', '-c', conf, '-g', self.path, *options], stderr=log,
                env=environment(**env))
        eventually(lambda: listens(self.path + '.memory') or
                   self.process.poll() is not None)
        check(self.process.poll() is None, self.errors.read_text())

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = 'no end'
        if kind is None:
            check(status in self.ends, f'ends with {status}: {self.errors.read_text()[-3000:]}')
        elif self.errors.exists():
            print(self.errors.read_text()[-3000:], file=sys.stderr)


def spawn(path, *steps):
    """A client in a process of its own; prints a line after each step, then waits."""
    child = subprocess.Popen([sys.executable, '-B', __file__, str(BUILD), 'client', path, *steps],
                             stdout=subprocess.PIPE, text=True)
    return child


def child_main(path, steps):
    c = Client(path)
    model = None
    for step in steps:
        if step == 'load':
            model = c.load(depth=2)
        elif step == 'shared':
            model = c.load(depth=2, shared=True)
        elif step == 'group':
            c.CreateGroup(cores=2)
        elif step.startswith('keep'):
            keep(c, c.CreateGroup(cores=4).id if step == 'keep-group' else 0)
        elif step.startswith('stop='):
            # On several connections, each of which has 64 calls at most.
            others = [Client(path) for _ in range(2)]
            stops = [others[i % 2].later('Stop', id=model) for i in range(int(step[5:]))]
            time.sleep(0.5)
            if int(step[5:]) > 64:
                full = [x for x in stops if x.done() and x.code() == C.RESOURCE_EXHAUSTED]
                check(len(full) == int(step[5:]) - 64, f'{len(full)} are refused')
        elif step == 'release':
            number = shared_memory(path, 8192)[2]
            c.Post(model=model, inputs=[pb.Tensor(name='x', data=pattern(1))], outputs=[
                pb.Tensor(name='y', memory=pb.Memory(id=number, bytes=BYTES))])
            release = c.later('ReleaseMemory', id=number)
            time.sleep(0.1)
            check(not release.done())
        elif step == 'loads':
            loads = [c.later('Load', neff=NEFF.read_bytes()) for _ in range(6)]
            time.sleep(0.2)
            check(not loads[0].done())
        elif step == 'large':
            c.Load(neff=part('.large'))
        elif step == 'deep':
            model = c.load(depth=8)
        elif step == 'post':
            c.Post(model=model, inputs=[pb.Tensor(name='x', data=pattern(1))])
        elif step.startswith('use='):
            model = int(step[4:])
        elif step.startswith('infer='):
            for i in range(int(step[6:])):
                with contextlib.suppress(grpc.RpcError):
                    c.infer(model, i)
                    continue
                # Only for want of a place in the queue.
                time.sleep(0.01)
                c.infer(model, i)
        elif step == 'refused':
            refused(C.NOT_FOUND, c.infer, model)
            refused(C.NOT_FOUND, c.Unload, id=model)
            check(not c.Status().models)
        elif step == 'hang':
            sockets = hang(path, 80)
        elif step == 'exit':
            print('done', flush=True)
            os._exit(0)
        print(f'{step} {model}', flush=True)
    time.sleep(600)


def shared_memory(client_path, size, seals=fcntl.F_SEAL_SHRINK, descriptors=1, file=None,
                  data=b'm'):
    """Its descriptor and what the daemon says of it: status, number; no data, no answer."""
    fd = file if file is not None else os.memfd_create('test', os.MFD_ALLOW_SEALING)
    if file is None:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(client_path + '.memory')
        fds = array.array('i', [fd] * descriptors)
        s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if descriptors else [])
        s.settimeout(20)
        status, number = struct.unpack('qQ', s.recv(16)) if data else (s.recv(16), 0)
    return fd, status, number


# ---- the tests --------------------------------------------------------------------------------

def test_load_and_infer():
    """load without a group, infer, unload"""
    with Daemon() as d:
        c = Client(d.path)
        s = c.Status()
        check(s.cores == 4 and s.free_cores == 4 and s.clients == 1, str(s))
        r = c.Load(neff=NEFF.read_bytes())
        check([(t.name, t.output, t.bytes) for t in r.tensors] ==
              [('x', False, BYTES), ('y', True, BYTES)] and c.free() == 3, str(r))
        for i in range(20):
            c.infer(r.model, i)
        m = c.Status().models[0]
        check(m.model == r.model and m.own and m.running and m.done == 20, str(m))
        n = m.nodes[0]
        check(len(m.nodes) == 1 and n.runs == 20 and not n.failed and n.core == 0, str(n))
        check(n.memory and n.longest_ns <= n.busy_ns <= 20 * n.longest_ns, str(n))
        c.Unload(id=r.model)
        check(c.free() == 4)
        refused(C.NOT_FOUND, c.infer, r.model)
        refused(C.NOT_FOUND, c.Unload, id=r.model)


def test_groups():
    """models of a group take turns; groups have their cores"""
    with Daemon() as d:
        c = Client(d.path)
        g = c.CreateGroup(cores=3).id
        refused(C.RESOURCE_EXHAUSTED, c.CreateGroup, cores=2)
        a, b = c.load(group=g), c.load(group=g)
        refused(C.FAILED_PRECONDITION, c.infer, a)
        c.Start(id=a)
        c.infer(a)
        refused(C.FAILED_PRECONDITION, c.Start, id=b)
        refused(C.FAILED_PRECONDITION, c.DestroyGroup, id=g)
        c.Stop(id=a)
        c.Start(id=b)
        c.infer(b)
        refused(C.FAILED_PRECONDITION, c.infer, a)
        refused(C.NOT_FOUND, c.Load, neff=NEFF.read_bytes(), group=99)
        c.Unload(id=a)
        c.Unload(id=b)
        c.DestroyGroup(id=g)
        refused(C.NOT_FOUND, c.DestroyGroup, id=g)
        check(c.free() == 4)


def test_start_against_stop():
    """a stop that comes when a start is not over is the last one"""
    with Daemon(MOCK_START_US='500000') as d:
        c = Client(d.path)
        m = c.load(group=c.CreateGroup(cores=1).id)
        start = c.later('Start', id=m)
        time.sleep(0.2)
        c.Stop(id=m)
        check(start.exception() is None and not c.Status().models[0].running)
        refused(C.FAILED_PRECONDITION, c.infer, m)


def test_post_and_wait():
    """post, wait once; a wait that ends too early leaves the result"""
    with Daemon(config='timeout = 3\n') as d:
        c = Client(d.path)
        m = c.load(depth=4)
        x = pattern(3)
        posts = [c.Post(model=m, inputs=[pb.Tensor(name='x', data=x)]).id for _ in range(4)]
        for p in reversed(posts):
            check(c.Wait(request=p, timeout_ms=20000).outputs[0].data == expected(x))
            refused(C.NOT_FOUND, c.Wait, request=p)
        d.process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        p = c.Post(model=m, inputs=[pb.Tensor(name='x', data=x)]).id
        refused(C.DEADLINE_EXCEEDED, c.Wait, request=p)
        refused(C.DEADLINE_EXCEEDED, c.Wait, request=p, timeout_ms=100)
        refused(C.DEADLINE_EXCEEDED, c.Wait, request=p, timeout_ms=60000, timeout=0.3)
        for _ in range(3):
            c.Post(model=m, inputs=[pb.Tensor(name='x', data=x)])
        refused(C.RESOURCE_EXHAUSTED, c.Post, model=m, inputs=[pb.Tensor(name='x', data=x)])
        d.process.send_signal(signal.SIGUSR1)


def test_wait_given_up():
    """a wait that is given up before it began leaves the result"""
    with Daemon(config='timeout = 2\n', MOCK_WATCH_US='600000') as d:
        c = Client(d.path)
        m = c.load(depth=2)
        args = {'model': m, 'inputs': [pb.Tensor(name='x', data=pattern(6))]}
        # Of a run that is over, and of one that ends, with an error, after the wait.
        for stuck in (False, True):
            if stuck:
                d.process.send_signal(signal.SIGUSR1)
                time.sleep(0.1)
            p = c.Post(**args).id
            refused(C.DEADLINE_EXCEEDED, c.Wait, request=p, timeout_ms=20000, timeout=0.2)
            time.sleep(0.8)
            r = c.Wait(request=p, timeout_ms=20000)
            check(r.status != 0 if stuck else r.outputs[0].data == expected(pattern(6)), str(r))


def test_results_without_model():
    """results that nobody takes do not keep a model, and outlive it"""
    with Daemon() as d:
        c = Client(d.path)
        x = pattern(5)
        models = [c.load(depth=2, shared=i == 2) for i in range(3)]
        posts = [c.Post(model=m, inputs=[pb.Tensor(name='x', data=x)]).id for m in models]
        other = spawn(d.path, f'use={models[2]}', 'post')
        check(other.stdout.readline())
        eventually(lambda: sum(m.done for m in c.Status().models) == 4)
        # As many at a time as there are threads for that.
        for m in models:
            c.Unload(id=m, timeout=10)
        check(c.free() == 4)
        c.infer(c.load(timeout=10))
        for p in posts:
            check(c.Wait(request=p).outputs[0].data == expected(x))
            refused(C.NOT_FOUND, c.Wait, request=p)
        other.kill()
        other.wait()
        eventually(lambda: c.Status().clients == 1)


def test_timeout():
    """a run that does not end is a result with its errors"""
    with Daemon(config='timeout = 1\n') as d:
        c = Client(d.path)
        m = c.load()
        d.process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        r = c.Infer(model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
        check(r.status != 0 and r.errors and not r.outputs, str(r))
        d.process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        c.infer(m)
        s = c.Status().models[0]
        check(s.done == 1 and s.failed == 1, str(s))
        check(s.nodes[0].runs == 2 and s.nodes[0].failed == 1, str(s))


def test_shared_memory():
    """tensors and NEFF in shared memory"""
    with Daemon() as d:
        c = Client(d.path)
        c.Status()
        fd, status, number = shared_memory(d.path, 1 << 20)
        check(status == 0, str(status))
        neff = NEFF.read_bytes()
        os.pwrite(fd, neff, 8192)
        r = c.Load(neff_memory=pb.Memory(id=number, offset=8192, bytes=len(neff)))
        x = pattern(9)
        os.pwrite(fd, x, 100)
        place = {'x': pb.Memory(id=number, offset=100, bytes=BYTES),
                 'y': pb.Memory(id=number, offset=5000, bytes=BYTES)}
        args = {'model': r.model, 'inputs': [pb.Tensor(name='x', memory=place['x'])],
                'outputs': [pb.Tensor(name='y', memory=place['y'])]}
        done = c.Infer(**args)
        check(done.status == 0 and not done.outputs)
        check(os.pread(fd, BYTES, 5000) == expected(x))
        place['x'].offset = (1 << 20) - BYTES + 1
        args['inputs'] = [pb.Tensor(name='x', memory=place['x'])]
        refused(C.INVALID_ARGUMENT, c.Infer, **args)
        c.ReleaseMemory(id=number)
        refused(C.NOT_FOUND, c.ReleaseMemory, id=number)
        place['x'].offset = 0
        args['inputs'] = [pb.Tensor(name='x', memory=place['x'])]
        refused(C.NOT_FOUND, c.Infer, **args)


def test_release_memory():
    """memory is released when no request writes into it any more"""
    with Daemon(MOCK_RUN_US='500000') as d:
        c = Client(d.path)
        m = c.load(depth=2)
        for name in ('Infer', 'Post'):
            fd, _, number = shared_memory(d.path, 8192)
            args = {'model': m, 'inputs': [pb.Tensor(name='x', data=pattern(1))], 'outputs': [
                pb.Tensor(name='y', memory=pb.Memory(id=number, bytes=BYTES))]}
            if name == 'Infer':
                refused(C.DEADLINE_EXCEEDED, c.Infer, timeout=0.1, **args)
            else:
                c.Post(**args)
            release = c.later('ReleaseMemory', id=number)
            time.sleep(0.1)
            check(not release.done() and os.pread(fd, BYTES, 0) == bytes(BYTES))
            refused(C.NOT_FOUND, c.ReleaseMemory, id=number)
            refused((C.INVALID_ARGUMENT, C.NOT_FOUND), c.Infer, **args)
            check(not release.exception() and os.pread(fd, BYTES, 0) == expected(pattern(1)))
        # It counts until then, and a client that ends meanwhile leaves nothing.
        for _ in range(64):
            number = shared_memory(d.path, 8192)[2]
        args['outputs'][0].memory.id = number
        c.Post(**args)
        release = c.later('ReleaseMemory', id=number)
        time.sleep(0.1)
        check(shared_memory(d.path, 4096)[1] == -errno.EDQUOT)
        check(not release.exception() and shared_memory(d.path, 4096)[1] == 0)
        child = spawn(d.path, f'use={c.load(shared=True)}', 'release')
        for _ in range(2):
            check(child.stdout.readline())
        child.kill()
        child.wait()
        eventually(lambda: c.Status().clients == 1)


def test_memory_that_is_refused():
    """memory that can shrink, files, nothing, several, too many"""
    with Daemon() as d, open(NEFF, 'rb') as file:
        c = Client(d.path)
        check(shared_memory(d.path, 4096, seals=fcntl.F_SEAL_GROW)[1] == -22)
        check(shared_memory(d.path, 0)[1] == -22)
        check(shared_memory(d.path, 0, file=file.fileno())[1] == -22)
        check(shared_memory(d.path, 4096, descriptors=0)[1] == -9)
        for _ in range(20):
            check(shared_memory(d.path, 4096, descriptors=2)[1] == -9)
            check(shared_memory(d.path, 4096, data=b'')[1] == b'')
        for _ in range(64):
            check(shared_memory(d.path, 4096)[1] == 0)
        check(shared_memory(d.path, 4096)[1] == -122)
        # Another process has none of it.
        fds = len(os.listdir(f'/proc/{d.process.pid}/fd'))
        check(fds < 40, f'{fds} descriptors stay open')
        check(c.Status().clients == 1)


def test_sealed_memory():
    """memory that is sealed against writing is for inputs"""
    for seal in (fcntl.F_SEAL_WRITE, 16):
        with Daemon() as d:
            c = Client(d.path)
            m = c.load()
            fd = os.memfd_create('test', os.MFD_ALLOW_SEALING)
            os.write(fd, pattern(2) + bytes(BYTES))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | seal)
            _, status, number = shared_memory(d.path, 0, file=fd)
            check(not status, str(status))
            x = pb.Tensor(name='x', memory=pb.Memory(id=number, bytes=BYTES))
            y = pb.Tensor(name='y', memory=pb.Memory(id=number, offset=BYTES, bytes=BYTES))
            r = c.Infer(model=m, inputs=[x])
            check(r.outputs[0].data == expected(pattern(2)))
            says(C.INVALID_ARGUMENT, 'y: its memory is sealed', c.Infer, model=m, inputs=[x],
                 outputs=[y])
            c.ReleaseMemory(id=number)
            os.close(fd)


def test_huge_pages():
    """memory of huge pages is refused: a hole in it ends who touches it"""
    try:
        fd = os.memfd_create('test', os.MFD_ALLOW_SEALING | os.MFD_HUGETLB)
    except OSError as error:
        check(error.errno in (errno.EINVAL, errno.ENOSYS), str(error))
        return
    os.ftruncate(fd, 64 << 20)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    with Daemon() as d:
        c = Client(d.path)
        # ENOMEM, without the check, if the machine has no such pages.
        status = shared_memory(d.path, 0, file=fd)[1]
        check(status == -errno.EINVAL, str(status))
        check(c.Status().clients == 1)
    os.close(fd)


def test_isolation():
    """clients do not see each other's models, but shared ones"""
    with Daemon() as d:
        c = Client(d.path)
        own, shared = c.load(), c.load(shared=True)
        c.Unload(id=shared)
        child = spawn(d.path, f'use={own}', 'refused', 'exit')
        check(child.wait(60) == 0, 'it saw a model')
        shared = c.load(shared=True)
        child = spawn(d.path, f'use={shared}', 'infer=5', 'exit')
        check(child.wait(60) == 0, 'it could not use a shared model')


def test_refusal():
    """whose memory there is no room beside is for the log, not for other clients"""
    with Daemon() as d:
        c = Client(d.path)
        g = c.CreateGroup(cores=1).id
        c.Load(neff=part('.large'), group=g)
        child = spawn(d.path, 'large')
        check(child.stdout.readline())
        try:
            c.Load(neff=part('.large'), group=g)
            raise Failed('it has room')
        except grpc.RpcError as error:
            text = error.details()
            check(error.code() == C.RESOURCE_EXHAUSTED and 'does not fit now' in text, text)
            check('without' not in text and 'large' not in text, text)
        check('it would fit without large' in d.errors.read_text())
        child.kill()
        child.wait()


def test_dead_client():
    """what a killed client had is freed, its shared model stays"""
    with Daemon(MOCK_RUN_US='20000') as d:
        c = Client(d.path)
        child = spawn(d.path, 'load', 'group', 'post', 'post')
        for _ in range(4):
            check(child.stdout.readline())
        check(c.free() == 1 and c.Status().clients == 2)
        child.kill()
        child.wait()
        eventually(lambda: c.free() == 4 and c.Status().clients == 1)
        child = spawn(d.path, 'shared')
        model = int(child.stdout.readline().split()[1])
        child.kill()
        child.wait()
        eventually(lambda: c.Status().clients == 1)
        c.infer(model)
        c.Unload(id=model)
        check(c.free() == 4)


def test_dead_in_load():
    """a client that is killed while its model is loaded leaves nothing"""
    with Daemon(MOCK_ALLOC_US='30000', MOCK_UNLOAD_US='300000') as d:
        c = Client(d.path)
        for delay in (0.5, 0.7, 0.9):
            child = spawn(d.path, 'load')
            eventually(lambda: c.free() < 4)
            time.sleep(delay - 0.45)
            child.kill()
            child.wait()
            eventually(lambda: c.free() == 4 and c.Status().clients == 1)
        c.infer(c.load())


def keep(c, group=0):
    """Leave a pattern in the state buffer of a core."""
    m = c.Load(neff=part('.keep'), group=group).model
    if group:
        c.Start(id=m)
    check(not c.Infer(model=m, inputs=[pb.Tensor(name='x', data=pattern(9))]).status)
    return m


def show(c, group=0):
    """What is there."""
    m = c.Load(neff=part('.show'), group=group).model
    if group:
        c.Start(id=m)
    return m, c.Infer(model=m).outputs[0].data


def test_content():
    """a client reads nothing that another one left in a core"""
    with Daemon() as d:
        c = Client(d.path)
        for step in ('keep', 'keep-group', 'keep'):
            child = spawn(d.path, step)
            check(child.stdout.readline())
            child.kill()
            child.wait()
            eventually(lambda: c.free() == 4)
            group = c.CreateGroup(cores=4).id if step == 'keep' else 0
            m, data = show(c, group)
            check(data == bytes(BYTES), step)
            c.Unload(id=m)
            if group:
                c.DestroyGroup(id=group)
        # A group that stays keeps it, and no run of its models takes a reset.
        group = c.CreateGroup(cores=4).id
        c.Unload(id=keep(c, group))
        check(show(c, group)[1] == pattern(9))


def test_dead_owner():
    """an owner ends while another client unloads its shared model"""
    with Daemon(MOCK_RUN_US='500000') as d:
        c = Client(d.path)
        child = spawn(d.path, 'shared', 'post', 'post')
        model = int(child.stdout.readline().split()[1])
        for _ in range(2):
            check(child.stdout.readline())
        unload = c.later('Unload', id=model)
        eventually(lambda: not c.Status().models)
        child.kill()
        child.wait()
        check(unload.exception() is None and c.free() == 4)
        eventually(lambda: c.Status().clients == 1)
    # Or at the end of the load, which finds the model unloaded by somebody else.
    with Daemon(MOCK_ALLOC_US='30000', MOCK_PUBLISH_US='500000', MOCK_RUN_US='800000') as d:
        c = Client(d.path)
        child = spawn(d.path, 'shared')
        eventually(lambda: c.free() < 4)
        child.kill()
        child.wait()
        eventually(lambda: c.Status().models)
        model = c.Status().models[0].model
        c.Post(model=model, inputs=[pb.Tensor(name='x', data=pattern(1))])
        c.Unload(id=model)
        check(c.free() == 4)
        eventually(lambda: c.Status().clients == 1)


def test_dead_in_queue():
    """what a killed client waits for is cancelled, in whatever order models were loaded"""
    with Daemon(config='timeout = 5\n', MOCK_ALLOC_US='20000') as d:
        c = Client(d.path)

        def counted():
            return next(m for m in c.Status().models if m.model == model)

        slow = c.later('Load', neff=NEFF.read_bytes(), depth=20, shared=True)
        eventually(lambda: c.free() < 4)
        c.load(depth=1)
        check(not slow.done(), 'the first model was faster than the second one')
        model = slow.result().model
        d.process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        for _ in range(20):
            c.Post(model=model, inputs=[pb.Tensor(name='x', data=pattern(1))])
        child = spawn(d.path, f'use={model}', 'infer=1')
        eventually(lambda: counted().waiting)
        child.kill()
        child.wait()
        eventually(lambda: not counted().waiting)
        d.process.send_signal(signal.SIGUSR1)
        eventually(lambda: not counted().under_way)
        check(counted().done + counted().failed == 20, 'it was done')


def test_fair():
    """a client that stops a model with a long queue again and again keeps no other waiting"""
    for stops in (1, 4, 90):
        with Daemon(MOCK_RUN_US='300000') as d:
            c = Client(d.path)
            m = c.load(group=c.CreateGroup(cores=1).id)
            child = spawn(d.path, 'deep', *['post'] * 8, f'stop={stops}')
            for _ in range(10):
                check(child.stdout.readline())
            start = time.monotonic()
            c.Start(id=m)
            c.Unload(id=c.load())
            c.Stop(id=m)
            check(time.monotonic() - start < 1)
            child.kill()
            child.wait()


def test_loads_of_another():
    """nor does one that loads several models, which takes long"""
    with Daemon(MOCK_ALLOC_US='100000') as d:
        c = Client(d.path)
        m = c.load(group=c.CreateGroup(cores=1).id)
        child = spawn(d.path, 'loads')
        check(child.stdout.readline())
        start = time.monotonic()
        c.Start(id=m)
        c.Stop(id=m)
        check(time.monotonic() - start < 0.5)
        child.kill()
        child.wait()


def test_order_of_changes():
    """starts and stops of a model are done in their order, and what waits for one is refused"""
    with Daemon(MOCK_RUN_US='200000') as d:
        c = Client(d.path)
        m = c.load(depth=4)
        for last in ('Start', 'Stop'):
            for _ in range(4):
                c.Post(model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
            waits = c.later('Infer', model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
            time.sleep(0.1)
            calls = [c.later('Stop', id=m)]
            time.sleep(0.1)
            check(waits.done() and not calls[0].done(), 'the stop does not wait')
            for name in ('Start', 'Stop', 'Start', last):
                calls.append(c.later(name, id=m))
                time.sleep(0.05)
            codes = [x.code() for x in calls]
            bad = [i for i, x in enumerate(codes) if x != C.OK]
            check(bad == ([4] if last == 'Start' else []), str(codes))
            check(c.Status().models[0].running == (last == 'Start'))
        # The last one is one of a model that is going.
        c.Start(id=m)
        c.Post(model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
        stop = c.later('Stop', id=m)
        time.sleep(0.05)
        c.Unload(id=m)
        check(stop.code() == C.OK and c.free() == 4)


def test_queued_at_end():
    """what has not begun is cancelled when its client ends, or the daemon"""
    with Daemon(MOCK_RUN_US='500000') as d:
        c = Client(d.path)
        shared = c.load(depth=16, shared=True)
        # The second one in a model of its own, and in that of another client.
        for steps in (['deep'], [f'use={shared}']):
            child = spawn(d.path, *steps, *['post'] * 8)
            for _ in range(9):
                check(child.stdout.readline())
            if steps[0] != 'deep':
                last = c.Post(model=shared, inputs=[pb.Tensor(name='x', data=pattern(4))]).id
            child.kill()
            child.wait()
            start = time.monotonic()
            eventually(lambda: c.free() == 3 and not c.Status().models[0].under_way)
            check(time.monotonic() - start < 2.5)
        check(c.Wait(request=last).outputs[0].data == expected(pattern(4)))
        check(c.Status().models[0].nodes[0].runs <= 3)
        for _ in range(16):
            c.Post(model=shared, inputs=[pb.Tensor(name='x', data=pattern(1))])
        start = time.monotonic()
        d.process.terminate()
        check(d.process.wait(60) == 0 and time.monotonic() - start < 2.5)


def test_second_signal():
    """a second signal does not wait for what runs"""
    with Daemon(config='timeout = 20\n') as d:
        c = Client(d.path)
        m = c.load()
        d.process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        c.Post(model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
        start = time.monotonic()
        d.process.terminate()
        time.sleep(1)
        check(d.process.poll() is None and not os.path.exists(d.path))
        d.process.terminate()
        check(d.process.wait(60) == -signal.SIGTERM and time.monotonic() - start < 3)
        d.ends = (-signal.SIGTERM,)


def test_given_up():
    """what calls make that are given up before they are answered is undone"""
    with Daemon(MOCK_PARSE_US='300000') as d:
        c = Client(d.path)
        for _ in range(4):
            refused(C.DEADLINE_EXCEEDED, c.CreateGroup, cores=1, timeout=0.1)
        eventually(lambda: c.free() == 4)
        m = c.load(depth=2)
        post = {'model': m, 'inputs': [pb.Tensor(name='x', data=pattern(1))]}
        refused(C.DEADLINE_EXCEEDED, c.Post, timeout=0.1, **post)
        time.sleep(0.5)
        p = c.Post(**post).id
        eventually(lambda: not c.Status().models[0].under_way)
        refused(C.NOT_FOUND, c.Wait, request=p - 1)
        check(c.Wait(request=p).status == 0)
    with Daemon(MOCK_ALLOC_US='50000') as d:
        c = Client(d.path)
        refused(C.DEADLINE_EXCEEDED, c.Load, neff=NEFF.read_bytes(), shared=True, timeout=0.2)
        loads = [c.later('Load', neff=NEFF.read_bytes()) for _ in range(4)]
        time.sleep(0.2)
        check(c.free() < 4)
        for x in loads:
            x.cancel()
        eventually(lambda: c.free() == 4 and not c.Status().models)


def test_unwatched():
    """a model whose events cannot be had is not loaded, and leaves nothing"""
    with Daemon(MOCK_UNWATCHED='1') as d:
        c = Client(d.path)
        refused(C.INTERNAL, c.load)
        check(c.free() == 4 and not c.Status().models)
        c.infer(c.load())


def test_late_call():
    """a call that is looked at when the daemon ends does not keep it, nor end it too early"""
    for name, args in (('Load', {'neff': NEFF.read_bytes()}), ('Status', {})):
        with Daemon(MOCK_PARSE_US='1000000') as d:
            c = Client(d.path)
            call = c.later(name, **args)
            time.sleep(0.5)
            d.process.terminate()
            check(d.process.wait(20) == 0 and call.exception(), name)


def lingering():
    """A socket whose last descriptor takes 20 seconds to close, and its other end."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        near = socket.create_connection(server.getsockname())
        far = server.accept()[0]
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 20))
    near.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            near.send(bytes(1 << 20))
    return near, far


def sends(path, *messages):
    """A connection with these messages, of descriptors each."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(path + '.memory')
    for fds in messages:
        s.sendmsg([b'm'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))])
    return s


@contextlib.contextmanager
def unready(daemon):
    """It sees all at once, and has the last descriptors of what is sent and closed meanwhile."""
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_slow_close():
    """descriptors that take long to close keep nobody waiting but who sends them"""
    cases = ((False, lambda near, null: ([near],)), (False, lambda near, null: ([null, near],)),
             (True, lambda near, null: ([null], [near])))
    with open('/dev/null', 'rb') as null:
        for gone, messages in cases:
            with Daemon() as d, contextlib.ExitStack() as stack:
                c = Client(d.path)
                c.Status()
                with unready(d):
                    near, far = lingering()
                    stack.enter_context(far)
                    s = stack.enter_context(
                        sends(d.path, *messages(near.fileno(), null.fileno())))
                    near.close()
                    if gone:
                        s.close()
                start = time.monotonic()
                time.sleep(0.5)
                check(shared_memory(d.path, 4096)[1] == 0)
                c.infer(c.load())
                check(Client(d.path).Status().clients == 1 and time.monotonic() - start < 10)


def hang(path, connections):
    """A client that hangs in so many connections."""
    sockets = []
    for _ in range(connections):
        near, far = lingering()
        sockets += [far, sends(path, [near.fileno()])]
        near.close()
    return sockets


def test_hanging_client():
    """a client that hangs in all its connections gets no more, another one is served"""
    with Daemon() as d:
        c = Client(d.path)
        c.Status()
        with unready(d):
            child = spawn(d.path, 'hang')
            check(child.stdout.readline() == 'hang None\n')
        start = time.monotonic()
        check(shared_memory(d.path, 4096)[1] == 0)
        check(c.Status().clients == 2 and time.monotonic() - start < 10)
        eventually(lambda: 'a connection is refused: Too many users' in d.errors.read_text())
        child.kill()
        child.wait()
        eventually(lambda: c.Status().clients == 1)


def test_descriptors_in_calls():
    """descriptors cannot be sent where calls go, as gRPC would wait for them (Linux 6.16)"""
    with Daemon() as d, socket.socket(socket.AF_UNIX) as s, open('/dev/null', 'rb') as null:
        try:
            s.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
        except OSError as error:
            check(error.errno == errno.ENOPROTOOPT, str(error))
            return
        s.connect(d.path)
        try:
            s.sendmsg([b'PRI'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                  array.array('i', [null.fileno()]))])
        except PermissionError:
            check(Client(d.path).Status().clients == 1)
            return
        raise Failed('it was sent')


def test_slow_end():
    """descriptors that take long to close do not keep the daemon from ending"""
    with Daemon() as d, contextlib.ExitStack() as stack:
        Client(d.path).Status()
        with unready(d):
            # Most of them are not accepted any more.
            for s in hang(d.path, 4):
                stack.enter_context(s)
            d.process.terminate()
        start = time.monotonic()
        check(d.process.wait(60) == 0 and time.monotonic() - start < 10)
    with Daemon() as d, contextlib.ExitStack() as stack:
        with unready(d):
            for s in hang(d.path, 4):
                stack.enter_context(s)
        time.sleep(0.5)
        start = time.monotonic()
        d.process.terminate()
        check(d.process.wait(60) == 0 and time.monotonic() - start < 10)


def test_clients():
    """64 clients at once, all get their results"""
    with Daemon() as d:
        c = Client(d.path)
        model = c.load(depth=8, shared=True)
        children = [spawn(d.path, f'use={model}', 'infer=20', 'exit') for _ in range(64)]
        check(not [x for x in children if x.wait(100)], 'one of them failed')
        eventually(lambda: c.Status().clients == 1)
        m = c.Status().models[0]
        check(m.done == 1280 and not m.failed and not m.under_way, str(m))


def test_killed_daemon():
    """of two daemons one is killed: no request of the other is lost"""
    with Daemon(config='cores = 0-1\n') as a, Daemon(config='cores = 2-3\n') as b:
        ca, cb = Client(a.path), Client(b.path)
        check(ca.Status().cores == 2 and cb.Status().cores == 2)
        ca.load()
        m = cb.load(depth=8)
        inputs = [pb.Tensor(name='x', data=pattern(4))]
        call = cb.channel.unary_unary('/rtd.Runtime/Infer', pb.InferRequest.SerializeToString,
                                      pb.InferResponse.FromString)
        calls = []
        for i in range(200):
            calls.append(call.future(pb.InferRequest(model=m, inputs=inputs), timeout=60))
            if i == 100:
                a.process.kill()
                a.process.wait()
        check(all(x.result().outputs[0].data == expected(pattern(4)) for x in calls))
        # What it left does not hinder the next one, which a living one does.
        again = subprocess.Popen([MOCK, '-c', '/dev/null', '-g', a.path], env=environment())
        eventually(lambda: Client(a.path).Status().cores == 4)
        second = subprocess.run([MOCK, '-x', '-c', '/dev/null', '-g', a.path], check=False,
                                stderr=subprocess.PIPE, env=environment(), timeout=60)
        check(second.returncode == 1 and b'in use' in second.stderr, str(second))
        again.terminate()
        check(again.wait(60) == 0)
        a.process = again


def test_restart():
    """handles of a daemon that was restarted are not those of the next one"""
    with Daemon() as d:
        c = Client(d.path)
        old = c.load(shared=True)
        d.process.kill()
        d.process.wait()
        d.process = subprocess.Popen([MOCK, '-c', '/dev/null', '-g', d.path], env=environment())
        eventually(lambda: listens(d.path + '.memory'))
        other = spawn(d.path, 'shared')
        check(int(other.stdout.readline().split()[1]) < 2**53)
        # The connection of the client is made again without its doing.
        with contextlib.suppress(grpc.RpcError):
            c.Status()
        check(len(c.Status().models) == 1)
        refused(C.NOT_FOUND, c.infer, old)
        refused(C.NOT_FOUND, c.Unload, id=old)
        other.kill()
        other.wait()


def frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + struct.pack('>BBI', kind, flags, stream) + payload


def header(name, value):
    return b'\0' + bytes([len(name)]) + name + bytes([len(value)]) + value


def raw_request(stream, path, message):
    """An HTTP/2 request of gRPC, by hand."""
    headers = b''.join(header(*x) for x in (
        (b':method', b'POST'), (b':scheme', b'http'), (b':path', path), (b':authority', b'x'),
        (b'te', b'trailers'), (b'content-type', b'application/grpc')))
    body = b'\0' + struct.pack('>I', len(message)) + message
    return frame(1, 4, stream, headers) + frame(0, 1, stream, body)


def test_slow_reader():
    """a client that does not read its answers hinders no other"""
    with Daemon() as d:
        c = Client(d.path)
        m = c.load(depth=2, shared=True)
        request = pb.InferRequest(model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
        sockets = []
        for _ in range(4):
            s = socket.socket(socket.AF_UNIX)
            s.connect(d.path)
            # No answer may be longer than nothing.
            s.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' +
                      frame(4, 0, 0, struct.pack('>HI', 4, 0)) + frame(4, 1, 0, b'') +
                      b''.join(raw_request(2 * i + 1, b'/rtd.Runtime/Infer',
                                           request.SerializeToString()) for i in range(60)))
            sockets.append(s)
        eventually(lambda: c.Status().models[0].done >= 240)
        for i in range(50):
            c.infer(m, i)
        child = spawn(d.path, f'use={m}', 'infer=20', 'exit')
        check(child.wait(60) == 0)
        for s in sockets:
            s.close()


def test_numbers_of_sockets():
    """the number by which a call is known is not used again at once, but in the end"""
    with Daemon() as d:
        pid = d.process.pid
        c = Client(d.path)
        c.Status()
        directory = pathlib.Path(f'/proc/{pid}/fd')
        before = {int(x.name) for x in directory.iterdir()}
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(before) + 100, hard))
        seen = set()
        for _ in range(150):
            new = Client(d.path)
            new.Status()
            seen |= {int(x.name) for x in directory.iterdir()} - before
            new.channel.close()
            eventually(lambda: len(list(directory.iterdir())) <= len(before))
        check(len(seen) > 80, f'{sorted(seen)}')


def cpu_seconds(pid):
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='utf-8').rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def test_no_descriptors():
    """without descriptors connections wait, and the daemon sleeps"""
    with Daemon() as d, contextlib.ExitStack() as stack:
        pid = d.process.pid
        c = Client(d.path)
        c.Status()
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        most = len(os.listdir(f'/proc/{pid}/fd')) + 4
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, before[1]))
        for _ in range(12):
            s = stack.enter_context(socket.socket(socket.AF_UNIX))
            s.connect(d.path)
        eventually(lambda: 'have to wait' in d.errors.read_text())
        start = cpu_seconds(pid)
        time.sleep(2)
        used = cpu_seconds(pid) - start
        check(used < 0.3, f'{used} s of CPU in 2 s')
        c.Status()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        check(Client(d.path).Status(timeout=10).clients == 1)


def raw_call(c, name, message):
    identity = c.channel.unary_unary(f'/rtd.Runtime/{name}', lambda x: x, lambda x: x)
    return identity(message, timeout=30)


def test_long_messages():
    """messages whose requests wait count for their client"""
    with Daemon(config='max_message = 1\n', MOCK_RUN_US='200000') as d:
        c = Client(d.path)
        m = c.load(depth=1, shared=True)
        # A field that nobody knows, of 900 KiB.
        text = (pb.InferRequest(model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
                .SerializeToString() + b'\x7a\x80\xa0\x38' + bytes(900 << 10))
        call = c.channel.unary_unary('/rtd.Runtime/Infer', lambda x: x,
                                     pb.InferResponse.FromString)
        calls = [call.future(text, timeout=60) for _ in range(12)]
        eventually(lambda: c.Status().models[0].waiting >= 3)
        # Not for others, and not any more when they are over.
        other = spawn(d.path, f'use={m}', 'infer=2', 'exit')
        codes = [x.code() for x in calls]
        check(set(codes) == {C.OK, C.RESOURCE_EXHAUSTED} and codes.count(C.OK) >= 4, str(codes))
        check(other.wait(60) == 0)
        for _ in range(6):
            call(text, timeout=60)


def test_malformed():
    """malformed messages are refused, whatever the method"""
    rng = random.Random(1)
    with Daemon() as d:
        c = Client(d.path)
        m = c.load()
        good = pb.InferRequest(model=m, inputs=[pb.Tensor(name='x', data=pattern(1))])
        text = good.SerializeToString()
        for name in METHODS:
            refused(C.INVALID_ARGUMENT, raw_call, c, name, b'\xff' * 40)
            for _ in range(30):
                with contextlib.suppress(grpc.RpcError):
                    raw_call(c, name, rng.randbytes(rng.randrange(200)))
        for _ in range(200):
            bad = bytearray(text)
            bad[rng.randrange(40)] ^= 1 << rng.randrange(8)
            with contextlib.suppress(grpc.RpcError):
                raw_call(c, 'Infer', bytes(bad))
        # Two bytes each in the message, and a structure each in memory.
        refused(C.INVALID_ARGUMENT, raw_call, c, 'Infer', b'\x12\0' * (4 << 20))
        refused(C.RESOURCE_EXHAUSTED, raw_call, c, 'Infer', bytes(17 << 20))
        refused(C.UNIMPLEMENTED, raw_call, c, 'Nothing', b'')
        with contextlib.suppress(grpc.RpcError):
            c.Unload(id=m)
        c.infer(c.load())


def test_malformed_stream():
    """so is what is no HTTP/2"""
    rng = random.Random(2)
    with Daemon() as d:
        for i in range(30):
            with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
                s.connect(d.path)
                s.sendall((b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' if i % 2 else b'') +
                          rng.randbytes(500))
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(d.path)
            c = Client(d.path)
            c.infer(c.load())


def test_arguments():
    """tensors and numbers that the model does not have are refused"""
    with Daemon(config='max_depth = 16\n') as d:
        c = Client(d.path)
        m = c.load()

        def x(**fields):
            return pb.Tensor(**{'name': 'x', 'data': pattern(1), **fields})

        for inputs in ([], [x(name='z')], [x(), x()], [x(data=b'1')], [x(name='y')],
                       [x(name='x' * 100000)], [x(memory=pb.Memory(id=1, bytes=BYTES))]):
            refused(C.INVALID_ARGUMENT, c.Infer, model=m, inputs=inputs)
        refused(C.INVALID_ARGUMENT, c.Infer, model=m, inputs=[x()], outputs=[x(name='y')])
        refused(C.INVALID_ARGUMENT, c.Load, neff=NEFF.read_bytes(), depth=17)
        refused(C.INVALID_ARGUMENT, c.Load, neff=b'\1' * 4096)
        refused(C.INVALID_ARGUMENT, c.Load)
        refused(C.INVALID_ARGUMENT, c.CreateGroup, cores=0)
        refused(C.INVALID_ARGUMENT, c.CreateGroup, cores=2**32 - 1)
        refused(C.NOT_FOUND, c.Infer, model=2**64 - 1, inputs=[x()])
        neff = NEFF.read_bytes()
        for cut in (100, 1024, 1500, len(neff) - 1):
            refused(C.INVALID_ARGUMENT, c.Load, neff=neff[:cut])
        c.infer(m)


def says(code, text, function, *args, **kwargs):
    """The call is to fail with this code and a text that has this in it."""
    try:
        function(*args, **kwargs)
    except grpc.RpcError as error:
        check(error.code() == code and text in error.details(),
              f'{error.code()}: {error.details()}')
        return
    raise Failed(f'it is not refused: {text}')


def test_texts():
    """a refusal says what is wrong, and its code whether it is for ever"""
    with Daemon() as d:
        c = Client(d.path)
        says(C.INVALID_ARGUMENT, '1 to 4 cores', c.CreateGroup, cores=5)
        neff = NEFF.read_bytes()
        says(C.FAILED_PRECONDITION, 'there are 4', c.Load, neff=part('.wide'))
        says(C.UNIMPLEMENTED, 'no operation', c.Load, neff=part('.host'))
        says(C.INVALID_ARGUMENT, 'no NEFF', c.Load)
        _, _, number = shared_memory(d.path, 8192)
        memory = pb.Memory(id=number, bytes=8193)
        says(C.INVALID_ARGUMENT, 'message and in memory', c.Load, neff=neff, neff_memory=memory)
        says(C.INVALID_ARGUMENT, 'ends before', c.Load, neff_memory=memory)
        says(C.INVALID_ARGUMENT, 'no length', c.Load, neff_memory=pb.Memory(id=number))
        says(C.RESOURCE_EXHAUSTED, 'max_neff', c.Load, neff_memory=pb.Memory(bytes=2**40))
        says(C.NOT_FOUND, 'memory', c.Load, neff_memory=pb.Memory(id=number + 9, bytes=1))
        g = c.CreateGroup(cores=1).id
        a, b = c.load(group=g, depth=1), c.load(group=g)
        says(C.FAILED_PRECONDITION, 'models are loaded', c.DestroyGroup, id=g)
        says(C.FAILED_PRECONDITION, 'is not running', c.Stop, id=a)
        c.Start(id=a)
        says(C.FAILED_PRECONDITION, 'the model is running', c.Start, id=a)
        says(C.FAILED_PRECONDITION, 'another model', c.Start, id=b)
        says(C.INVALID_ARGUMENT, 'input x is missing', c.Infer, model=a)
        says(C.INVALID_ARGUMENT, 'input z?: the model has', c.Infer, model=a,
             inputs=[pb.Tensor(name='z\n')])
        far = pb.Memory(id=number, offset=2**64 - 1, bytes=BYTES)
        says(C.INVALID_ARGUMENT, 'input x: its memory ends', c.Infer, model=a,
             inputs=[pb.Tensor(name='x', memory=far)])
        far.id += 9
        says(C.NOT_FOUND, 'input x: there is no such memory', c.Infer, model=a,
             inputs=[pb.Tensor(name='x', memory=far)])
        for _ in range(62):
            c.load(group=g, depth=1)
        says(C.RESOURCE_EXHAUSTED, 'as many models', c.load, group=g)


def test_text_of_stop():
    """what waits for a model that is stopped is told so"""
    with Daemon(MOCK_RUN_US='300000') as d:
        c = Client(d.path)
        m = c.load(depth=1)
        args = {'model': m, 'inputs': [pb.Tensor(name='x', data=pattern(1))]}
        for name, code in (('Stop', C.FAILED_PRECONDITION), ('Unload', C.CANCELLED)):
            c.Post(**args)
            waits = c.later('Infer', **args)
            eventually(lambda: c.Status().models[0].waiting)
            getattr(c, name)(id=m)
            check(waits.code() == code and name.lower() in waits.details(), waits.details())
            if name == 'Stop':
                c.Start(id=m)


def test_descriptors():
    """a model with more descriptors than are configured is refused"""
    with Daemon(config='max_descriptors = 20\n') as d:
        c = Client(d.path)
        refused(C.RESOURCE_EXHAUSTED, c.load)
        check(c.free() == 4)
        keep(c)


def test_activation():
    """sockets of systemd"""
    stream, packets = socket.socket(socket.AF_UNIX), socket.socket(
        socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = str(WORK / 'activated.sock')
    for s, name in ((stream, path), (packets, path + '.memory')):
        s.bind(name)
        s.listen()
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(WORK / 'notify'))
    notify.settimeout(60)
    start = 'exec 30<&$1 31<&$2 3<&30 4<&31 30<&- 31<&-; export LISTEN_PID=$$; shift 2; exec "$@"'
    with subprocess.Popen(['/bin/bash', '-c', start, 'start', str(packets.fileno()),
                           str(stream.fileno()), MOCK, '-c', '/dev/null'],
                          pass_fds=(stream.fileno(), packets.fileno()),
                          env=environment(LISTEN_FDS='2', NOTIFY_SOCKET=notify.getsockname())
                          ) as daemon:
        check(notify.recv(100) == b'READY=1')
        c = Client(path)
        c.infer(c.load())
        check(shared_memory(path, 4096)[1] == 0)
        daemon.terminate()
        check(notify.recv(100) == b'STOPPING=1' and daemon.wait(60) == 0)
    check(os.path.exists(path), 'it removed a socket of systemd')


def test_long_lines():
    """a configuration line is as long as it is"""
    with Daemon(config=f'#{"x" * 510}cores = 3\n#{"x" * 5000}\ncores ={" " * 5000}0-1\n') as d:
        check(Client(d.path).Status().cores == 2)


def test_tcp():
    """addresses of IPv4 and IPv6, and the log says which"""
    for family, name in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '[::1]')):
        try:
            with socket.create_server((name.strip('[]'), 0), family=family) as s:
                port = s.getsockname()[1]
        except OSError:
            continue
        log = WORK / 'tcp.log'
        with open(log, 'w', encoding='utf-8') as errors, subprocess.Popen(
                [MOCK, '-x', '-c', '/dev/null', '-g', f'{name}:{port}'], stderr=errors,
                env=environment()) as daemon:
            try:
                eventually(lambda: 'listening' in log.read_text())
                check(f'{name.strip("[]")}, port {port}' in log.read_text())
                with grpc.insecure_channel(f'{name}:{port}') as channel:
                    call = channel.unary_unary('/rtd.Runtime/Status', lambda x: x, lambda x: x)
                    check(call(b'', timeout=20))
            finally:
                daemon.terminate()
            check(daemon.wait(60) == 0)


def test_files_in_the_way():
    """a file that is no socket stays, whichever of the two names it has"""
    for suffix in ('', '.memory'):
        path = WORK / 'way.sock'
        file = WORK / ('way.sock' + suffix)
        file.write_text('precious')
        r = subprocess.run([MOCK, '-x', '-c', '/dev/null', '-g', path], check=False,
                           capture_output=True, text=True, env=environment(), timeout=20)
        check(r.returncode == 1 and file.read_text() == 'precious', r.stderr)
        check(not suffix or not path.exists(), 'it left the first socket')
        file.unlink()


def test_hangup():
    """SIGHUP ends it as SIGTERM does"""
    # As from a terminal: where it is ignored, as under nohup, it stays ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with Daemon() as d:
        c = Client(d.path)
        c.load()
        d.process.send_signal(signal.SIGHUP)
        check(d.process.wait(60) == 0 and not os.path.exists(d.path))


def test_options():
    """options and configuration"""

    def run(*options):
        return subprocess.run([MOCK, *options], check=False, capture_output=True, text=True,
                              env=environment(), timeout=60)

    check(run('-v').stdout.startswith('neuron-rtd ') and '-t BDF' in run('-h').stdout)
    bad = WORK / 'bad.conf'
    for text in ('nothing\n', 'cores = 3-1\n', 'lnc = 3\n', 'timeout = 0\n', 'other = 1\n',
                 'timeout = 3\0\n', *(f'endpoint = {x}\n' for x in BAD_ENDPOINTS)):
        bad.write_text(f'# a comment\n{text}')
        r = run('-c', bad)
        check(r.returncode == 2 and 'bad.conf:2' in r.stderr, r.stderr)
        check(('timeout' in text) == ('from 1 to 86400' in r.stderr) or '\0' in text, r.stderr)
    for text in ('cores = 1-2', 'cores = 0-2', 'cores = 1'):
        bad.write_text(f'lnc = 2\n{text}\n')
        r = run('-x', '-c', bad, '-g', WORK / 'odd.sock')
        check(r.returncode == 1 and 'with lnc = 2' in r.stderr, r.stderr)
    for options in (('-t', 'x'), ('-l', '8'), ('-z',), ('word',), ('-c', '/nothing'),
                    ('-c', WORK), *(('-g', x) for x in BAD_ENDPOINTS)):
        check(run(*options).returncode == 2, str(options))
    for options in (('-t', '0000:00:01.0'), ('-c', WORK / 'far.conf')):
        (WORK / 'far.conf').write_text('cores = 4\n')
        r = run('-x', '-g', WORK / 'none.sock', *options)
        check(r.returncode == 1 and 'not started' in r.stderr, r.stderr)
    with Daemon('-t', '1:20:1e.0', '-l', '7') as d:
        check(Client(d.path).Status().cores == 4)
        check('/rtd.Runtime/Status' in d.errors.read_text())
        check(os.stat(d.path).st_mode & 0o777 == 0o660)


def main():
    bad = False
    subprocess.run([MOCK, 'neff', NEFF], check=True, env=environment())
    wanted = sys.argv[2:]
    for name, test in list(globals().items()):
        if not name.startswith('test_') or (wanted and name not in wanted):
            continue
        start = time.monotonic()
        try:
            test()
            print(f'ok - {test.__doc__} ({time.monotonic() - start:.1f} s)', flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f'not ok - {test.__doc__}: {type(error).__name__} {error}', flush=True)
            bad = True
    shutil.rmtree(WORK)
    return bad


if len(sys.argv) > 3 and sys.argv[2] == 'client':
    NEFF = pathlib.Path(sys.argv[3]).with_name('model.neff')
    child_main(sys.argv[3], sys.argv[4:])
else:
    sys.exit(main())
