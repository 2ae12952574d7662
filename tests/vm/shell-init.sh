#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The first process of the guest of "make shell": modules, the shared directory, and a
# shell on a terminal of its own. As in init.c, the kernel has ttyS0 and the verdict,
# which says that the shell has ended, ttyS2.

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /root /shared
mount -t devpts devpts /dev/pts
for dir in /tmp /run /dev/shm; do
	mount -t tmpfs tmpfs $dir
done
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/libexec/neuron
export HOME=/root LANG=C.UTF-8 TERM="${TERM:-vt100}"

exec >/dev/ttyS1 2>&1
modprobe -a virtio_pci 9pnet_virtio 9p
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 shared /shared
modprobe neuron_emu
mount -t configfs configfs /sys/kernel/config
cat >/root/.bashrc <<'END'
PS1='neuron:\w\$ '
HISTFILE=/shared/.bash_history
alias ls='ls --color=auto'
END
stty -F /dev/ttyS1 sane rows "${ROWS:-24}" cols "${COLS:-80}"
echo "Linux $(uname -r), neuron $(cat /sys/module/neuron/version): $(echo /dev/neuron[0-9]*)."
echo "Models are in /usr/share/neuron/models, /shared is a directory of the host; exit ends it all."
cd /root || exit
setsid -c bash -i <>/dev/ttyS1 >&0 2>&1
echo "done" >/dev/ttyS2
sync
reboot -f
