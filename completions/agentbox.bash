# Completion of agentbox for bash.

# Names of policies.
_agentbox_policies() {
	local dir file
	for dir in "${XDG_CONFIG_HOME:-$HOME/.config}/agentbox/policies" /etc/agentbox/policies \
		"@POLICYDIR@"; do
		for file in "$dir"/*.yaml; do
			[[ -e $file ]] || continue
			file=${file##*/}
			printf '%s\n' "${file%.yaml}"
		done
	done
}

# Reply with policies that begin with the current word: names, files of YAML, and directories.
_agentbox_reply_policies() {
	mapfile -t COMPREPLY < <(
		compgen -W "$(_agentbox_policies)" -- "$current"
		compgen -f -X '!*.yaml' -- "$current"
		compgen -f -X '!*.yml' -- "$current"
		compgen -d -- "$current"
	)
}

# The languages that the policy of the command line knows.
_agentbox_languages() {
	local i policy=default
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i - 1]} in
		--policy | -p) policy=${COMP_WORDS[i]} ;;
		esac
	done
	"${COMP_WORDS[0]}" show -- "$policy" 2>/dev/null |
		awk '/^[a-z]/ {code = /^code:/} code && /^  [^ ]/ {sub(/:.*/, ""); gsub(/[ "]/, ""); print}'
}

# The options of a command: those with a value, and those without.
_agentbox_options() {
	case $1 in
	run)
		with_value="--policy -p --workspace -C --session --cwd --env -e --wall --cpu --cpus --memory
			--pids --disk --output --open-files --file-size --lang --code --result --result-fd --ports-fd"
		without="--stdin -i --tty --pretty --keep-changes --apply --dry-run --quiet -q --verbose -v --help -h"
		;;
	check) with_value="" without="--verbose -v --help -h" ;;
	show) with_value="" without="--json --help -h" ;;
	explain)
		with_value="--path --host --tool --syscall --workspace -C"
		without="--write --json --help -h"
		;;
	test) with_value="" without="--verbose -v --help -h" ;;
	doctor) with_value="" without="--json --help -h" ;;
	session) with_value="--policy -p --workspace -C" without="--json --help -h" ;;
	read) with_value="" without="--help -h" ;;
	write) with_value="--mode" without="--parents --help -h" ;;
	list) with_value="" without="--recursive -r --json --help -h" ;;
	put) with_value="" without="--tar --parents --help -h" ;;
	get) with_value="" without="--tar --allow-unsafe-links --help -h" ;;
	diff) with_value="--workspace -C" without="--patch -p --stat --json --help -h" ;;
	apply)
		with_value="--workspace -C"
		without="--dry-run -n --allow-sensitive --keep --drop --quiet -q --json --help -h"
		;;
	gc) with_value="" without="--dry-run --quiet -q --json --help -h" ;;
	help) with_value="" without="--help -h" ;;
	*) with_value="" without="--help -h --version -V" ;;
	esac
}

# Reply with the words of $1 that begin with the current one.
_agentbox_reply() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

# The value of an option.
_agentbox_value() {
	case $1 in
	--policy | -p) _agentbox_reply_policies ;;
	--lang) _agentbox_reply "$(_agentbox_languages)" ;;
	--workspace | -C) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
	--result | --path) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	--env | -e) mapfile -t COMPREPLY < <(compgen -v -- "$current") ;;
	*) COMPREPLY=() ;;
	esac
}

# The sessions that there are.
_agentbox_sessions() {
	"${COMP_WORDS[0]}" session ls 2>/dev/null | awk 'NR > 1 {print $1}'
}

# How many words before the current one are no options and no values of such.
_agentbox_arguments() {
	local i count=0
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ " ${with_value//[[:space:]]/ } " == *" ${COMP_WORDS[i]} "* ]]; then
			((i++))
		elif [[ ${COMP_WORDS[i]} != -* ]]; then
			((count++))
		fi
	done
	echo "$count"
}

# Where the command of `run` begins: the index of its first word, or nothing.
_agentbox_command_at() {
	local i=2 word
	while ((i < COMP_CWORD)); do
		word=${COMP_WORDS[i]}
		if [[ $word == -- ]]; then
			echo $((i + 1))
			return
		elif [[ $word != -* ]]; then
			echo "$i"
			return
		elif [[ " ${with_value//[[:space:]]/ } " == *" $word "* ]]; then
			((i++))
		fi
		((i++))
	done
}

_agentbox_argument() {
	case $1 in
	run)
		local at
		at=$(_agentbox_command_at)
		if [[ -n $at ]] && ((at < COMP_CWORD)); then
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
		else
			mapfile -t COMPREPLY < <(compgen -c -- "$current")
		fi
		;;
	check | show | explain | test) _agentbox_reply_policies ;;
	session)
		if [[ $(_agentbox_arguments) == 0 ]]; then
			_agentbox_reply "new ls rm"
		elif [[ " ${COMP_WORDS[*]} " == *" rm "* ]]; then
			_agentbox_reply "$(_agentbox_sessions)"
		else
			COMPREPLY=()
		fi
		;;
	read | write | list | put | get)
		if [[ $(_agentbox_arguments) == 0 ]]; then
			_agentbox_reply "$(_agentbox_sessions)"
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
		fi
		;;
	help) _agentbox_reply "$commands" ;;
	diff | apply) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	*) COMPREPLY=() ;;
	esac
}

_agentbox() {
	local current=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} with_value without
	local commands="run check show explain test doctor session read write list put get diff apply gc help"
	if ((COMP_CWORD == 1)); then
		_agentbox_options ""
		if [[ $current == -* ]]; then
			_agentbox_reply "$without"
		else
			_agentbox_reply "$commands"
		fi
		return
	fi
	_agentbox_options "$command"
	if [[ $command == run && -n $(_agentbox_command_at) ]]; then
		_agentbox_argument run
	elif [[ " ${with_value//[[:space:]]/ } " == *" $last "* ]]; then
		_agentbox_value "$last"
	elif [[ $current == -* ]]; then
		_agentbox_reply "$with_value $without"
	else
		_agentbox_argument "$command"
	fi
}

complete -o filenames -F _agentbox agentbox
