# SPDX-License-Identifier: GPL-2.0-only
#
# What the fuzzers of user space code share. A Makefile that includes this sets
#
#   WHAT	what is fuzzed, for the message
#   SRCS HDRS	files that it is made of; the first one has LLVMFuzzerTestOneInput()
#   FLAGS LIBS	of the compiler
#   RUN		options of libFuzzer
#   SECONDS	how long "check" mutates
#
#   make check			replay the corpus, then mutate it for SECONDS
#   make fuzz SECONDS=3600	libFuzzer; new inputs go to $(BUILD)/new
#   make minimize		merge $(BUILD)/new into the committed corpus
#
# "check" uses libFuzzer if clang has it, and a simple mutator (standalone.c) otherwise.

NAME	:= $(notdir $(CURDIR))
BUILD	?= $(or $(NEURON_CACHE),$(HOME)/.cache/neuron-driver)/fuzz-$(NAME)
CLANG	?= clang
SHELL	:= /bin/bash

CORPUS	:= $(sort $(wildcard corpus/*))
COMMON	:= -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -fno-sanitize-recover=undefined
RUN	+= -rss_limit_mb=1024 -timeout=20 -artifact_prefix=$(BUILD)/

HAVE_LIBFUZZER := $(shell echo 'int LLVMFuzzerTestOneInput(const char *d, long n) \
	{ return d == (void *)n; }' | $(CLANG) -x c -fsanitize=fuzzer,address - \
	-o /dev/null 2>/dev/null && echo yes)

check:
	@$(MAKE) --no-print-directory $(if $(HAVE_LIBFUZZER),run-libfuzzer,run-standalone) && \
		echo "1 passed, 0 failed" || { echo "not ok - $(WHAT), see above"; \
		echo "0 passed, 1 failed"; exit 1; }

$(BUILD)/fuzz: $(SRCS) $(HDRS) $(MAKEFILE_LIST)
	@mkdir -p $(BUILD)
	$(CLANG) $(COMMON) $(FLAGS) -fsanitize=fuzzer,address,undefined -o $@ $(SRCS) $(LIBS)

$(BUILD)/mutate: $(SRCS) ../standalone.c $(HDRS) $(MAKEFILE_LIST)
	@mkdir -p $(BUILD)
	$(CC) $(COMMON) $(FLAGS) -fsanitize=address,undefined -o $@ $(SRCS) ../standalone.c $(LIBS)

# A scratch directory comes first: new inputs go there, not into the tree.
run-libfuzzer: $(BUILD)/fuzz
	@rm -rf $(BUILD)/scratch; mkdir -p $(BUILD)/scratch
	$(BUILD)/fuzz -seed=1 -max_total_time=$(SECONDS) $(RUN) -print_final_stats=1 \
		-verbosity=0 $(BUILD)/scratch corpus 2>&1 | tail -n 40; exit $${PIPESTATUS[0]}

run-standalone: $(BUILD)/mutate
	$(BUILD)/mutate $(SECONDS) $(CORPUS)

fuzz: $(BUILD)/fuzz
	@mkdir -p $(BUILD)/new
	$(BUILD)/fuzz -max_total_time=$(SECONDS) $(RUN) $(BUILD)/new corpus

minimize: $(BUILD)/fuzz
	rm -rf $(BUILD)/all
	mv corpus $(BUILD)/all
	mkdir corpus
	$(BUILD)/fuzz -merge=1 -use_counters=0 $(RUN) corpus $(BUILD)/all $(BUILD)/new

clean:
	rm -rf $(BUILD)

.PHONY: check run-libfuzzer run-standalone fuzz minimize clean
