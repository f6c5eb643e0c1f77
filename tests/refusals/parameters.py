"""Parameters on the command line: out of range, and flags that do not go together."""

from __future__ import annotations

from tests.refusals import typed

EARLY = "--chain 4000 --server nginx --resumed 1"
OWN_SERVER = "--server-command 'serve {p}'"

REFUSALS = [
    *typed(
        # Ranges
        ("zhao2019 --rtt 0", "--rtt: an RTT of 0 ms"),
        ("zhao2019 --iw 0", "--iw: an initial window of 0 segments"),
        ("zhao2019 --size 0", "--size: a response of 0 bytes"),
        ("zhao2019 --repeat 0", "--repeat"),
        ("zhao2019 --repeat 1000000000", "--repeat"),
        # A parameter, and what it goes with
        ("zhao2019 --burst-loss 5", "need random loss (loss_percent, --loss"),
        ("zhao2019 --client libcurl --idle 5", "kept (--kept) has to be 1 or more"),
        ("zhao2019 --idle 5 --kept 1", "needs the client libcurl, not curl"),
        ("zhao2019 --client wget --kept 1", "wget times all responses of a connection together"),
        ("zhao2019 --qdisc fq_codle",
         "--qdisc: unknown 'fq_codle' (did you mean 'fq_codel'"),
        ("zhao2019 --queue ms", "--queue: 'ms' is not a queue length"),
        ("zhao2019 --queue ''", "--queue: '' is not a queue length"),
        ("zhao2019 --queue 0", "--queue: a queue of 0 packets is out of range"),
        ("zhao2019 --queue 101bdp",
         "it can be 0.001 to 100 bandwidth-delay products"),
        ("zhao2019 --queue 100bdp --rtt 100000 --bw 10000000",
         "a queue of 100bdp"),
        ("zhao2019 --mss 1460", "88 to 1448 bytes (1460 less 12 of time stamps"),
        # TLS
        ("zhao2019 --client libcurl --chain 4000",
         "needs the client curl, not libcurl: use --client curl"),
        ("zhao2019 --chain 399",
         "too small for 1 certificate with ed25519: at least 400"),
        ("zhao2019 --chain 2000 --signature rsa2048 --intermediates 2",
         "at least 3000"),
        ("zhao2019 --chain 4000 --kept 1", "go with plain HTTP only"),
        ("zhao2019 --resumed 1", "only with TLS"),
        ("zhao2019 --chain 4000 --resumed 0,1 --tickets 0", "without a ticket"),
        ("zhao2019 --chain 4000 --signature ed25591", "did you mean 'ed25519'"),
        ("zhao2019 --chain 96001", "it can be 0 to 96000 bytes (OpenSSL's clients"),
        ("--chain 4000 --server nginx --resumed 0,1 --early-data 1 --iw 10",
         "early data (--early-data) goes with a session that is resumed"),
        ("--chain 4000 --server builtin --resumed 1 --early-data 1 --iw 10",
         "needs the server nginx"),
        ("--chain 0 --server nginx --resumed 1 --early-data 1 --iw 10",
         "early data sent, only with TLS"),
        (f"{EARLY} --early-data 50",
         "50 bytes are less than curl's request may have: say 1"),
        (f"{EARLY} --early-data 20000", "out of range"),
        (f"{EARLY} --early-data 1 --http 2", "with HTTP/1.1 only"),
        (f"{EARLY} --early-data 1 --system here", "needs Debian 13's programs"),
        (f"{EARLY} --early-data 1 --tickets 0", "without a ticket"),
        # Post-quantum algorithms, and whose programs run
        ("--chain 20000 --signature mldsa44 --system here", "mldsa44 needs Debian 13's programs"),
        ("--chain 20000 --key-share x25519mlkem768 --system here,debian13",
         "x25519mlkem768 needs Debian"),
        ("--chain 3979 --signature mldsa44", "too small for 1 certificate with mldsa44"),
        ("--chain 16299 --signature slhdsa128s --intermediates 1", "at least 16300"),
        ("--chain 20000 --signature mldsa444", "did you mean 'mldsa44'"),
        ("--chain 20000 --system debian14", "debian13"),
        # Servers
        ("--server nginx --think 50", "a back-end (--think) needs the server builtin, not nginx"),
        ("--server nginx --chain 4000 --tls-buffer 0", "--tls-buffer"),
        ("--server builtin,nginx --http 2 --chain 4000", "builtin speaks HTTP/1.1 only"),
        ("--server nginx --http 1.1,2", "HTTP/2 goes over TLS"),
        ("--server nginx --http 2 --chain 4000 --resumed 1", "with HTTP/1.1 only"),
        ("--server ngnix", "did you mean 'nginx'"), ("--http 1.2", "known: 1.1, 2"),
        ("--server-command 'serve \"'", "No closing quotation"),
        (f"{OWN_SERVER} --url-path /page", "give the size of the response"),
        (f"{OWN_SERVER} --url-path 'page/{{size}}'", "is not a path"),
        (f"{OWN_SERVER} --server-name 'a b'", "is not a host name"),
        (f"{OWN_SERVER} --server nginx", "--server-command goes only with --server own"),
        (f"{OWN_SERVER} --http 2", "HTTP/2 goes over TLS"),
        (f"{OWN_SERVER} --think 5", "not own"),
        ("--server own", "give --server-command"),
        # The search for a cliff
        ("--find-cliff chain --chain 4000", "--chain is what it searches for"),
        ("--find-cliff response --size 4000", "--size is what it searches for"),
        ("--find-cliff chain --idle 600000", "looks at a connection's first request"),
        ("--find-cliff chain --kept 1", "go with plain HTTP only"),
        ("--find-cliff response --idle 600000 --chain 4000", "go with plain HTTP only"),
        ("--find-cliff chain --resumed 1", "without --resumed, --kept, --idle, --think"),
        ("--find-cliff early --iw 3,10", "early data leaves under the client's own window"),
        ("--find-cliff early --early-data 1", "--early-data is what it searches for"),
        ("--find-cliff early --http 2", "with HTTP/1.1 only"),
        ("--find-cliff early --resumed 0", "a session that is resumed"),
        ("--find-cliff early --server builtin", "needs the server nginx"),
        # A question of your own
        ("--name zhao2019", "--name: there is a scenario zhao2019 already"),
        ("--name ../x", "--name: '../x' becomes a folder"),
        ("--name own --load 0.5", "--load: a question has one transfer at a time"),
        ("--name own --rtt 0", "--rtt: an RTT of 0 ms is out of range"),
        ("--name own --sysctl tcp_sack", "--sysctl: 'tcp_sack' is not NAME=VALUE"),
        ('--name own --sysctl \'a="\n\'', '--sysctl: \'a="\\n\' is not NAME=VALUE'),
        ("--name own --sysctl net.ipv4.ip_forward=1", "unknown 'net.ipv4.ip_forward'"),
        ("--name own --sysctl 'net.ipv4.tcp_sack=$(x)'", "is not numbers or words"),
        # Load scenarios
        ("ietf78_load --load 1.5", "--load: an offered load of 1.5"),
        ("ietf78_load --client curl", "--client: a load scenario has clients of its own"),
        ("ietf78_load --rtt 20,50", "--rtt: a load scenario takes one value at a time"),
        ("ietf78_load --repeat 0", "--repeat"),
        # Pages
        *((f"--objects 3 {flag} {value}", f"{flag}: a page comes without TLS; leave the flag out")
          for flag, value in (("--chain", "4000"), ("--resumed", "1"),
                              ("--key-share", "x25519mlkem768"))),
        ("--objects 3 --mss 1000", "--mss does not go with --objects, which takes --queue, --loss"),
        ("--objects 3 --rtt 20,50", "--rtt: --objects takes one value of this flag"),
        ("--objects 3 --server own", "--server: a page comes from builtin or nginx, not from own"),
        *((words, "a page comes over HTTP/1.1: browsers speak HTTP/2 over TLS only, which pages"
           " lack: ") for words in ("--objects 3 --http 2 --server nginx",
                                    "--objects 3 --http 1.1,2", "page2026 --http 2")),
        ("--objects 99 --size 1000000", "a page of 100,000,000 bytes; at most 30,000,000 fit"),
        ("--objects 1000", "--objects: a number of objects of 1000 is out of range"),
        ("--objects 3 --document 0", "--document: a document of 0 bytes"),
        ("--objects 3 --connections 0", "--connections: a number of connections at once"),
        # A part of a scenario, or a larger sample
        *((f"zhao2019 --sample {part}", "is not full, nor 1/N")
          for part in ("''", "1/1", "1/0", "1/x", "16", "2/16", "1/10001", "Full")),
        ("zhao2019 --sysctl net.ipv4.tcp_sack=0",
         "zhao2019: --sysctl: those of a scenario are in its file, under [sysctls]"),
        ("zhao2019 --load 0.5", "zhao2019: --load: it has one transfer at a time"),
        ("zhao2019 --queue 1 --qdisc fifo,cake",
         "zhao2019: cake lets nothing through a queue of 1 packet"),
        ("dukkipati2010 --rtt 20", "draws its clients and responses: it takes --iw"),
        ("dukkipati2010 --size 1", "draws its clients and responses: it takes --iw"),
        ("dukkipati2010 --repeat 2", "draws its clients and responses: it takes --iw"),
        ("zhao2019 --sample full", "--sample: it has no large sample"),
        *((f"{name} --sample 1/4", f"--sample: {name} cannot be measured in part")
          for name in ("zhao2019", "marrama2012", "ietf78_load", "page2026")),
        ("map_of_windows --sample 1/4 --rtt 0", "--rtt: an RTT of 0 ms is out of range"))]
