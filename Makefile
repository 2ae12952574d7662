# SPDX-License-Identifier: GPL-2.0-only
#
#   make			modules, library and tools
#   make modules		modules, for the kernel of KDIR (default: the running one)
#   make lib			library and tools
#   make install		library, tools, headers, and make install-config (PREFIX, DESTDIR)
#   make install-config	udev rules, group, module options
#   make uninstall		what make install and make install-config have brought
#   make modules_install	modules, into the kernel of KDIR
#   make dkms			source for DKMS below /usr/src (DESTDIR)
#   make demo			the example, in a virtual machine
#   make screenshots		the pictures of README.md, of programs in a virtual machine
#   make card			a virtual machine with a model of a card, and a prompt; CARD="trn2..."
#   make test			all tests; TESTS="name..." for some of them
#   make test-all		these and what takes long
#   make mutate			how many changes of the code the tests notice, for SECONDS from SEED
#   make kcsan			look for data races, in a virtual machine
#   make kmsan			look for uses of memory that nobody wrote
#   make fuzz-ioctl		fuzz the device interface there, for SECONDS from SEED; the calls that
#			led on into CORPUS
#   make check			static checks
#   make layers			who calls whom: circles, arrows upwards, pictures in build/layers
#   make model			train and pack the example's model again
#   make bench		what the driver costs, in a virtual machine, results into RESULTS;
#			CARD=1: what a card does beside the software device
#   make bench-alloc		speed of the allocator, results into RESULTS
#   make bench-nrt		what loading and running models costs, into RESULTS
#   make bench-pools		what pools of memory cost, into RESULTS
#   make bench-rtd		inferences through the daemon, beside libneuron alone
#   make series		the kernel part as patches for the newest kernel, in build/series
#   make valgrind		host tests of the library under memcheck
#   make coverage		line coverage of the host tests
#   make coverage-lib	line coverage of the library in its tests; fails below 90 %
#   make coverage-vm		line coverage of the modules in a virtual machine
#   make clean
#
# demo, test, check and model install missing distribution packages (as root).

VERSION := $(shell cat VERSION)
KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
DESTDIR ?=
RESULTS ?= $(or $(NEURON_CACHE),$(HOME)/.cache/neuron-driver)/bench

dkms_dir = $(DESTDIR)/usr/src/neuron-open-$(VERSION)
config_files = $(addprefix $(DESTDIR)$(PREFIX)/lib/,udev/rules.d/60-neuron.rules \
	sysusers.d/neuron.conf modprobe.d/neuron.conf)
our_dirs = $(addprefix $(DESTDIR)$(PREFIX)/,include/neuron include/nrt share/neuron \
	share/neuron-rtd share/doc/libneuron)
installed = $(DESTDIR)$(PREFIX)/share/neuron/installed

all: lib modules

modules modules_install: kernel-headers
	$(MAKE) -C kmod KDIR=$(KDIR) $@

# Without headers nothing was built.
modules_clean:
	if [ -e $(KDIR)/Makefile ]; then $(MAKE) -C kmod KDIR=$(KDIR) clean; fi

kernel-headers:
	@if [ ! -e $(KDIR)/Makefile ]; then \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install them (Debian: apt-get install linux-headers-$$(uname -r))" >&2; \
		echo "or name another kernel: make KDIR=DIRECTORY" >&2; \
		echo "(\"tests/vm/kdir.sh 6.12\" fetches one and prints its directory)." >&2; \
		exit 1; \
	fi

lib:
	$(MAKE) -C libneuron

libneuron-check:
	$(MAKE) -C libneuron check

# Installed once more, for the names, which uninstall removes.
install: install-config
	$(MAKE) -C libneuron install PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)
	@stage=$$(mktemp -d) && trap 'rm -rf "$$stage"' EXIT && \
	$(MAKE) -s -C libneuron install PREFIX=$(PREFIX) DESTDIR="$$stage/root" >/dev/null && \
	{ [ ! -e $(installed) ] || cat $(installed); find "$$stage/root" ! -type d -printf '/%P\n'; } | \
		sort -u >"$$stage/names" && install -m 644 "$$stage/names" $(installed)

# What udev, systemd-sysusers and modprobe look for below /usr and /usr/local alike.
install-config:
	install -D -m 644 kmod/conf/60-neuron.rules $(word 1,$(config_files))
	install -D -m 644 kmod/conf/sysusers-neuron.conf $(word 2,$(config_files))
	install -D -m 644 kmod/conf/modprobe-neuron.conf $(word 3,$(config_files))

dkms: install-config
	rm -rf $(dkms_dir)
	install -d $(dkms_dir)
	cp -r kmod uapi LICENSES LICENSE VERSION Makefile $(dkms_dir)
	find $(dkms_dir) \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '*.cmd' -o -name 'Module.symvers' -o -name 'modules.order' \) -delete
	sed 's/#MODULE_VERSION#/$(VERSION)/' dkms.conf >$(dkms_dir)/dkms.conf
	@echo "Now, as root: dkms install neuron-open/$(VERSION)"
	@echo "(if that version was installed before, first: dkms remove neuron-open/$(VERSION) --all)"

# Other packages may be there than when it was installed, so nothing is asked what it would install.
uninstall:
	rm -f $(config_files)
	@if [ -e $(installed) ]; then \
		sed 's|^|$(DESTDIR)|' $(installed) | xargs -d '\n' rm -f $(installed); \
	fi
	@for dir in $(our_dirs); do \
		[ ! -d $$dir ] || find $$dir -depth -type d -empty -delete; \
	done

# In a copy of the tree, because dpkg-buildpackage writes beside it.
deb:
	@tests/deps.sh build deb
	rm -rf build/deb
	mkdir -p build/deb/neuron-open
	git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | \
		tar -c -T - | tar -x -C build/deb/neuron-open
	cd build/deb/neuron-open && dpkg-buildpackage -us -uc $(DEB_OPTIONS)
	rm -r build/deb/neuron-open

test:
	@tests/run.sh $(TESTS)

test-all:
	@tests/run.sh all

mutate:
	@tests/mutate.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(COUNT),--count $(COUNT)) \
		$(if $(SEED),--seed $(SEED)) $(FILES)

series:
	@tests/series/make.sh

kcsan kmsan:
	@tests/run.sh $@

fuzz-ioctl:
	@SECONDS_TO_FUZZ=$(SECONDS) SEED=$(SEED) CORPUS=$(abspath $(CORPUS)) tests/run.sh fuzz-ioctl

demo:
	@tests/demo.sh

shell:
	@tests/vm/shell.sh

screenshots:
	@tests/screenshots.sh

card:
	@CARD="$(or $(CARD),trn2)" tests/vm/shell.sh

image:
	@tests/image/make.sh $(or $(RELEASE),debian-13) build/image $(PACKAGES)

check:
	@tests/check.sh

layers:
	@tests/layers.sh

model:
	@tests/deps.sh model
	$(MAKE) -C tests/models

bench:
	@CARD="$(CARD)" tests/bench/driver.sh $(RESULTS)

bench-alloc:
	@tests/deps.sh build vm
	@tests/bench/run.sh $(RESULTS)

bench-nrt:
	@tests/bench/nrt.sh $(RESULTS)

bench-pools:
	@tests/deps.sh build test
	@$(MAKE) -s -C tests/bench pools RESULTS=$(RESULTS)

bench-rtd:
	@tests/deps.sh build test rtd
	@$(MAKE) -s -C tests/rtd bench

coverage:
	@tests/deps.sh build test cover
	$(MAKE) -C tests/lib coverage

valgrind:
	@tests/deps.sh build test memcheck
	$(MAKE) -C tests/lib valgrind

coverage-lib:
	@tests/deps.sh build test
	$(MAKE) -C tests/lib coverage-lib

coverage-vm:
	@tests/run.sh coverage-vm

clean: modules_clean
	$(RM) -r build/deb
	$(MAKE) -C libneuron clean
	$(MAKE) -C tests/lib clean

.PHONY: all modules modules_install modules_clean kernel-headers lib libneuron-check install install-config uninstall dkms deb \
	test test-all series mutate kcsan kmsan fuzz-ioctl demo screenshots shell card image check layers model bench bench-alloc bench-nrt bench-pools bench-rtd valgrind coverage coverage-lib coverage-vm clean
