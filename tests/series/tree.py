#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The kernel part as it would be in a kernel tree.

usage: tree.py DIRECTORY KERNEL-SOURCE

Writes into DIRECTORY all files that the series adds, and those of KERNEL-SOURCE that it
changes.  The newest kernel needs nothing of kmod/compat: what stands there for older ones
is replaced by what it stands for.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = pathlib.Path(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2])
DRIVER = 'drivers/accel/neuron'
VERSION = (ROOT / 'VERSION').read_text().strip()
SELFTESTS = ('async caps charge crwl datastore death driver eventfd events fdinfo grow hbm_ranges '
             'ioctl_hostile mmap notify owners process refusals regs vendor_table').split()

COMPAT = [
    (r'\bNEURON_UNINIT\b', '__uninitialized'),
    (r'\bneuron_eventfd_signal\(', 'eventfd_signal('),
    (r'\bneuron_crc32c\(', 'crc32c(~0, '),
    (r'\bNEURON_EXPORT_SYMBOL\((\w+)\)', r'EXPORT_SYMBOL_NS_GPL(\1, "NEURON")'),
    (r'\bNEURON_IMPORT_NS\(\)', 'MODULE_IMPORT_NS("NEURON")'),
    (r'\bNEURON_IMPORT_NS_DMA_BUF\(\)', 'MODULE_IMPORT_NS("DMA_BUF")'),
    (r'#ifdef NEURON_DMEM', '#if IS_ENABLED(CONFIG_CGROUP_DMEM)'),
    # With an allocation by type, the size is not written down.
    (r'\b(k\w*[mz]alloc)\(sizeof\((\*?[\w.>-]+|struct \w+ \*)\), (\w+(?: \| \w+)*)\)',
     r'\1_obj(\2, \3)'),
    (r'"\.\./\.\./uapi/(\w+\.h)"', r'<uapi/misc/\1>'),
    (r'"\.\./\.\./kmod/', '"../'),
]
# What compat.h includes, and a word of who needs it.
INCLUDES = {'linux/eventfd.h': 'eventfd_', 'linux/module.h': 'MODULE_|THIS_MODULE|module_',
            'linux/export.h': 'EXPORT_SYMBOL', 'linux/mm.h': 'vm_area_struct|vm_flags|page_|PAGE_ALIGN',
            'linux/hrtimer.h': 'hrtimer', 'linux/crc32.h': r'crc32c\('}

KCONFIG = [('core/module.c', '''# SPDX-License-Identifier: GPL-2.0-only

config ACCEL_NEURON
	tristate "AWS Neuron accelerators"
	depends on X86_64 && MMU
	select CRC32
	select DMA_SHARED_BUFFER
	help
	  The core of the driver for the Inferentia and Trainium accelerators of
	  AWS: device memory, DMA rings and queues of processes, notifications,
	  resets, and what sysfs shows of them. The devices come from the
	  modules below.

	  To compile it as a module, choose M: neuron.
'''), ('emu/module.c', '''
config ACCEL_NEURON_EMU
	tristate "Neuron device in software"
	depends on ACCEL_NEURON
	depends on CONFIGFS_FS || !CONFIGFS_FS
	help
	  A Neuron device without hardware: sparse device memory, DMA engines
	  that check every descriptor, and cores with a small instruction set.
	  For tests of the driver and of programs.

	  To compile it as a module, choose M: neuron_emu.
'''), ('pci/pci.c', '''
config ACCEL_NEURON_PCI
	tristate "Neuron cards"
	depends on ACCEL_NEURON && PCI
	help
	  Inferentia2 and Trainium cards on the PCI bus, as instances of AWS
	  have them. Device memory and registers are in BARs; the cards raise
	  no interrupts that this driver uses.

	  To compile it as a module, choose M: neuron_pci.
'''), ('tests/buddy_kunit.c', '''
config ACCEL_NEURON_KUNIT_TEST
	tristate "KUnit tests of the Neuron driver" if !KUNIT_ALL_TESTS
	depends on ACCEL_NEURON && KUNIT && m
	default KUNIT_ALL_TESTS
	help
	  Unit tests of the driver. Each suite is about one file, and replaces
	  what that file calls by functions that the tests control, so that
	  every error can be made to happen.

	  If unsure, say N.
''')]


def kernel_file(path):
    """A C file without what older kernels need."""
    text = path.read_text()
    text, had = re.subn(r'#include "[./\w]*compat/(compat|crc)\.h"\n', '//@\n', text)
    for pattern, new in COMPAT:
        text = re.sub(pattern, new, text)
    wanted = re.findall(r'^#include <(uapi/misc/\S+)>\n', text, re.M)
    text = re.sub(r'^#include <uapi/misc/\S+>\n', '//@\n', text, flags=re.M)
    if had:
        wanted += [i for i, word in INCLUDES.items() if re.search(word, text)]
    wanted = {f'#include <{i}>' for i in wanted if f'#include <{i}>' not in text}
    block = re.search(r'(^#include <.*>\n)+', text, re.M)
    if wanted and block:
        lines = '\n'.join(sorted(set(block.group(0).splitlines()) | wanted))
        text = f'{text[:block.start()]}{lines}\n{text[block.end():]}'
    elif wanted:
        text = text.replace('//@\n', '\n'.join(sorted(wanted)) + '\n\n', 1)
    text = re.sub('(//@\n)+', '', text)
    return re.sub('\n\n\n+', '\n\n', text)


def write(path, text):
    path = OUT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def objects(kbuild, name):
    value = re.search(rf'^{name} \+?:?= ((?:.*\\\n)*.*)$', kbuild, re.M).group(1)
    return value.replace('\\\n', ' ').split()


def rule(name, names):
    line, lines = f'{name} :=', []
    for o in names:
        if len(line.expandtabs(8)) + len(o) > 90:
            lines.append(line + ' \\')
            line = '\t\t '.rstrip()
        line += ('' if line.endswith('\t') else ' ') + o
    return '\n'.join(lines + [line]) + '\n'


def makefile(have):
    """For the files that are there; Kbuild's lists and rules."""
    kbuild = (ROOT / 'kmod/Kbuild').read_text()
    simd = kbuild[kbuild.index('# Code for vector registers'):kbuild.index('ifeq ($(NEURON_TESTS)')]
    simd = simd.replace('$(if $(filter 1,$(NEURON_KUNIT)),../tests/kunit/simd_kunit)',
                        'tests/simd_kunit')

    def there(name):
        return [o for o in objects(kbuild, name) if have(o[:-1] + 'c')]

    text = ('# SPDX-License-Identifier: GPL-2.0-only\n\n'
            f"ccflags-y += -I$(src) -DNEURON_VERSION='\"{VERSION}\"'\n\n"
            'obj-$(CONFIG_ACCEL_NEURON) += neuron.o\n' + rule('neuron-y', there('neuron-y')))
    if have('emu/module.c'):
        text += ('\nobj-$(CONFIG_ACCEL_NEURON_EMU) += neuron_emu.o\n' +
                 rule('neuron_emu-y', there('neuron_emu-y')) +
                 'neuron_emu-$(CONFIG_X86_64) += emu/simd_avx2.o emu/simd_avx512.o\n'
                 'neuron_emu-$(if $(CONFIG_CONFIGFS_FS),y) += emu/configfs.o\n')
    if have('pci/pci.c'):
        text += ('\nobj-$(CONFIG_ACCEL_NEURON_PCI) += neuron_pci.o\n' +
                 rule('neuron_pci-y', there('neuron_pci-y')))
    tests = sorted(f'tests/{p.stem}.o' for p in (ROOT / 'tests/kunit').glob('*_kunit.c'))
    if have('tests/buddy_kunit.c'):
        text += ('\nobj-$(CONFIG_ACCEL_NEURON_KUNIT_TEST) += neuron_kunit.o\n' +
                 rule('neuron_kunit-y', tests) +
                 'neuron_kunit-$(CONFIG_X86_64) += tests/simd_kunit_avx2.o '
                 'tests/simd_kunit_avx512.o\n')
    if have('emu/module.c'):
        text += '\n' + simd.rstrip() + '\n'
    return text


def kconfig(have):
    return ''.join(text for path, text in KCONFIG if have(path))


def changed(path, *changes):
    text = (SOURCE / path).read_text()
    for old, new in changes:
        if text.count(old) != 1:
            sys.exit(f'{path} of this kernel has no single {old!r}')
        text = text.replace(old, new)
    write(path, text)


def driver():
    for folder in 'base core dma emu mem mem/buddy pci sysfs'.split():
        for path in (ROOT / 'kmod' / folder).glob('*.[ch]'):
            write(f'{DRIVER}/{folder}/{path.name}', kernel_file(path))
    for path in (ROOT / 'tests/kunit').glob('*.[ch]'):
        write(f'{DRIVER}/tests/{path.name}', kernel_file(path))
    for path in [*(ROOT / 'uapi').glob('*.h'), *(ROOT / 'uapi/share').glob('*.h')]:
        write(f'include/uapi/misc/{path.name}',
              path.read_text().replace('"share/neuron_driver_shared.h"',
                                       '<misc/neuron_driver_shared.h>'))


def documentation():
    for path in (ROOT / 'sysfs-docs').iterdir():
        text = re.sub('KernelVersion:.*', 'KernelVersion:	7.4', path.read_text())
        text = re.sub('Contact:.*', 'Contact:	see NEURON ACCELERATORS in MAINTAINERS', text)
        write(f'Documentation/ABI/testing/sysfs-driver-{path.name}', text)
    write('Documentation/accel/neuron/index.rst',
          (ROOT / 'tests/series/neuron.rst').read_text())
    changed('Documentation/accel/index.rst', ('   amdxdna/index\n',
                                              '   amdxdna/index\n   neuron/index\n'))


def selftests():
    folder = 'tools/testing/selftests/drivers/accel/neuron'
    guest = ROOT / 'tests/vm/guest'
    for name in [f'{n}.c' for n in SELFTESTS] + ['check.h', 'device.h', 'point.h']:
        text = re.sub(r'"(neuron_\w+\.h)"', r'<misc/\1>', (guest / name).read_text())
        write(f'{folder}/{name}', text)
    write(f'{folder}/config', 'CONFIG_ACCEL_NEURON=m\nCONFIG_ACCEL_NEURON_EMU=m\n')
    write(f'{folder}/Makefile', '# SPDX-License-Identifier: GPL-2.0-only\n\n'
          '# With "modprobe neuron_emu", which makes /dev/neuron0.\n'
          'CFLAGS += -O1 -g -std=gnu11 -Wall -Wextra -pthread $(KHDR_INCLUDES)\n\n' +
          rule('TEST_GEN_PROGS', SELFTESTS) + '\ninclude ../../../lib.mk\n')
    changed('tools/testing/selftests/Makefile',
            ('TARGETS += drivers/dma-buf\n',
             'TARGETS += drivers/accel/neuron\nTARGETS += drivers/dma-buf\n'))


def main():
    driver()
    documentation()
    selftests()
    changed('drivers/Makefile', ('obj-$(CONFIG_DRM_ACCEL)		+= accel/\n',
                                 'obj-$(CONFIG_DRM_ACCEL)		+= accel/\n'
                                 'obj-$(CONFIG_ACCEL_NEURON)	+= accel/neuron/\n'))
    text = (SOURCE / 'drivers/accel/Kconfig').read_text()
    write('drivers/accel/Kconfig', text.rstrip() +
          '\n\n# No part of DRM, see Documentation/accel/neuron.\n'
          'source "drivers/accel/neuron/Kconfig"\n')
    changed('MAINTAINERS', ('NFC SUBSYSTEM\n',
                            (ROOT / 'tests/series/maintainers').read_text() +
                            '\nNFC SUBSYSTEM\n'))


if len(sys.argv) > 3:
    # tree.py DIRECTORY KERNEL-SOURCE FOLDER: Kconfig and Makefile for what FOLDER has.
    there = pathlib.Path(sys.argv[3]) / DRIVER
    if there.exists():
        OUT = pathlib.Path(sys.argv[3])
        write(f'{DRIVER}/Makefile', makefile(lambda p: (there / p).exists()))
        if kconfig(lambda p: (there / p).exists()):
            write(f'{DRIVER}/Kconfig', kconfig(lambda p: (there / p).exists()))
else:
    main()
