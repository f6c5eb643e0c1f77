"""Mistakes in scenarios of kind "trace", and flags that do not go with them."""

from __future__ import annotations

from tests.refusals import OWN, Refusal, edited
from tests.unit.trace.test_trial import FIGURE, GOOD, SCHEDULE, TRACE_TABLE, WRITES

ONE_CURVE = 'compares = ["first/linux"]'
IN_CLAIM = f'{OWN}: [[claim]] "so": '
DEFAULT = "sample_ms = 1"
ONE, TCP, CURVES = 'schedule = "one"', 'tcp = ["linux"]', 'curves = ["first/linux"]'
SECOND = TRACE_TABLE.replace("first", "second")
# So many windows that two traces with them are more than a scenario may have.
MANY = f"{TCP}\ninitcwnd = [{', '.join(map(str, range(1, 60_000)))}]"


def claim(*keys: str) -> tuple[str, str]:
    """What `edited` replaces, and with what: a table [[claim]] is put before the figure.

    keys are lines of the claim. Those that a claim needs and that are not given are added.
    """
    given = {key.partition(" = ")[0] for key in keys}
    usual = ('figure = "fig"', 'says = "so"', 'metric = "window"', ONE_CURVE)
    lines = [*keys, *(key for key in usual if key.partition(" = ")[0] not in given)]
    return FIGURE, "\n".join([FIGURE, "[[claim]]", *lines, ""])


# A file with two TCPs that differ by their congestion control.
SAME = GOOD.replace(TCP, 'tcp = ["linux", "other"]').replace(SCHEDULE, f"""sysctls = {{ \
"net.ipv4.tcp_sack" = "0" }}
[[tcp]]
name = "other"
title = "Other"
congestion_control = "bbr"
validation = true
sysctls = {{ "net.ipv4.tcp_sack" = "0" }}
{SCHEDULE}""")
IS, MORE = 'expects = "is"', 'expects = "more"'
TO_ITSELF, PUBLISHED = 'compares = ["first/linux", "first/linux"]', "published = 1"

REFUSALS = [
    *edited(
        GOOD,
        (ONE, f'{ONE}\nsysctl = ["net.ipv4.tcp_slow_start_after_idle=1"]', '"first": sysctl'
         ' (--sysctl): net.ipv4.tcp_slow_start_after_idle: its TCP "linux" sets this one itself'),
        (WRITES, "writes = [{ at_s = 1.0, bytes = 5 }, { at_s = 0.5, bytes = 5 }]",
         f'{OWN}: [[schedule]] "one": writes 2: at_s: 0.5 s is before 1 s'),
        (WRITES, "writes = [{ at_s = -1, bytes = 5 }]", "a time of -1 s is out of range"),
        (WRITES, "writes = [{ at_s = 0, bytes = 5 }, { at_s = 1, bits = 5 }]", "writes 2: "),
        (WRITES, "writes = [{ at_s = nan, bytes = 5 }]", "nan is not a finite number"),
        (WRITES, "writes = [{ at_s = inf, bytes = 5 }]", "inf is not a finite number"),
        (WRITES, "writes = [{ at_s = 0, bytes = -5 }]", "a size of -5 bytes is out of range"),
        (WRITES, "writes = [{ at_s = 0, bytes = 0 }]", "a size of 0 bytes is out of range"),
        (WRITES, "writes = [{ at_s = 0, bytes = 1.5 }]", "1.5 is not a whole number"),
        (WRITES, 'writes = [{ at_s = "now", bytes = 5 }]', "'now' is not a number"),
        (WRITES, "writes = [{ at_s = 0, until_s = 1, every_s = 0, bytes = 5 }]", "out of range"),
        (WRITES, 'requests = [{ bytes = 5, think_s = "each" }]', "think_s goes with"),
        (WRITES, "requests = [{ bytes = 5, think_s = -1 }]", "out of range"),
        (WRITES, "writes = []", f'{OWN}: [[schedule]] "one": writes has to be a list of tables'),
        (WRITES, "writes = [5]", "writes has to be a list of tables"),
        (WRITES, "writes = 5", "writes has to be a list of tables"),
        (WRITES, "requests = {}", "list of tables"),
        (WRITES, "", "either writes or requests"),
        (WRITES, f"{WRITES}\nrequests = [{{ bytes = 5 }}]", "either writes or requests"),
        (WRITES, "writes = [{ at_s = 0 }]", "writes 1: has to have either bytes or segments"),
        (WRITES, "writes = [{ at_s = 0, bytes = 5, segments = 1 }]", "either bytes or segments"),
        (WRITES, "writes = [{ at_s = 0, bytes = 5, until_s = 1 }]",
         "until_s and every_s go together"),
        (WRITES, "writes = [{ at_s = 0, bytes = 5 }, { at_s = 0, bytes = 5, every_s = 1 }]",
         "writes 2: until_s and every_s go together"),
        ("bytes = 500", "bytes = 49999999", '"first": schedule: all its bytes together: a response'
         " of 50014479 bytes is out of range"),
        (ONE, 'schedule = "won"', "did you mean 'one'?"),
        (ONE, f"{ONE}\nthink_s = [1]", "think_s goes with"),
        (TCP, 'tcp = ["lynux"]',
         "[[trace]] \"first\": tcp: unknown 'lynux' (did you mean 'linux'?)"),
        (TCP, "tcp = []", "has to be a list of strings"),
        (TRACE_TABLE, TRACE_TABLE.replace(TCP, MANY) + SECOND.replace(TCP, MANY),
         "119998 traces are requested"),
        ("rtt_ms = 20\n", f"rtt_ms = 20\n{ONE}\n", "[defaults]"),
        *(("rtt_ms = 20\n", f"rtt_ms = 20\n{name} = 1\n", f"[defaults]: unknown key '{name}'")
          for name in ("name", "title", "tcp", "think_s")),
        ("initcwnd = 10", "initcwnd = [3, 3]", "has a value twice"),
        (DEFAULT, "sample_ms = 0", "out of range"),
        (DEFAULT, f"{DEFAULT}\nmss = 5000", "a segment of 5000 bytes is out of range"),
        *((DEFAULT, f"{DEFAULT}\noutage_ms = {wrong}", "the first before the second")
          for wrong in ("[5, 5]", "[5]", "[5, 6, 7]", "5")),
        (DEFAULT, f"{DEFAULT}\nmss = 88\nreceive_window = 13",
         "13 segments of 88 bytes are less than Linux lets a client offer, 1152 bytes: give 14 or"),
        (DEFAULT, f'{DEFAULT}\nuplink = "less"', "uplink: 'less' is not a number"),
        (DEFAULT, f"{DEFAULT}\nnagle = 1", "true or false"),
        (DEFAULT, f"{DEFAULT}\njitter_ms = [1, 2]",
         '[[trace]] "first": jitter_ms: a trace has one value of it: write a [[trace]] for each'),
        (DEFAULT, f"{DEFAULT}\nloss_burst = 3", "bursts of losses (loss_burst, --burst-loss) need"),
        (DEFAULT, f'{DEFAULT}\nqdisc = "red"', "unknown 'red'"),
        (DEFAULT, f"{DEFAULT}\npairs = [[1, 2]]", "unknown key 'pairs'"),
        *((DEFAULT, f"{DEFAULT}\noutage_ms = [5, 6]\n{more} = 1",
           '"first": an outage (outage_ms) does not go with random loss or jitter')
          for more in ("loss_percent", "jitter_ms")),
        (DEFAULT, f"{DEFAULT}\nsapmle = 1", "unknown key 'sapmle'"),
        ('congestion_control = "reno"', 'congestion_control = "Re no"',
         "not the name of an algorithm"),
        (CURVES, "curves = [5]", "5 is not of the form"),
        (CURVES, 'curves = ["first"]', "is not of the form"),
        (CURVES, 'curves = ["first/other"]',
         "[[figure]] \"fig\": curves: no trace is 'first/other'"),
        (CURVES, 'curves = ["first/linux/iw77"]', "no trace is 'first/linux/iw77'"),
        ('title = "A title"', "title = 5", "has to be a string"),
        (TRACE_TABLE + FIGURE, "", "nothing to measure"),
        ("validation = true", 'validation = true\nsysctls = { "net.ipv4.tcp_sack" = "a b" }',
         "is not a number or a word"),
        ("validation = true", 'validation = true\nsysctls = { "net.ipv4.tcp_sak" = "0" }',
         '[[tcp]] "linux": [sysctls]: unknown \'net.ipv4.tcp_sak\' (did you mean'),
        (*claim(IS), f"{IN_CLAIM}published is missing"),
        (*claim(MORE), f'{IN_CLAIM}compares: expects = "more" has 2 of them, the base first'),
        (*claim(MORE, TO_ITSELF, "within = 1"), f"{IN_CLAIM}within goes with published"),
        (*claim(IS, PUBLISHED, TO_ITSELF), f'{IN_CLAIM}compares: expects = "is" has 1 of them'),
        (*claim('expects = "bigger"', PUBLISHED), f"{IN_CLAIM}expects: unknown 'bigger'"),
        (*claim('expects = "most"', PUBLISHED, "compares = ['first/linux', 'first/other']"),
         'expects = "most" has either compares or published'),
        (*claim('expects = "at_most"'), 'a claim expects less, more, alike, is, not \'at_most\''),
        (*claim(MORE, 'compares = ["first/linux", "first/other"]'),
         f"{IN_CLAIM}compares: no trace is 'first/other'"),
        (*claim(IS, PUBLISHED, 'compares = ["first/linux/iw9"]'),
         f"{IN_CLAIM}compares: no trace is 'first/linux/iw9'"),
        (*claim(IS, PUBLISHED, 'compares = "first/linux"'), "has to be a list of curves"),
        (*claim(IS, PUBLISHED, "where = 5"), f"{IN_CLAIM}where has to be a table like {{at_s = 2.5}}"),
        (*claim(IS, PUBLISHED, "where = {at = 5}"), f"{IN_CLAIM}where: unknown key 'at'"),
        *((*claim(IS, PUBLISHED, f"{old} = 1"), f"{IN_CLAIM}'{old}' is called '{new}' now")
          for old, new in (("relation", "expects"), ("first", "compares"), ("second", "compares"),
                           ("at_s", "where"))),
        (*claim(IS, PUBLISHED, 'figure = "fog"'),
         f"{IN_CLAIM}figure: unknown 'fog' (did you mean 'fig'?)"),
        (*claim(IS, PUBLISHED, 'metric = "windows"'), "did you mean 'window'")),
    *(Refusal(f"--check {OWN} {flags}", words, files={OWN: GOOD}) for flags, words in (
        ("--client curl", "--client does not go with a scenario of kind \"trace\": curl's library"),
        ("--load 0.5", '--load does not go with a scenario of kind "trace": it is one connection'),
        ("--rwnd 45,fixed", "--rwnd-growth does not go with a scenario of kind"),
        ("--size 5", '--size does not go with a scenario of kind "trace": its schedules say'),
        ("--chain 3kB", "plain HTTP"), ("--server nginx", "no other server does"),
        ("--server-command x", "no other server does"), ("--iw default", "write --iw 10"),
        *((f"{flag} {values}", f'{flag}: a scenario of kind "trace" takes one value: its curves')
          for flag, values in (("--rtt", "1,2"), ("--loss", "1%,2%"), ("--qdisc", "fifo,fq"),
                               ("--cc", "reno,cubic"), ("--kernel", "default,mine"),
                               ("--rwnd", "5,6"), ("--mss", "500,600"),
                               ("--sysctl", "net.ipv4.tcp_sack=0,1"))),
        ("--burst-loss 3", '"first": bursts of losses'),
        ("--qdisc cake --queue 1", "cake lets nothing through a queue of 1 packet"),
        ("--sysctl net.ipv4.tcp_slow_start_after_idle=1", '"first": sysctl (--sysctl):'
         ' net.ipv4.tcp_slow_start_after_idle: its TCP "linux" sets this one itself (validation)'),
        ("--sysctl net.ipv4.tcp_sak=1", "unknown 'net.ipv4.tcp_sak' (did you mean"),
        ("--sysctl net.ipv4.tcp_rmem='1 2'", "is not the least, the first and the largest size"),
        ("--repeat 10001", "--repeat: a number of repeats of 10001"),
        ("--bw 0.5k", "--bw: a bandwidth of 0.5 kbit/s is out of range"),
        ("--iw 0", "--iw: an initial window of 0 segments is out of range"))),
    *(Refusal(f"--check {OWN} {flags}", words, files={OWN: SAME}) for flags, words in (
        ("--cc cubic", '[[trace]] "first": --cc: its TCPs "linux" and "other" differ by their'
         " congestion control only"),
        ("--sysctl net.ipv4.tcp_sack=1", '"first": sysctl (--sysctl): net.ipv4.tcp_sack: its TCP'
         ' "linux" sets this one itself (sysctls)')))]
