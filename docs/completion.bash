# shellcheck shell=bash
# Completion of run.sh's flags and scenarios in bash. In ~/.bashrc:
#   source path/to/first-flight/docs/completion.bash

_first_flight() {
    local program=$1 word=$2 before=$3 folder
    folder=$(dirname -- "$program")
    case $before in
        --results | --figures | --users | --compare) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        --engine) mapfile -t COMPREPLY < <(compgen -W "auto uml host" -- "$word") ;;
        --sample) mapfile -t COMPREPLY < <(compgen -W "full" -- "$word") ;;
        --find-cliff) mapfile -t COMPREPLY < <(compgen -W "chain response early" -- "$word") ;;
        --client) mapfile -t COMPREPLY < <(compgen -W "curl wget libcurl" -- "$word") ;;
        *)
            if [[ $word == -* ]]; then
                # The flags are those that --help tells, so that none is forgotten here.
                mapfile -t COMPREPLY < <(compgen -W \
                    "$("$program" --help all 2>/dev/null | grep -oE -- '--[a-z][a-z-]*')" -- "$word")
            else
                mapfile -t COMPREPLY < <(cd -- "$folder/scenarios" 2>/dev/null &&
                    compgen -G "$word*.toml" | sed 's/\.toml$//')
            fi
            ;;
    esac
}
complete -o filenames -F _first_flight run.sh
