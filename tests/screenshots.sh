#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make screenshots: the pictures of README.md, of tools that watch programs at work on software
# devices in a virtual machine (screenshots/guest.sh). tmux is the terminal, aha makes a page of its
# screen, and a browser makes pictures of pages.
#
# usage: [COLS=120] [ROWS=34] [WATCH=SECONDS] screenshots.sh [DIR]	(libneuron/docs)

set -eu -o pipefail
. "$(dirname "$0")/vm/lib.sh"

out=${1:-$ROOT/libneuron/docs}
cols=${COLS:-120} rows=${ROWS:-34}
"$ROOT/tests/deps.sh" build vm screenshots
mkdir -p "$CACHE/tmp" "$out"
work=$(mktemp -d "$CACHE/tmp/screenshots.XXXXXX")
trap 'terminal kill-server 2>/dev/null || :; rm -rf "$work"' EXIT

terminal() {
	tmux -S "$work/tmux" -f /dev/null -u "$@"
}

# wait_for WORD SECONDS, until the terminal shows it.
wait_for() {
	local end=$((SECONDS + $2))

	until terminal capture-pane -p | grep -q -e "$1"; do
		if [ $SECONDS -ge $end ]; then
			terminal capture-pane -p >&2
			die "no $1 after $2 seconds"
		fi
		sleep 1
	done
}

# picture PAGE WIDTH HEIGHT NAME [OPTION...]: as small as it is without looking worse.
picture() {
	local page=$1 width=$2 height=$3 name=$4

	shift 4
	HOME=$work chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
		--window-size="$width,$height" --screenshot="$work/$name.png" "$@" \
		"file://$page" >"$work/chromium.log" 2>&1 || { cat "$work/chromium.log" >&2; return 1; }
	pngquant --force --speed 1 --strip --nofs --output "$out/$name.png" 64 "$work/$name.png"
	optipng -quiet -o5 "$out/$name.png"
}

# The screen as a page. aha knows no dim letters, and forgets reverse ones at a default colour.
screen_page() {
	cat <<-'END'
	<!DOCTYPE html><meta charset=utf-8><style>
	body{margin:0;background:#16191f}
	pre{margin:12px;font:14px/1.25 "DejaVu Sans Mono",monospace;color:#d5d9e0}
	.inverted{color:#16191f}.bg-inverted{background:#b9c0cc}.bold{font-weight:bold}
	.dimgray{color:#16191f}.highlighted{color:#737b89}
	.green{color:#5fb760}.red{color:#ef6b66}
	.bg-cyan{background:#4cb8c4}.bg-blue{background:#6d9eeb}.bg-green{background:#5fb760}
	.bg-purple{background:#c58ae0}.bg-yellow{background:#dcb84e}.bg-white{background:#c3c8d0}
	.bg-red{background:#ef6b66}
	</style><pre>
	END
	sed -E 's/\x1b\[(0;)?2m(\x1b\[39m)?(\x1b\[49m)?/\x1b[0m\x1b[90m/g
		s/\x1b\[(0;)?7m(\x1b\[39m)?(\x1b\[49m)?/\x1b[0m\x1b[7m/g' "$1" | aha -n -s
	echo '</pre>'
}

screen_picture() {
	screen_page "$1" >"$work/screen.html"
	picture "$work/screen.html" $((cols * 843 / 100 + 28)) $((rows * 175 / 10 + 24)) "$2" \
		--force-device-scale-factor=1.5
}

mkdir "$work/shared"
cp "$ROOT/tests/screenshots/guest.sh" "$work/shared"
terminal new-session -d -x "$cols" -y "$rows" "TERM=tmux-256color \
	$ROOT/tests/vm/shell.sh $work/shared --test $ROOT/tests/screenshots/serve.c"
wait_for '^neuron:' 1800
terminal send-keys 'bash /shared/guest.sh' Enter
wait_for 'q Quit' 300
# Until there is something to see in its histories.
sleep "${WATCH:-240}"
terminal capture-pane -e -N -p >"$work/screen"
screen_picture "$work/screen" neuron-top
terminal send-keys q
wait_for '^pictures-done' 300
terminal send-keys C-d
while terminal has-session 2>/dev/null; do sleep 1; done
for name in memory-map memory-timeline; do
	install -m 644 "$work/shared/$name.svg" "$out"
done
# 0 is dark, 1 light.
picture "$work/shared/page.html" 1280 1000 memory-page-dark --blink-settings=preferredColorScheme=0
picture "$work/shared/page.html" 1280 1000 memory-page-light --blink-settings=preferredColorScheme=1
(cd "$out" && du -bc neuron-top.png memory-*.svg memory-page-*.png)
