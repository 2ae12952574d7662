// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron-card: a model of a Neuron card, as a PCI device for QEMU.
 *
 *     neuron-card [-k trn2] [-r ROUTING_ID] [-d MIB] [-0 MIB] [-4 MIB|none] SOCKET
 *
 * SOCKET is for "-device vfio-user-pci"; SOCKET.control takes lines of text, see control.c.
 * It serves one machine, until that goes. Exit status 1: there was a complaint.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "vfu.h"

static int listen_at(const char *path, const char *suffix)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t room = sizeof(a.sun_path);

	if ((size_t)snprintf(a.sun_path, room, "%s%s", path, suffix) >= room) {
		errno = ENAMETOOLONG;
		return -1;
	}
	unlink(a.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 4)) {
		perror(a.sun_path);
		return -1;
	}
	return fd;
}

/* One line, one answer, one connection. */
static void control(struct card *card, int listener)
{
	struct timeval patience = { .tv_sec = 1 };
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char line[256] = "";
	FILE *f;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	f = read(fd, line, sizeof(line) - 1) > 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		close(fd);
		return;
	}
	fprintf(f, "%s\n", card_control(card, line, f) ? "error" : "ok");
	fclose(f);
}

/* Serve the machine and the control socket until the machine goes. */
static int serve(struct card *card, int listener, int control_listener)
{
	struct pollfd p[2] = { { listener, POLLIN, 0 }, { control_listener, POLLIN, 0 } };
	struct vfu v = { .fd = -1 };
	int err = 0;

	while (!err) {
		if (poll(p, 2, -1) < 0) {
			err = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (p[1].revents)
			control(card, control_listener);
		if (!p[0].revents)
			continue;
		if (v.fd < 0) {
			err = vfu_init(&v, card, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
			p[0].fd = v.fd;
		} else {
			err = vfu_message(&v);
		}
	}
	if (v.fd >= 0)
		vfu_exit(&v);
	return err == -EPIPE || err == -ECONNRESET ? 0 : err;
}

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s [-k trn1|inf2|trn2|trn3] [-r ROUTING_ID] [-d MIB] "
		"[-0 MIB] [-4 MIB|none] SOCKET\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	struct card_config cfg = { .kind = CARD_TRN2, .serial = 0x1122334455667788 };
	int option, listener, control_listener, err;
	struct card *card;

	while ((option = getopt(argc, argv, "k:r:d:0:4:")) >= 0) {
		if (option == 'k')
			cfg.kind = card_kind_find(optarg);
		else if (option == 'r')
			cfg.routing_id = atoi(optarg);
		else if (option == 'd')
			cfg.dirty_mib = atoi(optarg);
		else if (option == '0')
			cfg.bar0_mib = atoi(optarg);
		else if (option == '4')
			cfg.bar4_mib = strcmp(optarg, "none") ? (u32)atoi(optarg) : CARD_NO_BAR;
		else
			return usage(argv[0]);
	}
	if (cfg.kind == CARD_NR_KINDS || optind != argc - 1)
		return usage(argv[0]);
	card = card_new(&cfg);
	if (!card) {
		perror(argv[0]);
		return 2;
	}
	listener = listen_at(argv[optind], "");
	control_listener = listen_at(argv[optind], ".control");
	err = listener < 0 || control_listener < 0 ? -errno :
						     serve(card, listener, control_listener);
	if (err)
		fprintf(stderr, "%s: %s\n", argv[0], strerror(-err));
	card_run_on_check(card);
	err = err ? 2 : card->stats.complaints != 0;
	fprintf(stderr, "neuron-card: %llu reads, %llu writes, %llu complaints\n",
		card->stats.reads, card->stats.writes, card->stats.complaints);
	card_free(card);
	return err;
}
