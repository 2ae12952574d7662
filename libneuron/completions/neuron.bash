# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2154
#
# Completion for the neuron tools, under the name of each. Options are those that --help
# prints; here is only what their arguments can be.

# Of the devices that there are.
_neuron_numbers()
{
	(cd /sys/class/neuron_device 2>/dev/null &&
		printf '%s\n' neuron* | sed -n 's/^neuron\([0-9]\)/\1/p')
}

_neuron()
{
	local cur prev words cword split tool=${1##*/}

	_init_completion -s || return
	case "$tool $prev" in
	*" --lnc"|"neuron-cdi -l"|"neuron-ls -l"|"neuron-preflight -l"|"neuron-neff "@(-l|-r|--package-version))
		mapfile -t COMPREPLY < <(compgen -W "1 2" -- "$cur") ;;
	"neuron-preflight "@(-i|--instance))
		mapfile -t COMPREPLY < <(compgen -W "trn1 inf2 trn2 trn3" -- "$cur") ;;
	"neuron-preflight "@(-D|--device))
		mapfile -t COMPREPLY < <(compgen -W "$(_neuron_numbers)" -- "$cur") ;;
	"neuron-preflight "@(-B|--budget))
		mapfile -t COMPREPLY < <(compgen -W "1G 12G 24G" -- "$cur") ;;
	"neuron-preflight "@(-o|--io))
		mapfile -t COMPREPLY < <(compgen -W "count single none" -- "$cur") ;;
	"neuron-preflight "@(-b|--profile-buffer)|"neuron-profile "@(-b|--buffer))
		mapfile -t COMPREPLY < <(compgen -S = -W "EVENT DMA THROTTLE \
			CC_CORE_INSTRUCTION CC_CORE_EVENT" -- "$cur")
		compopt -o nospace ;;
	"neuron-demo "@(-m|--model))
		mapfile -t COMPREPLY < <(compgen -W "mnist-bf16 mnist-int8 decoder" -- "$cur") ;;
	"neuron-pack "@(-C|--directory))
		_filedir -d ;;
	"neuron-profile "@(-n|--neff))
		_filedir neff ;;
	"neuron-cdi "@(-o|--output)|"neuron-neff "@(-o|--output)|"neuron-pack "@(-o|--output)|"neuron-profile "@(-s|--session-file)|\
	"neuron-mem "@(-s|--svg|-F|--from|snapshot|timeline))
		_filedir ;;
	"neuron-rtd -l")
		mapfile -t COMPREPLY < <(compgen -W "3 5 6 7" -- "$cur") ;;
	"neuron-rtd "@(-c|-g))
		_filedir ;;
	"neuron-rtd -t")
		COMPREPLY=() ;;
	"neuron-monitor "@(-c|--config-file))
		_filedir json ;;
	"neuron-monitor "@(-t|--textfile))
		_filedir prom ;;
	"neuron-top "@(-d|--delay|-n|--iterations)|"neuron-mem "@(-n|--iterations|-p|--pid|-r|--rows|-w|--watch)|\
	"neuron-monitor "@(-p|--period|-n|--iterations))
		COMPREPLY=() ;;
	*)	if ! $split; then
			_neuron_word
		fi ;;
	esac
}

# A word that no option asks for.
_neuron_word()
{
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_parse_help "${words[0]}")" -- "$cur")
		[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
		return
	fi
	case "$tool ${words[*]:1:cword-1} " in
	"neuron-neff"*" create "*|"neuron-demo "*)
		_filedir -d ;;
	"neuron-neff"*" "@(info|plan|unpack)" "*|"neuron-preflight "*)
		_filedir neff ;;
	"neuron-neff "*)
		mapfile -t COMPREPLY < <(compgen -W "info plan unpack create" -- "$cur") ;;
	"neuron-profile "*)
		mapfile -t COMPREPLY < <(compgen -W "capture" -- "$cur") ;;
	"neuron-cdi "*)
		mapfile -t COMPREPLY < <(compgen -W "generate" -- "$cur") ;;
	"neuron-pack "*)
		_filedir json ;;
	"neuron-mem "*)
		mapfile -t COMPREPLY < <(compgen -W "map owners resolve snapshot timeline $(_neuron_numbers)" -- "$cur") ;;
	esac
} &&
	complete -F _neuron neuron-cdi neuron-demo neuron-ls neuron-mem neuron-monitor neuron-neff neuron-pack \
		neuron-preflight neuron-profile neuron-rtd neuron-top
