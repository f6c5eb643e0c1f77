"""Files about users without round-trip times or usable rows, and files of unknown formats."""

from __future__ import annotations

from tests.refusals import read

AGENT = '"Mozilla/5.0 (X11; Linux x86_64)"'
LINE = f'192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 9000 "-" {AGENT}'
W3C = ("#Version: 1.0\n#Fields: date time cs-method time-taken sc-bytes\n"
       "2026-11-21 10:00:00 GET 120 9000\n")
AWS = ("h2 2026-11-21T10:00:00.000000Z app/web/50dc 192.0.2.1:4000 10.0.0.1:80 0.000 0.001 0.000"
       ' 200 200 34 9000 "GET https://a/ HTTP/2.0"\n')
HAPROXY = ("Nov 21 10:00:00 lb haproxy[1]: 192.0.2.1:4000 [21/Nov/2026:10:00:00.000] fe be/s1"
           " 0/0/1/20/21 200 9000 - - ---- 1/1/0/0/0 0/0\n")

CLF = '192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 9000 "" "" 2013 533 "fe"'
ENVOY = ('[2026-11-21T10:00:00.310Z] "GET / HTTP/2" 200 - 0 9000 226 100 "192.0.2.1" "curl" "x"'
         ' "a.example" "10.0.2.1:80"\n')
CADDY = ('{"level":"info","ts":1.5,"logger":"http.log.access","msg":"handled request",'
         '"request":{"proto":"HTTP/2.0"},"size":9000,"status":200}\n')
TRAEFIK = '{"ClientAddr":"192.0.2.1:5","DownstreamStatus":200,"DownstreamContentSize":9000}\n'
FASTLY = ("time=x " + " ".join(f"a_long_name_{number}=1" for number in range(40))
          + " rtt_msecs=73700 bytes=9000\n")

REFUSALS = [
    *read("log", "--users",
          # Servers that log no round-trip time, and what each can do
          (CLF, "HAProxy's log in the common log format, in which no field is named as a"
           " round-trip time; add rtt=%[fc_rtt(us)]"),
          (ENVOY, "Envoy logs no round-trip time: take the output of ss -tin"),
          ('{"response_flags":"-","bytes_sent":9000}\n', "Envoy logs no round-trip time"),
          (CADDY, "Caddy logs no round-trip time"), (TRAEFIK, "Traefik logs no round-trip time"),
          (f'{LINE} 7 "router" "http://10.0.0.1:80" 12ms\n', "Traefik logs no round-trip time"),
          (FASTLY, "(rtt, rtt_ms, tcpinfo_rtt, ClientTCPRTTMs): rtt_msecs, time, "),
          (FASTLY, "; if it is rtt_msecs, say so with its unit: --rtt-field rtt_msecs:us or"),
          ('{"client_rtt": 74}\n', "if it is client_rtt, say so with its unit"),
          # Without a round-trip time: what to add
          (f"{LINE} 196400\n",
           "no field is named as a round-trip time; nginx: add rtt=$tcpinfo_rtt"),
          (f'{LINE} "-" 73700\n', "is $tcpinfo_rtt, say which: --rtt-field N"),
          (f"{LINE.removesuffix(AGENT)[:-5]}\n", "Apache cannot log it"),
          (AWS, "an AWS load balancer"), (HAPROXY, "add rtt=%[fc_rtt(us)] bytes=%B"),
          (HAPROXY.replace(" 0/0\n", ' 0/0 {a.example|Mozilla/5.0 (X11)} "GET / HTTP/1.1" 73700\n'),
           "If one of its fields is fc_rtt, say which: --rtt-field N, N:ms for fc_rtt(ms) (the last"
           " one, 73700, is field 20)"),
          # A browser's record of a page
          ('{"log": {"version": "1.2", "entries": []}}\n', "is a HAR, a browser's record of a page,"
           " which is for --page"),
          (W3C, "CloudFront and IIS log none"),
          ('{"EdgeStartTimestamp": "x", "EdgeResponseBytes": 9000}\n',
           "Logpush has ClientTCPRTTMs"),
          ('{"request_time": 0.2, "body_bytes_sent": 9}\n',
           "of these fields has no round-trip time"),
          # No format that is known
          ("duration,bytes\n20,9\n", "is in no format that is known"),
          ("{broken\n", "begins as JSON"),
          ("rtt=20000\n", "is in no format that is known"),
          ("root:x:0:0:root:/root:/bin/bash\n", "its first line is 'root:x:0:0"),
          ("x" * 150 + "\n", "its first line is '" + "x" * 100 + "'. Known: CSV with a header,"),
          ("", "log: is empty"), ("# only a remark\n", "log: is empty"),
          *((first + bytes(100), "is a capture; tshark turns it into a CSV file") for first in (
              b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d",
              b"\x4d\x3c\xb2\xa1", b"\x0a\x0d\x0d\x0a")),  # pcap in µs and ns, and pcapng
          # Columns and rows
          ("rtt_ms,size\n1,2\n", "unknown column 'size'"),
          ("rtt_ms,wieght\n", "unknown column 'wieght' (did you mean 'weight'?)"),
          ('rtt_ms\n"' + "1" * 200_000 + "\n", "log: line "),
          ("rtt_ms,response_bytes\n", "has no usable row"),
          ("rtt_ms,response_bytes\n" + "30,9000\n" * 8 + "x,1\n", "1 of 9 rows cannot be used"),
          ("rtt_ms,weight\n30,0\n", "a weight that is not above 0"),
          ("rtt_ms,group\n30,a\x01b\n", "not printable"),
          ("rtt_ms\n30\x00\n", "1 with rtt_ms that is not a number")),
    *read("log", "--rtt-field delay:ms --users",
          ('{"dealy": 74}\n', "JSON has no field 'delay' (did you mean 'dealy'?); its fields: dealy"),
          ("no names at all\n", "a log has no field 'delay'; its fields: none")),
    *read("log", "--rtt-field client_rtt --users",
          ("{}\n", "'client_rtt' is neither the number of a field, such as 12 (in µs) or 12:ms, nor"
           " its name with a unit, such as client_rtt:us"))]
