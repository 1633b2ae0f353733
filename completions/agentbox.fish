# Completion of agentbox for fish.

function __agentbox_policies
    set -l config $HOME/.config
    set -q XDG_CONFIG_HOME; and set config $XDG_CONFIG_HOME
    for dir in $config/agentbox/policies /etc/agentbox/policies "@POLICYDIR@"
        for file in $dir/*.yaml
            string replace -r '.*/(.*)\.yaml$' '$1' -- $file
        end
    end
    for file in (__fish_complete_path (commandline -ct))
        string match -qr '(/|\.ya?ml)(\t|$)' -- $file; and echo $file
    end
end

# The languages that the policy of the command line knows.
function __agentbox_languages
    set -l words (commandline -opc)
    set -l policy default
    for at in (seq 3 (count $words))
        contains -- $words[(math $at - 1)] -p --policy; and set policy $words[$at]
    end
    $words[1] show -- $policy 2>/dev/null |
        awk '/^[a-z]/ {code = /^code:/} code && /^  [^ ]/ {sub(/:.*/, ""); gsub(/[ "]/, ""); print}'
end

# The sessions that there are.
function __agentbox_sessions
    set -l words (commandline -opc)
    $words[1] session ls 2>/dev/null | awk 'NR > 1 {print $1}'
end

function __agentbox_needs_command
    test (count (commandline -opc)) -eq 1
end

function __agentbox_in
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end

# Where the command of `run` begins among the words before the cursor; nothing before that.
function __agentbox_command_at
    set -l with_value --policy -p --workspace -C --session --cwd --env -e --wall --cpu --cpus --memory --pids \
        --disk --output --open-files --file-size --lang --code --result --result-fd --ports-fd
    set -l words (commandline -opc)
    set -l at 3
    while test $at -le (count $words)
        if test $words[$at] = --
            math $at + 1
            return
        end
        if not string match -q -- '-?*' $words[$at]
            echo $at
            return
        end
        contains -- $words[$at] $with_value; and set at (math $at + 1)
        set at (math $at + 1)
    end
end

function __agentbox_in_run_options
    __agentbox_in run; and test -z (__agentbox_command_at)
end

# Complete the command of `run` as if it stood alone.
function __agentbox_subcommand
    set -l words (commandline -opc)
    set -l at (__agentbox_command_at)
    test -z "$at"; and set at (math (count $words) + 1)
    set -l line (string join ' ' -- (string escape -- $words[$at..]) (commandline -ct))
    complete --do-complete="$line"
end

complete -c agentbox -f
complete -c agentbox -n __agentbox_needs_command -s h -l help -d 'Print the help'
complete -c agentbox -n __agentbox_needs_command -s V -l version -d 'Print the version'

complete -c agentbox -n __agentbox_needs_command -a run -d 'Run a command in a new box'
complete -c agentbox -n __agentbox_needs_command -a check -d 'Validate policies'
complete -c agentbox -n __agentbox_needs_command -a show -d 'Print a policy with all that it extends'
complete -c agentbox -n __agentbox_needs_command -a explain -d 'Say what a policy grants'
complete -c agentbox -n __agentbox_needs_command -a test -d 'Run the examples of policies'
complete -c agentbox -n __agentbox_needs_command -a doctor -d 'Say what this host can enforce'
complete -c agentbox -n __agentbox_needs_command -a session -d 'Make, list and remove sessions'
complete -c agentbox -n __agentbox_needs_command -a read -d 'Write a file of a session to stdout'
complete -c agentbox -n __agentbox_needs_command -a write -d 'Replace a file of a session'
complete -c agentbox -n __agentbox_needs_command -a list -d 'List the files of a session'
complete -c agentbox -n __agentbox_needs_command -a put -d 'Bring a file or an archive into a session'
complete -c agentbox -n __agentbox_needs_command -a get -d 'Fetch a file or an archive from a session'
complete -c agentbox -n __agentbox_needs_command -a diff -d 'Show what a kept run changed'
complete -c agentbox -n __agentbox_needs_command -a apply -d 'Bring the changes of a kept run to the host'
complete -c agentbox -n __agentbox_needs_command -a gc -d 'Remove what killed runs have left'
complete -c agentbox -n __agentbox_needs_command -a help -d 'Print the help of a command'

complete -c agentbox -n __agentbox_in_run_options -s p -l policy -x -a '(__agentbox_policies)' -d 'Policy to run under'
complete -c agentbox -n __agentbox_in_run_options -s i -l stdin -d 'Pass stdin through'
complete -c agentbox -n __agentbox_in_run_options -s C -l workspace -x -a '(__fish_complete_directories)' -d 'The workspace'
complete -c agentbox -n __agentbox_in_run_options -l session -x -d 'Run in a session'
complete -c agentbox -n __agentbox_in_run_options -l cwd -x -d 'Directory to start in, inside'
complete -c agentbox -n __agentbox_in_run_options -s e -l env -x -a '(set -nx)' -d 'Set or pass a variable'
complete -c agentbox -n __agentbox_in_run_options -l wall -x -d 'Limit of time on the clock'
complete -c agentbox -n __agentbox_in_run_options -l cpu -x -d 'Limit of processor time'
complete -c agentbox -n __agentbox_in_run_options -l cpus -x -d 'Processors at once'
complete -c agentbox -n __agentbox_in_run_options -l memory -x -d 'Limit of memory'
complete -c agentbox -n __agentbox_in_run_options -l pids -x -d 'Limit of processes and threads'
complete -c agentbox -n __agentbox_in_run_options -l disk -x -d 'Limit of private files'
complete -c agentbox -n __agentbox_in_run_options -l output -x -d 'Bytes kept of each stream'
complete -c agentbox -n __agentbox_in_run_options -l open-files -x -d 'Limit of open files'
complete -c agentbox -n __agentbox_in_run_options -l file-size -x -d 'Limit of the size of one file'
complete -c agentbox -n __agentbox_in_run_options -l lang -x -a '(__agentbox_languages)' -d 'Language of the snippet'
complete -c agentbox -n __agentbox_in_run_options -l code -x -d 'The snippet, or - for stdin'
complete -c agentbox -n __agentbox_in_run_options -l result -r -F -d 'File for the result'
complete -c agentbox -n __agentbox_in_run_options -l result-fd -x -d 'Descriptor for the result'
complete -c agentbox -n __agentbox_in_run_options -l ports-fd -x -d 'Descriptor for the published ports'
complete -c agentbox -n __agentbox_in_run_options -l tty -d 'Give the command a terminal'
complete -c agentbox -n __agentbox_in_run_options -l keep-changes -d 'Keep what was changed'
complete -c agentbox -n __agentbox_in_run_options -l apply -d 'Bring changes to the host on success'
complete -c agentbox -n __agentbox_in_run_options -l pretty -d 'Print the result on many lines'
complete -c agentbox -n __agentbox_in_run_options -l dry-run -d 'Print the plan and stop'
complete -c agentbox -n __agentbox_in_run_options -s q -l quiet -d 'No words on stderr'
complete -c agentbox -n __agentbox_in_run_options -s v -l verbose -d 'Plan, outcome and times on stderr'
complete -c agentbox -n __agentbox_in_run_options -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in run' -F -a '(__agentbox_subcommand)'

complete -c agentbox -n '__agentbox_in check' -s v -l verbose -d 'Name the valid policies too'
complete -c agentbox -n '__agentbox_in check' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in check' -a '(__agentbox_policies)'

complete -c agentbox -n '__agentbox_in show' -l json -d 'Print JSON'
complete -c agentbox -n '__agentbox_in show' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in show' -a '(__agentbox_policies)'

complete -c agentbox -n '__agentbox_in explain' -l path -r -F -d 'May this path be read?'
complete -c agentbox -n '__agentbox_in explain' -l write -d 'Ask whether the paths may be written'
complete -c agentbox -n '__agentbox_in explain' -l host -x -d 'May this host be reached?'
complete -c agentbox -n '__agentbox_in explain' -l tool -x -d 'May this tool be called?'
complete -c agentbox -n '__agentbox_in explain' -l syscall -x -d 'May this system call be made?'
complete -c agentbox -n '__agentbox_in explain' -s C -l workspace -x -a '(__fish_complete_directories)' -d 'The workspace'
complete -c agentbox -n '__agentbox_in explain' -l json -d 'Print JSON'
complete -c agentbox -n '__agentbox_in explain' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in explain' -a '(__agentbox_policies)'

complete -c agentbox -n '__agentbox_in test' -s v -l verbose -d 'What the commands printed, for all tests'
complete -c agentbox -n '__agentbox_in test' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in test' -a '(__agentbox_policies)'

complete -c agentbox -n '__agentbox_in doctor' -l json -d 'Print JSON'
complete -c agentbox -n '__agentbox_in doctor' -s h -l help -d 'Print the help'

complete -c agentbox -n '__agentbox_in session' -s p -l policy -x -a '(__agentbox_policies)' -d 'new: policy of the session'
complete -c agentbox -n '__agentbox_in session' -s C -l workspace -x -a '(__fish_complete_directories)' -d 'new: the workspace'
complete -c agentbox -n '__agentbox_in session' -l json -d 'ls: print JSON'
complete -c agentbox -n '__agentbox_in session' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in session' -a 'new ls rm (__agentbox_sessions)'

complete -c agentbox -n '__agentbox_in read' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in read' -F -a '(__agentbox_sessions)'

complete -c agentbox -n '__agentbox_in write' -l mode -x -d 'Mode of the file'
complete -c agentbox -n '__agentbox_in write' -l parents -d 'Make missing directories'
complete -c agentbox -n '__agentbox_in write' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in write' -F -a '(__agentbox_sessions)'

complete -c agentbox -n '__agentbox_in list' -s r -l recursive -d 'All that is below the directory'
complete -c agentbox -n '__agentbox_in list' -l json -d 'Print JSON'
complete -c agentbox -n '__agentbox_in list' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in list' -F -a '(__agentbox_sessions)'

complete -c agentbox -n '__agentbox_in put' -l tar -d 'stdin is a tar archive'
complete -c agentbox -n '__agentbox_in put' -l parents -d 'Make missing directories'
complete -c agentbox -n '__agentbox_in put' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in put' -F -a '(__agentbox_sessions)'

complete -c agentbox -n '__agentbox_in get' -l tar -d 'Write a tar archive'
complete -c agentbox -n '__agentbox_in get' -l allow-unsafe-links -d 'With --tar: pack links that lead out of the archive'
complete -c agentbox -n '__agentbox_in get' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in get' -F -a '(__agentbox_sessions)'

complete -c agentbox -n '__agentbox_in diff' -s C -l workspace -x -a '(__fish_complete_directories)' -d 'The workspace'
complete -c agentbox -n '__agentbox_in diff' -s p -l patch -d 'Print a patch for git apply'
complete -c agentbox -n '__agentbox_in diff' -l stat -d 'Print how many lines of each file changed'
complete -c agentbox -n '__agentbox_in diff' -l json -d 'Print JSON'
complete -c agentbox -n '__agentbox_in diff' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in diff' -F

complete -c agentbox -n '__agentbox_in apply' -s C -l workspace -x -a '(__fish_complete_directories)' -d 'The workspace'
complete -c agentbox -n '__agentbox_in apply' -s n -l dry-run -d 'Say what would be applied'
complete -c agentbox -n '__agentbox_in apply' -l allow-sensitive -d 'Apply sensitive files too'
complete -c agentbox -n '__agentbox_in apply' -l keep -d 'Keep the result also when all was applied'
complete -c agentbox -n '__agentbox_in apply' -l drop -d 'Remove the result also when something was left out'
complete -c agentbox -n '__agentbox_in apply' -s q -l quiet -d 'Say only what was left out'
complete -c agentbox -n '__agentbox_in apply' -l json -d 'Print JSON'
complete -c agentbox -n '__agentbox_in apply' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in apply' -F

complete -c agentbox -n '__agentbox_in gc' -l dry-run -d 'Say what would be removed'
complete -c agentbox -n '__agentbox_in gc' -s q -l quiet -d 'Say only what could not be removed'
complete -c agentbox -n '__agentbox_in gc' -l json -d 'Print JSON'
complete -c agentbox -n '__agentbox_in gc' -s h -l help -d 'Print the help'

complete -c agentbox -n '__agentbox_in help' -s h -l help -d 'Print the help'
complete -c agentbox -n '__agentbox_in help' -a 'run check show explain test doctor session read write list put get diff apply gc help'
