#!/bin/sh
# The kernel's compiler: gcc, which finds the headers of headers.h read already.
#
# Three quarters of a build go into reading the same headers for each of 600 files. gcc takes them
# from headers.h.gch (compile.sh makes it) where that comes first and nothing is defined before
# that they use. So what the build defines by file comes after it, on standard input. Compiled as
# without all this is what is not the kernel's own code (its vDSO, programs of the host's), a file
# that defines something for its headers, and one that fails so.
header=${0%/*}/headers.h
case " $* " in
*" -fPIC "* | *" -S "*) exec gcc "$@" ;;
*/include/linux/compiler_types.h" "*.c" ") [ -e "$header.gch" ] || exec gcc "$@" ;;
*) exec gcc "$@" ;;
esac

for source; do :; done
while read -r word name _; do
    case $word$name in
    "#include"*) break ;;
    "#definepr_fmt"*) ;;
    "#define"*) exec gcc "$@" ;;
    esac
done <"$source"

with_headers() {
    defines='' option=''
    for word; do
        shift
        case $option$word in
        -DKBUILD_*=* | -D__KBUILD_*=*)
            word=${word#-D}
            defines="$defines#define ${word%%=*} ${word#*=}
"
            ;;
        -include) option=$word ;;
        -include*/compiler-version.h | -include*/kconfig.h | -include*/compiler_types.h) option='' ;;
        *)
            set -- "$@" ${option:+"$option"} "$word"
            option=''
            ;;
        esac
    done
    gcc -include "$header" -include /dev/stdin "$@" 2>/dev/null <<END
$defines
END
}
with_headers "$@" || exec gcc "$@"
