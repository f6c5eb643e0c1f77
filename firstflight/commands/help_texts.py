"""The texts of the command line's help: its frame, examples, and flags that people guess wrong."""

from __future__ import annotations

EPILOG = """\
the three commands that people need:
  ./run.sh                                                   the paper's Figure 5, measured here
  ./run.sh --rtt 25 --bw 20000 --iw 10,40 --size 29000        a question of your own
  ./run.sh --list                                            what can be measured

exit status: 0 measured and verified · 1 a trial or the harness failed · 2 usage ·
3 measured, but a verdict failed · 4 this machine cannot · 5 a condition of --fail-if holds ·
130 interrupted · 141 who read the output has left
"""


SHORT = """\
usage: ./run.sh [SCENARIO ...] [FLAG ...]

Measure what TCP's initial window does, on real Linux TCP in virtual time.

  ./run.sh                                   the paper's Figure 5, measured here
  ./run.sh --rtt 25ms --bw 20M --iw 10,40    a question of your own
  ./run.sh --users access.log --bw 10M       which window for my users
  ./run.sh --page page.har --iw 10,32        a page of many objects
  ./run.sh --list                            what else can be measured
  ./run.sh -- python3 my_mininet_script.py   any command, in virtual time
  ./run.sh --capture -- ./my_experiment.sh   and what its network really did
  ./run.sh -- packetdrill my_script.pkt      packetdrill's scripts, too

your question (flags take lists, 10,20 or 10..40:10; all combinations are run)
  --rtt 50ms      round-trip time           --iw 10,30    initial windows
  --bw 10M        bandwidth, bits a second  --size 30kB   response size
  --queue 1bdp    bottleneck's queue        --loss 1%     random loss
  --cc cubic,bbr  congestion control        --qdisc fq    queueing discipline
  --chain 4kB     TLS 1.3 with a chain      --repeat 10   transfers of a setting

your server and users
  --probe URL        the initial window that your server uses, seen from here
  --users FILE       a log or CSV of your users: the best window
  --find-cliff KIND  the size from which a response costs a round trip

how
  --full         print every table          --dry-run      what would be done
  --jobs N       guests side by side        --fresh        do not resume
  --results DIR  where results go           --export csv F findings as a file
  --quiet        no progress                --version      the version
  --fail-if 'total_ms(10) > 300'            status 5 where that holds, for CI

./run.sh --help all has every flag; ./run.sh --help rtt one, with an example.
exit status: 0 verified · 1 failed · 2 usage · 3 a verdict failed ·
4 this machine cannot · 5 --fail-if holds · 130 interrupted ·
141 the output pipe was closed
"""

# By a flag that people type although it does not exist: the flag that does, with an example of its
# value ("" for none), or a sentence.
SYNONYMS: dict[str, str | tuple[str, str]] = {
    **dict.fromkeys(("--initcwnd", "--iws", "--window", "--windows", "--initial-window", "--cwnd",
                     "--icw", "-w"), ("--iw", "10,20")),
    **dict.fromkeys(("--initrwnd", "--receive-window"), ("--rwnd", "100")),
    **dict.fromkeys(("--latency", "--delay", "--ping", "--rtts"), ("--rtt", "50ms")),
    **dict.fromkeys(("--bandwidth", "--rate", "--throughput", "--speed", "--link"),
                    ("--bw", "10M")),
    **dict.fromkeys(("--sizes", "--bytes", "--response", "--filesize", "--length"),
                    ("--size", "30kB")),
    **dict.fromkeys(("--upload", "--post", "--body", "--request-size"), ("--request", "30kB")),
    **dict.fromkeys(("--client-initcwnd", "--client-window"), ("--client-iw", "10,32")),
    **dict.fromkeys(("--buffer", "--buffers", "--queues"), ("--queue", "1bdp")),
    **dict.fromkeys(("--packet-loss", "--losses", "--drop"), ("--loss", "1%")),
    **dict.fromkeys(("--congestion", "--congestion-control", "--tcp", "--algorithm"),
                    ("--cc", "cubic,bbr")),
    **dict.fromkeys(("--scenarios", "--ls"), ("--list", "")),
    **dict.fromkeys(("--repeats", "--runs", "--count", "-n"), ("--repeat", "10")),
    **dict.fromkeys(("--threads", "--parallel", "-j"), ("--jobs", "2")),
    **dict.fromkeys(("--output", "--out", "-o"),
                    "write --results DIR: the folder; --export csv FILE is one file"),
    **dict.fromkeys(("--json", "--csv", "--md"),
                    "--export json FILE (md, csv) writes the findings of one scenario"),
    **dict.fromkeys(("--log", "--logs", "--accesslog"), ("--users", "FILE")),
    **dict.fromkeys(("--pages", "--har"), ("--page", "FILE")),
    **dict.fromkeys(("--requests", "--resources", "--streams"), ("--objects", "20")),
    **dict.fromkeys(("--tls", "--https"), "write --chain 3kB: TLS 1.3 with a certificate chain"),
    **dict.fromkeys(("--verbose", "-vv"), "--full prints every table"),
    "-v": "--version prints the version, --full every table",
    "-V": ("--version", ""), "-q": ("--quiet", ""), "--help-all": ("--help", "all")}


# The example that --help FLAG shows below the flag's text, by its first flag. A test parses
# each of them.
EXAMPLES = {line.split()[1]: line for line in """\
./run.sh --help rtt
./run.sh --version
./run.sh --list tls
./run.sh --new my_question
./run.sh --check docs/examples/question.toml
./run.sh --scenario zhao2019 pq_chains
./run.sh --as-published zhao2019
./run.sh --rtt 20ms,0.2s --bw 10M --iw 10,30
./run.sh --bw 512k,10M,1G
./run.sh --uplink 1M --bw 20M
./run.sh --queue 100,50ms,0.5bdp
./run.sh --qdisc fifo,fq_codel
./run.sh --loss 0.5%,2%
./run.sh --burst-loss 3 --loss 1%
./run.sh --jitter 5ms
./run.sh --request 30kB --rtt 220ms
./run.sh --client-iw 10,32 --request 30kB
./run.sh --iw 10,20..40:10
./run.sh --rwnd 10,100
./run.sh --rwnd-growth grows,fixed --size 300kB
./run.sh --cc cubic,bbr
./run.sh --kernel default,mine --size 5MB
./run.sh --module-parameter none,tcp_cubic.hystart=0 --size 5MB
./run.sh --mss 1200
./run.sh --size 15kB,1MB
./run.sh --kept 1 --size 30kB
./run.sh --idle 10s --kept 2
./run.sh --server nginx --chain 3kB
./run.sh --http 2 --server nginx --chain 3kB
./run.sh --chain 3kB,15kB
./run.sh --signature ecdsa --chain 3kB
./run.sh --key-share x25519 --chain 3kB
./run.sh --system debian13 --chain 15kB
./run.sh --intermediates 2 --chain 6kB
./run.sh --tickets 0 --chain 3kB
./run.sh --resumed 1 --chain 3kB
./run.sh --early-data 1 --resumed 1 --chain 3kB --server nginx
./run.sh --record 4096 --chain 3kB
./run.sh --tls-buffer 0 --chain 15kB
./run.sh --think 100ms
./run.sh --load 0.5,0.95 --scenario ietf78_completion
./run.sh --sysctl net.ipv4.tcp_slow_start_after_idle=0,1 --kept 1 --idle 10s
./run.sh --repeat 10 --loss 1%
./run.sh --client curl --rtt 50ms
./run.sh --sample 1/16 --scenario map_of_windows
./run.sh --name office --rtt 50ms
./run.sh --server-command 'python3 -m http.server {p}' --server-folder .
./run.sh --server-folder . --server-command 'python3 -m http.server {p}'
./run.sh --server-ready / --server-command 'python3 -m http.server {p}'
./run.sh --url-path /page.html --server-command 'python3 -m http.server {p}'
./run.sh --ca root.pem --server-command './serve --port {p}'
./run.sh --server-name example.org --server-command './serve --port {p}'
./run.sh --allow-commands path/to/my.toml
./run.sh --users access.log --bw 10M
./run.sh --rtt-field 12 --users access.log --bw 10M
./run.sh --first-requests --users access.log --bw 10M
./run.sh --trials 2000 --users access.log --bw 10M
./run.sh --find-cliff response --rtt 50ms
./run.sh --page page.har --iw 10,32
./run.sh --mine example.org --page page.har
./run.sh --server-time 0 --page page.har --client chromium
./run.sh --objects 20 --size 15kB --iw 10,32
./run.sh --connections 2,6 --objects 20 --http 1.1,2
./run.sh --document 30kB --objects 20
./run.sh --probe https://your.site/page
./run.sh --compare results/zhao2019/latest results/zhao2019/2026-01-01_120000-uml
./run.sh --engine host --rtt 50ms
./run.sh --jobs 2 --rtt 50ms,100ms
./run.sh --cluster tls://host:8786 --rtt 50ms
./run.sh --seed 7 --loss 1%
./run.sh --dry-run zhao2019
./run.sh --yes --rtt 1..200:1 --bw 1M..20M:100k --repeat 3
./run.sh --fresh zhao2019
./run.sh --keep-captures --rtt 50ms
./run.sh --export csv office.csv --rtt 50ms
./run.sh --fail-if 'total_ms(10) > 300' --rtt 50ms
./run.sh --format png,svg zhao2019
./run.sh --quiet --rtt 50ms
./run.sh --no-reasons --rtt 50ms
./run.sh --full zhao2019
./run.sh --no-figures zhao2019
./run.sh --results /tmp/results --rtt 50ms
./run.sh --figures /tmp/figures zhao2019
""".splitlines()}
