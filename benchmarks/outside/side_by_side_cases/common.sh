# Read by each case: hosts a (10.0.0.1) and b (10.0.0.2), and what is printed about them.
# A line "= NAME NUMBER" is an observation, as side_by_side.py knows it.

on() {          # HOST COMMAND...
    ip netns exec "$@"
}

host() {        # NAME
    ip netns add "$1"
    ip -n "$1" link set lo up
}

connect() {     # HOST ADDRESS HOST ADDRESS: a cable; its ends are called as the other host
    ip link add name "$3" netns "$1" type veth peer name "$1" netns "$3"
    [ "$2" = - ] || ip -n "$1" addr add "$2/24" dev "$3"
    [ "$4" = - ] || ip -n "$3" addr add "$4/24" dev "$1"
    ip -n "$1" link set dev "$3" up
    ip -n "$3" link set dev "$1" up
}

cable() {       # a and b and nothing between
    host a; host b
    connect a 10.0.0.1 b 10.0.0.2
    a_out="a b" b_out="b a"
}

bridge() {      # a and b at a Linux bridge in s
    host a; host b; host s
    connect a 10.0.0.1 s -
    connect b 10.0.0.2 s -
    ip -n s link add name br0 type bridge
    ip -n s link set dev a master br0
    ip -n s link set dev b master br0
    ip -n s link set dev br0 up
    a_out="s b" b_out="s a"
}

# A queue on the way to b or to a: HOST and device are in a_out and b_out.
to_b() {        # WORDS OF TC...
    tc -n ${a_out% *} qdisc add dev ${a_out#* } "$@"
}

to_a() {        # WORDS OF TC...
    tc -n ${b_out% *} qdisc add dev ${b_out#* } "$@"
}

# As Mininet's TCLink: HTB for the rate, under it netem for the delay and the length of the queue.
mininet_link() {    # MBIT DELAY [LIMIT]: both directions
    for way in "$a_out" "$b_out"; do
        tc -n ${way% *} qdisc add dev ${way#* } root handle 5:0 htb default 1
        tc -n ${way% *} class add dev ${way#* } parent 5:0 classid 5:1 htb rate "$1mbit" burst 15k
        tc -n ${way% *} qdisc add dev ${way#* } parent 5:1 handle 10: \
            netem delay "$2" ${3:+limit $3}
    done
}

serve() {       # iperf3's server on b
    on b iperf3 -s -D >/dev/null
    until on b ss -Hltn | grep -q :5201; do sleep 0.1; done
}

control() {     # CONGESTION-CONTROL
    on a sysctl -qw net.ipv4.tcp_congestion_control="$1"
    on b sysctl -qw net.ipv4.tcp_congestion_control="$1"
}

flow() {        # FLAGS OF IPERF3...: from a to b; Mbit/s at the receiver, of several their sum
    on a iperf3 -f k -c 10.0.0.2 "$@" >report.txt || cat report.txt >&2
    awk '/receiver/ { for (i = 2; i <= NF; i++) if ($i == "Kbits/sec") last = $(i - 1) / 1000
                      if (match($0, /\([0-9.e+-]+%\)/)) lost = substr($0, RSTART + 1, RLENGTH - 3) }
         END { print "= throughput_mbit", last; if (lost != "") print "= lost_percent", lost }' \
        report.txt
}

pings() {       # NAME FLAGS OF PING...: from a to b; the median
    name=$1
    shift
    on a ping -n "$@" 10.0.0.2 >pings.txt
    grep -v 'icmp_seq=1 ' pings.txt | sed -n 's/.*time=\([0-9.]*\) ms.*/\1/p' | sort -n |
        awk -v name="$name" '{ times[NR] = $1 }
            END { print "= " name, times[int((NR + 1) / 2)] }'
}

pings_lost() {  # of the last pings
    sed -n 's/.* \([0-9.]*\)% packet loss.*/= lost_percent \1/p' pings.txt
}
