# SPDX-License-Identifier: GPL-2.0-only
"""A sysfs and a /proc that are made up, for tests of tools that look at them.

A tool that was built (make lib) looks below ROOT if it is started with ENV.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
GIB = 1 << 30
CATEGORIES = ('model_code constants tensors model_shared_scratchpad nonshared_scratchpad '
              'runtime_memory dma_rings collectives notifications driver_memory '
              'uncategorized').split()
STATUS = ('success timeout hw_error oob_error exec_bad_input generic_error failure '
          'infer_completed_with_error execute_completed_with_error '
          'execute_failed_to_queue hw_repairable_hbm_ue_error '
          'execute_completed_with_num_error infer_completed_with_num_error').split()

work = pathlib.Path(tempfile.mkdtemp())
root = work / 'root'
devices = root / 'sys/devices/virtual/neuron_device'
env = {**os.environ, 'LD_LIBRARY_PATH': str(TOP / 'libneuron/build'), 'LC_ALL': 'C.UTF-8',
       'NEURON_TOOLS_ROOT': str(root)}
env.pop('NO_COLOR', None)


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{value}\n')


def counter(n, core, name):
    return devices / f'neuron{n}/neuron_core{core}/stats/{name}/total'


def make_core(n, core):
    memory = {}
    if n == core == 0:
        memory = {'tensors': 4 * GIB, 'model_code': GIB, 'driver_memory': 4096}
    for category in CATEGORIES:
        write(counter(n, core, f'memory_usage/device_mem/{category}'), memory.get(category, 0))
    write(counter(n, core, 'memory_usage/device_mem'), sum(memory.values()))
    write(counter(n, core, 'memory_usage/host_mem'), 1 << 20)
    for status in STATUS:
        write(counter(n, core, f'status/{status}'), 0)
    for name in ('inference_count', 'nc_time_in_use', 'flop_count'):
        write(counter(n, core, f'other_info/{name}'), 1000)


def make_device(n, cores=8, hbms=4):
    device = devices / f'neuron{n}'
    write(device / 'core_count', cores)
    write(device / 'emulated', 1)
    write(device / 'info/architecture/device_name', 'Trainium2')
    write(device / 'info/architecture/instance_type', 'trn2.48xlarge')
    write(device / 'info/architecture/arch_type', 'NDv3')
    for memory in 'mem', 'sram':
        for kind in 'corrected', 'uncorrected':
            write(device / f'stats/hardware/{memory}_ecc_{kind}', n)
    write(device / 'stats/hardware/mem_ecc_repairable_uncorrected', 10 * n)
    write(device / 'stats/memory_usage/host_mem/total', 8 << 20)
    for hbm in range(hbms):
        used = (5 * GIB if n == hbm == 0 else 0) + (n << 26)
        for name, value in {'total': 24 * GIB, 'used': used, 'free': 24 * GIB - used,
                            'largest_free': (24 * GIB - used) // 2,
                            'high_water': 6 * GIB}.items():
            write(device / f'hbm{hbm}/{name}', value)
    for core in range(cores):
        make_core(n, core)
        write(device / f'neuron_core{core}/info/architecture/arch_type', 'NCv3')


def add_client(pid, device, mib, fd=3, name=None):
    """@name: of the node where the process is, in a container."""
    proc = root / f'proc/{pid}'
    write(proc / f'fdinfo/{fd}', f'drm-driver:\tneuron\nneuron-device:\t{device}\n'
          f'drm-client-id:\t{pid * 10 + fd}\ndrm-total-hbm0:\t{mib << 10} KiB\n'
          'drm-total-memory:\t64 KiB')
    (proc / 'fd').mkdir(exist_ok=True)
    (proc / f'fd/{fd}').symlink_to(f'/dev/neuron{device if name is None else name}')


def make_process(pid, device, command, mib, name=None):
    proc = root / f'proc/{pid}'
    write(proc / 'comm', command.split()[0])
    write(proc / 'cmdline', command.replace(' ', '\0'))
    add_client(pid, device, mib, name=name)


def make_tree(count):
    shutil.rmtree(root, ignore_errors=True)
    devices.mkdir(parents=True)
    write(root / 'sys/module/neuron/version', '2.30')
    for n in range(count):
        make_device(n)
    make_process(101, 0, 'python3 serve.py', 5120)
    make_process(202, 15, 'trainer --epochs 3', 9216, name=0)
    if os.geteuid() == 0:
        os.chown(root / 'proc/202', 12345, 12345)


class Tool:
    """A tool, which sees the tree."""

    def __init__(self, name):
        self.path = TOP / 'libneuron/build' / name

    def run(self, *arguments, **options):
        return subprocess.run([self.path, *arguments], env=env, capture_output=True, text=True,
                              timeout=60, check=False, **options)

    def start(self, *arguments, **options):
        # pylint: disable=consider-using-with
        return subprocess.Popen([self.path, *arguments], stdout=subprocess.PIPE, text=True,
                                **{'env': env, **options})

    def objects(self, *arguments):
        return [json.loads(line) for line in self.run('--json', *arguments).stdout.splitlines()]


def show(name, text):
    print(f'# {name}:')
    for line in text.rstrip().splitlines():
        print(f'#   {line}')


def run_tests(*tests):
    """Each is a point; returns whether one failed."""
    bad = False
    for test in tests:
        try:
            test()
            print(f'ok - {test.__doc__}', flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f'not ok - {test.__doc__}')
            show(type(error).__name__, str(error))
            bad = True
    return bad
