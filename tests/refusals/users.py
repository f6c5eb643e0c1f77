"""Files about users that have no round-trip times, no usable row, or another format."""

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

REFUSALS = [
    *read("log", "--users",
          # Without a round-trip time: what to add
          (f"{LINE} 196400\n",
           "no field is named as a round-trip time; nginx: add rtt=$tcpinfo_rtt"),
          (f'{LINE} "-" 73700\n', "is $tcpinfo_rtt, say which: --rtt-field N"),
          (f"{LINE.removesuffix(AGENT)[:-5]}\n", "Apache knows none"),
          (AWS, "an AWS load balancer"), (HAPROXY, "add rtt=%[fc_rtt(us)] bytes=%B"),
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
          ("rtt_ms,wieght\n", "unknown column 'wieght' (did you mean 'weight'?); known: rtt_ms,"),
          ('rtt_ms\n"' + "1" * 200_000 + "\n", "log: line "),
          ("rtt_ms,response_bytes\n", "has no usable row"),
          ("rtt_ms,response_bytes\n" + "30,9000\n" * 8 + "x,1\n", "1 of 9 rows cannot be used"),
          ("rtt_ms,weight\n30,0\n", "a weight that is not above 0"),
          ("rtt_ms,group\n30,a\x01b\n", "not printable"),
          ("rtt_ms\n30\x00\n", "1 with rtt_ms that is not a number"))]
