"""Files of pages, HAR and TOML, that are damaged, have other contents, or describe too much."""

from __future__ import annotations

from tests.refusals import read
from tests.unit.page import saved

NOT_WHOLE = "--page: page.har: is not whole JSON, or cut off"
NO_HAR = "--page: page.har: is not a HAR file: it has no log.entries"

REFUSALS = [
    *read("page.har", "--page",
          (b"", "--page: page.har: is empty"), (saved.har()[:-1], NOT_WHOLE), (saved.har()[:700], NOT_WHOLE),
          (b"\xff{}", "page.har: is not UTF-8 text"), (b"{}", NO_HAR), (b"[1]", NO_HAR),
          (b'{"log": {"entries": {}}}', NO_HAR),
          (b'{"log": {"entries": []}}', "it has no entry that was fetched"),
          (b'{"log": {"entries": [1, null, [], "x", {"request": 3}]}}',
           "no entry that was fetched"),
          (b'{"log": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "too deep"),
          (saved.har(lambda log: [each["response"].update(_transferSize=-1, content={"size": -1})
                                  for each in log["entries"]]), "Chrome, Edg"),
          (saved.har(lambda log: log["entries"].extend(
              saved.entry(f"{number}", 1, 1, 0, 9, host=f"h{number}.example")
              for number in range(260))), "a page of 262 hosts; at most 256 fit: leave third parties out with --mine"),
          (saved.har().replace(b'"h2"', b'"unknown"'),
           "the version of HTTP is unknown (5 of 5 do not name it); to measure it over HTTP/1.1, add"
           " --http 1.1"),
          (saved.har().replace(b"text/html", b"image/png"), "7 entries is a document (text/html)"),
          (saved.har(lambda log: log["entries"].extend([saved.entry("x", 1, 1, 0, 9)] * 10_000)),
           "page.har: a page of 10,005 objects; at most 1,000 fit")),
    *read("x.toml", "--page",
          ("bytes = 3\n", "--page: x.toml: unknown key 'bytes'"),
          *((f"[[object]]\nbytes = 9\n[[object]]\nbytes = 8\nhost = 1\n{certificates}",
             f"--page: x.toml: {words}") for certificates, words in (
              ("[[certificate]]\nhosts = [0]", "certificate of hosts 0: is of two hosts or more; a"
               " host that no certificate names has one of its own"),
              ("[[certificate]]\nhosts = [0, 2]", "certificate of hosts 0, 2: no object has host ="
               " 2"),
              ("[[certificate]]\nhosts = [0, 1]\n[[certificate]]\nhosts = [1, 0]",
               "certificate of hosts 1, 0: host 1 has another certificate already"),
              ("[[certificate]]\nhosts = [0, 0]", "[[certificate]] 1: hosts: has a value twice"),
              ("[[certificate]]\nhosts = 1", "[[certificate]] 1: hosts: has to be a list of"
               " numbers, it is 1"),
              ("[[certificate]]\nhosts = [0, 256]", "[[certificate]] 1: hosts: "),
              ("[[certificate]]", "[[certificate]] 1: hosts is missing"))),
          ("", "--page: x.toml: is empty"), ("# none\n", "a page has at least one object"), (b"\xff", "--page: x.toml: is not UTF-8 text")),
    *read("x", "--page", ("{", "--page: x: is not whole JSON"), ("[1]", "unknown key '1'"),
          (" \n", "--page: x: is empty"),
          ("Nov 21 10:00:00 lb haproxy[1]: 192.0.2.1:4000\n" * 40_000, "--page: x: is neither a HAR"
           " nor a list of [[object]]s in TOML; a log of your users is for --users")),
    *(row for flag in ("--size", "--document") for row in read(
        "list.toml", f"{flag} 5 --page", ("[[object]]\nbytes = 900\n",
                                          f"{flag}: the objects of a file have their sizes")))]
